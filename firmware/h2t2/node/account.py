# What a node's decisions come to, as the labels of its own offloads tell, and how its scores are spread: what whoever watches a
# fleet reckons with. Nothing of it decides anything.

PLACES = 16  # a list has no more; finer bins share one
UNIT = 1000  # parts of a cost of 1 in `local_cost`
WAITS = 13  # the last for 2048 ms and more


class Account:
    """Counters since the start, a list each with one entry for every bin of the score, at most PLACES of them from 0 to 1
    (of more classes than two: bins of the largest score, from 1/K).

    `scores`: samples. `answered`: those of them on which the remote model decided. `events`: those that it said class 1 of.
    `local_cost`: what the local decisions would have cost on the answered ones, in thousandths.
    And `paid`: what the offloads that went out cost, a sum in Q15. `waits`: answers by how long they took: entry n counts
    those below 2^n ms that no entry before it does, the last one all that took longer.
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

    def scored(self, k: int) -> None:
        """A sample's score is in bin k."""
        self.scores[k >> self.shift] += 1

    def learned(self, policy, k: int, said: int, true: int, ms: int) -> None:
        """The remote model says `true`, after so many ms, of a sample in bin k on which `said` was the local answer."""
        k >>= self.shift
        self.answered[k] += 1
        self.events[k] += true == 1
        self.local_cost[k] += loss(policy, said, true) * UNIT >> 15
        n = 0
        while ms > 0 and n < WAITS - 1:
            ms >>= 1
            n += 1
        self.waits[n] += 1

    def report(self) -> dict:
        """For the state."""
        return {name: getattr(self, name) for name in ("scores", "answered", "events", "local_cost", "waits", "paid")}


def loss(policy, said: int, true: int) -> int:
    """What saying so costs under the policy's costs, Q15."""
    if policy.classes > 2:
        return policy.costs[true * policy.classes + said]
    if said == true:
        return 0
    return policy.delta_fn if true else policy.delta_fp
