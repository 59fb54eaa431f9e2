"""The pictures that only the lab draws."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2t2_tools.common import plot_style as style
from h2t2_tools.common.plot_style import finish, label_ends, legend_below, panels, save, state
from h2t2_tools.common.plots import Lines, draw_curves, set_scales, with_hidden


def compared(cost: float, baseline: float) -> str:
    """Return how a cost compares with a baseline: "40% less" or "3% more"."""
    saved = 1 - cost / baseline
    return f"{abs(saved):.0%} {'less' if saved >= 0 else 'more'}"


def error_plane(path: Path, rows: list[dict[str, Any]], message: str, note: str = "") -> None:
    """False-positive against false-negative rate, coloured by cost: rows of trace, kind, fpr, fnr, cost; a panel a trace."""
    names = list(dict.fromkeys(row["trace"] for row in rows))
    figure, axes_grid = panels(1, len(names), figsize=(style.WIDTH, 4.6), squeeze=False)
    low, high = min(row["cost"] for row in rows), max(row["cost"] for row in rows)
    marks = {"one threshold": ("D", 28), "two thresholds": ("o", 14), "best two thresholds": ("*", 260)}
    for axes, name in zip(axes_grid.flat, names):
        for kind, (mark, size) in marks.items():
            mine = [row for row in rows if (row["trace"], row["kind"]) == (name, kind)]
            fpr, fnr, cost = ([row[key] for row in mine] for key in ("fpr", "fnr", "cost"))
            edge = "none" if kind == "two thresholds" else "#D55E00"
            look = {"s": size, "marker": mark, "edgecolors": edge, "cmap": "cividis", "vmin": low, "vmax": high}
            points = axes.scatter(fpr, fnr, c=cost, label=kind, **look)
        finish(axes, xlabel="false-positive rate", ylabel="false-negative rate", title=name)
    figure.colorbar(points, ax=list(axes_grid.flat), label="average cost a sample")
    state(figure, message)
    legend_below(figure, axes, note=note)
    save(figure, path)


def soak(path: Path, rows: list[dict[str, Any]]) -> None:
    """Memory, descriptors, threads and the latest decision of each process of a long run, over the hours."""
    shown = {"memory_mb": "memory, MB", "descriptors": "descriptors", "threads": "threads", "worst_ms": "latest decision, ms"}
    figure, axes = panels(len(shown), 1, sharex=True, figsize=(8, 9))
    names = list(dict.fromkeys(row["process"] for row in rows))
    for axis, (key, title) in zip(axes, shown.items()):
        for name, colour in zip(names, style.COLOURS):
            mine = [row for row in rows if row["process"] == name and key in row]
            axis.plot([row["hours"] for row in mine], [row[key] for row in mine], label=name, color=colour, linewidth=1)
        axis.set(ylabel=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[-1].set(xlabel="hours")
    legend_below(figure, axes[0], len(names))
    save(figure, path)


def grid(
    path: Path,
    content: Mapping[str, Lines],
    axes_of: tuple[str, str],
    labels: tuple[str, str],
    message: str,
    note: str = "",
    log: str = "",
) -> None:
    """Draw a picture of lines for each data set, by the title of its panel. Arguments and result as for curves().

    Up to two panels stand above one another, and their lines are labelled at the ends. More share one legend under them.
    """
    columns = 1 if len(content) <= 2 else 3
    rows = -(-len(content) // columns)
    figure, axes_grid = panels(rows, columns, figsize=(style.WIDTH, (3.6 if columns == 1 else 2.2) * rows + 1.2), squeeze=False)
    used = list(axes_grid.flat)[: len(content)]
    for axes, (name, lines) in zip(used, content.items()):
        draw_curves(axes, lines, axes_of)
        axes.set_title(name, fontsize=style.TEXT if columns == 1 else style.SMALL, loc="left")
        set_scales(axes, log)
        if columns > 1 and axes.get_xscale() == "linear":
            axes.locator_params(axis="x", nbins=2)  # a narrow panel has room for three long numbers
        finish(axes)
    for axes in list(axes_grid.flat)[len(content) :]:
        axes.axis("off")
    for axes in used[-columns:]:
        axes.set_xlabel(labels[0], fontsize=style.TEXT if columns == 1 else style.SMALL)
    figure.supylabel(labels[1], fontsize=style.TEXT)
    note = with_hidden(note, next(iter(content.values())))
    if columns == 1:
        state(figure, message, note)
        for axes in used:
            label_ends(figure, axes, axes.get_lines())
    else:
        state(figure, message)
        legend_below(figure, used[0], note=note)
    save(figure, path)
