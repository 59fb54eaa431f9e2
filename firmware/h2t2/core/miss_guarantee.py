# A limit for missed events that holds with a given confidence at all times at once.
#
# The policy bets against the hypothesis that more than the permitted share m of all events so far was missed. Let an event be
# asked about with probability q and answered 0 with probability z, as the policy knows before it draws. With the stakes
# b = 1/4 and a <= (1 + b)^m - 1, each event that an offload shows multiplies the wealth by r = 1 + (a - z b) / q. Then
# (1 + b)^(misses - m events) times the wealth is a martingale that begins at 1 (docs/algorithm.md). By Ville's inequality the
# wealth exceeds 1 / (1 - confidence) while the hypothesis is true with a probability of at most 1 - confidence, at any time.
from .logarithm import log2
from .miss_rate import MissLimited, zero_chance
from .numbers import ONE, ONE_Q29
from .policy import OFFLOAD, checked_integer
from .tickets import CHANCE, FIELDS

if 0:  # for type checkers
    from ..annotations import Any, Iterator

SURE = ONE >> 2  # smallest P(offload): with it r is at least 1/4
RATE = 29247  # ln(1 + b), Q17, rounded down
LARGEST = 1 << 28  # of the evidence


def log_ratio(gain: int, chance: int, zero: int) -> int:
    """Return the logarithm of r, Q12, rounded down.

    Args:
        gain: a, Q20.
        chance: q, Q15, SURE..ONE.
        zero: z, Q15, at most ONE - chance.
    """
    return log2(16384 + ((gain - (zero << 3) << 9) // chance)) - (14 << 12)


class MissGuaranteed(MissLimited):
    """MissLimited with an upper bound for the share of events missed, which holds with a confidence at all times at once.

    The policy asks about every sample until the bound is below the limit. From then on it acts by itself where the bound would
    stay below the limit whatever the label, and asks otherwise. The bound includes what the policy decided. Once a sample was
    answered 0 without it (a spent budget, an offload without an answer), nothing is guaranteed until reset().

    Attributes:
        evidence: Logarithm of the wealth, Q12.
        threshold: The evidence at which the bound is the limit.
        bypassed: 1 once a sample was answered 0 without the policy: the bound does not include such samples.
    """

    kind = 7
    older = {"bypassed": 1}

    def __init__(self, miss_rate: int, confidence: int, **options: "Any"):
        """miss_rate: the limit, Q15, 1..32768. confidence: Q15, 16384..32767. options: Adaptive's."""
        checked_integer("confidence", confidence, ONE >> 1, ONE - 1)
        self.evidence = 0
        self.confidence = confidence
        self.threshold = (15 << 12) - log2(ONE - confidence)
        self.gain = miss_rate * RATE >> 12
        MissLimited.__init__(self, miss_rate, **options)
        self.floor = max(self.floor, SURE)

    def decide(self, k: int) -> int:
        """As H2T2.decide."""
        action = MissLimited.decide(self, k)
        chance = self.chance
        zero = zero_chance(self.positive, self.negative, self.guess, chance)
        x = log_ratio(self.gain, chance, zero)
        if self.evidence + min(x, 0) < self.threshold:
            self.chance = ONE
            if action == OFFLOAD:
                self.tickets.slots[self.ticket % self.tickets.window * FIELDS + CHANCE] = ONE_Q29
            else:
                action = OFFLOAD
                self.ticket = self.tickets.open(k, self.charge, self.local, ONE_Q29)
            at = self.ticket % self.tickets.window
            self.wishes[at] = self.wish << 1 | self.guess
            self.rounds[at] = ONE - 1 << 15
        elif action == OFFLOAD and x < 0:
            self.evidence += x  # as if the label was an event: an answer that never comes improves nothing
        return action

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As Policy.learn."""
        if not MissLimited.learn(self, ticket, label, beta):
            return False
        x = self.rounds[ticket % self.tickets.window]
        x = log_ratio(self.gain, (x >> 15) + 1, x & 32767)
        if label and x > 0:
            self.evidence = min(self.evidence + x, LARGEST)
        elif x < 0 and not label:
            self.evidence -= x
        return True

    def bypass(self, decision: int) -> None:
        """As Policy.bypass. The answer 1 misses nothing."""
        if not decision:
            self.bypassed = 1

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return MissLimited.settings(self) + (self.confidence,)

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """As Policy.number_rows."""
        yield from MissLimited.number_rows(self)
        yield self, "evidence", -LARGEST, LARGEST
        yield self, "bypassed", 0, 1

    def reset(self) -> None:
        """As Policy.reset."""
        MissLimited.reset(self)
        self.evidence = self.bypassed = 0

    def report(self) -> "dict[str, int]":
        """As MissLimited, and `miss_guaranteed`: whether the bound is below the limit; `miss_evidence`: how far it is, Q15."""
        entries = MissLimited.report(self)
        holds = self.evidence >= self.threshold
        entries["miss_guaranteed"] = 1 if holds and not self.bypassed else 0
        entries["miss_evidence"] = ONE if holds else (max(0, self.evidence) << 13) // self.threshold << 2
        return entries
