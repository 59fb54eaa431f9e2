"""Takes the pictures of the dashboard for the docs, after fifteen minutes of `h2t2 demo --fleet 20 --dashboard`.

`make pictures` runs it: twenty real nodes, a real worker and a real browser. It takes sixteen minutes and shows a progress bar.
"""

import argparse
import time
from pathlib import Path

from pages import chromium, fleet_demo, narrow, shows, wide

from h2t2_tools.cli.output import working

MINUTES = 15.0
GROWING_S = 2.0  # in which charts grow into place


def wait(minutes):
    """Let the fleet work for some minutes."""
    began = time.monotonic()
    with working(f"the fleet works for {minutes:g} minutes", 60 * minutes) as bar:
        while (passed := time.monotonic() - began) < 60 * minutes:
            bar.update(completed=passed)
            time.sleep(min(1.0, 60 * minutes - passed))


def show_whole_page(browser):
    """Make the window as high as the page, which grows while its charts grow into place."""
    height = 0
    while (needed := browser.execute_script("return document.documentElement.scrollHeight")) > height:
        height = needed
        wide(browser, height)
        time.sleep(GROWING_S)


def take(browser, address, folder):
    """Write the pictures: the fleet on a desk and on a telephone, the updated device, and thresholds that are not settled."""
    wide(browser)
    browser.get(address)
    shows(browser, "20 devices", "drift", "offline", "saturated", "dearer", "Saved so far: ")
    browser.save_screenshot(str(folder / "fleet.png"))
    narrow(browser)
    shows(browser, "drift", "offline", "saturated", "dearer")
    browser.save_screenshot(str(folder / "fleet-narrow.png"))
    browser.get(address + "device/updated")
    shows(browser, "The update helped: ", "Half of the answers came within ")
    show_whole_page(browser)
    browser.save_screenshot(str(folder / "device.png"))
    wide(browser)
    browser.get(address + "device/newcomer")
    shows(browser, "It asks between ")
    time.sleep(GROWING_S)
    section = browser.find_element("css selector", 'section[aria-labelledby="thresholds-title"]')
    section.screenshot(str(folder / "thresholds.png"))


def main():
    """Run the fleet, wait, and take the pictures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="folder of the pictures: docs/images")
    options.add_argument("--minutes", type=float, default=MINUTES, help="how long the fleet works before (%(default)g)")
    chosen = options.parse_args()
    with chromium() as browser, fleet_demo() as (_, address):
        wait(chosen.minutes)
        take(browser, address, chosen.folder)


if __name__ == "__main__":
    main()
