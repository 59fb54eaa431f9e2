"""For how long an answer holds on a device whose policy reads its past, by what its best head has learned."""

from math import exp
from typing import Any

from h2t2.core.numbers import ONE
from h2t2.core.past import FADES, FORGOTTEN, STEPS

from .thresholds import prices_of

AGES = 64  # samples after which the age of an answer no longer counts


def answer_holds(state: dict[str, Any]) -> tuple[int, int] | None:
    """How many of the next samples a device can decide by an answer, where their scores say nothing.

    They are those whose mistakes cost less than asking, as the head that forecasts best expects them.

    Returns:
        After the answers 0 and 1, at most FORGOTTEN each. None for a policy without a past.
    """
    prices = prices_of(state["beta"], state["delta_fp"], state["delta_fn"], state["classes"])
    if state["past"] is None or prices is None:
        return None
    *traces, of_age, constant = (weight / 1024 for weight in state["past"])

    def cost(answer: int, n: int) -> float:
        """Expected cost of the cheaper class of the n-th sample after an answer, 1 or -1."""
        inputs = (2 * answer * 2.0**-step * (1 - 2.0**-fade) ** (n - 1) for step, fade in zip(STEPS, FADES))
        y = constant + of_age * (1 - min(n, AGES) / 32) + sum(w * x for w, x in zip(traces, inputs))
        return prices.local(1 / (1 + exp(-max(-30.0, min(30.0, y)))))

    def held(answer: int) -> int:
        return next((n - 1 for n in range(1, FORGOTTEN + 1) if cost(answer, n) >= prices.ask), FORGOTTEN)

    return held(-1), held(1)


def sentence(state: dict[str, Any]) -> str:
    """What the past adds to the forecasts, and for how long an answer holds; "" for a policy without a past."""
    held = answer_holds(state)
    if held is None:
        return ""
    none, event = (f"{n}{' or more' * (n == FORGOTTEN)}" for n in held)
    share = state["past_share"] / ONE
    return (
        f"The past carries {share:.0%} of its forecasts. Where scores say nothing, an answer holds for {none} samples after "
        f"no event and for {event} after an event."
    )
