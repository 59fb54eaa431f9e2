"""Between people's numbers and the core's integers, and Corollary 1's parameters."""

from __future__ import annotations

import math
from typing import Any

from h2t2.fixed import ONE


def q15(value: float, name: str) -> int:
    """A cost or probability in [0, 1] as Q15. Raises ValueError, naming it, outside."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} {value:g} is not between 0 and 1")
    return round(value * ONE)


def experts(bits: int) -> int:
    """|Theta| = 2^(b-1) (2^b + 1)."""
    return 2 ** (bits - 1) * (2**bits + 1)


def corollary(bits: int, horizon: int, beta: float) -> tuple[float, float]:
    """(epsilon*, eta*) of Corollary 1 for T = horizon rounds and a cost bound beta; epsilon cut to [2^-15, 1]."""
    ln = math.log(experts(bits))
    epsilon = min(1.0, max(1 / ONE, (ln / (2 * beta**2 * horizon)) ** (1 / 3)))
    return epsilon, math.sqrt(2 * epsilon * ln / horizon)


def policy_arguments(
    *,
    bits: int = 4,
    beta: float = 0.3,
    delta_fp: float = 0.7,
    delta_fn: float = 1.0,
    eta: float = 1.0,
    epsilon: float = 0.0625,
    seed: int = 1,
    feedback: str = "explored",
    exploration: str = "epsilon",
    half_life: int = 0,
    window: int = 8,
    rdl_fp: float = 0.0,
    rdl_fn: float = 0.0,
) -> dict[str, Any]:
    """H2T2's integer arguments from people's numbers: costs and rates in [0, 1], epsilon in (0, 1], eta in (0, 5.5]."""
    if not 0 < eta <= 5.5:
        raise ValueError(f"eta {eta:g} is not in (0, 5.5]")
    if not 1 / ONE <= epsilon <= 1:
        raise ValueError(f"epsilon {epsilon:g} is not in [{1 / ONE:.2g}, 1]")
    return {
        "bits": bits,
        "beta": q15(beta, "beta"),
        "delta_fp": q15(delta_fp, "delta-fp"),
        "delta_fn": q15(delta_fn, "delta-fn"),
        "eta": max(1, round(eta * 2**26)),
        "epsilon": q15(epsilon, "epsilon"),
        "seed": seed,
        "feedback": feedback,
        "exploration": exploration,
        "half_life": half_life,
        "window": window,
        "rdl_fp": q15(rdl_fp, "rdl-fp"),
        "rdl_fn": q15(rdl_fn, "rdl-fn"),
    }
