"""`h2t2 validate`: compares the integer core with the float reference on the same draws."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import ONE, Rng
from h2t2.core.policy import OFFLOAD

from ..boards.microbit import page
from ..common import policies
from ..common.policies import DEFAULTS, PAPER
from .float_references import NEAR, DenseH2T2, FactoredH2T2, FloatAdaptive

MODES: dict[str, dict[str, Any]] = {
    "paper": PAPER,
    "all": {**PAPER, "feedback": "all"},
    "anytime": {**PAPER, "exploration": "anytime"},
    "all+anytime": {},
    "half-life": {**PAPER, "half_life": 500},
    "all+anytime+half-life": {"half_life": 500},
    "noisy-rdl": {**PAPER, "feedback": "all", "rdl_fp": 0.05, "rdl_fn": 0.1},
}
ADAPTIVE: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "adaptive+dear": {"beta": 0.5},  # no region where offloading is cheapest
    "adaptive+noisy-rdl": {"rdl_fp": 0.05, "rdl_fn": 0.1},
}
ONE_PAGE = {"one-page": "explored", "one-page+all": "all"}  # feedback of the modes of firmware/examples/one_page; b is 4
EVERY = [*MODES, *ADAPTIVE, *ONE_PAGE]


def chosen(modes: list[str]) -> list[str]:
    """Return the modes of EVERY that these names stand for. `every` means all of them, `one-page` both of ONE_PAGE."""
    names = {*modes, *(ONE_PAGE if "one-page" in modes else ())}
    return EVERY if "every" in modes else [mode for mode in EVERY if mode in names]


class _Draws(Rng):
    """The core's generator, which also stores its last draws for the reference."""

    def __init__(self, rng: Rng) -> None:
        self.x, self.y, self.z = rng.x, rng.y, rng.z
        self.last: list[int] = []

    def draw(self) -> int:
        value = super().draw()
        self.last.append(value)
        return value


