"""The pictures of all commands. plot_style.py says how a policy, a title and a label look."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.ticker import LogFormatterSciNotation

from . import plot_style as style
from .plot_style import draw_line, finish, label_ends, legend_below, look, panels, save, state

Lines = Mapping[str, Sequence[Mapping[str, Any]]]  # name -> rows that hold x, y and, for a band, y + "_sd"


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
    high = 4.5 if len(streams) == 1 else 3.6
    figure, axes_grid = panels(len(streams), 1, figsize=(style.WIDTH, high * len(streams)), squeeze=False)
    for axes, stream in zip(axes_grid.flat, streams):
        rounds = np.arange(1, len(stream.cost) + 1)
        for n, (name, values) in enumerate({**stream.references, stream.policy: stream.cost}.items()):
            at = replace(look(name), width=style.OURS) if name == stream.policy else look(name, n + 1)
            draw_line(axes, name, at, rounds, np.cumsum(values) / rounds)
        tail = [np.mean(values) for values in [stream.cost, *stream.references.values()]]
        axes.set_ylim(0, 1.6 * max(tail))
        axes.set_xlim(1, len(stream.cost))
        finish(axes, xlabel="samples", ylabel="average cost a sample so far")
        if len(streams) > 1:
            axes.set_title(stream.title, fontsize=style.TEXT, loc="left")
    if len(streams) == 1:
        state(figure, streams[0].title)
    for axes in axes_grid.flat:
        label_ends(figure, axes, axes.get_lines())
    save(figure, path)


def expert_weights(path: Path, a: np.ndarray, b: np.ndarray, best: tuple[int, int], title: str) -> None:
    """Heat map of the expert probabilities from the exponents a (lower thresholds) and b (upper), octaves, (N,) each."""
    exponent = np.asarray(a)[:, None] + np.asarray(b)[None, :]
    valid = np.triu(np.ones_like(exponent, bool))
    chance = np.where(valid, np.exp2(-(exponent - exponent[valid].min())), 0)
    chance /= chance.sum()
    exponents = np.where(valid, np.log10(np.maximum(chance, 1e-12)), np.nan)
    figure, axes = panels(figsize=(6.6, 5.4))
    image = axes.imshow(exponents, origin="lower", cmap="cividis", vmin=-12, vmax=0)
    axes.plot(best[1], best[0], "o", mfc="none", mec="#D55E00", ms=14, mew=2, linestyle="", label="best thresholds (offline)")
    axes.set_xlabel("upper threshold (bin): 1 from here on", fontsize=style.TEXT)
    axes.set_ylabel("lower threshold (bin): 0 below", fontsize=style.TEXT)
    state(figure, title)
    legend_below(figure, axes)
    figure.colorbar(image, label="probability of the expert, log10 (cut at -12)")
    save(figure, path)


def intervals(path: Path, bins: np.ndarray, region: list[float], switch: float, title: str) -> None:
    """What the forecaster believes: (low, p, high) a bin, (N, 3), beside the region where offloading is cheapest."""
    low, p, high = bins.T
    figure, axes = panels(figsize=(style.WIDTH, 4.7))
    if region[0] < region[1]:
        axes.axhspan(*region, color=style.COLOURS[4], alpha=0.25, label="offloading is cheapest here")
    axes.axhline(switch, color=style.COLOURS[1], linestyle="--", label="class 1 becomes the cheaper one")
    axes.errorbar(np.arange(len(p)), p, (p - low, high - p), fmt="o", color=style.COLOURS[0], capsize=3, label="learned")
    finish(axes, xlabel="score bin", ylabel="share of events", ylim=(-0.02, 1.02))
    state(figure, title)
    legend_below(figure, axes)
    save(figure, path)


def learned_by_score(
    path: Path | BinaryIO,
    asked: np.ndarray,
    lines: Mapping[str, Sequence[float | None]],
    costs: Mapping[str, float],
    title: str,
) -> None:
    """Bars of how often a policy asks at each score, lines over the same bins, and beside them bars of costs.

    Args:
        path: The PNG.
        asked: (bins, 3): bounds of the score, and the share of samples that were asked about.
        lines: Name -> a number a bin, or None. A line of None alone is left out.
        costs: Name -> cost a sample; none: no second panel.
        title: What the picture shows.
    """
    figure, axes_grid = panels(
        1, 2 if costs else 1, figsize=(style.WIDTH, 4.4), squeeze=False, width_ratios=(3, 1)[: 1 + bool(costs)]
    )
    axes = axes_grid[0, 0]
    low, high, shares = asked.T
    axes.bar((low + high) / 2, shares, 0.9 * (high - low), color=style.COLOURS[4], alpha=0.45, label="share asked about")
    for n, (name, values) in enumerate(lines.items()):
        places = [k for k, value in enumerate(values) if value is not None]
        if places:
            at = look(name, n)
            x, y = ((low + high) / 2)[places], [values[k] for k in places]
            axes.plot(x, y, color=at.colour, marker=at.mark, linestyle=at.style, linewidth=at.width, label=name)
    finish(axes, xlabel="local model's score", ylabel="share", ylim=(-0.02, 1.02), xlim=(low[0], high[-1]))
    if costs:
        beside = axes_grid[0, 1]
        names = [textwrap.fill(name, 16) for name in costs]
        beside.barh(names[::-1], list(costs.values())[::-1], color=style.COLOURS[0], alpha=0.7)
        finish(beside, xlabel="cost a sample")
    state(figure, title)
    legend_below(figure, axes)
    save(figure, path)


def class_cells(path: Path, rows: list[list[dict[str, float]]], beta: float, title: str) -> None:
    """What the forecaster believes of many classes: a row a class that the local model says, a column a bin of how sure it is;
    the class to say, black where asking costs less, and what it is expected to cost."""
    costs = np.array([[cell["cost"] for cell in row] for row in rows])
    high, wide = costs.shape
    figure, axes = panels(figsize=(max(6.0, wide / 2.2), max(3.5, high / 2.2)))
    image = axes.imshow(costs, cmap="cividis", vmin=0, vmax=max(2 * beta, 0.1), aspect="auto")
    for n, row in enumerate(rows):
        for k, cell in enumerate(row):
            asks = cell["cost"] > beta
            axes.text(k, n, str(cell["say"]), ha="center", va="center", color="black" if asks else "white", fontsize=8)
    axes.set(xlabel="bin of how sure the local model is", ylabel="class it says", yticks=range(high))
    state(figure, title)
    figure.colorbar(image, label=f"expected cost of the number shown (an offload: {beta:g})")
    save(figure, path)


def curves(
    path: Path, lines: Lines, axes_of: tuple[str, str], labels: tuple[str, str], message: str, note: str = "", log: str = ""
) -> Path:
    """Draw a picture of lines, each labelled at its end.

    Args:
        path: The PNG.
        lines: The lines; of more than six the most important are drawn.
        axes_of: Keys of x and y in the rows.
        labels: Of the axes.
        message: What the picture shows, as a sentence.
        note: How it was measured.
        log: "x", "y" or "xy": logarithmic axes.

    Returns:
        The path.
    """
    figure, axes = panels(figsize=(style.WIDTH, 5))
    draw_curves(axes, lines, axes_of)
    set_scales(axes, log)
    finish(axes, xlabel=labels[0], ylabel=labels[1])
    state(figure, message, with_hidden(note, lines))
    label_ends(figure, axes, axes.get_lines())
    save(figure, path)
    return path


def draw_curves(axes: Any, lines: Lines, axes_of: tuple[str, str]) -> None:
    """Draw the most important lines with their bands in given axes."""
    x_of, y_of = axes_of
    names = style.important(lines)
    numbers = {name: n for n, name in enumerate(name for name in names if name not in style.LOOKS)}
    for name in names:
        rows = lines[name]
        x, y = (np.array([float(row[key]) for row in rows]) for key in axes_of)
        spread = np.array([float(row[f"{y_of}_sd"]) for row in rows]) if rows and f"{y_of}_sd" in rows[0] else None
        draw_line(axes, name, look(name, numbers.get(name, 0)), x, y, spread)


def with_hidden(note: str, lines: Lines) -> str:
    hidden = len(lines) - len(style.important(lines))
    return f"{note}; the CSV holds {hidden} more" if hidden else note


def set_scales(axes: Any, log: str) -> None:
    """Set logarithmic scales, with ticks as plain numbers: 1,000 and not 10³."""
    for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if side in log:
            axes.set(**{f"{side}scale": "log"})
            axis.set_major_formatter(_PlainNumbers())
            axis.set_minor_formatter(_PlainNumbers(labelOnlyBase=False))


class _PlainNumbers(LogFormatterSciNotation):
    """Labels the ticks that matplotlib would label, as plain numbers."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return f"{value:,.12g}" if super().__call__(value, pos) else ""


