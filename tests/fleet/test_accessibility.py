"""Who sees little, uses a keyboard or a finger can use the pages: contrasts, axe-core, touch targets, the order of tables."""

import json
import time

import pytest
from lives import Life
from pages import axe, browser, dashboard, narrow, shows, theme, violations
from states import state
from support import until

from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.link import presence, wire

__all__ = ["browser"]


def luminance(colour):
    """Of #rrggbb, as WCAG 2 defines it."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, another):
    low, high = sorted((luminance(one), luminance(another)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["LIGHT", "DARK"])
def test_contrasts(name):
    colours = pytest.importorskip("h2t2_tools.fleet.dashboard.theme")
    palette = getattr(colours, name)
    for colour in palette.keys() - {"page", "card", "pale"}:
        for background in ("page", "card"):
            lowest = 3 if colour == "line" else 4.5
            assert contrast(palette[colour], palette[background]) >= lowest, (name, colour, background)
    assert contrast(palette["text"], palette["pale"]) >= 4.5 and contrast(palette["own"], palette["pale"]) >= 3
    assert contrast("#ffffff", colours.PRIMARY) >= 4.5


@pytest.fixture
def address(broker, tmp_path):
    """The address of a dashboard with a well device, one in trouble, and a worker."""
    life = Life()
    life.work(3000)
    session = Session(broker.host, broker.port, lambda: make_client(""), ["unused"]).start()
    session.open()
    for name, content in (("kitchen", life.state(time.time())), ("hall", json.dumps(state(link="nobody", namesakes=True)))):
        session.publish(wire.topic(name, "status"), b"online 7", 1, True)
        session.publish(wire.topic(name, "state"), content.encode(), 1, True)
    session.publish(presence.worker_topic(3, "worker"), b"1", 1, True)
    with dashboard(broker.url, tmp_path, "--command") as url:
        yield url
    session.close()


SMALL = """return [...document.querySelectorAll('button, a, summary, .q-field__control')]
    .map(e => [e.getBoundingClientRect(), e]).filter(([box, e]) => box.width && (box.width < 43.5 || box.height < 43.5))
    .map(([box, e]) => `${e.outerHTML.slice(0, 120)}: ${box.width} x ${box.height}`)"""


@pytest.mark.whole
@pytest.mark.timeout(300)
def test_axe_finds_nothing_serious_and_fingers_hit(address, browser):
    source = axe()
    base, _, query = address.partition("?")
    browser.get(f"{base}?{query}")
    for scheme in ("light", "dark"):
        theme(browser, scheme)
        for page, word in (
            ("", "kitchen"),
            ("device/kitchen", "Is the threshold right?"),
            ("device/hall", "namesakes"),
            ("workers", "worker"),
        ):
            browser.get(base + page)
            shows(browser, word)
            browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert browser.execute_script("return document.documentElement.lang") == "en-US"
            assert browser.execute_script("return document.querySelectorAll('main h1, header h1').length") == 1
            assert not (problems := violations(browser, source)), (scheme, page, problems)
    narrow(browser)
    for page, word in (("", "kitchen"), ("device/kitchen", "Is the threshold right?")):
        browser.get(base + page)
        shows(browser, word)
        assert until(lambda: not browser.execute_script(SMALL), 10), browser.execute_script(SMALL)
        assert not (problems := violations(browser, source)), problems


@pytest.mark.whole
def test_a_table_is_put_in_order_by_keyboard(address, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(address)
    shows(browser, "kitchen")
    head = lambda: browser.find_element(By.CSS_SELECTOR, "th.sortable")  # noqa: E731
    assert until(lambda: head().get_attribute("aria-sort") == "none", 20)
    for order in ("ascending", "descending"):
        head().send_keys(Keys.ENTER)
        assert until(lambda order=order: head().get_attribute("aria-sort") == order, 20)
