"""The page of a device: its alarms, its numbers, its pictures and its log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nicegui import ui

from h2t2.core.numbers import ONE

from ..monitoring import report
from . import pictures
from .watcher import Watcher

PICTURES_S = 5.0
SPANS = {"an hour": 3600, "a day": 86400, "a week": 604800, "all": 1e12}
CHARTS = ("costs", "shares", "forecast", "spread", "waits")
LOG_COLUMNS = ("when", "what", "text")


class DevicePage:
    """Shows a device.

    Args:
        watcher: the source of everything on the page.
        follow: calls a function now, and after each tick of the watcher.
    """

    def __init__(self, watcher: Watcher, follow: Callable[[Callable[[], None]], None]) -> None:
        self._watcher, self._follow = watcher, follow

    def content(self, name: str, panel: Callable[[], None] | None) -> None:
        """Build the page of a device.

        Args:
            panel: builds the buttons that command it; None: the dashboard is read-only.
        """
        alarms = ui.column().classes("q-gutter-none")
        facts = ui.label().classes("text-body2").mark("facts")
        span = ui.toggle(list(SPANS), value="an hour").props("dense")
        with ui.element("div").classes("w-full grid gap-2 grid-cols-1 md:grid-cols-2"):
            charts = {key: ui.echart({}).classes("w-full h-64") for key in CHARTS}
        if panel:
            panel()
        ui.label("Log").classes("text-subtitle1")
        columns = [{"name": key, "label": key, "field": key, "align": "left"} for key in LOG_COLUMNS]
        log = ui.table(columns=columns, rows=[], row_key="key").classes("w-full").props("dense")
        drawn_alarms: list[Any] = [None]

        def look() -> None:
            device = self._watcher.devices.get(name)
            facts.text = _facts(device) if device else "no such device has ever been on this broker"
            raised = device["alarms"] if device else []
            if raised != drawn_alarms[0]:
                drawn_alarms[0] = raised
                alarms.clear()
                with alarms:
                    for alarm in raised:
                        ui.label(f"{alarm['kind']}: {alarm['text']}").classes("text-negative")
            rows = [{"key": n, **_line(line)} for n, line in enumerate(self._watcher.log(name))]
            if rows != log.rows:
                log.rows = rows

        def draw() -> None:
            device = self._watcher.devices.get(name)
            rows = self._watcher.series(name, time.time() - SPANS[span.value])
            if device and device["state"] and device["heard"]:
                rows.append(report.minute(device))
            _draw(charts["costs"], pictures.costs(rows))
            _draw(charts["shares"], pictures.shares(rows))
            if device and device["state"]:
                state = device["state"]
                _draw(charts["forecast"], pictures.forecast(state))
                _draw(charts["spread"], pictures.histogram(device["scores"]["usual"], device["scores"]["lately"]))
                _draw(charts["waits"], pictures.waits(state["waits"] or []))

        span.on_value_change(draw)
        draw()
        self._follow(look)
        ui.timer(PICTURES_S, draw)


def _draw(chart: ui.echart, options: dict[str, Any]) -> None:
    if chart.options != options:
        chart.options.clear()
        chart.options.update(options)
        chart.update()


def _line(line: dict[str, Any]) -> dict[str, str]:
    return {"when": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line["at"])), "what": line["kind"], "text": line["text"]}


def _facts(device: dict[str, Any]) -> str:
    """The counters of a device in a line."""
    state, costs, rates = device["state"], device["costs"], device["rates"]
    if not state:
        return "it has not published a state yet"
    counts = (("samples", "samples"), ("offloads", "asked"), ("replies", "answered"), ("fallbacks", "not in time"))
    facts = [", ".join(f"{state[key]} {word}" for key, word in counts) + f", {report.not_offloaded(state)} could not be asked"]
    if rates:
        facts.append(f"{rates['per_s']:.3g} samples/s")
    if costs:
        facts.append(f"cost {costs['own']:.3f} a sample, asking always {costs['always']:.3f}, never {costs['never']:.3f}")
    if state["head_share"] is not None:
        facts.append(f"the head has {state['head_share'] / ONE:.0%} of the forecasts' weight")
    if state["last"]:
        facts.append(f"last decision: {report.last_decision(state)}")
    if state["update"]:
        update = state["update"]
        facts.append(f"update {update['counter']}: {update['said']}" if update["said"] else "no update yet")
    facts.append(", ".join(f"{key} {state[key]}" for key in ("policy", "model", "runtime", "link") if state[key] != ""))
    return "; ".join(facts)
