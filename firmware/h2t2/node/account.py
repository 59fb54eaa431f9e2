# Counters of a node by bins of the score, estimated from the labels of its offloads, for fleet monitoring. They influence no
# decision.

if 0:  # for type checkers
    from ..core.policy import Policy

PLACES = 16  # length of a list at most; several finer bins share an entry
UNIT = 1000  # parts of a cost of 1 in `local_cost`
WAITS = 13  # the last for 2048 ms and more


class Account:
    """Counters since the start. Lists have an entry for each bin of the score from 0 to 1, at most PLACES entries; for more
    than two classes, of the largest score from 1/K to 1.

    Attributes:
        scores: Samples.
        answered: Samples that the remote model decided.
        events: Samples that it decided to be class 1.
        local_cost: Costs of the local decisions on the answered samples, in thousandths.
        paid: Costs of all offloads that were sent, Q15.
        waits: Answers by duration: entry n counts those from 2^(n - 1) to 2^n ms, the last entry all longer ones.
    """

    def __init__(self, bits: int):
        self.shift = max(0, bits - 4)
        places = 1 << bits - self.shift
        self.scores = [0] * places
        self.answered = [0] * places
        self.events = [0] * places
        self.local_cost = [0] * places
        self.waits = [0] * WAITS
        self.paid = 0

    def count_score(self, k: int) -> None:
        """Count a sample with a score in bin k."""
        self.scores[k >> self.shift] += 1

    def count_answer(self, policy: "Policy", k: int, local: int, label: int, ms: int) -> None:
        """Count an answer of the remote model.

        Args:
            policy: Its costs are in force.
            k: Bin of the sample.
            local: Class that the node would have acted on without the answer.
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

    def report(self) -> "dict[str, object]":
        """Return the entries for the node's state."""
        return {name: getattr(self, name) for name in ("scores", "answered", "events", "local_cost", "waits", "paid")}
