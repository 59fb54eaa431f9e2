"""What a device counted in an interval, from rows of the history: its costs there, and those before and after an event."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from h2t2.core.numbers import ONE

from .costs import Costs, of_counters

Z = 1.96  # standard errors on both sides of an estimate hold it with 95 %
LISTS = ("scores", "answered", "events", "local_cost")
COUNTERS = ("samples", "offloads", "fallbacks", "unasked")
EACH_SIDE_S = 86400.0  # of an event: so long are the intervals that are compared


@dataclass(frozen=True)
class Interval:
    """Counters that a device added.

    Args:
        began, ended: Unix seconds of its first and its last row.
        samples, offloads: number of samples, and of those that it sent to the remote model.
        unserved: samples for which it wanted an answer and got none, so it decided them itself.
        scores, answered, events, local_cost: lists of h2t2.node.asking.
        paid: for offloads, Q15.
        price: mean price of an offload over its samples, 0 to 1.
    """

    began: float
    ended: float
    samples: int
    _: KW_ONLY
    offloads: int
    unserved: int
    scores: list[int]
    answered: list[int]
    events: list[int]
    local_cost: list[int]
    paid: int
    price: float

    @property
    def costs(self) -> Costs | None:
        """Costs a sample; None before the first answer.

        The error holds for the samples that will come, too: it includes how much the costs of single samples vary.
        """
        costs = of_counters(self.scores, self.answered, self.local_cost, self.paid, round(self.price * ONE))
        if costs is None:
            return None
        varied = max(0.0, costs.own * (1 - costs.own)) / self.samples if self.samples else 0.0
        return Costs(costs.own, self.price, costs.never, math.sqrt(costs.error**2 + varied))


def gained(rows: Sequence[dict[str, Any]]) -> Interval | None:
    """The counters that a device added from the first row to the last; None where they do not tell.

    A device counts from 0 after each start, so a row of another start adds all that it holds.
    """
    steps = [step for before, row in zip(rows, rows[1:]) if (step := _step(before, row))]
    return _sum(steps, rows[0]["at"], rows[-1]["at"]) if steps else None


def since_start(row: dict[str, Any]) -> Interval | None:
    """The counters of a row alone: what the device has counted since its start."""
    step = _step({"boot": None}, row)
    return _sum([step], row["at"], row["at"]) if step else None


def buckets(rows: Sequence[dict[str, Any]], count: int) -> list[Interval]:
    """At most `count` intervals, one after the other."""
    if len(rows) < 2:
        return []
    width = -(-(len(rows) - 1) // count)
    groups = (rows[first : first + width + 1] for first in range(0, len(rows) - 1, width))
    return [interval for group in groups if (interval := gained(group)) and interval.samples]


@dataclass(frozen=True)
class Comparison:
    """The costs before and after an event.

    Args:
        before, after: intervals with costs.
        change: by which the cost of a sample rose.
        error: standard error of the change.
    """

    before: Interval
    after: Interval
    change: float
    error: float

    @property
    def is_certain(self) -> bool:
        """Whether chance explains such a change in less than 5 % of the cases."""
        return abs(self.change) > Z * self.error


def around(rows: Sequence[dict[str, Any]], at: float, seconds: float = EACH_SIDE_S) -> Comparison | None:
    """Compare the costs before and after a time; None where one side has none.

    Args:
        rows: of the history, oldest first.
        at: Unix seconds.
        seconds: length of each side at most.
    """
    before = gained([row for row in rows if at - seconds <= row["at"] < at])
    after = gained([row for row in since(rows, at) if row["at"] <= at + seconds])
    old, new = before and before.costs, after and after.costs
    if not (before and after and old and new):
        return None
    return Comparison(before, after, new.own - old.own, math.hypot(old.error, new.error))


def costs_across(rows: Sequence[dict[str, Any]], changes: Iterable[float]) -> Costs | None:
    """Estimate the costs of a sample over changes of the model.

    The answers between two changes stand for the samples between them only: those of an older model do not tell what local
    decisions of the present one cost.

    Args:
        rows: of the history, oldest first.
        changes: Unix seconds.

    Returns:
        Means over all samples; None before the first answer.
    """
    parts: list[tuple[int, Costs]] = []
    for at in (*sorted(changes, reverse=True), -math.inf):
        interval = gained(since(rows, at))
        rows = [row for row in rows if row["at"] < at]
        if interval and interval.samples and interval.costs:
            parts.append((interval.samples, interval.costs))
    if not parts:
        return None
    total = sum(samples for samples, _ in parts)
    own, always, never = (
        sum(samples * getattr(costs, name) for samples, costs in parts) / total for name in ("own", "always", "never")
    )
    return Costs(own, always, never, math.hypot(*(samples * costs.error for samples, costs in parts)) / total)


def since(rows: Sequence[dict[str, Any]], at: float) -> Sequence[dict[str, Any]]:
    """The rows whose steps lie after a time. The first row of a new start adds what it has counted since that start."""
    first = next((n for n, row in enumerate(rows) if row["at"] >= at), len(rows))
    if first and first < len(rows) and rows[first]["boot"] != rows[first - 1]["boot"]:
        first -= 1
    return rows[first:]


def _step(before: dict[str, Any], row: dict[str, Any]) -> dict[str, Any] | None:
    """What a row adds to the one before; None where the counters do not fit, or hold no account."""
    account, old = row["account"], before.get("account")
    if account is None:
        return None
    if before["boot"] == row["boot"]:
        if old is None or len(old["scores"]) != len(account["scores"]):
            return None
        step = {key: row[key] - before[key] for key in COUNTERS}
        step.update({key: [b - a for a, b in zip(old[key], account[key])] for key in LISTS}, paid=account["paid"] - old["paid"])
    else:
        step = {**{key: row[key] for key in COUNTERS}, **account}
    lowest = min(step["paid"], *(step[key] for key in COUNTERS), *(min(step[key]) for key in LISTS))
    return {**step, "price": row["always"] or 0.0} if lowest >= 0 else None


def _sum(steps: list[dict[str, Any]], began: float, ended: float) -> Interval:
    """The sum of steps. A step with other bins than the last one is left out."""
    size = len(steps[-1]["scores"])
    steps = [step for step in steps if len(step["scores"]) == size]
    total = {key: sum(step[key] for step in steps) for key in (*COUNTERS, "paid")}
    lists = {key: [sum(column) for column in zip(*(step[key] for step in steps))] for key in LISTS}
    weighted = sum(step["price"] * step["samples"] for step in steps)
    price = weighted / total["samples"] if total["samples"] else steps[-1]["price"]
    unserved = total["fallbacks"] + total["unasked"]
    return Interval(
        began, ended, total["samples"], offloads=total["offloads"], unserved=unserved, paid=total["paid"], price=price, **lists
    )
