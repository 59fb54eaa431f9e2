"""The page on which a person answers in the remote model's place: a sample, a button and a key a class."""

from __future__ import annotations

import base64
import logging
from io import BytesIO
from typing import Any

import numpy as np
from nicegui import run, ui

from ...common.pairs import Pair
from ...common.untrusted import printable
from ..rdl.desk import Desk, Waiting
from ..rdl.preview import Preview, preview_of
from .pictures import curve

LOG = logging.getLogger(__name__)
EACH_S = 0.5
KEYS = "0123456789abcdef"
SKIP = "s"
HIGH = 480  # pixels of a small picture


class AnswerPage:
    """names: of the classes. Declared by Pages, which frames it."""

    def __init__(self, pair: Pair, desk: Desk, names: list[str]) -> None:
        self._pair, self._desk, self._names = pair, desk, names

    def content(self) -> None:
        """Two tabs may be open: what one has answered is gone from the other."""
        at: list[Waiting | None] = [None]
        busy = False  # a sample is being made ready
        state = ui.label().mark("waiting")
        place = ui.column().classes("w-full items-center")
        with ui.row():
            for k, name in enumerate(self._names):
                ui.button(f"{KEYS[k]}: {name}", on_click=lambda _, k=k: give(k)).props("no-caps")
            ui.button(f"{SKIP}: nobody can tell", on_click=lambda: give(None)).props("no-caps outline")

        async def give(label: int | None) -> None:
            if at[0] and not busy:
                self._desk.answer(at[0].number, label)
                await look()

        async def look() -> None:
            nonlocal busy
            if busy:
                return
            busy = True
            try:
                await refresh()
            finally:
                busy = False

        async def refresh() -> None:
            waiting = self._desk.first()
            who = f", this one from {waiting.item.device}" if waiting else ""
            state.text = f"{self._desk.size} waiting{who}; {self._desk.answered} answered"
            if (waiting and waiting.number) != (at[0] and at[0].number):
                sample = await run.io_bound(_preview, self._pair, waiting) if waiting else None
                at[0] = waiting
                place.clear()
                with place:
                    if sample:
                        _draw(sample)
                    else:
                        ui.label("nothing to answer")

        async def key(event: Any) -> None:
            pressed = event.key.name.lower()
            if not event.action.keydown or event.action.repeat:
                return
            if pressed == SKIP:
                await give(None)
            elif pressed in KEYS[: len(self._names)]:
                await give(KEYS.index(pressed))

        ui.keyboard(on_key=key)
        with place:
            ui.label("nothing to answer")
        ui.timer(EACH_S, look)


def _preview(pair: Pair, waiting: Waiting) -> Preview:
    """What a person sees of a request; words where that cannot be said."""
    try:
        return preview_of(pair, waiting.request)
    except Exception as error:
        LOG.exception("a sample of %s", waiting.item.device)
        return Preview(words=f"a sample that cannot be shown: {type(error).__name__}")


def _draw(what: Preview) -> None:
    if what.pixels is not None:
        ui.image(_png(what.pixels)).classes("w-full").style(f"max-width: {HIGH}px; image-rendering: pixelated").mark("sample")
    elif what.curve is not None:
        ui.echart(curve(what.curve)).classes("w-full").style("height: 320px").mark("sample")
    elif what.numbers is not None:
        with ui.row().mark("sample"):
            for n, value in enumerate(what.numbers):
                ui.label(f"{n}: {value:.4g}").classes("text-h6")
    else:
        ui.label(printable(what.words, "\n")).classes("text-body1").mark("sample")


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    with BytesIO() as file:
        Image.fromarray(pixels).save(file, "PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
