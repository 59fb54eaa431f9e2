# A limit for missed events that holds with a given confidence at all times at once.
#
# The policy bets against the hypothesis that more than the permitted share m of all events so far was missed. Let an event be
# asked about with probability q and answered 0 with probability z, as the policy knows before it draws. With the stakes
# b = 1/4 and a <= (1 + b)^m - 1, each event that an offload shows multiplies the wealth by r = 1 + (a - z b) / q. Then
# (1 + b)^(misses - m events) times the wealth is a martingale that begins at 1 (docs/algorithm.md). By Ville's inequality the
# wealth exceeds 1 / (1 - confidence) while the hypothesis is true with a probability of at most 1 - confidence, at any time.
# A sample answered 0 without the policy divides the wealth by 1 + b.
from .logarithm import log2
from .miss_rate import MissRate
from .numbers import ONE, ONE_Q29
from .policy import CHANCE, FIELDS, OFFLOAD, checked_integer

if 0:  # for type checkers
    from ..annotations import Iterator
    from .adaptive import Adaptive

SURE = ONE >> 2  # smallest P(offload) where the answer may be 0: with it r is at least 1/4
RATE = 29247  # ln(1 + b), Q17, rounded down
DEBIT = 1319  # log2(1 + b), Q12, rounded up: what a sample answered 0 without the policy costs
RESERVE = 4 * DEBIT  # of the evidence, which a power cut may hide
LARGEST = 1 << 28  # of the evidence
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


