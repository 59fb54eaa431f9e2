"""How far a histogram of scores has moved."""

import math


def stability(usual: list[int], lately: list[int]) -> float:
    """The population stability index between two histograms: the sum over the bins of (p - q) ln(p / q), half a sample added
    to each. Distributions with an index above 0.25 usually count as different."""
    a, b = sum(usual) + len(usual) / 2, sum(lately) + len(lately) / 2
    total = 0.0
    for x, y in zip(usual, lately):
        p, q = (x + 0.5) / a, (y + 0.5) / b
        total += (p - q) * math.log(p / q)
    return total
