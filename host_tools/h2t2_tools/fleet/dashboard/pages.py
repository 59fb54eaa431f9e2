"""The pages: the fleet, a device, the workers. Each looks whether the watcher has, and sends the browser what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

from nicegui import run, ui

from h2t2.link import wire

from ...common.errors import Failure
from ..monitoring import report
from . import pictures
from .answer_page import AnswerPage
from .watcher import Watcher

LOOK_S = 0.2  # the watcher looks at the fleet once a second: a page a second of its own would be another one late
PICTURES_S = 5.0
SPANS = {"an hour": 3600, "a day": 86400, "a week": 604800, "all": 1e12}
NARROW = ["device", "asked", "cost", "alarms"]  # the columns of a table on a telephone
WIDE = "whitespace-normal max-md:hidden"  # those that are seen in a wide window only
CHARTS = ("costs", "shares", "forecast", "spread", "waits")
Send = Callable[[str, dict[str, Any]], str]  # a command to a device: what it says beside "done"


class Pages:
    """watcher: what there is to show. send: how a device is told something; None: this dashboard only looks. answering: where a
    person answers in the remote model's place; None: nowhere."""

    def __init__(self, watcher: Watcher, send: Send | None, answering: AnswerPage | None = None) -> None:
        self._watcher, self._send, self._answering = watcher, send, answering

    def declare(self) -> None:
        """Say which address is which page."""
        ui.page("/", title="Fleet")(self._fleet)
        ui.page("/workers", title="Workers")(self._workers)
        ui.page("/device/{name}", title="Device")(self._device)
        if self._answering:
            ui.page("/answer", title="Answer")(self._answer)

    def _follow(self, look: Callable[[], None]) -> None:
        """Call it now, and each time that the watcher has looked at the fleet."""
        shown = self._watcher.seen
        look()

        def news() -> None:
            nonlocal shown
            if shown is not self._watcher.seen:
                shown = self._watcher.seen
                look()

        ui.timer(LOOK_S, news)

    @contextmanager
    def _frame(self, title: str) -> Iterator[None]:
        ui.colors(primary="#1565c0")
        dark = ui.dark_mode(None)  # as the browser wishes, until the button is pressed
        with ui.header().classes("items-center q-py-xs"):
            ui.label(title).classes("text-h6")
            ui.space()
            pages = {"Fleet": "/", "Workers": "/workers", **({"Answer": "/answer"} if self._answering else {})}
            for name, address in pages.items():
                ui.link(name, address).classes("text-white")

            async def other() -> None:
                dark.value = not await ui.run_javascript("Quasar.Dark.isActive")

            ui.button(icon="contrast", on_click=other).props("flat round dense color=white aria-label='dark or light'")
        ui.label().classes("text-negative").mark("trouble").bind_text_from(self._watcher, "trouble")
        ui.label().classes("text-warning").mark("refused").bind_text_from(self._watcher, "refused_text")
        with ui.column().classes("w-full q-gutter-y-sm"):
            yield

    def _fleet(self) -> None:
        with self._frame("Fleet"):
            summary = ui.label().mark("summary")
            wanted = ui.input(placeholder="filter; Enter opens the first")
            wanted.props("dense outlined clearable aria-label='filter devices'").classes("w-72")
            table = _table(report.COLUMNS, NARROW, "device")
            table.add_slot(
                "body-cell-device",
                # a cell like this is made anew at each change, and would lose the keyboard: the field above opens devices
                '<q-td :props="props"><a class="text-primary" tabindex="-1"'
                " :href=\"'/device/' + encodeURIComponent(props.value)\">{{ props.value }}</a></q-td>",
            )

        def matching() -> list[dict[str, Any]]:
            seen = self._watcher.seen
            rows = [_cells(report.COLUMNS, report.row(one, seen["at"])) for one in seen["devices"]]
            text = (wanted.value or "").lower()
            return [row for row in rows if text in " ".join(row.values()).lower()]

        def look() -> None:
            seen = self._watcher.seen
            troubled = sum(bool(one["alarms"]) for one in seen["devices"])
            counts = ((len(seen["devices"]), "device"), (len(seen["workers"]), "worker"))
            devices, workers = (f"{n} {what}{'s' * (n != 1)}" for n, what in counts)
            summary.text = f"{devices}, {troubled} with alarms, {workers}"
            _fill(table, matching())

        def first() -> None:
            found = matching()
            if found:
                ui.navigate.to(address(found[0]["device"]))

        wanted.on_value_change(look)
        wanted.on("keydown.enter", first)
        self._follow(look)

    def _workers(self) -> None:
        with self._frame("Workers"):
            table = _table(report.WORKER_COLUMNS, ["worker", "model", "waiting", "p99 ms"], "worker")

        def look() -> None:
            _fill(table, [_cells(report.WORKER_COLUMNS, report.worker_row(one)) for one in self._watcher.seen["workers"]])

        self._follow(look)

    def _answer(self) -> None:
        with self._frame("Answer"):
            assert self._answering
            self._answering.content()

    def _device(self, name: str) -> None:
        if not wire.is_device(name):
            ui.label("no such device")
            return
        with self._frame(name):
            alarms = ui.column().classes("q-gutter-none")
            facts = ui.label().classes("text-body2").mark("facts")
            span = ui.toggle(list(SPANS), value="an hour").props("dense")
            with ui.element("div").classes("w-full grid gap-2 grid-cols-1 md:grid-cols-2"):
                charts = {key: ui.echart({}).classes("w-full h-64") for key in CHARTS}
            if self._send:
                self._panel(name)
            ui.label("What was said").classes("text-subtitle1")
            log = _table({"when": "left", "what": "left", "text": "left"}, ["when", "text"], "key")
        told: list[Any] = [None]

        def look() -> None:
            one = self._watcher.by_name.get(name)
            facts.text = _facts(one) if one else "no such device has ever been on this broker"
            said = one["alarms"] if one else []
            if said != told[0]:
                told[0] = said
                alarms.clear()
                with alarms:
                    for alarm in said:
                        ui.label(f"{alarm['kind']}: {alarm['text']}").classes("text-negative")
            lines = self._watcher.log(name)
            _fill(log, [{"key": n, **_line(line)} for n, line in enumerate(lines)])

        def draw() -> None:
            one = self._watcher.by_name.get(name)
            rows = self._watcher.series(name, time.time() - SPANS[span.value])
            if one and one["state"] and one["heard"]:
                rows.append(report.minute(one))
            _draw(charts["costs"], pictures.costs(rows))
            _draw(charts["shares"], pictures.shares(rows))
            if one and one["state"]:
                state = one["state"]
                _draw(charts["forecast"], pictures.forecast(state))
                _draw(charts["spread"], pictures.histogram(one["scores"]["usual"], one["scores"]["lately"]))
                _draw(charts["waits"], pictures.waits(state["waits"] or []))

        span.on_value_change(draw)
        draw()
        self._follow(look)
        ui.timer(PICTURES_S, draw)

    def _panel(self, name: str) -> None:
        """What a device may be told."""

        async def send(content: dict[str, Any]) -> None:
            assert self._send
            try:
                said = await run.io_bound(self._send, name, content)
            except (Failure, ValueError) as error:
                ui.notify(str(error), type="negative")
            else:
                ui.notify(f"done{said and f'; it says: {said}'}", type="positive")

        def share(label: str) -> ui.number:
            return ui.number(label, min=0, max=1, step=0.01).props("dense outlined").classes("w-28")

        with ui.card().classes("w-full"), ui.row().classes("items-center"):
            costs = {cost: share(cost) for cost in ("beta", "delta_fp", "delta_fn")}

            async def change() -> None:
                given = {cost: round(field.value * 32768) for cost, field in costs.items() if field.value is not None}
                if given:
                    await send({"set": given})

            ui.button("Set costs", on_click=change)
            seconds = ui.number("pause, s", value=600, min=0, max=86400, precision=0).props("dense outlined").classes("w-28")

            async def pause() -> None:
                await send({"pause": int(seconds.value or 0)})

            ui.button("Pause", on_click=pause)
            ui.button("Save", on_click=partial(send, {"snapshot": True}))
            with ui.dialog() as sure, ui.card():
                ui.label(f"Make {name} forget what it has learned?")
                with ui.row():
                    ui.button("Forget it", on_click=lambda: sure.submit(True)).props("color=negative")
                    ui.button("Keep it", on_click=lambda: sure.submit(False))

            async def forget() -> None:
                if await sure:
                    await send({"reset": True})

            ui.button("Forget ...", on_click=forget).props("outline color=negative")


