# A limit for missed events that holds with a given confidence at all times at once.
#
# The policy bets against the hypothesis that more than the permitted share m of all events so far was missed. Let an event be
# asked about with probability q and answered 0 with probability z, as the policy knows before it draws. With the stakes
# b = 1/4 and a <= (1 + b)^m - 1, each event that an offload shows multiplies the wealth by r = 1 + (a - z b) / q. Then
# (1 + b)^(misses - m events) times the wealth is a martingale that begins at 1 (docs/algorithm.md). By Ville's inequality the
# wealth exceeds 1 / (1 - confidence) while the hypothesis is true with a probability of at most 1 - confidence, at any time.
# A sample answered 0 without the policy divides the wealth by 1 + b.
from .adaptive import Adaptive
from .logarithm import log2
from .miss_rate import MissLimited
from .numbers import ONE, ONE_Q29
from .policy import OFFLOAD, checked_integer
from .tickets import CHANCE, FIELDS

if 0:  # for type checkers
    from ..annotations import Any, Iterator

SURE = ONE >> 2  # smallest P(offload) where the answer may be 0: with it r is at least 1/4
RATE = 29247  # ln(1 + b), Q17, rounded down
DEBIT = 1319  # log2(1 + b), Q12, rounded up: what a sample answered 0 without the policy costs
RESERVE = 4 * DEBIT  # of the evidence, which a power cut may hide
LARGEST = 1 << 28  # of the evidence
OWED = 17  # bit of `wishes`: the ticket's sample was answered 0 without its answer
RUNNING, VOID, ENDED = 0, 1, 2


