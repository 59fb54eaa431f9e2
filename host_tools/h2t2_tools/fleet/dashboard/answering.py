"""The page on which a person answers in the remote model's place: a sample, a button and a key a class."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import numpy as np
from nicegui import ui

from ...common.pairs import Pair
from ..rdl.desk import Desk, Waiting
from ..rdl.shown import Shown, shown
from .pictures import curve

EACH_S = 0.5
KEYS = "0123456789abcdef"
SKIP = "s"
HIGH = 480  # pixels of a small picture


class Answering:
    """names: of the classes. Declared by Pages, which frames it."""

    def __init__(self, pair: Pair, desk: Desk, names: list[str]) -> None:
        self._pair, self._desk, self._names = pair, desk, names

    def content(self) -> None:
        """Two tabs may be open: what one has answered is gone from the other."""
        at: list[Waiting | None] = [None]
        state = ui.label().mark("waiting")
        place = ui.column().classes("w-full items-center")
        with ui.row():
            for k, name in enumerate(self._names):
                ui.button(f"{KEYS[k]}: {name}", on_click=lambda _, k=k: give(k)).props("no-caps")
            ui.button(f"{SKIP}: nobody can tell", on_click=lambda: give(None)).props("no-caps outline")

        def give(label: int | None) -> None:
            if at[0]:
                self._desk.answer(at[0].number, label)
                look()

        def look() -> None:
            waiting = self._desk.first()
            who = f", this one from {waiting.item.device}" if waiting else ""
            state.text = f"{self._desk.size} waiting{who}; {self._desk.answered} answered"
            if (waiting and waiting.number) != (at[0] and at[0].number):
                at[0] = waiting
                place.clear()
                with place:
                    if waiting:
                        _draw(shown(self._pair, waiting.request))
                    else:
                        ui.label("nothing to answer")

        def key(event: Any) -> None:
            pressed = event.key.name.lower()
            if not event.action.keydown or event.action.repeat:
                return
            if pressed == SKIP:
                give(None)
            elif pressed in KEYS[: len(self._names)]:
                give(KEYS.index(pressed))

        ui.keyboard(on_key=key)
        with place:
            ui.label("nothing to answer")
        look()
        ui.timer(EACH_S, look)


def _draw(what: Shown) -> None:
    if what.pixels is not None:
        ui.image(_png(what.pixels)).classes("w-full").style(f"max-width: {HIGH}px; image-rendering: pixelated").mark("sample")
    elif what.curve is not None:
        ui.echart(curve(what.curve)).classes("w-full").style("height: 320px").mark("sample")
    elif what.numbers is not None:
        with ui.row().mark("sample"):
            for n, value in enumerate(what.numbers):
                ui.label(f"{n}: {value:.4g}").classes("text-h6")
    else:
        ui.label(what.words).classes("text-body1").mark("sample")


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    with BytesIO() as file:
        Image.fromarray(pixels).save(file, "PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
