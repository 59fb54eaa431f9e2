"""The page of the fleet: which devices have alarms, and which waste money. Its filter and its order are in its address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlencode

from nicegui import ui

from ...common import places
from ..monitoring import alarms
from ..monitoring.savings import CHOICES, in_words, total
from ..monitoring.unit import DEFAULT, Unit
from . import fleet_rows
from .watcher import Watcher

ROWS = 50  # of a page of the table
NUMBER = "v => v == null ? '–' : v.toFixed({})"
SHARE = "v => v == null ? '–' : Math.round(100 * v) + ' %'"
PLAIN = "v => v == null ? '–' : v.toLocaleString('en', {maximumSignificantDigits: 3})"
SAVED = places.text("fleet/dashboard/saved.js").strip()
ONLINE = "(v, row) => row.online_for"
PILLS = places.text("fleet/dashboard/pills.html").strip()
LINK = """<a class="text-primary" tabindex="-1" :href="'/device/' + encodeURIComponent(props.row.device)">
    {{ props.row.device }}</a>"""
CARD = places.text("fleet/dashboard/card.html").strip().replace("LINK", LINK).replace("PILLS", PILLS)
NO_DEVICE = (
    "No device has published on this broker yet. Start one: h2t2 node --broker URL --device kitchen. It appears here at once. "
    "h2t2 demo --fleet 20 --dashboard shows a fleet without any device of yours."
)
CARD_CELLS = (*CHOICES, "asked", "online")


@dataclass(frozen=True)
class View:
    """What the address says of the page.

    Args:
        pattern: text that a device's row must hold.
        kinds: kinds of alarms of which it must have one; empty: any, or none.
        sort: the column that orders the rows; "": alarms first.
        descending: whether the largest comes first.
    """

    pattern: str = ""
    kinds: frozenset[str] = frozenset()
    sort: str = ""
    descending: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> View:
        """Parse the address's query. Unknown names are ignored."""
        kinds = frozenset(query.get("alarm", "").split(",")) & frozenset(alarms.KINDS)
        sort = query.get("sort", "")
        descending, name = sort.startswith("-"), sort.removeprefix("-")
        return cls(query.get("filter", "")[:200], kinds, name if name in LABELS else "", descending)

    def address(self) -> str:
        """The page's address."""
        query = {
            "filter": self.pattern,
            "alarm": ",".join(kind for kind in alarms.KINDS if kind in self.kinds),
            "sort": ("-" if self.descending else "") + self.sort if self.sort else "",
        }
        text = urlencode({name: value for name, value in query.items() if value}, quote_via=quote)
        return "/?" + text if text else "/"


LABELS = {
    "device": "device", "status": "status", "always": "saved against always asking", "never": "saved against never asking",
    "cost": "cost a sample", "asked": "asked", "unanswered": "no answer",
    "per_s": "samples a second", "online": "online for", "last": "last decision", "model": "model", "energy": "energy, J",
}  # fmt: skip
FORMATS = {
    **{choice: SAVED.replace("CHOICE", choice) for choice in CHOICES}, "cost": NUMBER.format(3), "asked": SHARE,
    "unanswered": SHARE, "per_s": PLAIN, "online": ONLINE, "energy": PLAIN,
}  # fmt: skip