class MissGuarantee(MissRate):
    """MissRate with an upper bound for the share of true events missed, which holds with a confidence at all times at once.

    The policy asks about every sample until the bound is below the limit. From then on it acts by itself where the bound would
    stay below the limit whatever the label, and asks otherwise. The bound includes what the policy decided, what bypass() was
    told, and the events that the remote model misses by its rate.

    Attributes:
        evidence: Logarithm of the wealth, Q12.
        threshold: The evidence at which the bound is the limit.
        mark: The evidence that a restart would begin with; it must not fall below. -LARGEST: nobody saves the policy.
        ending: In snapshots. RUNNING: the evidence may have fallen by RESERVE since; ENDED: it is exact; VOID: of a former
            release, and a sample was answered 0 without the policy: nothing is stated until reset().
        rounds: As of MissRate; ~ that of a ticket whose sample was answered 0 without its answer.
    """

    kind = 7
    older = {"ending": VOID}

    def __init__(self, miss_rate: int, confidence: int, normal: int = 0):
        """confidence: Q15, 16384..32767. Others as for MissRate."""
        checked_integer("confidence", confidence, ONE >> 1, ONE - 1)
        MissRate.__init__(self, miss_rate, normal)
        self.confidence = confidence
        self.threshold = (15 << 12) - log2(ONE - confidence)
        self.evidence = self.gain = self.odds = 0
        self.mark = -LARGEST
        self.ending = RUNNING

    def join(self, policy: "Adaptive") -> None:
        """Limit a policy in its first state. ValueError: the remote model itself misses too many events for such a limit."""
        rdl_fp = policy.rdl_fp
        rdl_fn = policy.rdl_fn
        gain = (self.miss_rate * RATE >> 12) - (rdl_fn << 3)
        if gain <= 0:
            shares = self.miss_rate * 1000 >> 15, rdl_fn * 1000 >> 15
            raise ValueError("confidence: no miss_rate of %d in 1000 holds, as the remote model misses %d (rdl_fn)" % shares)
        self.odds = (rdl_fp << 15) // (ONE - rdl_fp) + (rdl_fp > 0)
        self.gain = (gain << 12) // (ONE - rdl_fn + 7 >> 3)
        MissRate.join(self, policy)
        policy.floor = max(self.floor, self.gain >> 3)

    def raise_wish(self, policy: "Adaptive", share: int) -> int:
        """Return the smallest P(offload) of a round: at least SURE where the forecaster would answer 0."""
        floor = max(policy.floor, (ONE - share) // 3) if policy.guess else SURE
        if policy.wish <= floor:
            policy.wish = floor
            policy.certain = True
        return floor

    def check(self, policy: "Adaptive", k: int, action: int) -> int:
        """Bet on a round; ask for certain where a lost bet would take the evidence below the threshold or the mark."""
        action = MissRate.check(self, policy, k, action)
        chance = policy.chance
        zero = self.zero
        x = log_ratio(self.gain, chance, zero)
        if self.evidence + min(x, 0) < max(self.threshold, self.mark):
            policy.chance = chance = ONE
            zero = 0
            if action != OFFLOAD:
                action = OFFLOAD
                policy.ticket = policy.tickets.open(k, policy.charge, policy.local, ONE_Q29)
            at = policy.ticket % policy.tickets.window
            policy.tickets.slots[at * FIELDS + CHANCE] = ONE_Q29
            self.rounds[at] = ONE - 1 << 15
            x = 1
        if action == OFFLOAD:  # as if the label was the dearer one: an answer that never comes improves nothing
            x = -x if x < 0 else false_alarm_cost(self.gain, chance, zero, self.odds)
            self.evidence = max(self.evidence - x, -LARGEST)
        return action

    def learn(self, at: int, label: int) -> None:
        """Settle the bet of the ticket in slot `at`, and what its sample owes where it was answered 0 meanwhile."""
        owed = 0
        if self.rounds[at] < 0:
            self.rounds[at] = ~self.rounds[at]
            owed = DEBIT
        MissRate.learn(self, at, label)
        chance = (self.rounds[at] >> 15) + 1
        zero = self.rounds[at] & 32767
        x = log_ratio(self.gain, chance, zero)
        if label == self.normal:
            x = max(0, -x) + owed
        else:
            x = x + false_alarm_cost(self.gain, chance, zero, self.odds) if x > 0 else 0
        self.evidence = min(self.evidence + x, LARGEST)

    def bypass(self, policy: "Adaptive", decision: int, ticket: int = 0) -> int:
        """Pay an answer of `normal` by evidence; where that does not suffice, return `alarm`."""
        if decision != self.normal:
            return decision
        if self.evidence - DEBIT < max(self.threshold, self.mark):
            return self.alarm
        self.evidence -= DEBIT
        at = ticket % policy.tickets.window
        if ticket and policy.tickets.slots[at * FIELDS] == ticket and self.rounds[at] >= 0:
            self.rounds[at] = ~self.rounds[at]
        return decision

    def is_due(self) -> bool:
        """Return whether to save, before the evidence falls to the mark."""
        bound = -LARGEST if self.odds else self.threshold  # what false alarms cost is paid below the threshold, too
        return self.mark > bound and self.evidence < self.mark + (RESERVE >> 1)

    def end(self) -> None:
        """Take note that the save to come is complete: no round will follow it in this start."""
        if self.ending == RUNNING:
            self.ending = ENDED

    def note_saved(self) -> None:
        """Set the mark, above which the evidence must stay until the next save."""
        self.mark = self.evidence if self.ending == ENDED else max(-LARGEST, self.evidence - RESERVE)

    def go_on(self) -> None:
        """Continue from a save. A power cut may hide misses, which the evidence must bear."""
        if self.ending == RUNNING:
            self.evidence = max(-LARGEST, self.evidence - RESERVE)
        elif self.ending == ENDED:
            self.ending = RUNNING
        self.mark = self.evidence

    def settings(self) -> "tuple[int, ...]":
        """Return the options of MissRate, and the confidence."""
        return MissRate.settings(self) + (self.confidence,)

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of MissRate, the evidence and how the last start ended."""
        yield from MissRate.number_rows(self)
        yield self, "evidence", -LARGEST, LARGEST
        yield self, "ending", 0, ENDED

    def clear(self, policy: "Adaptive") -> None:
        """Forget all rounds of the policy, and the evidence."""
        MissRate.clear(self, policy)
        self.evidence = 0
        self.ending = RUNNING
        self.mark = -LARGEST

    def report(self) -> "dict[str, int]":
        """Return MissRate's figures, whether the bound is below the limit, and `miss_evidence`: how far it is, Q15."""
        entries = MissRate.report(self)
        holds = self.evidence >= self.threshold
        entries["miss_guaranteed"] = 1 if holds and self.ending != VOID else 0
        entries["miss_evidence"] = ONE if holds else (max(0, self.evidence) << 13) // self.threshold << 2
        return entries
