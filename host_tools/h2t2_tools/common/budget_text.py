"""Reads a budget as people write it, such as "200/day", into the integers of h2t2.core.budget."""

import math
import re

from h2t2.core.numbers import ONE

from .cost_table import CostTable
from .errors import UserError

PERIODS = {"min": 60000, "hour": 3600000, "day": 86400000}
UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000000, "mj": 1, "j": 1000}
TOKENS_PER_MJ = 64
SAVED_OFFLOADS = 64  # a budget in shares saves up at most these offloads
SAVED_FRACTION = 4  # other budgets save up this fraction, 1/4, of a period's amount
FEW_OFFLOADS = 5  # or so many offloads, if the amount has them: with one or two the price would shut the policy out
MAX_TOKENS = 2**29 - 1
MAX_AMOUNT = 1023  # h2t2.core.budget.Budget accepts no larger amount per period
FORMAT_HINT = (
    "want a share of the samples (10%), offloads (200/day), bytes (500kB/day) or energy (2000mJ/hour); min, hour or day"
)


def budget_arguments(text: str, size: int, deadline_ms: int, cost: CostTable | None = None) -> dict[str, int]:
    """Read a budget. Amounts are rounded down.

    Args:
        text: share of the samples, or an amount per period.
        size: bytes of a request.
        deadline_ms: reply deadline; a budget of energy assumes that the radio listens until then.
        cost: prices the energy of an offload.

    Returns:
        The arguments of h2t2.core.budget.Budget.

    Raises:
        UserError: the text is no budget, or the budget never allows an offload.
    """
    share = re.fullmatch(r"([\d.]+)%", text.strip())
    if share and 0 < _number(text, share[1]) <= 100:
        return share_arguments(_number(text, share[1]) / 100)
    match = re.fullmatch(r"([\d.]+) ?([kKmM]?[bBjJ]?) ?/ ?(min|hour|day)", text.strip())
    unit = match[2].lower() if match else None
    if not match or unit not in UNITS or _number(text, match[1]) <= 0:
        raise UserError(f"budget {text!r}: {FORMAT_HINT}")
    amount = _number(text, match[1]) * UNITS[unit]
    fixed, per_kb = (0, 1024) if "b" in unit else (1, 0)
    if "j" in unit:
        amount *= TOKENS_PER_MJ
        fixed, per_kb = _energy(text, cost, deadline_ms)
    while amount > MAX_TOKENS and per_kb % 2 == fixed == 0:  # a token stands for more bytes
        amount, per_kb = amount / 2, per_kb // 2
    offload = fixed + per_kb * math.ceil(size / 32) / 32
    limit, span = int(amount), PERIODS[match[3]]
    if limit < offload:
        raise UserError(f"budget {text!r}: less than one offload takes")
    if limit > MAX_TOKENS:
        raise UserError(f"budget {text!r}: more than can be counted")
    scale = max(1.0, amount / MAX_AMOUNT)
    return {
        "capacity": max(limit // SAVED_FRACTION, min(limit, math.ceil(FEW_OFFLOADS * offload))),
        "fixed": fixed, "per_kb": per_kb, "amount": int(amount / scale), "period": math.ceil(span / scale),
        "limit": limit, "span": span,
    }  # fmt: skip


def share_arguments(share: float) -> dict[str, int]:
    """The arguments of Budget for a share of the samples, 0 to 1."""
    return {"capacity": SAVED_OFFLOADS * ONE, "fixed": ONE, "per_kb": 0, "per_sample": max(1, int(share * ONE))}


def _number(text: str, digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise UserError(f"budget {text!r}: {FORMAT_HINT}") from None


def _energy(text: str, cost: CostTable | None, deadline_ms: int) -> tuple[int, int]:
    """Tokens of an offload and of a KiB, both rounded up."""
    if cost is None or not (cost.wake_mj or cost.send_mj_per_kb or cost.listen_mj_per_s):
        raise UserError(f"budget {text!r}: energy needs a cost table with wake_mj, send_mj_per_kb or listen_mj_per_s")
    fixed = (cost.wake_mj + cost.listen_mj_per_s * deadline_ms / 1000) * TOKENS_PER_MJ
    return math.ceil(fixed), math.ceil(cost.send_mj_per_kb * TOKENS_PER_MJ)
