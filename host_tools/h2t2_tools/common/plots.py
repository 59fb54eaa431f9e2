"""The pictures: running cost, expert weights. Colour-blind safe (Okabe and Ito's palette)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.figure import Figure

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]


def _panels(rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes, as pyplot.subplots(): without pyplot, which chooses a back end for the whole process."""
    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def running_cost(path: Path | BinaryIO, policy: str, cost: np.ndarray, references: dict[str, np.ndarray], title: str) -> None:
    """Running average of the cost a sample, cost: (T,), beside the same of each reference policy on the same stream."""
    running_costs(path, [CostCurves(policy, cost, references, title)])


@dataclass(frozen=True)
class CostCurves:
    """A panel of running_costs(): the cost a sample of a policy, (T,), and of each reference policy on the same stream."""

    policy: str
    cost: np.ndarray
    references: dict[str, np.ndarray]
    title: str


def running_costs(path: Path | BinaryIO, streams: list[CostCurves]) -> None:
    """Running averages of the cost a sample, a panel for each stream."""
    figure, grid = _panels(1, len(streams), figsize=(8 if len(streams) == 1 else 6.2 * len(streams), 4.5), squeeze=False)
    for axes, stream in zip(grid.flat, streams):
        rounds = np.arange(1, len(stream.cost) + 1)
        for (name, values), colour, style in zip(stream.references.items(), COLOURS[1:], STYLES[1:]):
            axes.plot(rounds, np.cumsum(values) / rounds, linestyle=style, color=colour, label=name)
        label = f"{stream.policy} (learns online)"
        axes.plot(rounds, np.cumsum(stream.cost) / rounds, color=COLOURS[0], linewidth=2.2, label=label)
        tail = [np.cumsum(v)[-1] / len(v) for v in [stream.cost, *stream.references.values()]]
        axes.set(xlabel="samples", ylabel="average cost a sample so far", title=stream.title)
        axes.set_ylim(0, 1.6 * max(tail))
        axes.set_xlim(1, len(stream.cost))
        axes.grid(alpha=0.3)
        axes.legend(ncols=2, fontsize=None if len(streams) == 1 else "small")
    figure.savefig(path, dpi=130)


def expert_weights(path: Path, a: np.ndarray, b: np.ndarray, best: tuple[int, int], title: str) -> None:
    """Heat map of the expert probabilities from the exponents a (lower thresholds) and b (upper), octaves, (N,) each."""
    exponent = np.asarray(a)[:, None] + np.asarray(b)[None, :]
    valid = np.triu(np.ones_like(exponent, bool))
    chance = np.where(valid, np.exp2(-(exponent - exponent[valid].min())), 0)
    chance /= chance.sum()
    exponents = np.where(valid, np.log10(np.maximum(chance, 1e-12)), np.nan)
    figure, axes = _panels(figsize=(6.2, 5))
    image = axes.imshow(exponents, origin="lower", cmap="cividis", vmin=-12, vmax=0)
    axes.plot(best[1], best[0], "o", mfc="none", mec="#D55E00", ms=14, mew=2, label="offline best pair")
    axes.set(xlabel="upper threshold (bin): 1 from here on", ylabel="lower threshold (bin): 0 below", title=title)
    axes.legend(loc="lower right")
    figure.colorbar(image, label="probability of the expert, log10 (cut at -12)")
    figure.savefig(path, dpi=130)


def intervals(path: Path, bins: np.ndarray, region: list[float], switch: float, title: str) -> None:
    """What the forecaster believes: (low, p, high) a bin, (N, 3), beside the region where offloading is cheapest."""
    low, p, high = bins.T
    figure, axes = _panels(figsize=(8, 4.5))
    if region[0] < region[1]:
        axes.axhspan(*region, color=COLOURS[4], alpha=0.25, label="offloading is cheapest here")
    axes.axhline(switch, color=COLOURS[1], linestyle="--", label="class 1 becomes the cheaper one")
    axes.errorbar(np.arange(len(p)), p, (p - low, high - p), fmt="o", color=COLOURS[0], capsize=3, label="learned")
    axes.set(xlabel="score bin", ylabel="share of events", ylim=(-0.02, 1.02), title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=130)


