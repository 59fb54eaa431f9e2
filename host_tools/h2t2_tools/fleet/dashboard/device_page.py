"""The page of a device. It answers: what does it cost, did a change help, is the threshold right?"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from ..monitoring import details
from ..monitoring.alarms import MOVED
from ..monitoring.histograms import stability
from ..monitoring.intervals import EACH_SIDE_S, Interval, around, buckets, costs_across, gained, since, since_start
from ..monitoring.thresholds import judge, prices_of
from ..monitoring.unit import Unit
from ..monitoring.waits import quantile
from . import chart_options, sentences
from .chart_options import Mark, Picture
from .times import date_minute, date_time
from .watcher import Watcher

PICTURES_S = 5.0
SPANS = {"an hour": 3600, "a day": 86400, "a week": 604800, "all": 1e12}
PERIODS = {"an hour": "the last hour", "a day": "the last day", "a week": "the last week", "all": "all its time"}
POINTS = 24  # of a line over time
MARKS = 12  # events that are listed, the latest ones
CHARTS = {
    "costs": "What does a sample cost?",
    "thresholds": "Is the threshold right?",
    "shares": "How often does it ask?",
    "spread": "Does it see what it saw at first?",
    "waits": "How long do answers take?",
}
TIPS = {
    "saved so far": "since its start; the intervals hold it with 95 %", "samples": "each sample gets one decision",
    "asked": "an answer also teaches", "could not ask": "a pause, a full window, or no budget",
    "waits to be asked": "questions of an outage, which the device asks when workers answer again; their labels teach",
    "prices": "beta, delta_fp and delta_fn, where the worst mistake costs 1", "last decision": "its class, and who decided",
    "event": "the class that the device watches for", "policy": "the algorithm that decides whether to ask",
    "update": "the package in force, and the result of the last one", "remote model": "workers of this number answer it",
}  # fmt: skip
EVENTS = {"update": "the update", "command": "the command", "alarm": "the change", "restart": "the restart"}


def heading(text: str) -> TextElement:
    """A heading of a page's section."""
    return TextElement(tag="h2", text=text)


class Chart:
    """A chart with a heading, a sentence below it, and its data as a table."""

    def __init__(self, key: str, title: str) -> None:
        with ui.element("section").props(f'aria-labelledby="{key}-title"').classes("w-full min-w-0"):
            heading(title).props(f'id="{key}-title"')
            self._title = title
            self._chart = ui.echart({}, renderer="svg").classes("w-full h-72").props(f'role="img" aria-label="{title}"')
            self._sentence = ui.label().classes("text-body2").mark(f"{key}-sentence")
            with ui.element("details").classes("w-full"):
                TextElement(tag="summary", text="The numbers")
                self._table = ui.element("div").classes("overflow-x-auto")
        self._numbers: tuple[Any, ...] = ()

    def on_mark(self, choose: Callable[[str], None]) -> None:
        """Call a function with the name of a mark that is clicked."""
        self._chart.on_click(lambda event: choose(event.name or "") if event.component_type == "markLine" else None)

    def draw(self, picture: Picture, sentence: str) -> None:
        """Show a picture and its sentence."""
        if self._sentence.text != sentence:
            self._sentence.text = sentence
            self._chart.props["aria-label"] = f"{self._title} {sentence}"
        if self._chart.options != picture.options:
            self._chart.options.clear()
            self._chart.options.update(picture.options)
            self._chart.update()
        if self._numbers != (picture.columns, picture.rows):
            self._numbers = picture.columns, picture.rows
            self._table.clear()
            with self._table:
                _plain_table(picture)


def _plain_table(picture: Picture) -> None:
    with ui.element("table").classes("data text-body2"):
        with ui.element("thead"), ui.element("tr"):
            for column in picture.columns:
                TextElement(tag="th", text=column).props('scope="col"')
        with ui.element("tbody"):
            for row in picture.rows:
                with ui.element("tr"):
                    for cell in row:
                        TextElement(tag="td", text=cell)


