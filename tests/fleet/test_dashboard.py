"""The dashboard in a real browser: what nodes said stands on its pages, in wide and narrow windows, by keyboard, and safely."""

import json
import re
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from lives import Life, Past
from pages import browser, dashboard, follow, narrow, no_sideways_scrolling, shows, text
from states import state
from support import until

from h2t2.cpython import device_names
from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.link import presence, wire
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.monitoring.history import History

H2T2 = [sys.executable, "-m", "h2t2_tools"]
pytestmark = pytest.mark.whole
__all__ = ["browser"]


class Fleet:
    """A broker, and devices that a test plays on it."""

    def __init__(self, broker):
        self.broker, self.url = broker, broker.url
        self.commands = []
        self.session = Session(broker.host, broker.port, self._client, [wire.topic("+", "command")]).start()
        self.session.open()
        self.began = time.time()

    def _client(self):
        client = make_client("")
        client.on_message = self._answer
        return client

    def _answer(self, _client, _data, message):
        command = json.loads(message.payload)
        self.commands.append((device_names.device_of(message.topic), command))
        answer = {"id": command["id"], "ok": "pause" not in command, "why": "" if "pause" not in command else "it will not"}
        self.session.publish(wire.topic(device_names.device_of(message.topic), "answer"), json.dumps(answer).encode(), 0)

    def status(self, name, word=b"online 7"):
        self.session.publish(wire.topic(name, "status"), word, 1, True)

    def state(self, name, **entries):
        now = int(time.time())
        told = {"time": now, "uptime_s": now - int(self.began) + 100, **entries}
        self.session.publish(wire.topic(name, "state"), json.dumps(state(**told)).encode(), 1, True)


@pytest.fixture
def fleet(broker):
    made = Fleet(broker)
    yield made
    made.session.close()


def elsewhere(browser):
    """Addresses on other machines that the browser asked for."""
    sent = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    urls = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if re.match(r"(https?|wss?)://(?!127\.0\.0\.1)", url)]


def row(browser, name):
    """The cells of a device that are seen."""
    script = """for (const row of document.querySelectorAll('tbody tr'))
        if (row.cells.length && row.cells[0].innerText == arguments[0])
            return [...row.cells].filter(cell => cell.offsetParent).map(cell => cell.innerText);"""
    return browser.execute_script(script, name)


def cards(browser):
    """The devices on cards, in their order."""
    return browser.execute_script("return [...document.querySelectorAll('.q-table__grid-content a')].map(a => a.innerText)")


def names(browser):
    """The devices in the table, in their order."""
    return browser.execute_script("return [...document.querySelectorAll('tbody tr a')].map(a => a.innerText)")


def press(browser, words):
    """Press a button or the head of a column."""
    script = """const element = [...document.querySelectorAll('button, th')]
            .find(shown => shown.innerText.toLowerCase().includes(arguments[0]));
        if (element) element.click();
        return !!element;"""
    assert until(lambda: browser.execute_script(script, words.lower()), 30), (words, text(browser)[:3000])


def replace(field, words):
    """Type over what stands in a field."""
    from selenium.webdriver.common.keys import Keys

    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(words)


def press_in_dialog(browser, button):
    from selenium.webdriver.common.by import By

    xpath = (
        f"//div[contains(@class, 'q-dialog')]//button[normalize-space(.)='{button}' or normalize-space(.)='{button.upper()}']"
    )
    until(lambda: any(element.is_displayed() for element in browser.find_elements(By.XPATH, xpath)))
    next(element for element in browser.find_elements(By.XPATH, xpath) if element.is_displayed()).click()


def test_the_fleet_on_a_page(fleet, browser, tmp_path):
    for name, entries in (("kitchen", {}), ("hall", {"link": "nobody"}), ("attic", {"namesakes": True})):
        fleet.status(name)
        fleet.state(name, **entries)
    fleet.session.publish(presence.worker_topic(3, "one"), b"1", 1, True)
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address)
        shows(browser, "3 devices, 2 with alarms, 1 worker", "unanswered", "namesakes")
        assert names(browser) == ["hall", "attic", "kitchen"]  # the gravest alarm first
        cells = row(browser, "kitchen")
        assert cells[:2] == ["kitchen", "fine"] and "120 ± 130" in cells and "0.080" in cells, cells
        assert "no worker serves its model: start h2t2 rdl" in row(browser, "hall")[1]  # the pill's reason
        fleet.state("kitchen", samples=3000, beta=16384)
        shows(browser, "420 ± 130")  # what was saved, at the new price; how soon: h2t2-lab bench dashboard
        assert no_sideways_scrolling(browser)
        browser.save_screenshot(str(tmp_path / "wide.png"))
        narrow(browser)
        assert until(lambda: cards(browser) == ["hall", "attic", "kitchen"])  # one card for each
        assert no_sideways_scrolling(browser)
        assert not elsewhere(browser)
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert not errors, errors


