"""Shows pages in a real browser."""

import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress

import pytest
from command_line import H2T2
from support import hears_ctrl_c, until

from h2t2_tools.fleet.broker import free_port

AXE_SHA512 = (
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"
)


@pytest.fixture
def browser():
    if not shutil.which("chromedriver") or not shutil.which("chromium"):
        pytest.skip("no chromium here; run: sudo apt-get install chromium chromium-driver")
    with chromium() as driver:
        yield driver


@contextmanager
def chromium():
    """Run a Chromium that nobody sees, and yield its driver."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(120)
        yield driver
    finally:
        driver.quit()


def axe():
    """The source of axe-core, fetched once into the cache."""
    from h2t2_tools.boards.emulators import npm
    from h2t2_tools.common.errors import Failure
    from h2t2_tools.common.places import cache

    package = npm.Package("axe-core", "4.14.1", AXE_SHA512)
    path = cache() / str(package) / "package/axe.min.js"
    if not path.exists():
        try:
            npm.unpack(package, path.parent.parent)
        except Failure as error:
            pytest.skip(f"no axe-core here: {error}")
    return path.read_text(encoding="utf-8")


def violations(browser, source):
    """What axe-core finds serious or critical on the page: (rule, element, reason)."""
    script = f"""{source}; const done = arguments[0];
        axe.run(document, {{resultTypes: ['violations']}}).then(found => done(found.violations
            .filter(rule => ['serious', 'critical'].includes(rule.impact))
            .flatMap(rule => rule.nodes.map(node => [rule.id, node.html.slice(0, 150), node.failureSummary]))))"""
    return browser.execute_async_script(script)


def theme(browser, scheme):
    """Show the page as in a browser that prefers "light" or "dark"."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def narrow(browser, width=400):
    wide(browser, 1000, width)


def wide(browser, height=1000, width=1400):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def text(browser):
    return browser.execute_script("return document.body.innerText")


def shows(browser, *words, seconds=60):
    """Wait until the page shows all of these words at one time."""
    seen = [""]

    def shown():
        seen[0] = text(browser)
        return all(word in seen[0] for word in words)

    assert until(shown, seconds), ([word for word in words if word not in seen[0]], seen[0][:3000])


def follow(browser, name):
    """Click on a link. One script finds and clicks it, because a table that is renewed in between leaves a dead link."""
    script = """const link = [...document.querySelectorAll('a')].find(one => one.innerText == arguments[0]);
        if (link) link.click();
        return !!link;"""
    assert until(lambda: browser.execute_script(script, name), 30), (name, text(browser)[:3000])


def no_sideways_scrolling(browser):
    return browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def outside_pytest():
    """The environment without pytest's variables, by which NiceGUI would play a test."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


@contextmanager
def dashboard(url, folder, *options):
    """Run a dashboard and yield its address."""
    port = free_port()
    command = [*H2T2, "dashboard", "--broker", url, "--port", str(port), "--history", str(folder / "history.db"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=outside_pytest()) as process:
        try:
            address = process.stdout.readline().split()[-1].replace("localhost", "127.0.0.1")
            assert until(lambda: answers(f"http://127.0.0.1:{port}/"), 60)
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


@contextmanager
def fleet_demo(*options):
    """Run `h2t2 demo --fleet 20 --dashboard`, and yield its process and the address of its page."""
    port = free_port()
    command = [*H2T2, "demo", "--fleet", "20", "--dashboard", str(port), *options]
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **streams, env=outside_pytest(), preexec_fn=hears_ctrl_c) as demo:
        try:
            messages = [demo.stderr.readline(), demo.stderr.readline()]
            assert f"http://localhost:{port}/" in messages[0] and "20 nodes" in messages[1], messages
            yield demo, f"http://127.0.0.1:{port}/"
        finally:
            if demo.poll() is None:
                demo.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    demo.wait(60)
            demo.kill()


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
