"""The charts of a device, as ECharts takes them, each with its data as a table. Colours are CSS variables (theme.py).

The charts are SVG, in which a variable is a colour. ECharts cannot brighten a variable, so nothing changes under the pointer.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common import places
from ..monitoring.intervals import Interval, Z
from ..monitoring.thresholds import Bin, Judgement, Prices
from .times import date_minute

_PARTS: dict[str, Any] = json.loads(places.text("fleet/dashboard/charts.json"))
TEXT, QUIET, LINE = "var(--text)", "var(--quiet)", "var(--line)"
OWN, PALE, ALWAYS, NEVER, BAD = "var(--own)", "var(--pale)", "var(--always)", "var(--never)", "var(--bad)"
MIN_SPAN_MS = 60_000  # of a time axis, which ends at the last point
SAME_EVENT_S = 60.0  # a restart so close to an update is a part of it
STILL = {"disabled": True}
MARK_COLOURS = {"update": OWN, "command": ALWAYS, "alarm": BAD, "restart": QUIET}
NAME_GAP = 22  # pixels between a chart over time and the name of its axis, above the labels of marks
COUNT_PX = 16  # height of the counts below an axis
EDGE = 0.06  # of a chart over time: a mark nearer to an end has its label beside it


@dataclass(frozen=True)
class Picture:
    """A chart, and its data as a table: column names, and rows of texts."""

    options: dict[str, Any]
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Mark:
    """An event at a time, Unix seconds. kind: a key of MARK_COLOURS; text: a sentence."""

    at: float
    kind: str
    text: str

    @property
    def name(self) -> str:
        """Distinguishes it from other marks."""
        return f"{self.kind} {self.at}"


def _from_template(name: str, /, **options: Any) -> dict[str, Any]:
    """A copy of an entry of charts.json, with further options."""
    return {**deepcopy(_PARTS[name]), **options}


def _chart(unit: str, **parts: Any) -> dict[str, Any]:
    chart = _from_template("chart", **parts)
    chart["tooltip"][":valueFormatter"] = chart["tooltip"][":valueFormatter"].replace("{unit}", unit)
    return chart


def _value_axis(name: str = "", **options: Any) -> dict[str, Any]:
    return _from_template("value axis", name=name, **options)


def _category_axis(labels: list[str], name: str, **options: Any) -> dict[str, Any]:
    return _from_template("category axis", data=labels, name=name, **options)


def _counted_axis(labels: list[str], counts: list[int], name: str) -> dict[str, Any]:
    """A category axis with a count below each label."""
    axis = _category_axis(labels, name, nameGap=_PARTS["category axis"]["nameGap"] + COUNT_PX)
    texts = json.dumps([f"{count:,}" for count in counts])
    axis["axisLabel"].update({":formatter": f"(label, n) => label + '\\n' + {texts}[n]", "lineHeight": COUNT_PX})
    return axis


def _line(name: str, colour: str, data: list[Any], **options: Any) -> dict[str, Any]:
    style = {"showSymbol": len(data) < 3, "emphasis": STILL, "lineStyle": {"width": 2, "color": colour}}
    return {"name": name, "type": "line", "data": data, "color": colour, **style, **options}


def _ms(at: float) -> int:
    return round(1000 * at)


def _time_chart(unit: str, series: list[dict[str, Any]], times: Sequence[float], marks: Sequence[Mark]) -> dict[str, Any]:
    """Series over time, the first of which carries the marks. times: Unix seconds of the points."""
    line = {"lineStyle": {"color": LINE}}
    axis: dict[str, Any] = {"type": "time", "axisLabel": {"color": TEXT, "hideOverlap": True}, "axisLine": line}
    if times:  # ECharts would draw two days around a single point
        last = _ms(max(times))
        axis.update(min=min(_ms(min(times)), last - MIN_SPAN_MS), max=last)
    lines = [
        {
            "name": mark.name,
            "xAxis": _ms(mark.at),
            "lineStyle": {"color": MARK_COLOURS[mark.kind], "type": "dotted" if mark.kind == "alarm" else "solid", "width": 2},
            "label": {"formatter": mark.kind, "color": TEXT, "position": "end", "fontSize": 11, "align": _side(mark.at, times)},
        }
        for mark in _distinct(marks)
        if times and min(times) <= mark.at <= max(times)
    ]
    if series and lines:
        series[0]["markLine"] = {"symbol": "none", "data": lines, "emphasis": STILL, "animation": False}
    return _chart(unit, series=series, useUTC=True, xAxis=axis, yAxis=_value_axis(unit, min=0, nameGap=NAME_GAP))


def _side(at: float, times: Sequence[float]) -> str:
    """The alignment of a mark's label: centred on the mark, but beside it near an axis, whose numbers it would cover."""
    place = (at - min(times)) / max(1.0, max(times) - min(times))
    return "left" if place < EDGE else "right" if place > 1 - EDGE else "center"