def test_filter_order_and_chips_are_in_the_address(fleet, browser, tmp_path):
    rates = {"attic": 4.98, "cellar": 186, "hall": 0.333, "kitchen": 0.5}
    entries = {"hall": {"link": "nobody"}, "attic": {"namesakes": True}}
    with dashboard(fleet.url, tmp_path) as address:
        for seconds in (0, 3000):
            for name, rate in rates.items():
                fleet.status(name)
                samples = 1000 + round(seconds * rate)
                fleet.state(name, samples=samples, uptime_s=100 + seconds, **entries.get(name, {}))
        browser.get(address)
        shows(browser, "4 devices, 2 with alarms", "4.98", "186", "0.333")
        press(browser, "samples a second")
        assert until(lambda: names(browser) == ["hall", "kitchen", "attic", "cellar"], 20), names(browser)  # as numbers
        press(browser, "samples a second")
        assert until(lambda: names(browser) == ["cellar", "attic", "kitchen", "hall"], 20), names(browser)
        assert until(lambda: browser.current_url.endswith("?sort=-per_s"), 20), browser.current_url
        press(browser, "namesakes 1")
        assert until(lambda: names(browser) == ["attic"], 20)
        press(browser, "unanswered 1")
        assert until(lambda: names(browser) == ["attic", "hall"], 20)
        kept = browser.current_url
        assert kept.endswith("?alarm=unanswered%2Cnamesakes&sort=-per_s"), kept
        browser.get(address + "workers")
        browser.get(kept)
        assert until(lambda: names(browser) == ["attic", "hall"], 30)
        browser.get(address + "?filter=CELL&sort=nonsense&alarm=nonsense")
        assert until(lambda: names(browser) == ["cellar"], 30)
        narrow(browser)
        assert until(lambda: cards(browser) == ["cellar"], 20)


def test_a_device_on_a_page(fleet, browser, tmp_path):
    name = "Wohnküche 2"
    fleet.status(name)
    fleet.state(name, uptime_s=100)
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address)
        shows(browser, name)
        follow(browser, name)
        shows(browser, "1,000 since its start", "200 (20%): 200 answered, 0 not in time", "What does a sample cost?")
        fleet.state(name, uptime_s=130, samples=1100, saturated=50, offloads=250, replies=250)
        shows(browser, "1,100 since its start", "saturated")
        assert until(lambda: browser.execute_script("return document.querySelectorAll('section svg').length") == 5)
        assert no_sideways_scrolling(browser)
        assert "SET COSTS" not in text(browser).upper()  # it only looks
        narrow(browser)
        assert until(lambda: no_sideways_scrolling(browser))


