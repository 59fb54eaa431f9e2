"""Tells which local models are dense. The micro:bit runs only those."""

from h2t2.ldl.bundle import Int8Model


def dense_only(model: Int8Model) -> bool:
    """Whether the micro:bit can run a model: a chain of dense layers, with at most one function after the last."""
    names = [step.__name__ for step, _, _ in model.steps]
    last = names.pop() if names and names[-1] in ("look_up", "softmax") else ""
    chained = all(before[1][1] == after[1][0] for before, after in zip(model.steps, model.steps[1:]))
    rows = all(p[8] == 1 for step, p, _ in model.steps if step.__name__ == "softmax")
    outputs = (1, 2) if last != "softmax" else (2,)
    return set(names) == {"fully_connected"} and chained and rows and not model.variables and model.classes in outputs