def class_cells(path: Path, rows: list[list[dict[str, float]]], beta: float, title: str) -> None:
    """What the forecaster believes of many classes: a row a class that the local model says, a column a bin of how sure it is;
    the class to say, black where asking costs less, and what it is expected to cost."""
    costs = np.array([[cell["cost"] for cell in row] for row in rows])
    high, wide = costs.shape
    figure, axes = _panels(figsize=(max(6.0, wide / 2.2), max(3.5, high / 2.2)))
    image = axes.imshow(costs, cmap="cividis", vmin=0, vmax=max(2 * beta, 0.1), aspect="auto")
    for n, row in enumerate(rows):
        for k, cell in enumerate(row):
            asks = cell["cost"] > beta
            axes.text(k, n, str(cell["say"]), ha="center", va="center", color="black" if asks else "white", fontsize=8)
    axes.set(xlabel="bin of how sure the local model is", ylabel="class it says", title=title, yticks=range(high))
    figure.colorbar(image, label=f"expected cost of the number shown (an offload: {beta:g})")
    figure.savefig(path, dpi=130)


STYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 3)), "-"]
MARKS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">"]


def curves(
    path: Path,
    lines: dict[str, list[dict[str, float]]],
    axes_of: tuple[str, str],
    labels: tuple[str, str],
    title: str,
    log: str = "",
) -> None:
    """One picture of lines: name -> rows that hold x, y and, for an error band, y + "_sd". log: "x", "y" or "xy"."""
    figure, axes = _panels(figsize=(8, 5))
    draw_curves(axes, lines, axes_of)
    axes.set(xlabel=labels[0], ylabel=labels[1], title=title)
    _set_scales(axes, log)
    axes.legend(fontsize=8, ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_curves(axes: Any, lines: dict[str, list[dict[str, float]]], axes_of: tuple[str, str]) -> None:
    """The lines with their error bands, in given axes."""
    x_of, y_of = axes_of
    for n, (name, rows) in enumerate(lines.items()):
        x, y = (np.array([row[key] for row in rows], float) for key in axes_of)
        colour, style = COLOURS[n % len(COLOURS)], STYLES[n % len(STYLES)]
        axes.plot(x, y, linestyle=style, marker=MARKS[n % len(MARKS)], markersize=4, color=colour, label=name)
        if rows and f"{y_of}_sd" in rows[0]:
            spread = np.array([row[f"{y_of}_sd"] for row in rows], float)
            axes.fill_between(x, y - spread, y + spread, color=colour, alpha=0.15, linewidth=0)


def _set_scales(axes: Any, log: str) -> None:
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)


