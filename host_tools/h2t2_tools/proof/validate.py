"""`h2t2 validate`: the integer core against the float reference, on the same draws."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core.calibrating import Calibrating
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.numbers import ONE
from h2t2.core.rng import Rng

from ..common.policies import DEFAULTS, PAPER
from .reference import DenseH2T2, FactoredH2T2, FloatCalibrating

MODES: dict[str, dict[str, Any]] = {
    "paper": PAPER,
    "all": {**PAPER, "feedback": "all"},
    "anytime": {**PAPER, "exploration": "anytime"},
    "all+anytime": {},
    "half-life": {**PAPER, "half_life": 500},
    "all+anytime+half-life": {"half_life": 500},
    "noisy-rdl": {**PAPER, "feedback": "all", "rdl_fp": 0.05, "rdl_fn": 0.1},
}
CALIBRATING: dict[str, dict[str, Any]] = {
    "calibrating": {},
    "calibrating+half-life": {"half_life": 500},
    "calibrating+dear": {"beta": 0.5},  # no region where offloading is cheapest
    "calibrating+noisy-rdl": {"rdl_fp": 0.05, "rdl_fn": 0.1},
}
EVERY = [*MODES, *CALIBRATING]


class _Draws(Rng):
    """The core's generator with its last draws kept, so that the reference can be given the same."""

    def __init__(self, rng: Rng) -> None:
        self.x, self.y, self.z = rng.x, rng.y, rng.z
        self.last: list[int] = []

    def draw(self) -> int:
        value = super().draw()
        self.last.append(value)
        return value


def samples(bits: int, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A made-up stream: (bins, labels), scores of an overlapping, badly calibrated classifier, 40 % events."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rounds) < 0.4).astype(int)
    scores = np.clip(rng.normal(np.where(labels == 1, 0.62, 0.4), 0.2), 0, 1 - 1e-9)
    return (scores * 2**bits).astype(int), labels


def compare(bits: int, rounds: int, seed: int, mode: str, progress: Any = None) -> dict[str, Any]:
    """One row: the core and the reference over the same rounds and draws; mode: one of EVERY.

    Where a decision differs both go on with the core's, so that one difference is counted once; `margin` is how far the
    draw (calibrating: or the interval's end) of the farthest of them lay from the boundary it fell beside.
    """
    run = _calibrating if mode in CALIBRATING else _h2t2
    started = time.perf_counter()
    differ, worst, margin = run(bits, rounds, seed, mode, progress or (lambda: None))
    seconds = time.perf_counter() - started
    row = {"bits": bits, "mode": mode, "rounds": rounds, "differ": differ, "worst_error": worst, "margin": margin}
    return {**row, "seconds": seconds}


def _stream(bits: int, rounds: int, seed: int) -> Any:
    return zip(*(column.tolist() for column in samples(bits, rounds, seed)))


def _h2t2(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = units.policy(**{**DEFAULTS, **MODES[mode], "bits": bits, "seed": seed})
    core = H2T2(**arguments)
    core.rng = draws = _Draws(core.rng)
    exact = {name: arguments[name] / ONE for name in ("beta", "delta_fp", "delta_fn", "epsilon", "rdl_fp", "rdl_fn")}
    options = {name: arguments[name] for name in ("feedback", "exploration", "half_life")}
    kind = DenseH2T2 if bits <= 8 else FactoredH2T2  # beyond, summing the matrix takes 15 ms a round
    reference = kind(bits=bits, eta=DEFAULTS["eta"], **exact, **options)
    differ, worst, margin = 0, 0.0, 0.0
    for k, label in _stream(bits, rounds, seed):
        draws.last.clear()
        action = core.decide(k)
        reference.start()
        psi, zeta = (draws.last[0] + 0.5) / ONE, draws.last[1] < round(reference.epsilon * ONE)
        expected, q, p = reference.decide(k, psi, zeta)
        worst = max(worst, abs(core.experts.offload / ONE - q), abs(core.experts.one / ONE - p))
        if action != expected:
            differ += 1
            margin = max(margin, min(abs(psi - q), abs(psi - q - p)))
        reference.update(k, q, action == OFFLOAD, zeta, label)
        if action == OFFLOAD:
            core.learn(core.ticket, label)
        progress()
    return differ, worst, margin


def _calibrating(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = units.policy(**{**DEFAULTS, **CALIBRATING[mode], "bits": bits, "seed": seed})
    names = ("bits", "beta", "delta_fp", "delta_fn", "half_life", "rdl_fp", "rdl_fn")
    core = Calibrating(seed=seed, **{name: arguments[name] for name in names})
    core.rng = draws = _Draws(core.rng)
    exact = {name: arguments[name] / ONE for name in names if name not in ("bits", "half_life")}
    reference = FloatCalibrating(bits=bits, half_life=arguments["half_life"], **exact)
    differ, worst, margin = 0, 0.0, 0.0
    for k, label in _stream(bits, rounds, seed):
        draws.last.clear()
        action = core.decide(k)
        reference.start()
        psi = (draws.last[0] + 0.5) / ONE
        chance, local, near = reference.chance(k)
        if near > 1e-4:  # else the interval's end itself lies on the boundary
            worst = max(worst, abs(core.offload / ONE - chance))
        if action != (OFFLOAD if psi <= chance else local):
            differ += 1
            margin = max(margin, min(abs(psi - chance), near))
        if action == OFFLOAD:
            core.learn(core.ticket, label)
            reference.learn(k, label)
        progress()
    return differ, worst, margin
