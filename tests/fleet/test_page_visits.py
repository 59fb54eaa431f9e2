"""The dashboard's pages without a browser: a visitor of NiceGUI's own reads, clicks and types, and commands are played."""

import asyncio
import sys
from functools import partial

import pytest
from lives import Life, Past
from nicegui import ElementFilter, ui
from nicegui.testing import user_simulation
from nicegui.testing.user_interaction import UserInteraction
from states import Clock, Followed, say

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet.dashboard import chart_options
from h2t2_tools.fleet.dashboard.answer_page import AnswerPage
from h2t2_tools.fleet.dashboard.chart_options import Mark
from h2t2_tools.fleet.dashboard.pages import Pages
from h2t2_tools.fleet.dashboard.watcher import Watcher
from h2t2_tools.fleet.monitoring import words
from h2t2_tools.fleet.monitoring.history import History
from h2t2_tools.fleet.monitoring.intervals import Z, buckets
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet
from h2t2_tools.fleet.rdl.desk import Desk
from h2t2_tools.fleet.rdl.inbox import Item

BETA, FP, FN = (words.PRICES[cost] for cost in ("beta", "delta_fp", "delta_fn"))


class Removable(Followed):
    """A follower that removes a device, or says why not."""

    def __init__(self, fleet):
        super().__init__(fleet)
        self.removed, self.refusal = [], ""

    def remove(self, device):
        if self.refusal:
            raise Failure(self.refusal)
        self.removed.append(device)


class House:
    """A fleet, its dashboard, and the commands that a visitor sends.

    Attributes:
        commands: (device, content) of each command.
        refusal: why the next command fails; "": it does not.
    """

    def __init__(self, folder):
        self.clock = Clock()
        self.fleet = Fleet(self.clock)
        self.follower = Removable(self.fleet)
        self.watcher = Watcher(self.follower, History(folder / "h.db"), self.clock)
        self.commands, self.refusal = [], ""

    def say(self, name="kitchen", **entries):
        say(self.fleet, name, **entries)
        self.watcher.tick()

    def send(self, name, content):
        if self.refusal:
            raise Failure(self.refusal)
        self.commands.append((name, content))
        return ""

    def visit(self, walk, path="/device/kitchen", commands=True, answer_page=None):
        """Open a page, and let a coroutine function walk on it."""

        async def run():
            async with user_simulation(lambda: None) as user:
                Pages(self.watcher, self.send if commands else None, answer_page).declare()
                await user.open(path)
                await walk(user)

        present = dict(sys.modules)
        try:
            asyncio.run(run())
        finally:
            sys.modules.update(present)  # NiceGUI's simulation forgets the modules that declare pages, and their packages


@pytest.fixture
def house(tmp_path):
    """One with a kitchen."""
    house = House(tmp_path)
    house.say()
    yield house
    house.watcher.close()


def found(user, marker):
    """The marked element."""
    return next(iter(user.find(marker=marker).elements))


def fields(user):
    """The visible fields by their labels."""
    return {element.props["label"]: element for element in user.find(kind=ui.number).elements if element.visible}


def enter(user, label, value):
    """Put a number into a field."""
    with user:
        fields(user)[label].value = value


async def press(user, text, answer=None):
    """Press a button, and one of the dialog that follows it."""
    await user.should_see(kind=ui.button, content=text)
    click(user, user.find(kind=ui.button).elements, text)
    if answer:
        await until_true(lambda: open_dialogs(user))
        click(user, open_dialogs(user)[0].descendants(), answer)
        await until_true(lambda: not open_dialogs(user))


def open_dialogs(user):
    with user:
        return [dialog for dialog in ElementFilter(kind=ui.dialog) if dialog.value]


def click(user, elements, text):
    """Click the first button with a text."""
    buttons = [element for element in elements if isinstance(element, ui.button) and element.text == text]
    UserInteraction(user, {min(buttons, key=lambda button: button.id)}, None).click()


