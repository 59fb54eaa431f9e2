"""The page on which a person answers in the remote model's place: a sample, and a button and a key for each class."""

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
    """Shows the samples that wait on a desk. Pages registers it."""

    def __init__(self, pair: Pair, desk: Desk, names: list[str]) -> None:
        self._pair, self._desk, self._names = pair, desk, names

    def content(self) -> None:
        """Build the page. Two tabs may be open: a sample that is answered in one disappears from the other."""
        current: list[Waiting | None] = [None]
        preparing = False  # a sample is being prepared
        state = ui.label().mark("waiting")
        place = ui.column().classes("w-full items-center")
        with ui.row():
            for k, name in enumerate(self._names):
                ui.button(f"{KEYS[k]}: {name}", on_click=lambda _, k=k: answer(k)).props("no-caps")
            ui.button(f"{SKIP}: nobody can tell", on_click=lambda: answer(None)).props("no-caps outline")

        async def answer(label: int | None) -> None:
            if current[0] and not preparing:
                self._desk.answer(current[0].number, label)
                await look()

        async def look() -> None:
            nonlocal preparing
            if preparing:
                return
            preparing = True
            try:
                await refresh()
            finally:
                preparing = False

        async def refresh() -> None:
            waiting = self._desk.first()
            who = f", this one from {waiting.item.device}" if waiting else ""
            state.text = f"{self._desk.size} waiting{who}; {self._desk.label_count} answered"
            if (waiting and waiting.number) != (current[0] and current[0].number):
                sample = await run.io_bound(_preview, self._pair, waiting) if waiting else None
                current[0] = waiting
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
                await answer(None)
            elif pressed in KEYS[: len(self._names)]:
                await answer(KEYS.index(pressed))

        ui.keyboard(on_key=key)
        with place:
            ui.label("nothing to answer")
        ui.timer(EACH_S, look)


def _preview(pair: Pair, waiting: Waiting) -> Preview:
    """The preview of a request; words where it cannot be made."""
    try:
        return preview_of(pair, waiting.request)
    except Exception as error:
        LOG.exception("a sample of %s", waiting.item.device)
        return Preview(words=f"a sample that cannot be shown: {type(error).__name__}")


def _draw(sample: Preview) -> None:
    if sample.pixels is not None:
        ui.image(_png(sample.pixels)).classes("w-full").style(f"max-width: {HIGH}px; image-rendering: pixelated").mark("sample")
    elif sample.curve is not None:
        ui.echart(curve(sample.curve)).classes("w-full").style("height: 320px").mark("sample")
    elif sample.numbers is not None:
        with ui.row().mark("sample"):
            for n, value in enumerate(sample.numbers):
                ui.label(f"{n}: {value:.4g}").classes("text-h6")
    else:
        ui.label(printable(sample.words, "\n")).classes("text-body1").mark("sample")


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    with BytesIO() as file:
        Image.fromarray(pixels).save(file, "PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