def _distinct(marks: Sequence[Mark]) -> list[Mark]:
    """The marks without restarts that an update has caused: their labels would lie on that of the update."""
    updates = [mark.at for mark in marks if mark.kind == "update"]
    return [mark for mark in marks if mark.kind != "restart" or all(abs(mark.at - at) > SAME_EVENT_S for at in updates)]


def costs(intervals: list[Interval], marks: Sequence[Mark]) -> Picture:
    """The cost of a sample in each interval, with the band that holds it with 95 %, beside the two simple choices."""
    estimates = [(interval, interval.costs) for interval in intervals]
    known = [(_ms(interval.ended), estimate, Z * estimate.error) for interval, estimate in estimates if estimate]
    rows = []
    for interval, estimate in estimates:
        own = (f"{estimate.own:.3f}", f"± {Z * estimate.error:.3f}") if estimate else ("no answer", "")
        simple = f"{interval.price:.3f}", f"{estimate.never:.3f}" if estimate else ""
        rows.append((date_minute(interval.ended), f"{interval.samples:,}", *own, *simple))
    low = [[at, max(0.0, estimate.own - half)] for at, estimate, half in known]
    width = [[at, min(estimate.own, half) + half] for at, estimate, half in known]
    always = [[_ms(interval.ended), interval.price] for interval in intervals]
    band = {"stack": "band", "symbol": "none", "silent": True, "tooltip": {"show": False}, "showSymbol": False}
    dashes = {"width": 2, "type": "dashed", "color": ALWAYS}, {"width": 2, "type": "dotted", "color": NEVER}
    series = [
        _line("this device", OWN, [[at, estimate.own] for at, estimate, _ in known], lineStyle={"width": 3, "color": OWN}),
        _line("always asking", ALWAYS, always, lineStyle=dashes[0]),
        _line("never asking", NEVER, [[at, estimate.never] for at, estimate, _ in known], lineStyle=dashes[1]),
        _line("", OWN, low, **band, lineStyle={"opacity": 0}),
        _line("", OWN, width, **band, lineStyle={"opacity": 0}, areaStyle={"color": OWN, "opacity": 0.2}),
    ]
    options = _time_chart("a sample", series, [interval.ended for interval in intervals], marks)
    options["legend"]["data"] = ["this device", "always asking", "never asking"]
    columns = ("until", "samples", "this device", "error", "always asking", "never asking")
    return Picture(options, columns, rows)


def shares(intervals: list[Interval], marks: Sequence[Mark]) -> Picture:
    """How often the device asked in each interval, and how often it decided alone although it wanted an answer, in per cent."""
    counted = [(interval, max(1, interval.samples)) for interval in intervals]
    asking = [[_ms(interval.ended), 100 * interval.offloads / samples] for interval, samples in counted]
    alone = [[_ms(interval.ended), 100 * interval.unserved / samples] for interval, samples in counted]
    rows = [
        (date_minute(interval.ended), f"{interval.samples:,}", f"{asked:.1f} %", f"{unserved:.1f} %")
        for interval, (_, asked), (_, unserved) in zip(intervals, asking, alone)
    ]
    series = [
        _line("asked the remote model", OWN, asking, lineStyle={"width": 3, "color": OWN}),
        _line("wanted an answer, got none", BAD, alone, lineStyle={"width": 2, "type": "dashed", "color": BAD}),
    ]
    columns = ("until", "samples", "asked", "wanted an answer, got none")
    return Picture(_time_chart("%", series, [interval.ended for interval in intervals], marks), columns, rows)


def _places(n: int) -> list[str]:
    return [f"{k / n:.2f}" for k in range(n)]


def thresholds(judgement: Judgement, answered: list[int], prices: Prices, event: str) -> Picture:
    """By the local score: what the remote model answered, with the interval of each bin, and how often the device asked it.

    The lines are the thresholds of the costs (Theorem 1): between them asking is cheapest.

    Args:
        answered: samples of each bin that the remote model decided.
        event: the name of class 1.
    """
    bins, size = judgement.bins, len(judgement.bins)
    portions = [100 * n / entry.samples if entry.samples else None for n, entry in zip(answered, bins)]
    name = f"answers '{event}'" if prices.limits else "cost of deciding alone"
    bars = _answer_bars(judgement, name)
    dashes = {"color": NEVER, "width": 2, "type": "dashed"}
    bars["markLine"] = {"symbol": "none", "data": _levels(prices), "lineStyle": dashes, "emphasis": STILL}
    asking = _line("asked", ALWAYS, portions, showSymbol=True, symbol="diamond", symbolSize=8, connectNulls=False)
    if judgement.span:
        first, last = round(judgement.span[0] * size), round(judgement.span[1] * size) - 1
        area = [{"xAxis": first, "name": "asks here"}, {"xAxis": last}]
        style = {"itemStyle": {"color": ALWAYS, "opacity": 0.1}, "label": {"color": TEXT, "position": "top"}}
        asking["markArea"] = {**style, "data": [area], "silent": True, "emphasis": STILL}
    axis = _counted_axis(_places(size), [entry.answers for entry in bins], "local score; below it, the answers there")
    rows = [
        (place, f"{entry.samples:,}", f"{entry.answers:,}", *_texts(entry), _percent(portion))
        for place, entry, portion in zip(_places(size), bins, portions)
    ]
    columns = ("score from", "samples", "answers", name, "95 % from", "to", "asked")
    series = [bars, _whiskers(judgement), asking]
    chart = _chart("%", series=series, xAxis=axis, yAxis=_value_axis("%", min=0, max=100))
    chart["grid"]["bottom"] += COUNT_PX
    return Picture(chart, columns, rows)