def _table(columns: dict[str, str], narrow: list[str], key: str) -> ui.table:
    """A table that shows few columns where the window is narrow."""
    made = [
        {
            "name": name,
            "label": name,
            "field": name,
            "align": side,
            "sortable": True,
            "classes": "whitespace-normal" if name in narrow else WIDE,
            "headerClasses": "" if name in narrow else WIDE,
        }
        for name, side in columns.items()
    ]
    return ui.table(columns=made, rows=[], row_key=key, pagination={"rowsPerPage": 50}).classes("w-full").props("dense")


def _cells(columns: dict[str, str], row: list[str]) -> dict[str, Any]:
    return dict(zip(columns, row))


def _fill(table: ui.table, rows: list[dict[str, Any]]) -> None:
    """Send rows, where they are others than before."""
    if rows != table.rows:
        table.rows = rows


def _draw(chart: ui.echart, options: dict[str, Any]) -> None:
    if chart.options != options:
        chart.options.clear()
        chart.options.update(options)
        chart.update()


def _line(line: dict[str, Any]) -> dict[str, str]:
    return {"when": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line["at"])), "what": line["kind"], "text": line["text"]}


def _facts(one: dict[str, Any]) -> str:
    """The counters of a device in a line."""
    state, costs, rates = one["state"], one["costs"], one["rates"]
    if not state:
        return "it has said nothing yet"
    counts = (("samples", "samples"), ("offloads", "asked"), ("replies", "answered"), ("fallbacks", "not in time"))
    said = [", ".join(f"{state[key]} {word}" for key, word in counts) + f", {report.not_offloaded(state)} could not be asked"]
    if rates:
        said.append(f"{rates['per_s']:.3g} samples/s")
    if costs:
        said.append(f"cost {costs['own']:.3f} a sample, asking always {costs['always']:.3f}, never {costs['never']:.3f}")
    if state["update"]:
        came = state["update"]
        said.append(f"update {came['counter']}: {came['said']}" if came["said"] else "no update yet")
    said.append(", ".join(f"{key} {state[key]}" for key in ("policy", "model", "runtime", "link") if state[key] != ""))
    return "; ".join(said)


def address(name: str) -> str:
    """Of a device's page."""
    return "/device/" + quote(name, safe="")
