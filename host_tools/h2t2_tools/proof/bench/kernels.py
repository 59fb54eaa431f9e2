"""`h2t2 bench kernels`: what the kernels of a Pi's interpreter change, in scores and in decisions, against the integer one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2.core.policy import OFFLOAD
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.classes import Classes

from ...common import pairs, policies
from ...common.report import Report, Table
from ...fleet.rdl import models
from ...model.exact import open_exact
from .. import oracle

TITLE = "Kernels of a Pi against the integer interpreter"
SAMPLES, SEED = 5000, 1


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {pair, library, resolver, samples, outputs, differ, farthest, decisions, decided} of each shipped pair and resolver.

    differ: of all int8 `outputs` of the test samples; farthest: in steps. decided: of so many `decisions` of the adaptive
    policy, on the same stream with the same draws, those that are other ones.
    """
    rows = []
    for name in pairs.names():
        pair = pairs.load(name)
        exact = open_exact(pair.ldl, pair.about.output_of("ldl"))
        inputs = [exact.quantise(pair.view(x, "ldl")) for x in pair.x]
        labels = models.labels(models.answers(pair))
        wanted = np.array([exact.outputs(x) for x in inputs])
        order = pairs.stream(pair, SAMPLES, SEED).tolist()
        decisions = _decisions(pair, exact, inputs, labels, order)
        for resolver in ("reference", "optimised"):
            progress(f"{name}, {resolver}")
            pi = TFLiteModel(str(pair.ldl), pair.about.output_of("ldl"), resolver)
            far = np.abs(np.array([pi.outputs(x) for x in inputs]).astype(int) - wanted)
            other = _decisions(pair, pi, inputs, labels, order)
            rows.append(
                {
                    "pair": name,
                    "library": oracle.name(),
                    "resolver": resolver,
                    "samples": len(inputs),
                    "outputs": far.size,
                    "differ": int((far > 0).sum()),
                    "farthest": int(far.max()),
                    "decisions": len(order),
                    "decided": sum(a != b for a, b in zip(decisions, other)),
                }
            )
    return rows


def _decisions(pair: pairs.Pair, model: Any, inputs: list[np.ndarray], labels: np.ndarray, order: list[int]) -> list[int]:
    """What a node decides of each sample of the stream, every label at once."""
    many = pair.about.costs
    numbers = {**policies.DEFAULTS, "beta": pair.about.beta, "seed": SEED, **({"costs": many} if many else {})}
    policy = policies.make("adaptive", numbers)
    ldl = Classes(model, pair.about.classes) if many else model
    made = []
    for n in order:
        seen = ldl.run(inputs[n])
        action = policy.decide(seen if many else ldl.bin(seen))
        if action == OFFLOAD:
            action = int(labels[n])
            policy.learn(policy.ticket, action)
        made.append(action)
    return made


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a pair and resolver."""
    names = ("outputs", "that differ", "farthest, in steps", "decisions", "that differ ")
    cells = [
        [
            f"{row['pair']}, {row['resolver']}",
            f"{row['outputs']:,}",
            f"{row['differ']:,}",
            str(row["farthest"]),
            f"{row['decisions']:,}",
            f"{row['decided']:,}",
        ]
        for row in rows
    ]
    title = f'{rows[0]["library"]}\'s kernels; `resolver = "exact"` runs the integer interpreter instead'
    return [Table(title, {"pair, resolver": "left", **dict.fromkeys(names, "right")}, cells)]
