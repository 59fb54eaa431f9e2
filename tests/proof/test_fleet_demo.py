"""`h2t2 demo --fleet 20 --dashboard`, looked at in a real browser."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from pages import browser, narrow, no_sideways_scrolling, picture, shows, text
from support import hears_ctrl_c, until

from h2t2_tools.fleet.broker import free_port
from h2t2_tools.proof.children import remaining_output

__all__ = ["browser"]
H2T2 = [sys.executable, "-m", "h2t2_tools"]


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_the_three_in_trouble_are_seen(browser, tmp_path):
    port = free_port()
    out = tmp_path / "report.json"
    command = [*H2T2, "demo", "--fleet", "20", "--dashboard", str(port), "--json", str(out)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}  # NiceGUI would play a test
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **streams, env=plain, preexec_fn=hears_ctrl_c) as demo:
        try:
            said = [demo.stderr.readline(), demo.stderr.readline()]
            assert f"http://localhost:{port}/" in said[0] and "20 nodes" in said[1], said
            browser.get(f"http://127.0.0.1:{port}/")
            shows(browser, "20 devices", seconds=120)
            shows(browser, "drift", "offline", "saturated", seconds=300)
            assert no_sideways_scrolling(browser)
            assert until(lambda: first(browser) == "cut-off", 60), text(browser)[:1000]  # the gravest alarm first
            picture(browser, "fleet")
            browser.get(f"http://127.0.0.1:{port}/device/changed")
            shows(browser, "alarm 'drift'", "stability index")
            assert until(lambda: chart_count(browser) == 5, 60)
            time.sleep(2)  # they grow into place
            picture(browser, "device")
            browser.get(f"http://127.0.0.1:{port}/")
            narrow(browser)
            shows(browser, "drift", "offline", "saturated")
            assert no_sideways_scrolling(browser)
            picture(browser, "fleet-narrow")
            see_what_wastes_money(browser, f"http://127.0.0.1:{port}/")
            demo.send_signal(signal.SIGINT)
            said = remaining_output(demo, 120)[1]
        finally:
            demo.kill()
    assert demo.returncode == 0, said
    report = json.loads(out.read_text())
    assert set(report["alarms_s"]) == {"changed", "cut-off", "wrong-scaler"}
    well = [one for one in report["devices"] if re.match("sensor-", one["device"])]
    assert len(well) == 14
    for one in well:  # on a busy machine a node may have had no time to ask
        assert {alarm["kind"] for alarm in one["alarms"]} <= {"fallbacks", "silent", "unanswered"}, one["alarms"]
        assert one["costs"]["own"] > 0 and one["state"]["samples"] > 20


def see_what_wastes_money(browser, address):
    """Which device wastes money, and why? The page alone answers: its first line, its order by waste, its chip and sentence."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get(address + "?sort=-excess")
    shows(browser, "dearer 1", "Wasted a day: asks-always ", seconds=300)
    assert until(lambda: first(browser) == "asks-always", 60), text(browser)[:1000]
    row = browser.execute_script("return document.querySelector('tbody tr').innerText")
    assert re.search(r"a sample costs 0\.2\d more than with asking never: it asks about \d+% of its samples; ", row), row
    assert re.search(r"an answer costs 0\.40 and saves 0\.1\d", row) and re.search(r"\+\d+,\d{3} ± ", row), row
    browser.get(address + "?alarm=dearer")
    assert until(lambda: devices(browser) == ["asks-always"], 60), text(browser)[:1000]


def devices(browser):
    return browser.execute_script("return [...document.querySelectorAll('tbody tr a')].map(a => a.innerText)")


def chart_count(browser):
    return browser.execute_script("return document.querySelectorAll('section svg').length")


def first(browser):
    return browser.execute_script("return document.querySelector('tbody tr a').innerText")


def test_too_few_nodes_are_refused(capsys):
    from h2t2_tools.cli.main import main

    assert main(["demo", "--fleet", "6"]) == 2
    assert "want a whole number, 7 to 10000" in capsys.readouterr().err
    assert main(["demo", "--dashboard"]) == 2
    assert "--fleet 20" in capsys.readouterr().err