@dataclass
class DevicePage:
    """An open page.

    Args:
        watcher: the source of everything on the page.
        name: of the device.
        unit: of what it saved.
        events: the marks in the pictures, the newest first.
    """

    watcher: Watcher
    name: str
    unit: Unit
    events: list[Mark] = field(default_factory=list)
    _content: dict[str, Any] = field(default_factory=dict)  # what the page shows, by its place

    def build(self, follow: Callable[[Callable[[], None]], None], panel: Callable[[], None] | None) -> None:
        """Build the elements.

        Args:
            follow: calls a function now, and after each tick of the watcher.
            panel: builds the buttons that command the device; None: the dashboard is read-only.
        """
        self.alarms = ui.column().classes("q-gutter-none")
        self.facts = ui.element("dl").classes("facts w-full").mark("facts")
        ui.label("Period of the pictures")
        self.span = ui.toggle(list(SPANS), value="an hour", on_change=self.draw)
        self.span.props('no-caps role="group" aria-label="period of the pictures"')
        self.update_heading = heading("Did the update help?")
        self.update = ui.label().classes("text-body1").mark("update")
        with ui.element("div").classes("w-full grid gap-x-6 gap-y-4 grid-cols-1 md:grid-cols-2"):
            self.charts = {key: Chart(key, title) for key, title in CHARTS.items()}
        for key in ("costs", "shares"):
            self.charts[key].on_mark(self.compare_named)
        heading("What happened")
        self.marks = ui.column().classes("w-full q-gutter-none").mark("marks")
        self.comparison = ui.label().classes("text-body1").props('role="status"').mark("comparison")
        if panel:
            panel()
        heading("Log")
        columns = [{"name": key, "label": key, "field": key, "align": "left"} for key in ("when", "event")]
        self.log = ui.table(columns=columns, rows=[], row_key="key", pagination=20).classes("w-full")
        self.log.props("dense wrap-cells")
        follow(self.look)
        self.draw()
        ui.timer(PICTURES_S, self.draw)

    def look(self) -> None:
        """Show the watcher's last tick."""
        device = self.watcher.devices.get(self.name)
        facts = details.facts(device, self.watcher.latest["at"], self.unit) if device else []
        alarms = device["alarms"] if device else []
        if self._changed("facts", facts):
            _fill_facts(self.facts, facts)
        if self._changed("alarms", alarms):
            _fill_alarms(self.alarms, alarms)
        lines = self.watcher.log(self.name)
        if not self._changed("log", lines):
            return
        self.log.rows = [{"key": n, **_line(line)} for n, line in enumerate(lines)]
        self.events = _marks(lines)
        _fill_marks(self.marks, self.events[:MARKS], self.compare)

    def draw(self) -> None:
        """Draw the pictures of the chosen period."""
        period = str(self.span.value)
        rows = self.watcher.series(self.name, time.time() - SPANS[period])
        intervals = buckets(rows, POINTS)
        interval = gained(rows) or (since_start(rows[-1]) if rows else None)
        period_text = PERIODS[period]
        updates = [mark.at for mark in self.events if mark.kind == "update"]
        costs = costs_across(rows, updates) or (interval.costs if interval else None)
        text = sentences.of_costs(costs, period_text)
        self.charts["costs"].draw(chart_options.costs(intervals, self.events), text)
        self.charts["shares"].draw(chart_options.shares(intervals, self.events), _shares_sentence(interval, period_text))
        latest = next((mark for mark in self.events if mark.kind == "update"), None)
        self.update.text = self._compared(latest) if latest else ""
        self.update_heading.visible = self.update.visible = latest is not None
        device = self.watcher.devices.get(self.name)
        if latest:  # answers about an older model do not tell where this one is unsure
            rows = list(since(rows, latest.at))
            interval = gained(rows) or (since_start(rows[-1]) if rows else None)
        if device and device["state"]:
            _draw_present(self.charts, device, interval)

    def compare(self, mark: Mark) -> None:
        """Show the costs before and after an event."""
        self.comparison.text = f"{date_minute(mark.at)}: {mark.text}. {self._compared(mark)}"

    def compare_named(self, name: str) -> None:
        """Show the costs before and after the event of that name, which a visitor clicked in a picture."""
        for mark in self.events:
            if mark.name == name:
                self.compare(mark)

    def _compared(self, mark: Mark) -> str:
        rows = self.watcher.series(self.name, mark.at - EACH_SIDE_S, until=mark.at + EACH_SIDE_S)
        return sentences.of_comparison(around(rows, mark.at), EVENTS[mark.kind])

    def _changed(self, place: str, value: Any) -> bool:
        """Note what a place shows; whether it has changed."""
        changed = place not in self._content or bool(self._content[place] != value)
        self._content[place] = value
        return changed


