"""The unit in which an operator counts costs, and amounts in it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """What a cost of 1, the dearest mistake, is worth.

    Args:
        worth: how many of the unit it is.
        name: of the unit, such as EUR.
    """

    worth: float = 1.0
    name: str = "units"

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Parse a number and a name, such as "0.05 EUR". ValueError for other text."""
        number, _, name = text.strip().partition(" ")
        try:
            worth = float(number)
        except ValueError:
            worth = 0.0
        if not (worth > 0 and math.isfinite(worth)) or not 0 < len(name.strip()) <= 16 or not name.isprintable():
            raise ValueError(f"{text!r}: want a number above 0 and a unit, such as '0.05 EUR'")
        return cls(worth, name.strip())


DEFAULT = Unit()  # costs as they are


def rounded(value: float, error: float) -> tuple[float, float]:
    """Round an error to two digits, and its value to the same place."""
    if error <= 0 or not math.isfinite(error):
        return value, error
    place = 1 - math.floor(math.log10(error))
    return round(value, place) + 0.0, round(error, place)


def amount(value: float) -> str:
    """Write an amount with thousands and three digits.

    >>> amount(20736.2), amount(3.14159)
    ('20,736', '3.14')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
