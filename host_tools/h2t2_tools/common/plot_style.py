"""How every picture looks: the colour and mark of each policy, titles that state the message, lines labelled at their ends.

The palette is Okabe and Ito's, which the colour-blind can tell apart. Our policies are thick and coloured, baselines are grey
and differ by mark and style. Sizes suit a picture that is shown 600 pixels wide.
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.figure import Figure

from . import places, toml_file

_FILE = toml_file.read_entries(places.PACKAGE / "common/plot_style.toml")
PALETTE: dict[str, str] = _FILE["palette"]
COLOURS = list(PALETTE.values())[:7]  # without the greys
DARK = PALETTE["dark"]
STYLES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 3)), "-"]
MARKS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">"]
WIDTH, DPI = 8.0, 120  # inches and dots an inch: 960 pixels, of which a page shows 600
TITLE, TEXT, SMALL = 13, 11, 10  # points
MOST_LINES = 6
MARKED = 16  # a line of more points carries no marks


@dataclass(frozen=True)
class Look:
    """How a line looks.

    Attributes:
        colour: Of the line, its marks and its label.
        mark: Matplotlib's marker.
        style: Matplotlib's line style.
        width: In points.
    """

    colour: str
    mark: str
    style: Any = "-"
    width: float = 1.6


OURS, BASELINE = 3.2, 1.6  # points


def _listed(colour: str, mark: str, style: str | list[int] = "-", ours: bool = False) -> Look:
    """The look that an entry of plot_style.toml describes."""
    return Look(PALETTE[colour], mark, style if isinstance(style, str) else (0, tuple(style)), OURS if ours else BASELINE)


LOOKS = {name: _listed(**entry) for name, entry in _FILE["looks"].items()}
ALIASES: dict[str, str] = _FILE["aliases"]


def look(name: str, number: int = 0) -> Look:
    """Return the look of a policy; a line that is no policy gets that of its number."""
    name = ALIASES.get(name, name)
    if name in LOOKS:
        return LOOKS[name]
    return Look(COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)], STYLES[number % len(STYLES)])


def important(names: Iterable[str]) -> list[str]:
    """Return at most MOST_LINES of the names, in their order: policies in the order of LOOKS, then the others."""
    names = list(names)
    ranks: dict[str | None, int] = {name: n for n, name in enumerate(LOOKS)}
    ranked = sorted(names, key=lambda name: ranks.get(ALIASES.get(name, name), len(ranks)))[:MOST_LINES]
    return [name for name in names if name in ranked]


def panels(rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes, as pyplot.subplots(): without pyplot, which chooses a back end for the whole process."""
    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def state(figure: Figure, message: str, note: str = "") -> None:
    """Write the message above the picture and the note, which says how it was measured, below it.

    A picture with a legend passes its note to legend_below() instead.
    """
    figure.suptitle(_wrapped(figure, message, TITLE * 1.12), x=0.01, ha="left", fontsize=TITLE, fontweight="bold")
    if note:
        figure.supxlabel(_wrapped(figure, note, SMALL), x=0.01, ha="left", fontsize=SMALL, color=DARK)


def _wrapped(figure: Figure, text: str, size: float) -> str:
    """Break a text into lines that are as wide as the figure; a letter is about .6 of its size wide."""
    return textwrap.fill(text, int(figure.get_figwidth() * 72 / (0.585 * size)))


def draw_line(axes: Any, name: str, at: Look, x: np.ndarray, y: np.ndarray, spread: np.ndarray | None = None) -> None:
    """Draw a line, and a band of `spread` around it."""
    marks = {"marker": at.mark, "markersize": 4.5 + at.width / 2} if at.mark and len(x) <= MARKED else {}
    axes.plot(x, y, linestyle=at.style, color=at.colour, linewidth=at.width, label=name, zorder=2 + at.width, **marks)
    if spread is not None:
        axes.fill_between(x, y - spread, y + spread, color=at.colour, alpha=0.18, linewidth=0)


def finish(axes: Any, **labels: Any) -> None:
    """Set the labels of axes and their grid."""
    axes.set(**labels)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=SMALL)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(TEXT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def label_ends(figure: Figure, axes: Any, lines: Sequence[Any]) -> None:
    """Write the label of each line at its right end, beside the axes. Labels move apart where lines end close together."""
    beside = {"xycoords": "axes fraction", "xytext": (7, 0), "textcoords": "offset points", "annotation_clip": False}
    texts = [
        axes.annotate(
            textwrap.fill(line.get_label(), 19), (1, 0.5), va="center", fontsize=SMALL, color=line.get_color(), **beside
        )
        for line in lines
    ]
    figure.draw_without_rendering()  # the layout makes room for the texts
    box = axes.get_window_extent()
    heights = np.array([text.get_window_extent().height for text in texts]) / box.height + 0.01
    ends = [axes.transData.transform((line.get_xdata()[-1], line.get_ydata()[-1]))[1] for line in lines]
    for text, place in zip(texts, apart((np.array(ends, float) - box.y0) / box.height, heights)):
        text.xy = (1, place)


def apart(places: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return places in 0..1, as close to the given ones as texts of these heights can be that do not overlap."""
    order = np.argsort(places, kind="stable")
    above_first = np.concatenate(([0.0], np.cumsum((heights[order][1:] + heights[order][:-1]) / 2)))
    groups: list[list[float]] = []  # texts that touch, from below: each one's place for the first
    for first in np.clip(places, 0, 1)[order] - above_first:
        groups.append([float(first)])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    highest = 1 - above_first[-1]
    result = np.empty(len(places))
    means = np.concatenate([np.full(len(group), np.mean(group)) for group in groups])
    result[order] = np.clip(means, min(0, highest), highest) + above_first
    return result


def legend_below(figure: Figure, axes: Any, columns: int = 3, note: str = "") -> None:
    """Write the legend of axes, and a note above it, under the picture, where no data are."""
    handles, names = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles, names, loc="outside lower center", ncols=min(columns, len(names)), fontsize=SMALL, frameon=False,
        title=_wrapped(figure, note, SMALL * 1.05), title_fontproperties={"size": SMALL},
    )  # fmt: skip
    legend.get_title().set_color(DARK)


def save(figure: Figure, path: Path | BinaryIO) -> None:
    """Write a picture as PNG. Create the folder of a path."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