def samples(bits: int, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a synthetic stream (bins, labels): an overlapping, badly calibrated classifier, 40 % events."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rounds) < 0.4).astype(int)
    scores = np.clip(rng.normal(np.where(labels == 1, 0.62, 0.4), 0.2), 0, 1 - 1e-9)
    return (scores * 2**bits).astype(int), labels


def compare(bits: int, rounds: int, seed: int, mode: str, progress: Any = None) -> dict[str, Any]:
    """Compare the core and the reference over the same rounds and draws.

    If a decision differs, both continue with the core's decision, so one difference counts once.

    Args:
        bits: Score bits.
        rounds: Number of rounds.
        seed: Seed of the stream and of the policy.
        mode: One of EVERY.
        progress: Called after each round.

    Returns:
        A row. differ: differing decisions. margin: the largest distance of a differing draw (adaptive: of a quantity that the
        forecaster compares) from its boundary. within: for H2T2, probabilities agree within 2e-4 and margins are at most 1e-4.
        For the adaptive policy, whose comparisons and quotients enlarge rounding errors, at most one decision in 500 differs.
        For H2T2 on one page, which sums losses in Q12, also probabilities agree within 1e-2.
    """
    run = _adaptive if mode in ADAPTIVE else _one_page if mode in ONE_PAGE else _h2t2
    started = time.perf_counter()
    differ, worst, margin = run(bits, rounds, seed, mode, progress or (lambda: None))
    seconds = time.perf_counter() - started
    rare = differ * 500 <= rounds
    within = rare if mode in ADAPTIVE else rare and worst <= 1e-2 if mode in ONE_PAGE else worst <= 2e-4 and margin <= 1e-4
    return {
        "bits": bits,
        "mode": mode,
        "rounds": rounds,
        "differ": differ,
        "worst_error": worst,
        "margin": margin,
        "within": within,
        "seconds": seconds,
    }


def _stream(bits: int, rounds: int, seed: int) -> Any:
    return zip(*(column.tolist() for column in samples(bits, rounds, seed)))


def _h2t2(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = policies.policy_arguments("h2t2", {**DEFAULTS, **MODES[mode], "bits": bits, "seed": seed})
    core = H2T2(**arguments)
    core.rng = draws = _Draws(core.rng)
    exact = {name: arguments[name] / ONE for name in ("beta", "delta_fp", "delta_fn", "epsilon", "rdl_fp", "rdl_fn")}
    options = {name: arguments[name] for name in ("feedback", "exploration", "half_life")}
    kind = DenseH2T2 if bits <= 8 else FactoredH2T2  # with more bits, the sum over the matrix takes 15 ms a round
    reference = kind(bits=bits, eta=DEFAULTS["eta"], **exact, **options)
    differ, worst, margin = 0, 0.0, 0.0
    for k, label in _stream(bits, rounds, seed):
        draws.last.clear()
        action = core.decide(k)
        reference.start()
        psi, zeta = (draws.last[0] + 0.5) / ONE, draws.last[1] < round(reference.epsilon * ONE)
        expected, q, p = reference.decide(k, psi, zeta)
        worst = max(worst, abs(core.experts.offload / ONE - q), abs(core.experts.positive / ONE - p))
        if action != expected:
            differ += 1
            margin = max(margin, min(abs(psi - q), abs(psi - q - p)))
        reference.update(k, q, action == OFFLOAD, zeta, label)
        if action == OFFLOAD:
            core.learn(core.ticket, label)
        progress()
    return differ, worst, margin


def _adaptive(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = policies.policy_arguments("adaptive", {**DEFAULTS, **ADAPTIVE[mode], "bits": bits, "seed": seed})
    exact = {name: arguments[name] / ONE for name in ("beta", "delta_fp", "delta_fn", "rdl_fp", "rdl_fn")}
    reference = FloatAdaptive(bits=bits, **exact)
    return follow(Adaptive(**arguments), reference, samples(bits, rounds, seed), progress)


def follow(
    core: Any, reference: Any, stream: tuple[np.ndarray, np.ndarray], progress: Any = lambda: None
) -> tuple[int, float, float]:
    """Let an adaptive policy and its reference decide a stream of samples and labels; both have the core's draws and offloads.

    Returns:
        `differ`, the worst error of a probability, and `margin`, as compare() has them.
    """
    core.rng = draws = _Draws(core.rng)
    differ, worst, margin = 0, 0.0, 0.0
    for sample, label in zip(*(column.tolist() for column in stream)):
        draws.last.clear()
        action = core.decide(sample)
        reference.observe(sample)
        psi = (draws.last[0] + 0.5) / ONE
        chance, certain, near = reference.chance()
        edge = chance + (1 - chance) * certain
        if near > NEAR:  # otherwise rounding may decide the forecaster's comparison
            worst = max(worst, abs(core.chance / ONE - chance))
        first, second = reference.answers
        if action != (OFFLOAD if psi < chance else first if psi < edge else second):
            differ += 1
            margin = max(margin, min(abs(psi - chance), abs(psi - edge), near))
        reference.charged()
        if action == OFFLOAD:
            core.learn(core.ticket, label)
            reference.learn(core.chance / ONE, label)
        progress()
    return differ, worst, margin


def _one_page(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = page.arguments({**DEFAULTS, "epsilon": 1 / 16, "feedback": ONE_PAGE[mode], "seed": seed})
    policy = page.load().H2T2(**arguments)
    draw = policy.draw
    draws: list[int] = []

    def draw_and_note() -> int:
        draws.append(draw())
        return draws[-1]

    policy.draw = draw_and_note
    exact = {name: arguments[name] / ONE for name in page.FRACTIONS}
    reference = DenseH2T2(bits=bits, eta=arguments["eta"] / 1024, **exact)
    differ, worst, margin, charged = 0, 0.0, 0.0, 0
    for k, label in _stream(bits, rounds, seed):
        draws.clear()
        action = policy.decide(k)
        zero, one, offload = policy.masses
        q, p = reference.regions(k)
        total = zero + one + offload
        worst = max(worst, abs(offload / total - q), abs(one / total - p))
        psi, explored = (draws[0] + 0.5) / ONE, draws[1] < arguments["epsilon"]
        if action != (OFFLOAD if psi < q or explored else int(psi < q + p)):
            differ += 1
            margin = max(margin, min(abs(psi - q), abs(psi - q - p)))
        reference.charge(k, 0.0, exact["beta"], 0.0)
        if action == OFFLOAD:
            chance = q + (1 - q) * exact["epsilon"] if policy.all else exact["epsilon"]
            if policy.all or explored:
                reference.charge(k, label * exact["delta_fn"] / chance, 0.0, (1 - label) * exact["delta_fp"] / chance)
            policy.learn(policy.ticket, label)
        if sum(policy.losses) < charged:  # the page halved its losses
            reference.forget()
        charged = sum(policy.losses)
        progress()
    return differ, worst, margin