def row_marks(
    path: Path, rows: Sequence[Mapping[str, Any]], of: str, names: Sequence[str], label: str, message: str, note: str = ""
) -> Path:
    """Draw a line for every row, called row[of], with a mark for every name at row[name] and a bar of row[name + "_sd"]."""
    figure, axes = panels(figsize=(style.WIDTH, 0.36 * len(rows) + 2.4))
    places = np.arange(len(rows))[::-1]
    numbers = {name: n for n, name in enumerate(name for name in names if name not in style.LOOKS)}
    for name in names:
        at = look(name, numbers.get(name, 0))
        bars = [float(row.get(f"{name}_sd", 0.0)) for row in rows]
        marks = {"marker": at.mark or "|", "markersize": 9 if at.width == style.OURS else 7, "zorder": 2 + at.width}
        x, xerr = [float(row[name]) for row in rows], bars if any(bars) else None
        axes.errorbar(x, places, xerr=xerr, linestyle="", color=at.colour, label=name, **marks)
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(places, [row[of] for row in rows])
    finish(axes, xlabel=label)
    state(figure, message)
    legend_below(figure, axes, note=note)
    save(figure, path)
    return path


def conversion(path: Path, exact: np.ndarray, rounded: np.ndarray, reliability: dict[str, Any] | None, title: str) -> None:
    """Float scores against int8 ones, and, where labels are known, the reliability diagram of both."""
    figure, axes = panels(1, 2 if reliability else 1, figsize=(style.WIDTH if reliability else 5.5, 4.4))
    main = np.atleast_1d(axes)[0]
    main.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    main.scatter(exact, rounded, s=8, alpha=0.5, color=style.COLOURS[0])
    main.set(xlabel="float score of class 1", ylabel="int8 score of class 1", title=f"{title}: {len(exact):,} samples")
    main.grid(alpha=0.3)
    if reliability:
        right = axes[1]
        right.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
        for n, (name, rows) in enumerate(reliability.items()):
            x, y = [row["score"] for row in rows], [row["share"] for row in rows]
            right.plot(x, y, color=style.COLOURS[n], linestyle=style.STYLES[n], marker=style.MARKS[n], label=name)
        right.set(xlabel="mean score in the bin", ylabel="share of class 1", title="reliability")
        right.grid(alpha=0.3)
        legend_below(figure, right)
    save(figure, path)