def test_did_the_update_help_and_is_the_threshold_right(fleet, browser, tmp_path):
    """The pages alone answer, for a device that was updated, one whose threshold is right, and one that needs more answers."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    lives = {"updated": Life(1, 0.5), "right": Life(2, asks=(6, 9)), "unsettled": Life(3, asks=(5, 10))}
    with closing(History(tmp_path / "history.db")) as history:
        past = Past(history, time.time() - 3000)
        for n in range(50):
            if n == 25:
                lives["updated"].restart(package=3)
                lives["updated"].sharpness = 9.0
            for name, samples in (("updated", 200), ("right", 2000), ("unsettled", 3)):
                lives[name].work(samples)
            past.minute(**lives)
    for name, life in lives.items():
        fleet.status(name, b"online %d" % life.boot)
        life.work(1)
        fleet.session.publish(wire.topic(name, "state"), life.state(time.time()).encode(), 1, True)
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address + "device/updated")
        shows(browser, "Did the update help?", "The update helped: a sample costs 0.", "25 min before", "min after")
        shows(browser, "In the last hour a sample cost", "update 3 came into force: kept: better")
        assert until(lambda: "update" in chart_text(browser, "costs"), 30)
        assert "restart" not in chart_text(browser, "costs")  # a part of the update
        button = browser.find_element(By.CSS_SELECTOR, "button[aria-label^='24 hours before and after: restart']")
        button.click()
        shows(browser, "The restart helped: a sample costs 0.")
        # a click on the mark in the picture does the same
        label = browser.find_element(By.XPATH, "//*[@aria-labelledby='costs-title']//*[name()='text'][.='update']")
        ActionChains(browser).move_to_element(label).move_by_offset(0, 30).click().perform()
        assert until(lambda: "UTC: update 3 came into force: kept: better. The update helped" in text(browser), 20)
        browser.get(address + "device/right")
        shows(browser, "Is the threshold right?", "It asks between 0.38 and 0.56: right")
        assert until(lambda: {"ask above 20 %", "ask below 71 %"} <= set(chart_text(browser, "thresholds").split("|")), 30)
        assert "Did the update help?" not in text(browser)
        browser.get(address + "device/unsettled")
        shows(browser, "more answers will tell")
        sentence = (
            r"It asks between .*: perhaps too (wide|narrow); about \d+ more answers will tell what deciding alone costs at "
        )
        assert re.search(sentence, text(browser))
        numbers = browser.find_element(By.XPATH, "//section[.//h2[contains(., 'threshold')]]//summary")
        numbers.click()
        shows(browser, "score from", "95 % from")


def chart_text(browser, key):
    """The texts in a chart."""
    script = "return [...document.querySelectorAll(`[aria-labelledby=${arguments[0]}-title] svg text`)].map(t => t.textContent)"
    return "|".join(browser.execute_script(script, key))


def test_by_keyboard_and_in_the_dark(fleet, browser, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    for name in ("kitchen", "hall"):
        fleet.status(name)
        fleet.state(name)
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address)
        shows(browser, "kitchen", "hall")

        def focused():
            return browser.execute_script(
                "return document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
            )

        def tab_to(wanted):
            for _ in range(40):
                if focused() == wanted:
                    return
                browser.switch_to.active_element.send_keys(Keys.TAB)
            raise AssertionError(f"{wanted} is not reached by the keyboard")

        tab_to("dark or light")
        before = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        dark = lambda: browser.execute_script("return getComputedStyle(document.body).backgroundColor")  # noqa: E731
        assert until(lambda: dark() != before, 20)
        tab_to("filter devices")
        browser.switch_to.active_element.send_keys("kit")
        assert until(lambda: row(browser, "hall") is None, 20) and row(browser, "kitchen")
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        shows(browser, "1,000 since its start")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        browser.get(address)
        shows(browser, "kitchen")
        red, green, blue = map(int, re.findall(r"\d+", dark())[:3])
        assert red + green + blue < 200  # as the browser wishes
        assert browser.find_elements(By.TAG_NAME, "table")


def test_it_commands_only_those_who_know_the_token(fleet, browser, tmp_path):
    from selenium.webdriver.common.by import By

    fleet.status("kitchen")
    fleet.state("kitchen")
    token = tmp_path / "token"
    token.write_text("open sesame, 16 or more\n")
    token.chmod(0o600)
    with dashboard(fleet.url, tmp_path, "--command", "--token-file", str(token)) as address:
        browser.get(address + "device/kitchen")
        assert until(lambda: browser.current_url.endswith("/login"), 20)
        field = browser.find_element(By.CSS_SELECTOR, "input[type=password]")
        field.send_keys("wrong")
        browser.find_element(By.XPATH, "//button[contains(., 'Open')]").click()
        shows(browser, "that is not it")
        browser.find_element(By.CSS_SELECTOR, "input[type=password]").send_keys("open sesame, 16 or more")
        browser.find_element(By.XPATH, "//button[contains(., 'Open')]").click()
        shows(browser, "1 device,")
        browser.get(address + "device/kitchen?token=open%20sesame,%2016%20or%20more")
        shows(browser, "1,000 since its start")
        assert "sesame" not in browser.current_url
        beta = browser.find_element(By.CSS_SELECTOR, "input[aria-label='price of asking']")
        assert until(lambda: beta.get_attribute("value") == "0.2", 20)  # the present value
        replace(beta, "0.25")
        browser.find_element(By.XPATH, "//button[contains(., 'Set costs')]").click()
        shows(browser, "Set the costs of kitchen?", "price of asking: 0.2 → 0.25")
        assert not fleet.commands  # it asks before it sends
        press_in_dialog(browser, "Set costs")
        shows(browser, "kitchen has done it: set costs (price of asking: 0.2 → 0.25)")
        assert fleet.commands[0][0] == "kitchen" and fleet.commands[0][1]["set"] == {"beta": 8192}
        browser.find_element(By.XPATH, "//button[normalize-space(.)='Pause' or contains(., 'PAUSE')]").click()
        shows(browser, "kitchen asks nothing for 10 minutes")
        press_in_dialog(browser, "Pause")
        shows(browser, "kitchen refuses: it will not")
        assert fleet.commands[-1][1]["pause"] == 600
        shows(browser, "operator set the price of asking to 0.25", "it carried the command out")  # the log
        press(browser, "Remove device ...")
        shows(browser, "Remove kitchen from the broker and from the history?")
        press_in_dialog(browser, "Remove device")
        shows(browser, "kitchen is online and would come back")
        fleet.status("kitchen", b"offline 7")
        shows(browser, "it is not connected to the broker")
        press(browser, "Remove device ...")
        press_in_dialog(browser, "Remove device")
        shows(browser, "0 devices")


def test_a_blind_page_says_so_and_invents_nothing(fleet, browser, tmp_path):
    """The broker stops: the page says since when, greys what is old and keeps the alarms that there were."""
    for name in ("kitchen", "hall"):
        fleet.status(name)
        fleet.state(name, namesakes=name == "hall")
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address)
        shows(browser, "2 devices, 1 with alarms")
        blind = lambda: browser.execute_script("return document.querySelectorAll('.blind table').length")  # noqa: E731
        assert not blind()
        fleet.state("kitchen", samples=1100, beta=16384)
        shows(browser, "420 ± 130")
        fleet.broker.stop()
        shows(browser, "broker unreachable since ", " UTC, data ", " s old", "connecting again")
        assert until(blind, 20) and "2 devices, 1 with alarms" in text(browser)
        fleet.broker.start()
        assert until(lambda: "broker unreachable" not in text(browser) and not blind(), 60)


def test_empty_pages_and_unknown_devices_say_what_to_do(fleet, browser, tmp_path):
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address)
        shows(browser, "No device has published on this broker yet. Start one: h2t2 node --broker URL --device kitchen")
        browser.get(address + "workers")
        shows(browser, "No worker answers on this broker", "h2t2 rdl --pair PAIR --broker URL")
        browser.get(address + "device/kitchen")
        shows(browser, "No device named kitchen has ever been on this broker.", "Look at the devices that there are:")
        fleet.status("kitchen")
        fleet.state("kitchen")
        shows(browser, "Log")  # it appears
        browser.get(address + "device/kitchn")
        shows(browser, "No device named kitchn has ever been on this broker.", "Did you mean one of these?")
        follow(browser, "kitchen")
        shows(browser, "Log")
        browser.get(address + "?filter=nothing")
        shows(browser, "No device matches. Clear the filter and the chips.")


def test_without_the_token_nothing_is_shown(fleet, tmp_path):
    fleet.state("kitchen")
    with dashboard(fleet.url, tmp_path, "--command") as address:
        assert "?token=" in address
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address.split("?")[0] + "device/kitchen")
        page = refused.value.read().decode()
        assert refused.value.code == 401 and "kitchen" not in page and "token" in page


def commands(history):
    """How many commands a history's log holds."""
    with closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True)) as base:
        return base.execute("SELECT count(*) FROM log WHERE text LIKE '%\"snapshot\":true%'").fetchone()[0]