@dataclass
class FleetPage:
    """An open page.

    Args:
        watcher: the source.
        unit: of amounts.
        view: what the address says.
        rows: every device, as fleet_rows describes it.
    """

    watcher: Watcher
    unit: Unit
    view: View
    rows: list[dict[str, Any]] = field(default_factory=list)
    chips: dict[str, ui.button] = field(default_factory=dict)

    def build(self, follow: Callable[[Callable[[], None]], None]) -> None:
        """Build the elements. follow: calls a function now, and after each tick of the watcher."""
        self.hint = ui.label(NO_DEVICE).mark("hint")
        self.summary = ui.label().mark("summary")
        self.total = ui.label().mark("total")
        with ui.row().classes("items-center w-full"):
            pattern = ui.input(value=self.view.pattern, placeholder="filter; Enter opens the first")
            pattern.props("dense outlined clearable aria-label='filter devices'").classes("w-72")
            options = {"": "alarms first"}
            options |= {name: f"by {label}" for name, label in LABELS.items() if name not in ("status", "energy")}
            order = ui.select(options, value=self.view.sort, label="order").props("dense outlined").classes("w-72 md:hidden")
            self.chip_row = ui.row().classes("items-center q-gutter-x-xs").props("role=group aria-label='kinds of alarms'")
        self.table = _table(self.unit, self.view)
        ui.label(
            "Saved since the start of each device, with the interval that holds it with 95 %, against asking about every "
            f"sample and about none. Below 0: lost. {self._worth()}"
        ).classes("text-caption")
        pattern.on_value_change(lambda event: self.change(pattern=event.value or ""))
        pattern.on("keydown.enter", self.open_first)
        order.on_value_change(lambda event: self.sort(event.value))
        self.table.on_pagination_change(lambda event: self.take_order(event.value))
        follow(self.look)

    def _worth(self) -> str:
        if self.unit == DEFAULT:
            return "A unit is what the dearest mistake costs; h2t2 dashboard --worth '0.05 EUR' counts in money."
        return f"The dearest mistake costs {self.unit.worth:g} {self.unit.name}."

    def look(self) -> None:
        """Show the watcher's last tick."""
        latest = self.watcher.latest
        devices = latest["devices"]
        self.rows = [fleet_rows.of_device(device, latest["at"], self.unit) for device in devices]
        troubled = sum(bool(device["alarms"]) for device in devices)
        counts = ((len(devices), "device"), (len(latest["workers"]), "worker"))
        device_count, worker_count = (f"{n} {noun}{'s' * (n != 1)}" for n, noun in counts)
        self.summary.text = f"{device_count}, {troubled} with alarms, {worker_count}"
        saved = total(device["saved"] for device in devices)
        self.total.text = f"Saved so far: {in_words(saved, self.unit)}" if saved else ""
        self.hint.visible = not devices
        self.table.visible = bool(devices)
        self._count_kinds()
        self._hide_columns()
        self.filter()

    def matching(self) -> list[dict[str, Any]]:
        """The rows that the filter and the chips leave."""
        kinds = set(self.view.kinds)
        return [row for row in self.rows if fleet_rows.matches(row, self.view.pattern, kinds)]

    def filter(self) -> None:
        """Fill the table."""
        # a tuple, because NiceGUI watches each entry of a list for changes, which takes a tenth of the dashboard's time
        rows = cast(list[dict[str, Any]], tuple(self.matching()))
        if rows != self.table.rows:
            self.table.rows = rows

    def open_first(self) -> None:
        """Open the page of the first device that the filter leaves."""
        rows = self.matching()
        if rows:
            ui.navigate.to(address(rows[0]["device"]))

    def change(self, **entries: Any) -> None:
        """Change the view, and the address with it."""
        view = View(**{**vars(self.view), **entries})
        if view != self.view:
            self.view = view
            ui.navigate.history.replace(view.address())
            self.filter()

    def sort(self, name: str) -> None:
        """Order the rows by a column, as the select on a telephone does: the smallest saving and the highest cost first."""
        descending = name in FORMATS and name not in ("online", *CHOICES)
        self.table.pagination = {**self.table.pagination, "sortBy": name or None, "descending": descending, "page": 1}
        self.change(sort=name, descending=descending and bool(name))

    def take_order(self, pagination: dict[str, Any]) -> None:
        """Take the order that a click on a column's head has set."""
        name = pagination.get("sortBy") or ""
        self.change(sort=name, descending=bool(name) and bool(pagination.get("descending")))

    def _count_kinds(self) -> None:
        """Update the chips: one for each kind of alarm that a device has, or that the view selects."""
        counts = Counter(kind for row in self.rows for kind in fleet_rows.kinds_of(row))
        for number, kind in enumerate(alarms.KINDS):
            if (counts[kind] or kind in self.view.kinds) and kind not in self.chips:
                with self.chip_row:
                    self.chips[kind] = ui.button(on_click=lambda _, kind=kind: self.toggle(kind))
                    self.chips[kind].props("rounded dense no-caps padding='xs md'")
                self.chips[kind].move(target_index=sum(alarms.KINDS.index(name) < number for name in self.chips))
            if kind in self.chips:
                selected = kind in self.view.kinds
                chip = self.chips[kind]
                chip.text = f"{kind} {counts[kind]}"
                chip.props(f"aria-pressed={str(selected).lower()}").props(
                    add="unelevated" if selected else "outline", remove="outline" if selected else "unelevated"
                )
                chip.visible = bool(counts[kind]) or selected

    def _hide_columns(self) -> None:
        """Hide the energy where no device measures it, and the model where all ask the same."""
        fewest = {"energy": 1, "model": 2}
        hidden = {name for name, count in fewest.items() if len({row[name] for row in self.rows} - {None}) < count}
        visible = [name for name in LABELS if name not in hidden]
        if self.table.props.get("visible-columns") != visible:
            self.table.props["visible-columns"] = visible
            self.table.update()

    def toggle(self, kind: str) -> None:
        """Select a kind of alarm, or leave it."""
        self.change(kinds=self.view.kinds ^ {kind})
        self._count_kinds()


def _table(unit: Unit, view: View) -> ui.table:
    """The table of devices: a card for each on a telephone."""
    columns = []
    for name, label in LABELS.items():
        title = f"{label}, {unit.name}" if name in CHOICES else label
        look = {"align": "left" if name in ("device", "status", "last") else "right"}
        look |= {"classes": "" if name in ("device", "status") else "whitespace-nowrap"}
        look |= {"headerClasses": "whitespace-normal align-bottom", **({":format": FORMATS[name]} if name in FORMATS else {})}
        columns.append({"name": name, "label": title, "field": name, "sortable": True, **look})
    pagination = {"rowsPerPage": ROWS, "sortBy": view.sort or None, "descending": view.descending}
    table = ui.table(columns=columns, rows=[], row_key="device", pagination=pagination).classes("w-full")
    table.props(
        "dense wrap-cells :grid='Quasar.Screen.lt.md' no-data-label='No device matches. Clear the filter and the chips.'"
    )
    # each change replaces a cell, so a link cannot keep the keyboard's focus: the field above opens devices
    table.add_slot("body-cell-device", f'<q-td :props="props">{LINK}</q-td>')
    table.add_slot("body-cell-status", f'<q-td :props="props">{PILLS}</q-td>')
    table.add_slot("item", CARD.replace("CARD_CELLS", str(list(CARD_CELLS))))
    return table


def address(name: str) -> str:
    """The address of a device's page."""
    return "/device/" + quote(name, safe="")
