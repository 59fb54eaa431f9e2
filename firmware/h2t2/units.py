# From people's numbers to the core's integers: the one place of the runtime with floats, for whoever sets a policy up on a
# Pi, a desktop or a REPL. Boards get their integers from a configuration the host has made.
from .core import defaults

ONE = 32768


def q15(value: float, name: str = "value") -> int:
    """A cost or probability in [0, 1] as Q15, 0..32768. Raises ValueError, naming it, outside."""
    if not 0.0 <= value <= 1.0:
        raise ValueError("%s %g is not between 0 and 1" % (name, value))
    return round(value * ONE)


def q26(value: float, name: str = "eta") -> int:
    """A learning rate in (0, 5.5] as Q26, at least 1. Raises ValueError, naming it, outside."""
    if not 0 < value <= 5.5:
        raise ValueError("%s %g is not in (0, 5.5]" % (name, value))
    return max(1, round(value * 67108864))


def rate(value: float, name: str = "epsilon") -> int:
    """An exploration rate in [2^-15, 1] as Q15, 1..32768. Raises ValueError, naming it, outside."""
    if not 1 / ONE <= value <= 1:
        raise ValueError("%s %g is not in [%.2g, 1]" % (name, value, 1 / ONE))
    return round(value * ONE)


def table(values, name: str = "prior"):
    """A table of probabilities as a list of Q15; None for none. Raises ValueError, naming it, for one outside [0, 1]."""
    return [q15(value, name) for value in values] if values is not None else None


def matrix(costs, name: str = "costs"):
    """A cost matrix as rows of Q15. Raises ValueError, naming it, for a cost outside [0, 1]."""
    return [table(row, name) for row in costs]


def label_costs(costs, confusion):
    """What labels of a remote model say that answers cost, Q15, (K, K) as AdaptiveClasses takes it, without bias.

    costs: (K, K) in [0, 1], of saying j when it is i. confusion: (K, K), how often the remote model says j when it is i, rows
    of sum 1. It is confusion^-1 costs (Natarajan et al., NeurIPS 2013, for two classes); ValueError where the model errs so
    much that a label would count for more than sqrt 2.
    """
    from .core.adaptive_classes import MAX_LABEL_COST

    n = len(costs)
    rows = [[float(x) for x in confusion[i]] + [float(x) for x in costs[i]] for i in range(n)]
    for i in range(n):  # Gauss and Jordan
        best = max(range(i, n), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best] = rows[best], rows[i]
        pivot = rows[i][i]
        if abs(pivot) < 0.001:
            raise ValueError("the remote model's labels tell two classes too little apart to learn from")
        rows[i] = [x / pivot for x in rows[i]]
        for j in range(n):
            if j != i:
                factor = rows[j][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i])]
    made = [[round(x * ONE) for x in row[n:]] for row in rows]
    most = max([max([abs(x) for x in row]) for row in made])
    if most > MAX_LABEL_COST:
        raise ValueError("the remote model errs too often to learn from: a label would count %.2f, at most 1.41" % (most / ONE))
    return made


MAKERS = {
    "prior": table, "beta": q15, "delta_fp": q15, "delta_fn": q15, "epsilon": rate, "rdl_fp": q15, "rdl_fn": q15, "eta": q26,
    "miss_rate": q15, "costs": matrix,
}  # fmt: skip


def policy(**numbers) -> dict:
    """A policy's integer arguments from people's numbers: H2T2(**units.policy(beta=0.2, delta_fp=0.7)).

    Costs and rates (beta, delta_fp, delta_fn, epsilon, rdl_fp, rdl_fn, miss_rate) and the numbers of `prior` and `costs`
    in [0, 1], eta in (0, 5.5]; every other option as it is.
    """
    return {name: MAKERS[name](value, name) if name in MAKERS else value for name, value in numbers.items()}


def defaults_of() -> dict:
    """Every option's default in people's numbers, rounded to four places: {"bits": 4, "beta": 0.3, ...}."""
    made = {}
    for name in dir(defaults):
        if name.isupper():
            value = getattr(defaults, name)
            option = name.lower()
            unit = MAKERS.get(option)
            made[option] = round(value / (67108864 if unit is q26 else ONE), 4) if unit else value
    return made
