"""Is the threshold right? Judges by the answers at each score whether a device asks where asking is cheapest."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from h2t2.core.numbers import ONE
from h2t2.node.asking import UNIT

from .intervals import Interval, Z

Z_ALL = 2.95  # standard errors within which all of 16 bins lie with 95 %
TOLERANCE = 0.02  # of the price of asking: a bin that costs the device less than this, a sample, is right
ASKS = 0.5  # of the highest share of questions: a bin with a larger share counts as one where the device asks
SELDOM = 0.05  # a device with a lower share of questions in every bin asks nowhere
MIN_SAMPLES = 5  # of a bin, before its share of questions counts
MAX_ANSWERS = 100_000  # beyond this many answers no number is given


@dataclass(frozen=True)
class Prices:
    """Of a device, 0 to 1: an offload, a false alarm, a miss. The last two are None for three classes or more."""

    ask: float
    false_alarm: float | None
    miss: float | None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The shares of events between which asking is cheapest (Theorem 1 of the paper); None: for three classes or more."""
        if not self.false_alarm or not self.miss:
            return None
        return min(1.0, self.ask / self.miss), max(0.0, 1 - self.ask / self.false_alarm)

    def local(self, share: float) -> float:
        """The cost of the better local decision. share: of events; for three classes or more the mean cost itself."""
        if self.false_alarm is None or self.miss is None:
            return share
        return min(share * self.miss, (1 - share) * self.false_alarm)


@dataclass(frozen=True)
class Bin:
    """A bin of the score.

    Args:
        samples, answers: number of samples, and of those with an answer.
        share: of events among the answers; for three classes or more the mean cost of a local decision. None without answers.
        low, high: the interval that holds the share with 95 %.
        asks: whether the device asks there.
    """

    samples: int
    answers: int
    share: float | None
    low: float
    high: float
    asks: bool


@dataclass(frozen=True)
class Judgement:
    """About a device's thresholds.

    Args:
        bins: by the score from 0 to 1.
        span: the scores between which it asks; None: it asks nowhere.
        verdict: right, "too wide" or "too narrow", or "" while nothing tells.
        answers: number of further answers that will make the verdict certain; 0: it is certain; -1: too many to say.
        excess: what wrong thresholds cost, a sample.
        doubtful: where further answers are needed, in words.
    """

    bins: list[Bin]
    span: tuple[float, float] | None
    verdict: str
    answers: int
    excess: float
    doubtful: str = ""

    @property
    def text(self) -> str:
        """A sentence for people."""
        place = f"asks between {self.span[0]:.2f} and {self.span[1]:.2f}" if self.span else "asks hardly ever"
        count = f"about {_rounded(self.answers):,}" if self.answers > 0 else "many"
        if not self.verdict:
            return f"{place}: no answer has come yet, so nothing tells whether this is right"
        if self.verdict == "right":
            return f"{place}: right" + (f", as far as the answers tell; {count} more will make sure" if self.answers else "")
        if self.answers:
            unknown = f"what deciding alone costs at scores from {self.doubtful}"
            return f"{place}: perhaps {self.verdict}; {count} more answers will tell {unknown}"
        return f"{place}: {self.verdict}: this costs {self.excess:.3f} a sample"


def judge(interval: Interval, prices: Prices) -> Judgement:
    """Judge where a device asks, by what it counted in an interval."""
    bins = _bins(interval, prices)
    total = max(1, interval.samples, sum(interval.scores))
    size = len(bins)
    asking = [k for k, entry in enumerate(bins) if entry.asks]
    span = (asking[0] / size, (asking[-1] + 1) / size) if asking else None
    if not any(entry.answers for entry in bins):
        return Judgement(bins, span, "", -1, 0.0)
    tolerance = TOLERANCE * prices.ask
    excess = {True: 0.0, False: 0.0}  # asks -> what its wrong bins cost
    certain = False
    needed = {True: 0, False: 0}  # the estimate is wrong -> answers that make it certain
    doubtful: list[int] = []  # bins that seem wrong
    guesses = [_guess(entry, (k + 0.5) / size if prices.limits else prices.ask) for k, entry in enumerate(bins)]
    between = _between(bins, guesses, prices) if prices.limits else set()
    for k, (entry, guess) in enumerate(zip(bins, guesses)):
        if not entry.samples or k in between:
            continue
        weight = entry.samples / total
        loss = _loss(prices, entry.asks)
        wrong = weight * loss(guess) > tolerance
        settled = _settled(loss, weight, tolerance, wrong)
        doubtless = settled(entry.share or 0.0, entry.answers)
        if wrong:
            excess[entry.asks] += weight * loss(guess)
            certain = certain or doubtless
        if not doubtless:
            needed[wrong] += _answers_needed(entry.answers, guess, settled)
            doubtful += [k] if wrong else []
    if sum(excess.values()):
        verdict = "too wide" if excess[True] >= excess[False] else "too narrow"
        answers = 0 if certain else _capped(needed[True])
        return Judgement(bins, span, verdict, answers, sum(excess.values()), _ranges(doubtful, size))
    return Judgement(bins, span, "right", _capped(needed[False]), 0.0)


