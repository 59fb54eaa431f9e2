"""`h2t2-lab bench kernels`: how a Pi's kernels change scores and decisions, compared with the integer interpreter."""

from typing import Any

import numpy as np

from h2t2.core.policy import OFFLOAD
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.class_scores import ClassScores
from h2t2_tools.checks import oracle
from h2t2_tools.common import pairs, policies
from h2t2_tools.common.report import Report
from h2t2_tools.fleet.rdl import models
from h2t2_tools.model.exact import open_exact

from . import Progress, Row, cell, table

TITLE = "Kernels of a Pi against the integer interpreter"
SAMPLES, SEED = 5000, 1


def measure(progress: Progress) -> list[Row]:
    """Count scores and decisions that LiteRT's kernels change. The integer interpreter of boards is the reference; LiteRT runs
    on a Pi.

    Returns:
        Rows {pair, library, resolver, samples, outputs, differ, farthest, decisions, decided}. differ: differing int8 values
        among all `outputs` of the test samples; farthest: the largest difference, in steps. decided: differing ones among the
        `decisions` of the adaptive policy, on the same stream with the same draws.
    """
    rows = []
    for name in pairs.shipped_names():
        pair = pairs.load(name)
        exact = open_exact(pair.ldl, pair.info.event_output("ldl"))
        inputs = [exact.quantise(pair.model_input(x, "ldl")) for x in pair.x]
        labels = models.labels(models.answers(pair))
        expected = np.array([exact.outputs(x) for x in inputs])
        order = pairs.draw_indices(pair, SAMPLES, SEED).tolist()
        decisions = _decisions(pair, exact, inputs, labels, order)
        for resolver in ("reference", "optimised"):
            progress(f"{name}, {resolver}")
            pi = TFLiteModel(str(pair.ldl), pair.info.event_output("ldl"), resolver)
            distance = np.abs(np.array([pi.outputs(x) for x in inputs]).astype(int) - expected)
            on_pi = _decisions(pair, pi, inputs, labels, order)
            rows.append(
                {
                    "pair": name,
                    "library": oracle.name(),
                    "resolver": resolver,
                    "samples": len(inputs),
                    "outputs": distance.size,
                    "differ": int((distance > 0).sum()),
                    "farthest": int(distance.max()),
                    "decisions": len(order),
                    "decided": sum(a != b for a, b in zip(decisions, on_pi)),
                }
            )
    return rows


def _decisions(pair: pairs.Pair, model: Any, inputs: list[np.ndarray], labels: np.ndarray, order: list[int]) -> list[int]:
    """Return a node's decision about each sample of the stream, with labels that arrive at once."""
    costs = pair.info.costs
    numbers = {**policies.DEFAULTS, "beta": pair.info.beta, "seed": SEED, **({"costs": costs} if costs else {})}
    policy = policies.make("adaptive", numbers)
    ldl = ClassScores(model, pair.info.classes) if costs else model
    decisions = []
    for n in order:
        output = ldl.run(inputs[n])
        action = policy.decide(policy.reading(output, ldl.level(output)))
        if action == OFFLOAD:
            action = int(labels[n])
            policy.learn(policy.ticket, action)
        decisions.append(action)
    return decisions


def report(rows: list[Row]) -> Report:
    """Return a table with a line for each pair and resolver."""
    columns = {
        "pair, resolver": lambda row: f"{row['pair']}, {row['resolver']}",
        "outputs": cell("outputs", ","),
        "differing": cell("differ", ","),
        "largest difference, steps": cell("farthest"),
        "decisions": cell("decisions", ","),
        "differing ": cell("decided", ","),
    }
    return [table(f'{rows[0]["library"]}\'s kernels; `resolver = "exact"` runs the integer interpreter instead', rows, columns)]
