"""A page in a real browser."""

import os
import shutil
from pathlib import Path

import pytest
from support import until


@pytest.fixture
def browser():
    driver = shutil.which("chromedriver")
    if not driver or not shutil.which("chromium"):
        pytest.skip("no chromium here; run: sudo apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    made.set_page_load_timeout(120)
    yield made
    made.quit()


def narrow(browser, width=400):
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def picture(browser, name):
    """Keep what is seen in docs/images, where that is asked for: `make pictures`."""
    folder = os.environ.get("H2T2_IMAGES")
    if folder:
        assert browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def text(browser):
    return browser.execute_script("return document.body.innerText")


def shows(browser, *words, seconds=60):
    """Wait until the page says all of these."""
    until(lambda: all(word in text(browser) for word in words), seconds)
    missing = [word for word in words if word not in text(browser)]
    assert not missing, (missing, text(browser)[:3000])


def no_sideways_scrolling(browser):
    return browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