def log_ratio(gain: int, chance: int, zero: int) -> int:
    """Return the logarithm of r, Q12, rounded down.

    Args:
        gain: a, Q20.
        chance: q, Q15, 4 a..ONE.
        zero: z, Q15, at most ONE - chance.
    """
    return log2(16384 + ((gain - (zero << 3) << 9) // chance)) - (14 << 12)


def false_alarm_cost(gain: int, chance: int, zero: int, odds: int) -> int:
    """Return what an offload with r above 1 costs until its label is an event, Q12: a false alarm would multiply by r as well.

    odds: rdl_fp / (1 - rdl_fp), Q15. The others: as of log_ratio().
    """
    if not odds:
        return 0
    x = ((gain - (zero << 3) << 9) // chance + 1) * odds
    return (14 << 12) - log2(max(1, 16383 - (x >> 15)))


class MissGuaranteed(MissLimited):
    """MissLimited with an upper bound for the share of true events missed, which holds with a confidence at all times at once.

    The policy asks about every sample until the bound is below the limit. From then on it acts by itself where the bound would
    stay below the limit whatever the label, and asks otherwise. The bound includes what the policy decided, what bypass() was
    told, and the events that the remote model misses by its rate.

    Attributes:
        evidence: Logarithm of the wealth, Q12.
        threshold: The evidence at which the bound is the limit.
        mark: The evidence that a restart would begin with; it must not fall below. -LARGEST: nobody saves the policy.
        ending: In snapshots. RUNNING: the evidence may have fallen by RESERVE since; ENDED: it is exact; VOID: of a former
            release, and a sample was answered 0 without the policy: nothing is stated until reset().
    """

    kind = 7
    older = {"ending": VOID}

    def __init__(self, miss_rate: int, confidence: int, *, rdl_fp: int = 0, rdl_fn: int = 0, **options: "Any"):
        """miss_rate: the limit, Q15, 1..32768. confidence: Q15, 16384..32767. The others: Adaptive's.

        Raises:
            ValueError: An argument is out of range, or the remote model itself misses too many events for such a limit.
        """
        checked_integer("confidence", confidence, ONE >> 1, ONE - 1)
        self.evidence = 0
        self.confidence = confidence
        self.threshold = (15 << 12) - log2(ONE - confidence)
        self.mark = -LARGEST
        self.ending = RUNNING
        self.gain = 0
        self.odds = (rdl_fp << 15) // (ONE - rdl_fp) + (rdl_fp > 0)
        MissLimited.__init__(self, miss_rate, rdl_fp=rdl_fp, rdl_fn=rdl_fn, **options)
        gain = (miss_rate * RATE >> 12) - (rdl_fn << 3)
        if gain <= 0:
            shares = miss_rate * 1000 >> 15, rdl_fn * 1000 >> 15
            raise ValueError("confidence: no miss_rate of %d in 1000 holds, as the remote model misses %d (rdl_fn)" % shares)
        self.gain = (gain << 12) // (ONE - rdl_fn + 7 >> 3)
        self.base = max(self.floor, self.gain >> 3)

    def _forecast(self, k: int, total: int) -> int:
        """As Adaptive._forecast. The wish is at least SURE where the answer may be 0."""
        self.floor = self.base
        share = Adaptive._forecast(self, k, total)
        floor = max(self.base, (ONE - share) // 3) if self.guess else SURE
        if self.wish <= floor:
            self.wish = floor
            self.certain = True
        self.floor = floor
        return share

    def decide(self, k: int) -> int:
        """As H2T2.decide."""
        action = MissLimited.decide(self, k)
        chance = self.chance
        zero = self.zero
        x = log_ratio(self.gain, chance, zero)
        if self.evidence + min(x, 0) < max(self.threshold, self.mark):
            self.chance = chance = ONE
            zero = 0
            if action != OFFLOAD:
                action = OFFLOAD
                self.ticket = self.tickets.open(k, self.charge, self.local, ONE_Q29)
            at = self.ticket % self.tickets.window
            self.tickets.slots[at * FIELDS + CHANCE] = ONE_Q29
            self.wishes[at] = self.wish << 1 | self.guess
            self.rounds[at] = ONE - 1 << 15
            x = 1
        if action == OFFLOAD:  # as if the label was the dearer one: an answer that never comes improves nothing
            x = -x if x < 0 else false_alarm_cost(self.gain, chance, zero, self.odds)
            self.evidence = max(self.evidence - x, -LARGEST)
        return action

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As Policy.learn."""
        at = ticket % self.tickets.window
        owed = self.wishes[at] >> OWED
        self.wishes[at] &= (1 << OWED) - 1
        if not MissLimited.learn(self, ticket, label, beta):
            self.wishes[at] |= owed << OWED
            return False
        chance = (self.rounds[at] >> 15) + 1
        zero = self.rounds[at] & 32767
        x = log_ratio(self.gain, chance, zero)
        if not label:
            x = max(0, -x) + owed * DEBIT
        else:
            x = x + false_alarm_cost(self.gain, chance, zero, self.odds) if x > 0 else 0
        self.evidence = min(self.evidence + x, LARGEST)
        return True

    def bypass(self, decision: int, ticket: int = 0) -> int:
        """As Policy.bypass. An answer 0 is paid by evidence; where that does not suffice, the answer is 1."""
        if decision:
            return decision
        if self.evidence - DEBIT < max(self.threshold, self.mark):
            return 1
        self.evidence -= DEBIT
        at = ticket % self.tickets.window
        if ticket and self.tickets.slots[at * FIELDS] == ticket:
            self.wishes[at] |= 1 << OWED
        return 0

    def is_due(self) -> bool:
        """As Policy.is_due: before the evidence would fall to the mark."""
        bound = -LARGEST if self.odds else self.threshold  # what false alarms cost is paid below the threshold, too
        return self.mark > bound and self.evidence < self.mark + (RESERVE >> 1)

    def end(self) -> None:
        """As Policy.end."""
        if self.ending == RUNNING:
            self.ending = ENDED

    def note_saved(self) -> None:
        """As Policy.note_saved."""
        self.mark = self.evidence if self.ending == ENDED else max(-LARGEST, self.evidence - RESERVE)

    def go_on(self) -> None:
        """As Policy.go_on. A power cut may hide misses, which the evidence must bear."""
        if self.ending == RUNNING:
            self.evidence = max(-LARGEST, self.evidence - RESERVE)
        elif self.ending == ENDED:
            self.ending = RUNNING
        self.mark = self.evidence

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return MissLimited.settings(self) + (self.confidence,)

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """As Policy.number_rows."""
        yield from MissLimited.number_rows(self)
        yield self, "evidence", -LARGEST, LARGEST
        yield self, "ending", 0, ENDED

    def reset(self) -> None:
        """As Policy.reset."""
        MissLimited.reset(self)
        self.evidence = 0
        self.ending = RUNNING
        self.mark = -LARGEST

    def report(self) -> "dict[str, int]":
        """As MissLimited, and `miss_guaranteed`: whether the bound is below the limit; `miss_evidence`: how far it is, Q15."""
        entries = MissLimited.report(self)
        holds = self.evidence >= self.threshold
        entries["miss_guaranteed"] = 1 if holds and self.ending != VOID else 0
        entries["miss_evidence"] = ONE if holds else (max(0, self.evidence) << 13) // self.threshold << 2
        return entries