async def until_true(condition):
    """Let the page work until something is true; a page that never does hangs, and the test's limit ends it."""
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "minutes, button, action, command",
    [
        *((n, "Pause", "Pause", {"pause": seconds}) for n, seconds in ((10, 600), (0.5, 30), (1440, 86400))),
        (None, "Save", "Save", {"snapshot": True}),
        (None, "Reset learning ...", "Reset learning", {"reset": True}),
    ],
)
def test_a_command_is_sent_if_the_visitor_agrees(house, minutes, button, action, command):
    async def walk(user):
        if minutes:
            enter(user, "pause, minutes", minutes)
        await press(user, button, "Cancel")
        await press(user, button, action)
        await until_true(lambda: "done" in found(user, "result").text)

    house.visit(walk)
    assert house.commands == [("kitchen", command)]


@pytest.mark.parametrize(
    "field, button, value",
    [*(("pause, minutes", "Pause", n) for n in (0, -1, 1440.5, None)), *((BETA, "Set costs", n) for n in (-0.01, 1.01, None))],
)
def test_a_number_out_of_range_is_not_sent(house, field, button, value):
    async def walk(user):
        enter(user, field, value)
        await press(user, button)
        await until_true(lambda: "not sent" in found(user, "result").text)
        await user.should_not_see(kind=ui.button, content="Cancel")

    house.visit(walk)
    assert house.commands == []


def test_a_pause_is_ended_where_there_is_one(house):
    async def walk(user):
        await user.should_not_see(kind=ui.button, content="End the pause")
        house.clock.time += 1
        house.say(paused=True)
        await user.should_see(kind=ui.button, content="End the pause", retries=50)
        await press(user, "End the pause", "End the pause")
        await until_true(lambda: house.commands)

    house.visit(walk)
    assert house.commands == [("kitchen", {"pause": 0})]


def test_costs_that_changed_are_sent(house):
    async def walk(user):
        assert [fields(user)[label].value for label in (BETA, FP, FN)] == [0.2, 0.7, 1.0]
        await press(user, "Set costs")
        await until_true(lambda: "not sent" in found(user, "result").text)
        enter(user, BETA, 0.0)
        enter(user, FP, 1.0)
        await press(user, "Set costs", "Set costs")
        await until_true(lambda: house.commands)

    house.visit(walk)
    assert house.commands == [("kitchen", {"set": {"beta": 0, "delta_fp": ONE}})]