def test_a_restart_loses_nothing(fleet, browser, tmp_path):
    fleet.status("kitchen")
    for count in (1, 2):
        with dashboard(fleet.url, tmp_path, "--command"):
            fleet.state("kitchen")
            subprocess.run([*H2T2, "command", "kitchen", "--broker", fleet.url, "--snapshot"], check=True, timeout=60)
            assert until(lambda count=count: commands(tmp_path / "history.db") == count)
    with dashboard(fleet.url, tmp_path) as address:
        browser.get(address + "device/kitchen")
        shows(browser, "Log")
        assert until(lambda: text(browser).count("told it to save what it has learned") == 4, 30), text(browser)


def test_what_cannot_be_is_said(fleet, tmp_path):
    def refused(*options):
        command = [*H2T2, "dashboard", *options]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert "Traceback" not in run.stderr
        return run.returncode, run.stderr

    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    port = str(broker.free_port())
    status, words = refused("--history", "bad.db", "--port", port, "--broker", fleet.url)
    assert status == 2 and "bad.db" in words
    status, words = refused("--port", fleet.url.rpartition(":")[2], "--broker", fleet.url)
    assert status == 2 and "another program listens there" in words
    (tmp_path / "empty").write_text("")
    (tmp_path / "empty").chmod(0o600)
    status, words = refused("--command", "--token-file", "empty", "--port", port, "--broker", fleet.url)
    assert status == 2 and "empty" in words


def test_the_real_page_works_under_its_policy(fleet, browser, tmp_path):
    """No violation of it, charts and tables included; the health check follows the broker."""
    fleet.status("kitchen")
    fleet.state("kitchen")
    with dashboard(fleet.url, tmp_path, "--command") as address:
        browser.get(address)
        shows(browser, "1 device,")
        base = address.partition("?")[0]
        browser.get(base + "device/kitchen")
        shows(browser, "1,000 since its start")
        assert until(lambda: browser.execute_script("return document.querySelectorAll('section svg').length") == 5)
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert not errors, errors
        assert urllib.request.urlopen(base + "healthz", timeout=10).read() == b"ok\n"
        fleet.session.publish("h2t2/2/evil/state", b"{", 1, True)
        shows(browser, "1 message was refused, the last on h2t2/2/evil/state")
