"""The fields and buttons that command a device or remove it.

Fields show the device's present values. The page checks a command, sums it up for the visitor, sends it and keeps its result.
"""

import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import run, ui

from h2t2.core.numbers import ONE

from ...common.errors import Failure
from ..monitoring.words import PRICES
from .times import clock_time
from .watcher import Watcher

LONGEST_PAUSE_MIN = 1440
DIGITS = 4  # of a cost
Send = Callable[[str, dict[str, Any]], str]  # sends a command to a device; returns its note


class CommandPanel:
    """The panel of a device's page.

    Args:
        watcher: the source of the device's present values; it removes the device.
        send: sends a command and waits for the answer.
        name: of the device.
    """

    def __init__(self, watcher: Watcher, send: Send, name: str) -> None:
        self._watcher, self._send, self._name = watcher, send, name
        self._present: dict[str, float] = {}  # costs in force

    def build(self, follow: Callable[[Callable[[], None]], None]) -> None:
        """Build the panel. follow: calls a function now, and after each tick of the watcher."""
        with ui.card().classes("w-full").mark("commands"):
            with ui.row().classes("items-start"):
                self._fields = {cost: _number(label, 0.01, _cost_error) for cost, label in PRICES.items()}
                ui.button("Set costs", on_click=self._set_costs)
            with ui.row().classes("items-start"):
                self._minutes = _number("pause, minutes", 1, _pause_error, 10)
                ui.button("Pause", on_click=self._pause)
                self._resume = ui.button("End the pause", on_click=self._end_pause)
                ui.button("Save", on_click=self._save)
                ui.button("Reset learning ...", on_click=self._reset).props("outline color=negative")
                ui.button("Remove device ...", on_click=self._remove).props("outline color=negative")
            self._result = ui.label().props("role=status").mark("result")
        follow(self._look)

    def _look(self) -> None:
        """Show the present values in the fields that the visitor has not changed."""
        state = (self._watcher.devices.get(self._name) or {}).get("state")
        self._resume.visible = bool(state and state["paused"])
        if not state:
            return
        for cost, field in self._fields.items():
            field.visible = state[cost] is not None
            if state[cost] is None:
                continue
            present = round(state[cost] / ONE, DIGITS)
            if self._present.get(cost) != present:
                if field.value is None or field.value == self._present.get(cost):
                    field.value = present
                self._present[cost] = present

    async def _set_costs(self) -> None:
        fields = {cost: field for cost, field in self._fields.items() if cost in self._present}
        invalid = [cost for cost, field in fields.items() if not field.validate()]
        if invalid:
            self._tell("not sent: a field is out of its range", False)
            return
        changes = {cost: field.value for cost, field in fields.items() if field.value != self._present[cost]}
        if not changes:
            self._tell("not sent: the fields show the costs in force", False)
            return
        lines = [f"{PRICES[cost]}: {self._present[cost]:g} → {value:g}" for cost, value in changes.items()]
        costs = {cost: round(value * ONE) for cost, value in changes.items()}
        await self._command("Set costs", f"Set the costs of {self._name}?", {"set": costs}, lines)

    async def _pause(self) -> None:
        if not self._minutes.validate():
            self._tell("not sent: the pause is out of its range", False)
            return
        lines = [f"{self._name} asks nothing for {self._minutes.value:g} minutes and decides alone meanwhile."]
        await self._command("Pause", f"Pause {self._name}?", {"pause": round(60 * self._minutes.value)}, lines)

    async def _end_pause(self) -> None:
        await self._command("End the pause", f"Let {self._name} ask again?", {"pause": 0}, [])

    async def _save(self) -> None:
        lines = ["It writes what it has learned into its snapshot now."]
        await self._command("Save", f"Save the learned state of {self._name}?", {"snapshot": True}, lines)

    async def _reset(self) -> None:
        lines = ["It forgets its thresholds and learns anew, as on its first day."]
        await self._command("Reset learning", f"Reset what {self._name} has learned?", {"reset": True}, lines, final=True)

    async def _remove(self) -> None:
        lines = ["Its messages and its history are deleted. The device itself keeps what it has learned."]
        question = f"Remove {self._name} from the broker and from the history?"
        if not await _agreed("Remove device", question, lines, final=True):
            return
        try:
            await run.io_bound(self._watcher.remove, self._name)
        except (Failure, sqlite3.Error) as error:
            self._tell(str(error), False)
        else:
            ui.navigate.to("/")

    async def _command(
        self, action: str, question: str, content: dict[str, Any], lines: list[str], *, final: bool = False
    ) -> None:
        """Sum a command up, send it if the visitor agrees, and report the result. final: it cannot be undone."""
        if not await _agreed(action, question, lines, final=final):
            return
        self._result.text = f"{action}: waiting for the answer of {self._name}"
        try:
            note = await run.io_bound(self._send, self._name, content)
        except (Failure, ValueError) as error:
            self._tell(str(error), False)
        else:
            summary = f" ({'; '.join(lines)})" if "set" in content else ""
            self._tell(f"{self._name} has done it: {action.lower()}{summary}{note and f'. It notes: {note}'}", True)

    def _tell(self, text: str, success: bool) -> None:
        """Report a result in passing, and on the panel with its time."""
        ui.notify(text, type="positive" if success else "negative")
        self._result.text = f"{clock_time(time.time())}: {text}"


def _number(label: str, step: float, error: Callable[[float | None], str | None], value: float | None = None) -> ui.number:
    """A field for a number. error: says what is wrong with a value; None: nothing."""
    return ui.number(label, value=value, step=step, format="%.4g", validation=error).props("dense outlined").classes("w-44")


def _cost_error(value: float | None) -> str | None:
    return None if value is not None and 0 <= value <= 1 else "want a number from 0 to 1"


def _pause_error(value: float | None) -> str | None:
    return None if value is not None and 0 < value <= LONGEST_PAUSE_MIN else f"want more than 0, at most {LONGEST_PAUSE_MIN}"


def _agreed(action: str, question: str, lines: list[str], *, final: bool) -> Awaitable[Any]:
    """Show a summary and ask whether to go on. final: the action cannot be undone."""
    with ui.dialog() as dialog, ui.card():
        ui.label(question).classes("text-subtitle1")
        for line in lines:
            ui.label(line)
        if final:
            ui.label("This cannot be undone.")
        with ui.row():
            ui.button(action, on_click=lambda: dialog.submit(True)).props(f"color={'negative' if final else 'primary'}")
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("outline")
    dialog.on("hide", dialog.delete)
    return dialog
