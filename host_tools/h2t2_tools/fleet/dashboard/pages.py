"""The pages: the fleet, a device, the workers. After each tick of the watcher a page sends the browser what has changed."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement
from starlette.requests import Request

from h2t2.cpython import device_names

from ...common.untrusted import printable
from ..monitoring import fleet_report
from ..monitoring.unit import DEFAULT, Unit
from . import theme
from .answer_page import AnswerPage
from .command_panel import CommandPanel, Send
from .device_page import DevicePage
from .fleet_page import FleetPage, View, address
from .watcher import Watcher

LOOK_S = 0.2  # between two looks for a new tick of the watcher
WIDE = "whitespace-normal max-md:hidden"  # columns for wide windows only
NO_WORKER = (
    "No worker answers on this broker, so devices decide alone. Start one: h2t2 rdl --pair PAIR --broker URL. "
    "It appears here at once."
)
# sorts numbers as numbers, and "40 s", "12 min" by their length
NUMERIC = """(a, b) => { const unit = {min: 60, h: 3600, d: 86400};
    const size = text => { const m = /^([\\d.]+) ?(\\w*)/.exec(text); return m ? m[1] * (unit[m[2]] || 1) : -1; };
    return size(a) - size(b); }"""
BLIND = ".blind table, .blind .q-card, .blind .q-badge, .blind canvas { filter: grayscale(1); opacity: .6; }"  # old data
SIMILAR = 0.6  # of the names that the page of an unknown device offers


class Pages:
    """The dashboard's pages.

    Args:
        watcher: the source of everything they show.
        send: sends a command to a device; None: the dashboard is read-only.
        answer_page: opens the page on which a person answers in the remote model's place; None: there is none.
        unit: of daily costs.
    """

    def __init__(
        self, watcher: Watcher, send: Send | None, answer_page: Callable[[], AnswerPage] | None = None, unit: Unit | None = None
    ) -> None:
        self._watcher, self._send, self._answer_page, self._unit = watcher, send, answer_page, unit or DEFAULT

    def declare(self) -> None:
        """Register the pages."""
        ui.page("/", title="Fleet")(self._fleet)
        ui.page("/workers", title="Workers")(self._workers)
        ui.page("/device/{name}", title="Device")(self._device)
        if self._answer_page:
            ui.page("/answer", title="Answer")(self._answer)

    def _follow(self, look: Callable[[], None]) -> None:
        """Call a function now, and after each tick of the watcher."""
        last_tick = self._watcher.latest
        look()

        def look_after_tick() -> None:
            nonlocal last_tick
            if last_tick is not self._watcher.latest:
                last_tick = self._watcher.latest
                look()

        ui.timer(LOOK_S, look_after_tick)

    @contextmanager
    def _frame(self, title: str) -> Iterator[None]:
        theme.apply()
        dark = ui.dark_mode(None)  # the browser's preference, until the button is pressed
        with ui.header().classes("items-center q-py-xs"):
            TextElement(tag="h1", text=title)
            ui.space()
            pages = {"Fleet": "/", "Workers": "/workers", **({"Answer": "/answer"} if self._answer_page else {})}
            with ui.element("nav").props('aria-label="pages"').classes("row q-gutter-x-md"):
                for name, place in pages.items():
                    ui.link(name, place).classes("text-white")

            async def toggle_dark() -> None:
                dark.value = not await ui.run_javascript("Quasar.Dark.isActive")

            ui.button(icon="contrast", on_click=toggle_dark).props("flat round dense color=white aria-label='dark or light'")
        ui.label().classes("text-negative").mark("trouble").bind_text_from(self._watcher, "trouble")
        ui.label().classes("text-warning").mark("refused").bind_text_from(self._watcher, "refused_text")
        with ui.column().classes("w-full q-gutter-y-sm") as content:
            yield
        ui.add_css(BLIND)

        def grey() -> None:
            blind = self._watcher.blindness
            content.classes(add="blind" if blind else "", remove="" if blind else "blind")

        self._follow(grey)

    def _fleet(self, request: Request) -> None:
        with self._frame("Fleet"):
            FleetPage(self._watcher, self._unit, View.parse(request.query_params)).build(self._follow)

    def _workers(self) -> None:
        with self._frame("Workers"):
            hint = ui.label(NO_WORKER).mark("hint")
            table = _table(fleet_report.WORKER_COLUMNS, ["worker", "model", "waiting", "p99 ms"], "worker")

        def look() -> None:
            hint.visible = not self._watcher.latest["workers"]
            table.visible = not hint.visible
            rows = [
                dict(zip(fleet_report.WORKER_COLUMNS, fleet_report.worker_row(worker)))
                for worker in self._watcher.latest["workers"]
            ]
            if rows != table.rows:
                table.rows = rows

        self._follow(look)

    def _answer(self) -> None:
        with self._frame("Answer"):
            assert self._answer_page
            self._answer_page().build()

    def _device(self, name: str) -> None:
        valid, watcher = device_names.is_device(name), self._watcher
        with self._frame(name if valid else "Unknown device"):
            if not valid or not (name in watcher.devices or watcher.remembers(name)):
                self._unknown(name)
                return
            panel = CommandPanel(self._watcher, self._send, name) if self._send else None
            build_panel = partial(panel.build, self._follow) if panel else None
            DevicePage(self._watcher, name, self._unit).build(self._follow, build_panel)

    def _unknown(self, name: str) -> None:
        """The page of a device that nobody knows. It turns into that device's page when the device appears."""
        names = sorted(self._watcher.devices)
        ui.label(f"No device named {printable(name[:80])} has ever been on this broker.").classes("text-h6").mark("unknown")
        similar = difflib.get_close_matches(name, names, cutoff=SIMILAR)
        with ui.row():
            ui.label("Did you mean one of these?" if similar else "Look at the devices that there are:")
            for device in similar:
                ui.link(device, address(device))
            if not similar:
                ui.link("Fleet", "/")
        self._follow(lambda: ui.navigate.reload() if name in self._watcher.devices else None)


def _table(columns: dict[str, str], narrow: list[str], key: str) -> ui.table:
    """A table that shows few columns in a narrow window."""
    described = []
    for name, side in columns.items():
        hidden = "" if name in narrow else WIDE
        look = {"align": side, "classes": hidden or "whitespace-normal", "headerClasses": hidden}
        order = {"sortable": True, **({":sort": NUMERIC} if side == "right" else {})}
        described.append({"name": name, "label": name, "field": name, **look, **order})
    return ui.table(columns=described, rows=[], row_key=key, pagination={"rowsPerPage": 50}).classes("w-full").props("dense")