def panels(
    path: Path,
    content: dict[str, dict[str, list[dict[str, float]]]],
    axes_of: tuple[str, str],
    labels: tuple[str, str],
    title: str,
    log: str = "",
) -> None:
    """A grid of such pictures, one a data set, with one legend: title of the panel -> lines."""
    columns = min(3, len(content))
    rows = -(-len(content) // columns)
    figure, grid = _panels(rows, columns, figsize=(4.4 * columns, 3.4 * rows + 0.6), squeeze=False)
    for axes, (name, lines) in zip(grid.flat, content.items()):
        draw_curves(axes, lines, axes_of)
        axes.set_title(name, fontsize=10)
        _set_scales(axes, log)
    for axes in list(grid.flat)[len(content) :]:
        axes.axis("off")
    for axes in list(grid.flat)[max(0, len(content) - columns) : len(content)]:
        axes.set_xlabel(labels[0])
    figure.supylabel(labels[1])
    figure.suptitle(title)
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def row_marks(path: Path, rows: list[dict[str, Any]], of: str, names: list[str], label: str, title: str) -> None:
    """A line for every row, called row[of], with a mark for every name at row[name]."""
    figure, axes = _panels(figsize=(9, 0.36 * len(rows) + 1.8))
    places = np.arange(len(rows))[::-1]
    for n, name in enumerate(names):
        axes.plot(
            [row[name] for row in rows],
            places,
            linestyle="",
            marker=MARKS[n % len(MARKS)],
            color=COLOURS[n % len(COLOURS)],
            label=name,
        )
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(places, [row[of] for row in rows])
    axes.set(xlabel=label)
    figure.suptitle(title, fontsize=10)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def error_plane(path: Path, rows: list[dict[str, Any]], title: str) -> None:
    """False-positive against false-negative rate, coloured by cost: rows of trace, kind, fpr, fnr, cost; a panel a trace."""
    names = list(dict.fromkeys(row["trace"] for row in rows))
    figure, grid = _panels(1, len(names), figsize=(5.4 * len(names), 4.6), squeeze=False)
    low, high = min(row["cost"] for row in rows), max(row["cost"] for row in rows)
    marks = {"one threshold": ("D", 28), "two thresholds": ("o", 14), "best two thresholds": ("*", 260)}
    for axes, name in zip(grid.flat, names):
        for kind, (mark, size) in marks.items():
            mine = [row for row in rows if (row["trace"], row["kind"]) == (name, kind)]
            fpr, fnr, cost = ([row[key] for row in mine] for key in ("fpr", "fnr", "cost"))
            edge = "none" if kind == "two thresholds" else "#D55E00"
            style = {"s": size, "marker": mark, "edgecolors": edge, "cmap": "cividis", "vmin": low, "vmax": high}
            points = axes.scatter(fpr, fnr, c=cost, label=kind, **style)
        axes.set(xlabel="false-positive rate", ylabel="false-negative rate", title=name)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.colorbar(points, ax=list(grid.flat), label="average cost a sample")
    figure.suptitle(title)
    figure.savefig(path, dpi=130)


def simplex(path: Path, rows: list[dict[str, Any]], title: str) -> None:
    """Which action each output of a three-class model leads to: rows of f0, f1, action (-1: offload)."""
    figure, axes = _panels(figsize=(6, 5))
    for action, colour in ((0, COLOURS[0]), (1, COLOURS[1]), (2, COLOURS[2]), (-1, COLOURS[4])):
        mine = [row for row in rows if row["action"] == action]
        label = "offload" if action < 0 else f"predict {action}"
        axes.scatter([row["f0"] for row in mine], [row["f1"] for row in mine], s=6, marker="s", color=colour, label=label)
    axes.set(xlabel="score of class 0", ylabel="score of class 1", title=title, xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper right", markerscale=3)
    figure.savefig(path, dpi=130)


def conversion(path: Path, exact: np.ndarray, rounded: np.ndarray, reliability: dict[str, Any] | None, title: str) -> None:
    """Float scores against int8 ones, and, where labels are known, the reliability diagram of both."""
    figure, axes = _panels(1, 2 if reliability else 1, figsize=(11 if reliability else 5.5, 5))
    main = np.atleast_1d(axes)[0]
    main.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    main.scatter(exact, rounded, s=8, alpha=0.5, color=COLOURS[0])
    main.set(xlabel="float score of class 1", ylabel="int8 score of class 1", title=f"{title}: {len(exact):,} samples")
    main.grid(alpha=0.3)
    if reliability:
        right = axes[1]
        right.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
        for n, (name, rows) in enumerate(reliability.items()):
            x, y = [row["score"] for row in rows], [row["share"] for row in rows]
            right.plot(x, y, color=COLOURS[n], linestyle=STYLES[n], marker=MARKS[n], label=name)
        right.set(xlabel="mean score in the bin", ylabel="share of class 1", title="reliability")
        right.grid(alpha=0.3)
        right.legend()
    figure.savefig(path, dpi=130)


def soak(path: Path, rows: list[dict[str, Any]]) -> None:
    """Memory, descriptors, threads and the latest decision of each process of a long run, over the hours."""
    panels = {"memory_mb": "memory, MB", "descriptors": "descriptors", "threads": "threads", "worst_ms": "latest decision, ms"}
    figure, axes = _panels(len(panels), 1, sharex=True, figsize=(8, 9))
    names = list(dict.fromkeys(row["process"] for row in rows))
    for axis, (key, title) in zip(axes, panels.items()):
        for name, colour in zip(names, COLOURS):
            mine = [row for row in rows if row["process"] == name and key in row]
            axis.plot([row["hours"] for row in mine], [row[key] for row in mine], label=name, color=colour, linewidth=1)
        axis.set(ylabel=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].legend(ncols=len(names), fontsize="small")
    axes[-1].set(xlabel="hours")
    figure.savefig(path, dpi=100)


def sample_agreement(path: Path, time: list[dict[str, Any]], bins: list[dict[str, Any]], title: str) -> None:
    """Kept samples: how often the remote model agrees with the local one over time (rows of at, accuracy, error), and its
    share of events beside the local score (rows of score, events, samples)."""
    figure, (main, right) = _panels(1, 2, figsize=(11, 4.5))
    at = [datetime.fromtimestamp(row["at"], tz=timezone.utc) for row in time]
    value, error = (np.array([row[key] for row in time], float) for key in ("accuracy", "error"))
    main.fill_between(at, np.clip(value - 2 * error, 0, 1), np.clip(value + 2 * error, 0, 1), alpha=0.25, color=COLOURS[0])
    main.plot(at, value, marker="o", markersize=3, color=COLOURS[0])
    main.set(ylim=(0, 1.02), xlabel="UTC", ylabel="share the remote model agrees with", title="the local model over time")
    main.tick_params(axis="x", rotation=30)
    right.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    size = np.array([row["samples"] for row in bins], float)
    right.scatter(
        [row["score"] for row in bins],
        [row["events"] for row in bins],
        s=15 + 100 * size / max(size.max(), 1),
        color=COLOURS[0],
    )
    right.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="local score", ylabel="share the remote model calls class 1", title=title)
    for axes in (main, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