def test_fields_follow_the_device_but_not_over_what_a_visitor_typed(house):
    async def walk(user):
        enter(user, FP, 0.5)
        house.clock.time += 1
        house.say(beta=ONE // 2, delta_fp=ONE // 4, delta_fn=None)
        await until_true(lambda: fields(user)[BETA].value == 0.5)
        assert fields(user)[FP].value == 0.5 and FN not in fields(user)
        await press(user, "Set costs", "Set costs")
        await until_true(lambda: house.commands)

    house.visit(walk)
    assert house.commands == [("kitchen", {"set": {"delta_fp": ONE // 2}})]


def test_a_command_that_fails_says_why(house):
    async def walk(user):
        await press(user, "Save", "Save")
        await until_true(lambda: house.refusal in found(user, "result").text)

    house.refusal = "kitchen did not answer"
    house.visit(walk)


def test_a_device_is_removed_or_stays_with_the_reason(house):
    async def walk(user):
        house.follower.refusal = "kitchen is online"
        await press(user, "Remove device ...", "Remove device")
        await until_true(lambda: "kitchen is online" in found(user, "result").text)
        house.follower.refusal = ""
        await press(user, "Remove device ...", "Remove device")
        await until_true(lambda: house.follower.removed)
        await until_true(lambda: user.back_history[-1] == "/")

    house.visit(walk)
    assert house.follower.removed == ["kitchen"]


def test_without_a_token_the_page_commands_nothing(house):
    async def walk(user):
        await user.should_not_see(kind=ui.button, content="Pause")
        await user.should_not_see(marker="commands")

    house.visit(walk, commands=False)


def test_a_device_page_follows_the_device(house):
    async def walk(user):
        await user.should_see("3,000 since its start")
        house.clock.time += 1
        house.say(samples=5000)
        await user.should_see("5,000 since its start", retries=100)
        house.clock.time += 1
        house.say(samples=4000, boot=8)
        await user.should_see("4,000 since its start", retries=100)
        await user.should_not_see("5,000 since its start")

    house.say(samples=3000)
    house.visit(walk)


def test_the_fleet_page_counts_and_shows_columns_that_differ(house):
    async def walk(user):
        table = next(iter(user.find(kind=ui.table).elements))
        assert [row["device"] for row in table.rows] == ["hall", "kitchen"]
        assert not {"model", "energy"} & set(table.props["visible-columns"])
        assert found(user, "summary").text.startswith("2 devices, 0 ")
        house.clock.time += 1
        house.say("hall", model=4, energy_mj=5000)
        await until_true(lambda: {"model", "energy"} <= set(table.props["visible-columns"]))
        assert next(row for row in table.rows if row["device"] == "hall")["energy"] == 5.0

    house.say("hall")
    house.visit(walk, "/")


def test_an_empty_fleet_page_has_a_hint_in_place_of_a_table(tmp_path):
    house = House(tmp_path)

    async def walk(user):
        await user.should_not_see(kind=ui.table)
        await user.should_see(marker="hint")
        assert "1 device" not in found(user, "summary").text
        house.clock.time += 1
        house.say()
        await user.should_see(kind=ui.table, retries=100)
        await user.should_not_see(marker="hint")
        assert "1 device, " in found(user, "summary").text and "0 workers" in found(user, "summary").text

    house.watcher.tick()
    house.visit(walk, "/")
    house.watcher.close()


def test_the_filter_and_the_order_of_the_address(house):
    async def walk(user):
        table = next(iter(user.find(kind=ui.table).elements))
        assert [row["device"] for row in table.rows] == ["kitchen"]
        assert (table.pagination["sortBy"], table.pagination["descending"]) == ("cost", True)
        user.find(kind=ui.input).clear()
        await until_true(lambda: len(table.rows) == 2)
        user.find(kind=ui.input).type("HALL")
        await until_true(lambda: [row["device"] for row in table.rows] == ["hall"])
        user.find(kind=ui.input).trigger("keydown.enter")
        await until_true(lambda: user.back_history[-1] == "/device/hall")

    house.say("hall")
    house.visit(walk, "/?filter=kit&sort=-cost")


def test_a_telephone_orders_by_a_list(house):
    async def walk(user):
        table = next(iter(user.find(kind=ui.table).elements))
        order = next(iter(user.find(kind=ui.select).elements))
        for name, expected in (
            ("asked", ("asked", True)),
            ("device", ("device", False)),
            ("online", ("online", False)),
            ("", (None, False)),
        ):
            with user:
                order.value = name
            assert (table.pagination["sortBy"], table.pagination["descending"]) == expected
            assert table.pagination["page"] == 1

    house.visit(walk, "/")


class TestAnswers:
    """The page on which a person answers."""

    @pytest.fixture
    def desk(self):
        return Desk(2)

    def lay(self, desk, sequence, k=3):
        payload = wire.encode_request(2, 5, sequence, (8, 8, 1), bytes(64), k=k)
        desk.add(Item("kitchen", "topic", worker_wire.decode_request(payload), float("inf")))

    def visit(self, house, desk, walk):
        pair = pairs.load("digits")
        house.visit(walk, "/answer", answer_page=partial(AnswerPage, pair, desk, ["other", "three"], house.watcher))

    def test_a_button_answers_the_sample_that_is_shown(self, house, desk):
        async def walk(user):
            await until_true(lambda: "2 waiting, this one from kitchen" in found(user, "waiting").text)
            await press(user, "1: three")
            await until_true(lambda: "1 waiting, this one from kitchen; 1 answered" in found(user, "waiting").text)
            await press(user, "s: nobody can tell")
            await until_true(lambda: "0 waiting" in found(user, "waiting").text)

        self.lay(desk, 1)
        self.lay(desk, 2)
        self.visit(house, desk, walk)
        assert [answer.label for answer in desk.take_answers(at_once=True)] == [1, -1]

    def test_nothing_is_answered_where_nothing_waits(self, house, desk):
        async def walk(user):
            await user.should_see("Nothing to answer", retries=50)
            buttons = [
                b for b in user.find(kind=ui.button).elements if b.text in ("0: other", "1: three", "s: nobody can tell")
            ]
            assert len(buttons) == 3 and not any(button.enabled for button in buttons)
            self.lay(desk, 1)
            await until_true(lambda: all(button.enabled for button in buttons))

        self.visit(house, desk, walk)
        assert desk.label_count == 0

    @pytest.mark.parametrize(
        "k, words",
        [
            (0, "thinks: other. Its score for three is about 0.03"),
            (15, "thinks: three. Its score for three is about 0.97"),
            (8, "thinks: three"),
        ],
    )
    def test_what_the_local_model_thinks(self, house, desk, k, words):
        async def walk(user):
            await until_true(lambda: words in found(user, "opinion").text)

        house.say(bits=4)
        self.lay(desk, 1, k=k)
        self.visit(house, desk, walk)


def pictured(folder):
    """Rows of a device's hours."""
    past = Past(History(folder / "past.db"), began=1_800_000_000.0)
    life = Life()
    for _ in range(30):
        life.work(200)
        past.minute(kitchen=life)
    rows = past.watcher.series("kitchen", 0)
    past.watcher.close()
    return buckets(rows, 8)


def test_the_picture_of_the_costs_has_a_band_of_the_error(tmp_path):
    intervals = pictured(tmp_path)
    picture = chart_options.costs(intervals, [])
    own, always, never, low, width = (line["data"] for line in picture.options["series"])
    assert len(own) == len(intervals) >= 5
    for interval, point, lower, band, price in zip(intervals, own, low, width, always, strict=True):
        half = Z * interval.costs.error
        assert point[1] == interval.costs.own and price[1] == interval.price
        assert lower[1] == pytest.approx(max(0.0, point[1] - half)) and lower[1] + band[1] == pytest.approx(point[1] + half)
    assert [point[1] for point in never] == [interval.costs.never for interval in intervals]
    assert picture.options["yAxis"]["min"] == 0 and len(picture.rows) == len(intervals)


@pytest.mark.parametrize("count", [1, 2])
def test_the_time_axis_of_a_new_device_begins_with_its_first_point(tmp_path, count):
    intervals = pictured(tmp_path)[-count:]
    first, last = (round(1000 * interval.ended) for interval in (intervals[0], intervals[-1]))
    axis = chart_options.costs(intervals, []).options["xAxis"]
    assert axis["max"] == last and axis["min"] == (first if count > 1 else last - 60_000)


def test_labels_of_marks_lie_inside_the_picture(tmp_path):
    intervals = pictured(tmp_path)
    first, last = intervals[0].ended, intervals[-1].ended
    marks = [Mark(at, "command", "it") for at in (first - 1, first, (first + last) / 2, last, last + 1)]
    drawn = chart_options.costs(intervals, marks).options["series"][0]["markLine"]["data"]
    assert [(line["xAxis"], line["label"]["align"]) for line in drawn] == [
        (round(1000 * first), "left"), (round(500 * (first + last)), "center"), (round(1000 * last), "right"),
    ]  # fmt: skip


def test_a_restart_that_an_update_caused_has_no_mark_of_its_own(tmp_path):
    intervals = pictured(tmp_path)
    at = (intervals[0].ended + intervals[-1].ended) / 2
    marks = [Mark(at, "update", "it"), Mark(at + 60, "restart", "it"), Mark(at + 61, "restart", "it")]
    drawn = chart_options.costs(intervals, marks).options["series"][0]["markLine"]["data"]
    assert [line["name"] for line in drawn] == [marks[0].name, marks[2].name]


def test_the_device_as_it_is_now_ends_its_series(house):
    house.clock.time += 60
    house.say(samples=1100)
    now = house.clock.time
    assert [row["samples"] for row in house.watcher.series("kitchen", 0)][-1] == 1100
    assert all(row["at"] < now for row in house.watcher.series("kitchen", 0, until=now))
    assert house.watcher.series("kitchen", 0, until=now + 1)[-1]["at"] == now
    house.say("silent", status=b"online 7")
    assert house.watcher.series("silent", 0) == []