def sample_agreement(path: Path, time: list[dict[str, Any]], bins: list[dict[str, Any]], title: str) -> None:
    """Kept samples: how often the remote model agrees with the local one over time (rows of at, accuracy, error), and its
    share of events beside the local score (rows of score, events, samples)."""
    figure, (main, right) = panels(1, 2, figsize=(style.WIDTH, 4.2))
    at = [datetime.fromtimestamp(row["at"], tz=timezone.utc) for row in time]
    value, error = (np.array([row[key] for row in time], float) for key in ("accuracy", "error"))
    low, high = np.clip(value - 2 * error, 0, 1), np.clip(value + 2 * error, 0, 1)
    main.fill_between(at, low, high, alpha=0.25, color=style.COLOURS[0])
    main.plot(at, value, marker="o", markersize=3, color=style.COLOURS[0])
    main.set(ylim=(0, 1.02), xlabel="UTC", ylabel="share the remote model agrees with", title="the local model over time")
    main.tick_params(axis="x", rotation=30)
    right.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    size = np.array([row["samples"] for row in bins], float)
    scores, events = ([row[key] for row in bins] for key in ("score", "events"))
    right.scatter(scores, events, s=15 + 100 * size / max(size.max(), 1), color=style.COLOURS[0])
    right.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="local score", ylabel="share the remote model calls class 1", title=title)
    for axes in (main, right):
        axes.grid(alpha=0.3)
    save(figure, path)
