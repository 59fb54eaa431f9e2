# How a policy takes over what one of another kind had learned. Only a start with such a snapshot loads this module.
from ..core.forecaster import BINS
from ..core.policy import Policy

if 0:  # for type checkers
    from ..annotations import Any, Integers, Iterator, array

ADAPTIVE, ORDERED = 3, 9  # kinds of Adaptive and of Ordered
HEAD = 10  # kind of AdaptiveHead
HEAD_OF_1_0 = 6  # of release 1.0
PAST_NUMBERS, PAST = 6, 136  # of Ordered's state that Adaptive lacks: after its numbers; and all, the others at the end
CELLS_OF_1_0 = 3 * (16 + 256)  # numbers of its state that there are no more


class WithoutCells:
    """The state of a head without the cells by the heads' outputs that release 1.0 kept.

    Each of the three heads had 17 forecasts, the last one its output, and 256 counts of labels and events.
    """

    def __init__(self, policy: "Any", state: "Integers"):
        """policy: An AdaptiveHead, whose state ends with the losses of the heads' forecasts and what the heads have."""
        self.state = state
        size = policy.state_size() - len(policy.answers)
        self.heads = size - 3 - sum([row[2] - row[1] for row in policy.forecaster.heads.array_rows()])

    def __len__(self) -> int:
        return len(self.state) - CELLS_OF_1_0

    def __getitem__(self, n: int) -> int:
        head = n - self.heads
        if head >= 0:
            n = self.heads + 17 * head + 16 if head < 3 else n + CELLS_OF_1_0
        return self.state[n]


class WithoutPast:
    """The state of a policy with a past without it, for Adaptive."""

    def __init__(self, policy: "Any", state: "Integers"):
        """policy: An Adaptive."""
        self.state = state
        self.numbers = len(list(policy.number_rows()))

    def __len__(self) -> int:
        return len(self.state) - PAST

    def __getitem__(self, n: int) -> int:
        return self.state[n if n < self.numbers else n + PAST_NUMBERS]


class BeforePast(Policy):
    """The part of a policy with a past that Adaptive has too. The past and its heads stay as in a new policy.

    The heads begin as good as a bin's worst forecast.
    """

    def __init__(self, policy: "Any"):
        """policy: An Ordered that has decided nothing so far."""
        self.policy = policy
        self.tickets = policy.tickets

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of the policy without a past."""
        for row in self.policy.number_rows():
            if row[1] == "surprise":
                return
            yield row

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the arrays of the policy without a past, its losses those of the bins alone."""
        loss = self.policy.forecaster.loss
        for row in self.policy.array_rows():
            if row[0] is loss:
                yield (loss, 0, BINS) + row[3:]
                return
            yield row

    def reset(self) -> None:
        """Forget everything that the policy learned."""
        self.policy.reset()

    def derive(self) -> None:
        """Let the heads begin as good as a bin's worst forecast."""
        loss = self.policy.forecaster.loss
        for n in range(BINS, len(loss)):
            loss[n] = max(loss[:BINS])
        self.policy.derive()


def taken_over(kind: int, policy: "Policy") -> "tuple[Any, int, Any] | None":
    """Return how a policy takes over a snapshot of another kind; None if it cannot.

    Returns:
        What stands for the policy; how many integers of the snapshot's state it leaves out; and the class that does so.
    """
    if kind == ADAPTIVE and policy.kind == ORDERED:
        return BeforePast(policy), 0, None
    if kind == ORDERED and policy.kind == ADAPTIVE:
        return policy, PAST, WithoutPast
    if kind == HEAD_OF_1_0 and policy.kind == HEAD:
        return policy, CELLS_OF_1_0, WithoutCells
    return None
