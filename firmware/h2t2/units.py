# From people's numbers to the core's integers, to make a policy on a Pi, a desktop or a REPL. Only this module of the runtime
# uses floats. Boards receive integers in the configuration that the host makes.
from math import frexp

from .core import defaults

if 0:  # for type checkers
    from .annotations import Any, Callable, Iterable, Sequence

ONE = 32768


def q15(value: float, name: str = "value") -> int:
    """Return a cost or probability in [0, 1] as Q15, 0..32768. ValueError, naming it, for another value."""
    if not 0.0 <= value <= 1.0:
        raise ValueError("%s %g is not between 0 and 1" % (name, value))
    return round(value * ONE)


def q26(value: float, name: str = "eta") -> int:
    """Return a learning rate in (0, 5.5] as Q26, at least 1. ValueError, naming it, for another value."""
    if not 0 < value <= 5.5:
        raise ValueError("%s %g is not in (0, 5.5]" % (name, value))
    return max(1, round(value * 67108864))


def rate(value: float, name: str = "epsilon") -> int:
    """Return an exploration rate in [2^-15, 1] as Q15, 1..32768. ValueError, naming it, for another value."""
    if not 1 / ONE <= value <= 1:
        raise ValueError("%s %g is not in [%.2g, 1]" % (name, value, 1 / ONE))
    return round(value * ONE)


def table(values: "Iterable[float] | None", name: str = "prior") -> "list[int] | None":
    """Return a table of probabilities as Q15; None for None. ValueError, naming it, for a number outside [0, 1]."""
    return [q15(value, name) for value in values] if values is not None else None


def matrix(costs: "Iterable[Iterable[float]]", name: str = "costs") -> "list[list[int]]":
    """Return a cost matrix as rows of Q15. ValueError, naming it, for a cost outside [0, 1]."""
    return [[q15(cost, name) for cost in row] for row in costs]


def confusion(rates: "Sequence[Sequence[float]]", name: str = "confusion") -> "list[list[int]]":
    """Return how often a remote model says j when the class is i, (K, K), each row with the sum 1, as AdaptiveClasses takes it.

    Returns:
        The K rows, and K rows of the inverse matrix; Q15.

    Raises:
        ValueError, naming it, for a rate outside [0, 1]; or its labels tell two classes too little apart.
    """
    n = len(rates)
    result = matrix(rates, name)
    rows = [[rate / ONE for rate in row] + [float(i == j) for j in range(n)] for i, row in enumerate(result)]
    for i in range(n):  # Gauss and Jordan
        if abs(rows[i][i]) < 0.001:
            raise ValueError("the remote model's labels tell two classes too little apart to learn from")
        rows[i] = pivot = [x / rows[i][i] for x in rows[i]]
        rows = [row if row is pivot else [x - row[i] * y for x, y in zip(row, pivot)] for row in rows]
    return result + [[round(x * ONE) for x in row[n:]] for row in rows]


def measured(factor: "Sequence[float]", offset: "Sequence[float]", scale: float, zero_point: int) -> "dict[str, list[int]]":
    """Return the integers by which h2t2.node.measured.Measured turns the numbers of a sample into a model's int8 input.

    The input is (x * factor + offset) / scale + zero_point, with one factor and one offset for each number.
    """
    multipliers = []
    offsets = []
    shifts = []
    for f, c in zip(factor, offset):
        f /= scale
        c = c / scale + zero_point
        shift = max(14, 15 - frexp(f)[1]) + max(0, frexp(c)[1] - 13)  # numbers far from 0 need more digits
        multipliers.append(round(f * 2**shift))
        offsets.append(round(c * 2**shift))
        shifts.append(shift)
    return {"multipliers": multipliers, "offsets": offsets, "shifts": shifts}


CONVERTERS: "dict[str, Callable[[Any, str], Any]]" = {
    "prior": table, "beta": q15, "delta_fp": q15, "delta_fn": q15, "epsilon": rate, "rdl_fp": q15, "rdl_fn": q15, "eta": q26,
    "miss_rate": q15, "confidence": q15, "costs": matrix, "confusion": confusion,
}  # fmt: skip


def policy(**numbers: "Any") -> "dict[str, Any]":
    """Return the integer arguments of a policy from people's numbers: H2T2(**units.policy(beta=0.2, delta_fp=0.7)).

    Costs and rates (beta, delta_fp, delta_fn, epsilon, rdl_fp, rdl_fn, miss_rate, confidence) and the numbers of `prior` and
    `costs` are in [0, 1], eta in (0, 5.5]; other options remain as they are.
    """
    return {name: CONVERTERS[name](value, name) if name in CONVERTERS else value for name, value in numbers.items()}


def defaults_of() -> "dict[str, Any]":
    """Return the defaults of all options in people's numbers, rounded to four places: {"bits": 4, "beta": 0.3, ...}."""
    numbers = {}
    for name in dir(defaults):
        if name.isupper():
            value = getattr(defaults, name)
            option = name.lower()
            unit = CONVERTERS.get(option)
            numbers[option] = round(value / (67108864 if unit is q26 else ONE), 4) if unit else value
    return numbers
