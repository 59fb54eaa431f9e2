"""`h2t2 validate`: compares the integer core with the float reference on the same draws."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from h2t2.core import class_head_forecaster, head_forecaster
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.core.rng import Rng

from ..boards.microbit import page
from ..common import policies
from ..common.policies import DEFAULTS, PAPER
from .reference import NEAR, DenseH2T2, FactoredH2T2, FloatAdaptive, FloatAdaptiveClassHead, FloatAdaptiveHead

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
HEAD = {"head": 4, "class-head": 4}  # number of features
MOST_BITS = {"head": 8, "class-head": 6}
COSTS = [[0, 22938, 20000], [32768, 0, 22938], [30000, 22938, 0]]  # of class-head, Q15
ONE_PAGE = {"one-page": "explored", "one-page+all": "all"}  # feedback of the modes of firmware/examples/one_page; b is 4
EVERY = [*MODES, *ADAPTIVE, *HEAD, *ONE_PAGE]


def chosen(modes: list[str]) -> list[str]:
    """Return the modes of EVERY that these names stand for. `every` means all of them, `one-page` both of ONE_PAGE."""
    names = {*modes, *(ONE_PAGE if "one-page" in modes else ())}
    return EVERY if "every" in modes else [mode for mode in EVERY if mode in names]


def bits_of(mode: str, bits: list[int]) -> list[int]:
    """Return those of the bits that a mode has."""
    if mode in ONE_PAGE:
        return [4]
    return [b for b in bits if b <= MOST_BITS.get(mode, b)]


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


def samples_with_features(rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A synthetic stream (samples, labels): scores in 1/256 and features in 1/32, of which two tell of the event."""
    scores, labels = samples(8, rounds, seed)
    rng = np.random.default_rng([seed, 2])
    features = rng.normal(size=(rounds, HEAD["head"]))
    features[:, :2] += labels[:, None] - 0.4
    return np.column_stack([scores, np.clip(np.round(features * 32), -128, 127).astype(int)]), labels


def samples_of_classes(rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A synthetic stream (samples, labels) of three classes: scores in Q14, features in 1/32; two of these tell the class."""
    rng = np.random.default_rng([seed, 3])
    labels = rng.integers(0, len(COSTS), rounds)
    truth = np.eye(len(COSTS))[labels]
    logits = np.exp(rng.normal(size=truth.shape) + 1.5 * truth)
    features = rng.normal(size=(rounds, HEAD["class-head"]))
    features[:, :2] += truth[:, :2] * 2
    scores = np.floor(logits / logits.sum(1, keepdims=True) * 16384).astype(int)
    return np.column_stack([scores, np.clip(np.round(features * 32), -128, 127).astype(int)]), labels


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
        For the adaptive policy, whose comparisons and quotients enlarge rounding errors, at most one decision in 500 differs,
        or with heads one in 250. For H2T2 on one page, which sums losses in Q12, also probabilities agree within 1e-2.
    """
    adapts = mode in ADAPTIVE or mode in HEAD
    runs = {
        **dict.fromkeys(ADAPTIVE, _adaptive),
        **dict.fromkeys(ONE_PAGE, _one_page),
        "head": _head,
        "class-head": _class_head,
    }
    run = runs.get(mode, _h2t2)
    started = time.perf_counter()
    differ, worst, margin = run(bits, rounds, seed, mode, progress or (lambda: None))
    seconds = time.perf_counter() - started
    rare = differ * (250 if mode in HEAD else 500) <= rounds
    within = rare if adapts else rare and worst <= 1e-2 if mode in ONE_PAGE else worst <= 2e-4 and margin <= 1e-4
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
    return _follow(Adaptive(**arguments), reference, samples(bits, rounds, seed), progress)


def _head(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    arguments = policies.policy_arguments("adaptive", {**DEFAULTS, "bits": bits, "seed": seed})
    exact = {name: arguments[name] / ONE for name in ("beta", "delta_fp", "delta_fn")}
    core = AdaptiveHead(HEAD[mode], **arguments)
    reference = FloatAdaptiveHead(features=HEAD[mode], bits=bits, core_restarted=lambda: _restarted(core), **exact)
    return _follow(core, reference, samples_with_features(rounds, seed), progress)


def _restarted(core: AdaptiveHead | AdaptiveClassHead) -> bool:
    """Whether the last label has shown the core a drift."""
    return core.forecaster.surprise == (head_forecaster.DOUBT if core.classes == 2 else class_head_forecaster.DOUBT)


def _class_head(bits: int, rounds: int, seed: int, mode: str, progress: Any) -> tuple[int, float, float]:
    beta = round(DEFAULTS["beta"] * ONE)
    core = AdaptiveClassHead(HEAD[mode], COSTS, bits, beta=beta, seed=seed)
    reference = FloatAdaptiveClassHead(
        features=HEAD[mode], costs=np.array(COSTS) / ONE, bits=bits, beta=beta / ONE, core_restarted=lambda: _restarted(core)
    )
    return _follow(core, reference, samples_of_classes(rounds, seed), progress)


def _follow(
    core: Adaptive | AdaptiveClassHead,
    reference: FloatAdaptive | FloatAdaptiveClassHead,
    stream: tuple[np.ndarray, np.ndarray],
    progress: Any,
) -> tuple[int, float, float]:
    """Let both decide a stream of samples and labels; the reference has the core's draws and offloads."""
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
