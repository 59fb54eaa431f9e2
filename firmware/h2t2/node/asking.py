# What everybody has in common who asks a remote model, whatever decides before and however a question travels: how long an
# answer decides, what offloads cost, who may decide, and counters for fleet monitoring.
from ..clock import ticks_diff, ticks_ms, unix_now
from ..core.numbers import ONE

if 0:  # for type checkers
    from ..annotations import Any
    from ..core.budget import Budget
    from ..core.policy import Policy

PLACES = 16  # length of a list at most; several finer bins share an entry
UNIT = 1000  # parts of a cost of 1 in `local_cost`
WAITS = 13  # the last for 2048 ms and more
COUNTERS = (
    "samples", "offloads", "replies", "late", "fallbacks", "unasked", "unaffordable", "crowded", "last",
    "scores", "answered", "events", "local_cost", "waits", "paid", "in_time",
)  # fmt: skip


class Asking:
    """Lets a policy decide where it may, pays for its offloads and counts what became of them.

    The lists of counters begin with the start and have an entry for each bin of the score from 0 to 1, at most PLACES entries;
    for more than two classes, of the largest score from 1/K to 1. They are estimated from the labels of offloads and influence
    no decision.

    Attributes:
        wait_ms: Seven eighths of the deadline, in which an answer decides.
        budget: What limits the offloads; None: nothing does.
        last: The last decision: bin, class, source.
        samples, offloads: Counters.
        replies: Answers that taught and decided.
        late: Answers that came after the decision and taught.
        fallbacks: Offloads that were decided without an answer.
        unasked: Samples decided without the policy, as nobody may be asked about them.
        unaffordable: Samples decided without the policy, as the budget was spent.
        crowded: Samples decided without the policy, as too many offloads were in flight, or their time was over.
        scores: Samples.
        answered: Samples that the remote model decided.
        events: Samples that it decided to be class 1.
        local_cost: Costs of the local decisions on the answered samples, in thousandths.
        in_time: Questions by what came of them: without and with an answer in time where the local class is 0, likewise where
            it is another.
        paid: Costs of all offloads that were sent, Q15.
        waits: Answers by duration: entry n counts those from 2^(n - 1) to 2^n ms, the last entry all longer ones.
    """

    def __init__(self, bits: int, deadline_ms: int = 2000, budget: "Budget | None" = None):
        self.wait_ms = deadline_ms - (deadline_ms >> 3)
        self.budget = budget
        self.credited_at = ticks_ms()  # when the budget was credited
        self.last = None  # type: tuple[int, int, int] | None
        self.samples = self.offloads = self.replies = self.late = self.fallbacks = 0
        self.unasked = self.unaffordable = self.crowded = 0
        self.shift = max(0, bits - 4)
        places = 1 << bits - self.shift
        self.scores = [0] * places
        self.answered = [0] * places
        self.events = [0] * places
        self.local_cost = [0] * places
        self.waits = [0] * WAITS
        self.in_time = [0] * 4
        self.paid = 0

    def credit_budget(self, sample: bool) -> None:
        """Credit the budget the time that passed, and a sample."""
        budget = self.budget
        if not budget:
            return
        ticks = ticks_ms()
        passed = ticks_diff(ticks, self.credited_at)
        self.credited_at = ticks
        now = unix_now() if budget.limit else 0
        credit = budget.earn if sample else budget.credit
        credit(passed, now // (budget.span // 1000) if now else -1)

    def may_decide(self, may_ask: bool, has_room: bool, size: int) -> bool:
        """Return whether the policy decides a sample; count why not.

        Args:
            may_ask: Whether the remote model may be asked about it.
            has_room: Whether an offload has room and time.
            size: Bytes of its request.
        """
        if not may_ask:
            self.unasked += 1
        elif not has_room:
            self.crowded += 1
        elif self.budget and not self.budget.affords(size):
            self.unaffordable += 1
        else:
            return True
        return False

    def set_charge(self, policy: "Policy", beta: int) -> None:
        """Let a policy charge an offload beta, Q15, and the price of the budget's tokens."""
        if self.budget:
            beta = min(ONE, beta + self.budget.price())
        if beta != policy.charge:
            policy.set_charge(beta)

    def pay(self, policy: "Policy", size: int) -> None:
        """Pay for a request of so many bytes."""
        self.paid += policy.beta
        if self.budget:
            self.budget.spend(size)

    def count_question(self, policy: "Policy", k: int, local: int, came: int) -> None:
        """Count a question, and let the policy do so. local: the class without an answer. The others: as of Policy."""
        self.in_time[2 * (local > 0) + came] += 1
        policy.count_question(k, came)

    def count_score(self, k: int) -> None:
        """Count a sample with a score in bin k."""
        self.scores[k >> self.shift] += 1

    def count_answer(self, policy: "Policy", k: int, local: int, label: int, ms: int) -> None:
        """Count an answer of the remote model.

        Args:
            policy: Its costs are in force.
            k: Bin of the sample.
            local: Class to act on without the answer.
            label: The answer.
            ms: Time from the offload to the answer.
        """
        k >>= self.shift
        self.answered[k] += 1
        self.events[k] += label == 1
        self.local_cost[k] += policy.mistake_cost(local, label) * UNIT >> 15
        n = 0
        while ms > 0 and n < WAITS - 1:
            ms >>= 1
            n += 1
        self.waits[n] += 1

    def report(self, *names: str) -> "dict[str, Any]":
        """Return what the retained state says of the offloads, and these attributes."""
        entries = {}
        for name in COUNTERS + names:
            entries[name] = getattr(self, name)
        return entries
