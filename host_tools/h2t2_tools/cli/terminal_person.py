"""A person at a terminal in the remote model's place: `h2t2 rdl --remote human`."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.text import Text

from ..common.pairs import Pair
from ..common.untrusted import printable
from ..fleet.rdl.desk import KEYS, SKIP, Desk
from ..fleet.rdl.preview import Preview, preview_of

QUIT = "q"
WIDE = 64  # columns of a picture
BARS = "▁▂▃▄▅▆▇█"
WAIT_S = 0.2


def ask(pair: Pair, desk: Desk, names: list[str], say: Callable[[str], None]) -> None:
    """Show waiting samples one after the other, and read a key for each, until `q` or the end of the input.

    Args:
        pair: tells how to draw a sample.
        desk: holds the waiting samples and takes the answers.
        names: of the classes.
        say: prints a line.
    """
    console = Console(stderr=True)
    keys = ", ".join(f"{KEYS[k]}: {name}" for k, name in enumerate(names))
    say(f"{keys}; {SKIP}: nobody can tell; {QUIT}: end")
    current = -1
    with _keys() as keys_pressed:
        for key in keys_pressed:
            waiting = desk.first()
            if key == QUIT:
                return
            if waiting and waiting.number == current and key and (key == SKIP or key in KEYS[: len(names)]):
                desk.answer(current, None if key == SKIP else KEYS.index(key))
                waiting = desk.first()
            if waiting and waiting.number != current:
                current = waiting.number
                console.print(drawing(preview_of(pair, waiting.request)))
                line = f"{printable(waiting.item.device)}, {desk.size} waiting, {desk.label_count} answered. {keys}"
                console.print(line, highlight=False, markup=False)


def drawing(preview: Preview) -> Text:
    """Draw a sample for a terminal: pixels (two per character), a curve of bars, numbers, or text."""
    if preview.pixels is not None:
        return _pixels(preview.pixels)
    if preview.curve is not None:
        return Text("\n".join(map(bars, preview.curve.T)))
    if preview.numbers is not None:
        return Text("  ".join(f"{n}: {value:.4g}" for n, value in enumerate(preview.numbers)))
    return Text(printable(preview.words, "\n"))


def bars(values: np.ndarray) -> str:
    """Draw a curve, (n,), in one line of bars, with its lowest and highest value."""
    samples = values[np.linspace(0, len(values) - 1, min(len(values), 2 * WIDE)).astype(int)]
    low, high = float(samples.min()), float(samples.max())
    steps = ((samples - low) / max(high - low, 1e-12) * (len(BARS) - 1)).round().astype(int)
    return "".join(BARS[step] for step in steps) + f"  {low:.4g} to {high:.4g}"


def _pixels(pixels: np.ndarray) -> Text:
    x = np.repeat(pixels[..., None], 3, 2) if pixels.ndim == 2 else pixels
    factor = max(1, -(-x.shape[1] // WIDE))
    x = x[::factor, ::factor]
    if len(x) % 2:
        x = np.concatenate([x, np.zeros_like(x[:1])])
    picture = Text()
    for upper, lower in zip(x[::2], x[1::2]):
        for (r, g, b), (r2, g2, b2) in zip(upper.tolist(), lower.tolist()):
            picture.append("▀", f"rgb({r},{g},{b}) on rgb({r2},{g2},{b2})")
        picture.append("\n")
    return picture


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """Yield pressed keys, and "" in between. Without a terminal, each letter of the input is a key."""
    if not sys.stdin.isatty():
        yield _read()
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield _read()
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _read() -> Iterator[str]:
    number = sys.stdin.fileno()
    while True:
        yield ""
        if select.select([number], [], [], WAIT_S)[0]:
            data = os.read(number, 1)
            if not data:
                return
            yield data.decode(errors="replace").lower().strip()