def _answer_bars(judgement: Judgement, name: str) -> dict[str, Any]:
    """The share in each bin."""
    data = [None if entry.share is None else 100 * entry.share for entry in judgement.bins]
    style = {"itemStyle": {"color": PALE, "borderColor": OWN}, "color": PALE, "emphasis": STILL}
    return {"name": name, "type": "bar", "data": data, **style}


def _whiskers(judgement: Judgement) -> dict[str, Any]:
    """The interval of the share in each bin: boxes without height."""
    data = [
        ["-"] * 5 if entry.share is None else [100 * entry.low, *[100 * entry.share] * 3, 100 * entry.high]
        for entry in judgement.bins
    ]
    style = {"itemStyle": {"color": OWN, "borderColor": OWN, "borderWidth": 2}, "color": OWN, "boxWidth": [6, 10]}
    return {"name": "95 % interval", "type": "boxplot", "data": data, "emphasis": STILL, "tooltip": {"show": False}, **style}


def _levels(prices: Prices) -> list[dict[str, Any]]:
    """The lines between which asking is cheapest, with their names."""
    levels = [(f"ask above {100 * prices.ask:.0f} %, the price of asking", prices.ask, "insideStartTop")]
    if prices.limits:  # labels stand where bars are far from their lines
        low, high = prices.limits
        above, below = f"ask above {100 * low:.0f} %", f"ask below {100 * high:.0f} %"
        levels = [(above, low, "insideEndTop"), (below, high, "insideStartTop")]
    return [
        {"yAxis": 100 * level, "label": {"formatter": words, "position": position, "color": TEXT}}
        for words, level, position in levels
    ]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def _texts(entry: Bin) -> tuple[str, str, str]:
    """The share in a bin and its interval; nothing without answers."""
    if entry.share is None:
        return "", "", ""
    return _percent(100 * entry.share), _percent(100 * entry.low), _percent(100 * entry.high)


def histogram(usual: list[int] | None, lately: list[int] | None) -> Picture:
    """The distribution of the scores at first and at present, in per cent."""
    labels = _places(len(usual or lately or []))
    series, columns = [], ["score from"]
    cells = [[place] for place in labels]
    for name, counts, colour in (("its first thousand samples", usual, QUIET), ("its last samples", lately, OWN)):
        if counts:
            data = [100 * n / max(1, sum(counts)) for n in counts]
            series.append({"name": name, "type": "bar", "color": colour, "data": data, "emphasis": STILL})
            columns.append(name)
            for row, value in zip(cells, data):
                row.append(f"{value:.1f} %")
    axes = {"xAxis": _category_axis(labels, "local score"), "yAxis": _value_axis("% of samples", min=0)}
    return Picture(_chart("%", series=series, **axes), tuple(columns), [tuple(row) for row in cells])


def waits(counts: list[int]) -> Picture:
    """How long answers took, by powers of two."""
    names = [f"< {1 << n}" for n in range(len(counts) - 1)] + [f"{(1 << len(counts)) // 4}+"]
    series = [{"name": "answers", "type": "bar", "color": OWN, "data": counts, "emphasis": STILL}]
    axes = {"xAxis": _category_axis(names, "milliseconds"), "yAxis": _value_axis("answers")}
    rows = [(name, f"{count:,}") for name, count in zip(names, counts)]
    return Picture(_chart("answers", series=series, **axes), ("milliseconds", "answers"), rows)


def curve(values: np.ndarray) -> dict[str, Any]:
    """A sample (n, channels)."""
    colours = (OWN, ALWAYS, NEVER, BAD, QUIET)
    series = [
        _line(f"channel {c}", colours[c % len(colours)], channel.tolist(), showSymbol=False)
        for c, channel in enumerate(values.T.astype(float))
    ]
    return _chart("", series=series, xAxis=_category_axis([], "number"), yAxis=_value_axis(scale=True))
