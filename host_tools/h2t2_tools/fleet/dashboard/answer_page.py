"""The page on which a person answers in the remote model's place: a sample, and a button and a key for each class."""

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from nicegui import run, ui

from ...common.pairs import Pair
from ...common.untrusted import printable
from ..rdl.desk import KEYS, SKIP, Desk, Waiting
from ..rdl.models.pictures import data_url
from ..rdl.preview import Preview, preview_of
from .chart_options import curve
from .watcher import Watcher

LOG = logging.getLogger(__name__)
EACH_S = 0.5
UNDO = "u"
UNDO_S = 5.0  # for which an answer may be taken back
NOTHING = "Nothing to answer. A sample appears here as soon as a device of this pair asks."
HIGH = 480  # pixels of a small picture


@dataclass
class AnswerPage:
    """An open page with the samples that wait on a desk. One that is answered in one tab disappears from the others.

    Args:
        pair: tells how to draw a sample.
        desk: holds the waiting samples and takes the answers.
        names: of the classes.
        watcher: knows the states of the devices.
        current: the sample that the page shows.
    """

    pair: Pair
    desk: Desk
    names: list[str]
    watcher: Watcher
    current: Waiting | None = None
    _busy: bool = False  # a sample is being prepared

    def build(self) -> None:
        """Build the elements, and look for samples from time to time."""
        self.state = ui.label().props('role="status"').mark("waiting")
        self.place = ui.column().classes("w-full items-center")
        self.local = ui.label().mark("opinion")
        self.deadline = ui.label().mark("deadline")
        with ui.row():
            self.buttons = [
                ui.button(f"{KEYS[k]}: {name}", on_click=lambda _, k=k: self.answer(k)).props("no-caps")
                for k, name in enumerate(self.names)
            ]
            skip = ui.button(f"{SKIP}: nobody can tell", on_click=lambda: self.answer(None)).props("no-caps outline")
            self.buttons.append(skip)
            self.undo_button = ui.button(on_click=self.undo).props("no-caps flat").mark("undo")
        ui.keyboard(on_key=self.take_key)
        with self.place:
            ui.label(NOTHING)
        self.show_state()
        ui.timer(EACH_S, self.look)

    def _opinion(self, waiting: Waiting) -> str:
        """What the local model thinks of a sample, as far as the request and the device's state tell."""
        device = self.watcher.devices.get(waiting.item.device)
        bits = device["state"]["bits"] if device and device["state"] else 0
        if not bits or waiting.request.k >= 1 << bits:
            return "The device has not told how fine its scores are, so what its local model thinks is unknown."
        share = (waiting.request.k + 0.5) / (1 << bits)
        if len(self.names) > 2:
            lowest = 1 / len(self.names)
            return f"The local model gives its best class a score of about {lowest + (1 - lowest) * share:.2f}."
        leaning, event = self.names[share >= 0.5], self.names[1]
        return f"The local model thinks: {leaning}. Its score for {event} is about {share:.2f}."

    async def answer(self, label: int | None) -> None:
        """Answer the sample that the page shows."""
        if self.current and not self._busy:
            self.desk.answer(self.current.number, label)
            await self.look()

    async def undo(self) -> None:
        """Take the last answer back."""
        if not self._busy and self.desk.undo():
            await self.look()

    async def take_key(self, event: Any) -> None:
        """A key for each class, one to skip and one to undo."""
        pressed = event.key.name.lower()
        if not event.action.keydown or event.action.repeat:
            return
        if pressed == SKIP:
            await self.answer(None)
        elif pressed == UNDO:
            await self.undo()
        elif pressed in KEYS[: len(self.names)]:
            await self.answer(KEYS.index(pressed))

    async def look(self) -> None:
        """Show the sample that waits longest."""
        if self._busy:
            return
        self._busy = True
        try:
            await self._refresh()
        finally:
            self._busy = False

    async def _refresh(self) -> None:
        waiting = self.desk.first()
        if (waiting and waiting.number) != (self.current and self.current.number):
            sample = await run.io_bound(_preview, self.pair, waiting) if waiting else None
            self.current = waiting
            self.place.clear()
            with self.place:
                if sample:
                    _draw(sample)
                else:
                    ui.label(NOTHING)
        self.show_state()

    def show_state(self) -> None:
        """Show the numbers, what the local model thinks and the deadline; enable the buttons that have an effect."""
        current, last = self.current, self.desk.last()
        sender = f", this one from {current.item.device}" if current else ""
        self.state.text = f"{self.desk.size} waiting{sender}; {self.desk.label_count} answered"
        self.local.text = self._opinion(current) if current else ""
        self.deadline.text = _deadline(current.remaining_s(time.perf_counter())) if current else ""
        for button in self.buttons:
            button.enabled = current is not None
        self.undo_button.enabled = last is not None
        self.undo_button.text = f"{UNDO}: undo"
        if last:
            answer, seconds = last
            word = self.names[answer.label] if answer.label >= 0 else "nobody can tell"
            self.undo_button.text = f"{UNDO}: undo '{word}' ({math.ceil(seconds)} s)"


def _deadline(remaining_s: float | None) -> str:
    """How long a device waits for an answer."""
    if remaining_s is None:
        return "The device does not tell how long it waits. Your answer teaches it."
    if remaining_s > 0:
        return f"The device decides by itself in {remaining_s:.0f} s."
    return f"The device decided by itself {-remaining_s:.0f} s ago. Your answer still teaches it."


def _preview(pair: Pair, waiting: Waiting) -> Preview:
    """The preview of a request; words where it cannot be made."""
    try:
        return preview_of(pair, waiting.request)
    except Exception as error:
        LOG.exception("a sample of %s", waiting.item.device)
        return Preview(words=f"a sample that cannot be shown: {type(error).__name__}")


def _draw(sample: Preview) -> None:
    if sample.pixels is not None:
        ui.image(data_url(sample.pixels, "")).props('alt="the sample"').classes("w-full").style(
            f"max-width: {HIGH}px; image-rendering: pixelated"
        ).mark("sample")
    elif sample.curve is not None:
        ui.echart(curve(sample.curve), renderer="svg").props('role="img" aria-label="the sample, as a curve"').classes(
            "w-full"
        ).style("height: 320px").mark("sample")
    elif sample.numbers is not None:
        with ui.row().mark("sample"):
            for n, value in enumerate(sample.numbers):
                ui.label(f"{n}: {value:.4g}").classes("text-h6")
    else:
        ui.label(printable(sample.words, "\n")).classes("text-body1").mark("sample")