def wilson(count: float, total: int, z: float = Z) -> tuple[float, float]:
    """The interval of a share (Wilson 1927), from `count` of `total`. z: standard errors; by default it holds it with 95 %."""
    if total <= 0:
        return 0.0, 1.0
    share, z2 = count / total, z * z / total
    middle = (share + z2 / 2) / (1 + z2)
    half = z / (1 + z2) * math.sqrt(share * (1 - share) / total + z2 / (4 * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def _bins(interval: Interval, prices: Prices) -> list[Bin]:
    counts = interval.events if prices.limits else [cost / UNIT for cost in interval.local_cost]
    portions = [answers / n if n >= MIN_SAMPLES else 0.0 for n, answers in zip(interval.scores, interval.answered)]
    threshold = max(SELDOM, ASKS * max(portions, default=0.0))
    bins = []
    for n, answers, count, share in zip(interval.scores, interval.answered, counts, portions):
        count = min(count, answers)
        low, high = wilson(count, answers)
        bins.append(Bin(n, answers, count / answers if answers else None, low, high, share > threshold))
    return bins


def _ranges(numbers: list[int], size: int) -> str:
    """The scores of bins, in words: those side by side are one range."""
    first = [k for k in numbers if k - 1 not in numbers]
    last = [k for k in numbers if k + 1 not in numbers]
    return " and ".join(f"{low / size:.2f} to {(high + 1) / size:.2f}" for low, high in zip(first, last))


def _between(bins: list[Bin], guesses: list[float], prices: Prices) -> set[int]:
    """The bins where a device asks because two thresholds cannot leave them out: those on both sides save more."""
    asking = [k for k, entry in enumerate(bins) if entry.asks]
    wasted = [bins[k].samples * (prices.ask - prices.local(guesses[k])) for k in asking]
    low, high = _longest_waste(wasted), _longest_waste(wasted[::-1])
    return set(asking[low : len(asking) - high])


def _longest_waste(wasted: list[float]) -> int:
    """How many of these, from the first on, cost most together; 0: any number of them saves."""
    sums = [0.0, *accumulate(wasted)]
    return sums.index(max(sums))


def _guess(entry: Bin, score: float) -> float:
    """The share of events, as if one more answer had agreed with the score."""
    return ((entry.share or 0.0) * entry.answers + score) / (entry.answers + 1)


def _loss(prices: Prices, asks: bool) -> Callable[[float], float]:
    """What a bin costs, a sample, more than the better choice, by its share of events."""

    def loss(share: float) -> float:
        difference = prices.ask - prices.local(share)
        return max(0.0, difference if asks else -difference)

    return loss


def _settled(loss: Callable[[float], float], weight: float, tolerance: float, wrong: bool) -> Callable[[float, int], bool]:
    """Whether a share of so many answers leaves no doubt that its bin is wrong, or that it is right.

    A bin is called wrong only if that holds for all bins at once, since one of sixteen would be called so by chance.
    """

    def settled(share: float, answers: int) -> bool:
        low, high = wilson(share * answers, answers, Z_ALL if wrong else Z)
        losses = [weight * loss(low + (high - low) * n / 8) for n in range(9)]  # between the ends a local decision costs most
        return min(losses) > 0 if wrong else max(losses) <= tolerance

    return settled


def _answers_needed(answers: int, share: float, settled: Callable[[float, int], bool]) -> int:
    """Further answers after which a share leaves no doubt; MAX_ANSWERS for more."""
    total = max(1, answers)
    while total < MAX_ANSWERS:
        total = total * 5 // 4 + 1
        if settled(share, total):
            return max(1, total - answers)
    return MAX_ANSWERS


def _capped(answers: int) -> int:
    return -1 if answers >= MAX_ANSWERS else answers


def _rounded(count: int) -> int:
    """A number of answers with one digit, two from a thousand on."""
    unit: int = 10 ** max(0, len(str(count)) - (2 if count >= 1000 else 1))
    return max(1, round(count / unit)) * unit


def prices_of(beta: int | None, delta_fp: int | None, delta_fn: int | None, classes: int) -> Prices | None:
    """The prices in a device's state, Q15; None where it does not tell them."""
    if not beta:
        return None
    if classes != 2:
        return Prices(beta / ONE, None, None)
    return Prices(beta / ONE, delta_fp / ONE, delta_fn / ONE) if delta_fp and delta_fn else None
