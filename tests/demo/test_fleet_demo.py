"""`h2t2 demo --fleet 20 --dashboard`, looked at in a real browser."""

import json
import re
import signal

import pytest
from pages import browser, fleet_demo, narrow, no_sideways_scrolling, shows, text
from support import until

from h2t2_lab.processes import remaining_output

__all__ = ["browser"]


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_the_pages_answer_and_name_the_three_in_trouble(browser, tmp_path):
    """One run of the demo serves them all: the fleet's page, those of four devices, and the report at the end."""
    out = tmp_path / "report.json"
    with fleet_demo("--json", str(out)) as (demo, address):
        browser.get(address)
        shows(browser, "20 devices", seconds=120)
        shows(browser, "drift", "offline", "saturated", seconds=300)
        assert no_sideways_scrolling(browser)
        assert until(lambda: first(browser) == "cut-off", 60), text(browser)[:1000]  # the gravest alarm first
        browser.get(address + "device/changed")
        shows(browser, "alarm 'drift'", "stability index")
        assert until(lambda: chart_count(browser) == 5, 60)
        browser.get(address)
        narrow(browser)
        shows(browser, "drift", "offline", "saturated")
        assert no_sideways_scrolling(browser)
        see_what_wastes_money(browser, address)
        see_that_the_update_helped(browser, address)
        see_which_thresholds_are_right(browser, address)
        demo.send_signal(signal.SIGINT)
        messages = remaining_output(demo, 120)[1]
    assert demo.returncode == 0, messages
    report = json.loads(out.read_text())
    assert set(report["alarms_s"]) == {"changed", "cut-off", "wrong-scaler"}
    well = [one for one in report["devices"] if re.match("sensor-", one["device"])]
    assert len(well) == 14
    for one in well:  # on a busy machine a node may have had no time to ask
        assert {alarm["kind"] for alarm in one["alarms"]} <= {"fallbacks", "silent", "unanswered"}, one["alarms"]
        assert one["costs"]["own"] > 0 and one["state"]["samples"] > 20


def see_what_wastes_money(browser, address):
    """Which device wastes money, and why? The page alone answers: its first line, its chip, and the device's row."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get(address + "?alarm=dearer")
    shows(browser, "dearer 1", "Saved so far: ", seconds=300)
    patterns = (
        "asks-always",
        r"a sample costs 0\.2\d more than with asking never: it asks about \d+% of its samples; ",
        r"an answer costs 0\.40 and saves 0\.1\d",
        r"−[\d,.]+ ± ",
    )

    def told():  # by the only row: at first the alarm comes and goes
        shown = rows(browser)
        return len(shown) == 1 and all(re.search(pattern, shown[0]) for pattern in patterns)

    assert until(told, 120), text(browser)[:1000]


def see_that_the_update_helped(browser, address):
    """Did the update help? The page of the updated device says so, with an error, and names the event."""
    browser.get(address + "device/updated")
    shows(browser, "Did the update help?", "The update helped: a sample costs ", "update 1 came into force", seconds=300)
    sentence = re.search(
        r"The update helped: a sample costs (0\.\d+) ± (0\.\d+) less\. .* before: 0\..* after: 0\.", text(browser)
    )
    assert sentence and float(sentence[1]) > float(sentence[2]), text(browser)[:3000]


def see_which_thresholds_are_right(browser, address):
    """Is the threshold right? One device has answers enough to say so; another needs more, and its page says how many."""
    browser.get(address + "device/newcomer")
    pattern = r"It asks .*: (right, as far as the answers tell|perhaps too (wide|narrow)); about [\d,]+ more (answers )?will "
    assert until(lambda: re.search(pattern, text(browser)), 60), text(browser)[:3000]
    browser.get(address + "device/sensor-01")
    shows(browser, "Is the threshold right?")
    assert until(lambda: re.search(r"It asks between 0\.\d\d and 0\.\d\d: right\.", text(browser)), 300), text(browser)[:3000]


def rows(browser):
    return browser.execute_script("return [...document.querySelectorAll('tbody tr')].map(row => row.innerText)")


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