def _draw_present(charts: dict[str, Chart], device: dict[str, Any], interval: Interval | None) -> None:
    """Draw the charts that need the device's state."""
    state = device["state"]
    usual, lately = device["scores"]["usual"], device["scores"]["lately"]
    charts["spread"].draw(chart_options.histogram(usual, lately), _spread_sentence(usual, lately))
    counts = state["waits"] or []
    charts["waits"].draw(chart_options.waits(counts), _waits_sentence(counts))
    prices = prices_of(state["beta"], state["delta_fp"], state["delta_fn"], state["classes"])
    if interval is None or prices is None:
        text = "Nothing can be judged: its state holds no costs, or no counters by the score."
        charts["thresholds"].draw(Picture({}, (), []), text)
    else:
        judgement = judge(interval, prices)
        names = state["class_names"] or []
        event = names[1] if len(names) == 2 else "class 1"
        picture = chart_options.thresholds(judgement, interval.answered, prices, event)
        charts["thresholds"].draw(picture, f"It {judgement.text}.")


def _shares_sentence(interval: Interval | None, period: str) -> str:
    if interval is None or not interval.samples:
        return f"It decided no sample in {period}."
    question = f"In {period} it asked about {interval.offloads / interval.samples:.0%} of {interval.samples:,} samples"
    if not interval.unserved:
        return f"{question}. Every question was answered in time."
    return f"{question}. About {interval.unserved / interval.samples:.1%} it wanted an answer and decided without one."


def _spread_sentence(usual: list[int] | None, lately: list[int] | None) -> str:
    if not usual or not lately or len(usual) != len(lately):
        return "The first thousand samples show what is usual; a comparison needs 250 more."
    index = stability(usual, lately)
    if index > MOVED:
        return f"No: its scores have another distribution (stability index {index:.2f}; above {MOVED} counts as another)."
    return f"Yes: its scores have the same distribution (stability index {index:.2f}; above {MOVED} would count as another)."


def _waits_sentence(counts: list[int]) -> str:
    half, slow = quantile(counts, 0.5), quantile(counts, 0.99)
    if half is None or slow is None:
        return "No answer has come since its start."
    return f"Half of the answers came within {half:.0f} ms, 99 % within {slow:.0f} ms."


def _fill_alarms(place: ui.column, alarms: list[dict[str, str]]) -> None:
    place.clear()
    with place:
        for alarm in alarms:
            with ui.row().classes("items-center q-gutter-x-sm q-py-xs"):
                ui.label(alarm["kind"]).classes("pill text-negative")
                ui.label(alarm["text"])


def _fill_facts(place: ui.element, facts: list[list[str]]) -> None:
    place.clear()
    with place:
        if not facts:
            ui.label("no such device has ever been on this broker")
        for term, value in facts:
            with ui.element("div"):
                with TextElement(tag="dt", text=term):
                    if term in TIPS:
                        ui.tooltip(TIPS[term])
                TextElement(tag="dd", text=value)


def _fill_marks(place: ui.column, marks: list[Mark], compare: Callable[[Mark], None]) -> None:
    place.clear()
    with place:
        if not marks:
            ui.label("No update, command, alarm or restart is in the log yet.").classes("quiet")
        for mark in marks:
            with ui.row().classes("items-center w-full no-wrap"):
                ui.label(f"{date_minute(mark.at)}  {mark.text}").classes("grow")
                button = ui.button("24 hours before and after", on_click=lambda _, mark=mark: compare(mark))
                button.props(f'flat no-caps aria-label="24 hours before and after: {mark.kind} at {date_minute(mark.at)}"')


def _marks(lines: list[dict[str, Any]]) -> list[Mark]:
    """The lines of a log that may have changed the costs, the newest first."""
    return [
        Mark(line["at"], line["kind"], sentences.of_line(line))
        for line in lines
        if line["kind"] in EVENTS and not (line["kind"] == "alarm" and line["text"].endswith(": over"))
    ]


def _line(line: dict[str, Any]) -> dict[str, str]:
    return {"when": date_time(line["at"]), "event": sentences.of_line(line)}
