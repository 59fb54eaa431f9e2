"""The charts of a device, as ECharts takes them. Their colours are readable on light and on dark."""

from __future__ import annotations

from typing import Any

import numpy as np

GREY = "#888"
LEAST_MS = 600_000  # of a time axis
OWN, ALWAYS, NEVER = "#0a84d6", "#d97706", "#9333ea"


def _chart(title: str, **parts: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "textStyle": {"fontSize": 14, "color": GREY}, "left": "center", "top": 0},
        "textStyle": {"color": GREY},
        "grid": {"left": 52, "right": 12, "top": 72, "bottom": 36},
        "animation": False,
        "tooltip": {"trigger": "axis"},
        "legend": {"top": 28, "textStyle": {"color": GREY}},
        **parts,
    }


def _value_axis(name: str = "", **options: Any) -> dict[str, Any]:
    return {
        "type": "value",
        "name": name,
        "axisLabel": {"color": GREY},
        "splitLine": {"lineStyle": {"opacity": 0.2}},
        **options,
    }


def _lines(title: str, series: dict[str, tuple[str, list[list[float]]]], unit: str) -> dict[str, Any]:
    lines = [
        {"name": name, "type": "line", "showSymbol": len(data) < 3, "data": data, "color": color, "connectNulls": False}
        for name, (color, data) in series.items()
    ]
    times = [point[0] for _, data in series.values() for point in data]
    axis: dict[str, Any] = {"type": "time", "axisLabel": {"color": GREY, "hideOverlap": True}}
    if times:  # ECharts would draw two days around a single point
        axis.update(min=min(*times, max(times) - LEAST_MS), max=max(times))
    return _chart(title, series=lines, xAxis=axis, yAxis=_value_axis(unit, min=0))


def costs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The cost a sample since the start, minute by minute, beside offloading always and never."""
    lines = {}
    for name, label, color in (
        ("own", "this device", OWN),
        ("always", "asking always", ALWAYS),
        ("never", "asking never", NEVER),
    ):
        lines[label] = (color, [[row["at"] * 1000, row[name]] for row in rows if row[name] is not None])
    return _lines("cost a sample", lines, "")


def shares(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Offloads and fallbacks of each minute's samples, in per cent."""
    offloaded, fell = [], []
    for before, row in zip(rows, rows[1:]):
        samples = row["samples"] - before["samples"]
        if samples > 0 and row["boot"] == before["boot"]:
            at = row["at"] * 1000
            offloaded.append([at, 100 * (row["offloads"] - before["offloads"]) / samples])
            without = row["fallbacks"] + row["unasked"] - before["fallbacks"] - before["unasked"]
            fell.append([at, 100 * without / samples])
    return _lines("share of its samples", {"asked": (OWN, offloaded), "fell back": (ALWAYS, fell)}, "%")


def _places(n: int) -> list[str]:
    return [f"{k / n:.2f}" for k in range(n)]


def forecast(state: dict[str, Any]) -> dict[str, Any]:
    """By the local score: how often the remote model answered class 1, and how often the device asked it.

    The lines are the thresholds of the costs (Theorem 1): between them asking is cheapest, if that share is the truth.
    """
    scores, answered, events = state["scores"] or [], state["answered"] or [], state["events"] or []
    share = [100 * e / n if n else None for e, n in zip(events, answered)]
    offloaded = [100 * n / all_ if all_ else None for n, all_ in zip(answered, scores)]
    beta, fp, fn = state["beta"], state["delta_fp"], state["delta_fn"]
    marks = []
    if beta is not None and fp and fn and state["classes"] == 2:
        low, high = 100 * min(1.0, beta / fn), 100 * max(0.0, 1 - beta / fp)
        if low < high:
            marks = [{"yAxis": low}, {"yAxis": high}]
    names = state["class_names"] or []
    event = names[1] if len(names) == 2 else "class 1"
    line = {"symbol": "none", "data": marks, "lineStyle": {"color": NEVER}, "label": {"show": False}}
    series = [
        {"name": f"answered {event}", "type": "bar", "data": share, "color": OWN, "markLine": line},
        {"name": "asked", "type": "line", "data": offloaded, "color": ALWAYS, "showSymbol": True, "connectNulls": False},
    ]
    axes = {"xAxis": {"type": "category", "data": _places(len(scores)), "axisLabel": {"color": GREY}}}
    return _chart("by the local score", series=series, yAxis=_value_axis("%", min=0, max=100), **axes)


def histogram(usual: list[int] | None, lately: list[int] | None) -> dict[str, Any]:
    """The distribution of the scores at first and now, in per cent."""
    series = []
    for name, counts, color in (("at first", usual, GREY), ("now", lately, OWN)):
        if counts:
            series.append(
                {"name": name, "type": "bar", "color": color, "data": [100 * n / max(1, sum(counts)) for n in counts]}
            )
    places = _places(len(usual or lately or []))
    axes = {"xAxis": {"type": "category", "data": places, "axisLabel": {"color": GREY}}, "yAxis": _value_axis("%", min=0)}
    return _chart("spread of its scores", series=series, **axes)


def waits(counts: list[int]) -> dict[str, Any]:
    """How long answers took, by powers of two."""
    names = [f"< {1 << n}" for n in range(len(counts) - 1)] + [f"{(1 << len(counts)) // 4}+"]
    series = [{"name": "answers", "type": "bar", "color": OWN, "data": counts}]
    axes = {"xAxis": {"type": "category", "data": names, "name": "ms", "axisLabel": {"color": GREY}}, "yAxis": _value_axis()}
    return _chart("how long answers took", series=series, **axes)


def curve(values: np.ndarray) -> dict[str, Any]:
    """A sample: a row of numbers (n,), or several channels (n, channels)."""
    channels = values[:, None] if values.ndim == 1 else values
    series = [
        {"name": f"channel {c}", "type": "line", "showSymbol": False, "data": [float(v) for v in channels[:, c]]}
        for c in range(channels.shape[1])
    ]
    axes = {"xAxis": {"type": "category", "axisLabel": {"color": GREY}}, "yAxis": _value_axis(scale=True)}
    return _chart("", series=series, **axes)
