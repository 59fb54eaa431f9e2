"""The options of `h2t2 replay`."""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ..common.fields import Count, NotNegative, OneOf, Options, Share, file, option
from ..common.policies import DEFAULTS
from .simulation.policy_names import NAMES as POLICIES

FineBits = Annotated[int, Field(ge=1, le=12)]


def _betas(words: Any) -> Any:
    """Read costs of an offload: numbers, or ranges first:last:step that include both ends."""
    return [beta for word in words for beta in (_range(word) if isinstance(word, str) else [word])]


def _range(text: str) -> list[float]:
    try:
        numbers = [float(number) for number in text.split(":")]
    except ValueError:
        raise ValueError("want a number, or first:last:step") from None
    if len(numbers) == 1:
        return numbers
    first, last, step = numbers if len(numbers) == 3 else (1.0, 0.0, 0.0)
    if not (0 <= first <= last <= 1 and step >= 1e-6):
        raise ValueError("want a number, or first:last:step with 0 <= first <= last <= 1 and step > 0")
    return [round(first + n * step, 9) for n in range(math.floor((last - first) / step + 1e-9) + 1)]


class ReplayOptions(Options):
    """How a trace is replayed."""

    trace: str = option(
        ...,
        "a .csv, .parquet or .npz of score (or score0, score1, ..), label[, beta]; or a shipped trace's name",
        positional=True,
    )
    beta: Annotated[list[Share], BeforeValidator(_betas)] = option(
        _range("0.05:0.6:0.05"), "costs of an offload: numbers, or first:last:step", unset="0.05:0.6:0.05"
    )
    ordered: bool = option(False, "take the samples in their order, in place of drawing them at random")
    delay: NotNegative = option(0, "labels come up to N rounds late", metavar="N")
    lost: Share = option(0.0, "share of the labels that never come", metavar="S")
    rdl_fp: Share = option(0.0, "what policies know of a remote model that says 1 for 0")
    rdl_fn: Share = option(0.0, "what policies know of a remote model that says 0 for 1")
    rdl_confusion: str | None = file(
        None, "three classes or more: a .csv, a line for each class, of how often it says each (counts or shares)"
    )
    miss_rate: Share = option(
        DEFAULTS["miss_rate"], "adaptive: largest share of events that may be missed; 0: no limit", metavar="M"
    )
    normal: str | None = option(
        None, "miss_rate of three classes or more: the class that is no event, by its name or number", metavar="CLASS"
    )
    prior: str | None = file(None, "the table that `adaptive` starts from, of `h2t2 prior`")
    eta: Annotated[float, Field(gt=0, le=5.5)] = option(DEFAULTS["eta"], "learning rate of `h2t2` and similar policies")
    delta_fp: Share = option(DEFAULTS["delta_fp"], "cost of a false alarm")
    delta_fn: Share = option(DEFAULTS["delta_fn"], "cost of a missed event")
    bits: list[FineBits] = option([DEFAULTS["bits"]], "score bits; several: each policy with each", metavar="b")
    policy: list[Annotated[str, AfterValidator(OneOf(("all", *POLICIES)))]] = option(["all"], "policies to replay", metavar="P")
    half_life: NotNegative = option(0, "rounds after which losses count half, of the policies that forget; 0: always in full")
    runs: Count = option(25, "runs of each policy")
    samples: Count = option(10000, "samples of a run, drawn uniformly from the trace")
    seed: NotNegative = option(0, "seed of the first run")
