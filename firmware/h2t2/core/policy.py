# What all policies share: costs in force, random draws, outstanding tickets, and a state that can be saved and restored.
# The policies themselves are in h2t2, adaptive, miss_rate and adaptive_classes.
from .numbers import ONE
from .rng import Rng
from .tickets import Tickets

if 0:  # for type checkers; MicroPython has no typing
    from array import array
    from collections.abc import Iterator, Sequence
    from typing import Any

OFFLOAD = -1  # what decide() returns beside the classes 0, 1, ...
MAX_INT = 1073741823  # 2^30 - 1, the largest small int of a 32-bit port
MAX_TICKET = 268435455


def checked_integer(name: str, value: int, low: int, high: int, unit: str = "q15") -> None:
    """Raise ValueError, naming it, for a value that is a float or out of range. unit: the function of h2t2.units for it."""
    if type(value) is float:
        raise ValueError("%s %s is a float: give %s, or h2t2.units.%s(%s)" % (name, value, unit.upper(), unit, value))
    if not low <= value <= high:
        raise ValueError("%s %r is not in %d..%d" % (name, value, low, high))


class Policy:
    """Decides for each sample whether to act locally or to offload, and learns from the labels of offloads.

    A node calls decide() once a sample, and then learn() or lose() with the ticket of each offload. Costs are Q15 integers. A
    score is a bin, 0..2^bits - 1, or, for more than two classes, a list of the scores of all classes in Q14.

    Attributes:
        kind: Number of this class in snapshots.
        name: Name in the node's state.
        classes: Number of classes.
        bits: The score is cut into 2^bits bins.
        miss_limit: Largest share of events that the policy may miss, Q15; 0: it has no such limit, and no report().
        reprices: Whether a change of costs applies to all that the policy has learned at once.
        beta: Cost of an offload.
        charge: What an offload is charged at present: beta, or more while the link is down or the budget low.
        delta_fp, delta_fn: Costs of a false positive and of a false negative.
        ticket: Ticket of the last round, 0 unless it offloaded.
        local: Class to act on if the last offload gets no answer.
        lessons: Number of labels learned from.
        tickets: Outstanding offloads, with the counters of lost and refused ones.
    """

    kind = 0
    name = ""
    classes = 2
    bits = 0
    miss_limit = 0
    reprices = False

    def __init__(self, seed: int, window: int):
        self.rng = Rng(seed)
        self.tickets = Tickets(window)
        self.delta_fp = self.delta_fn = ONE
        self.beta = self.charge = 0
        self.age = self.lessons = 0  # age: rounds since H2T2 last halved its losses by half_life
        self.ticket = self.local = 0

    if 0:  # what each policy defines; boards have no room for these stubs

        def decide(self, score: "Any") -> int:
            """Play a round and return the class to act on, or OFFLOAD; then `ticket` and `local` are set."""
            raise NotImplementedError

        def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
            """Learn the label of an offload and return whether it taught something.

            Args:
                ticket: An outstanding ticket. Others are counted in `tickets.refused`.
                label: The remote model's class.
                beta: What the offload really cost, Q15; -1: what decide() charged.
            """
            raise NotImplementedError

        def likely(self, score: "Any") -> int:
            """Return the class to act on without an offload. This draws, charges and learns nothing."""
            raise NotImplementedError

        def offload_chance(self) -> int:
            """Return the probability, Q15, with which the last round offloaded."""
            raise NotImplementedError

        def settings(self) -> "tuple[int, ...]":
            """Return the options it was made with. Policies of one kind with equal settings may exchange states."""
            raise NotImplementedError

        def set_deltas(self, fp: int, fn: int) -> None:
            """Set the costs of a false positive and of a false negative for the labels to come."""
            raise NotImplementedError

        def derive(self) -> None:
            """Compute anew what follows from the state."""
            raise NotImplementedError

    def decide_score(self, score: "Any") -> int:
        """As decide(), for a score as people write it: 0.37, or, for more than two classes, the list of all scores."""
        from .score import cut

        return self.decide(cut(score, 1 << self.bits))

    def lose(self, ticket: int) -> int:
        """Give up a ticket; return its fallback class, or -1 if it is not outstanding. Its cost stays charged."""
        return self.tickets.lose(ticket)

    def bin(self, score: "Any") -> int:
        """Return the bin of a score."""
        return score  # type: ignore[no-any-return]

    def safest_class(self) -> int:
        """Return the class whose mistakes cost least: the one to act on without a score."""
        return 1 if self.delta_fn >= self.delta_fp else 0

    def mistake_cost(self, local: int, label: int) -> int:
        """Return the cost, Q15, of acting on class `local` where the remote model says `label`."""
        if local == label:
            return 0
        return self.delta_fn if label else self.delta_fp

    def cost_list(self) -> "tuple[int, ...]":
        """Return the costs in force."""
        return self.beta, self.delta_fp, self.delta_fn

    def set_cost_list(self, costs: "Sequence[int]") -> None:
        """Put the costs of a cost_list() in force."""
        self.set_deltas(costs[1], costs[2])
        self.set_beta(costs[0])

    def set_beta(self, beta: int) -> None:
        """Set the cost of an offload from the next round on."""
        checked_integer("beta", beta, 0, ONE)
        self.beta = beta
        self.set_charge(beta)

    def set_charge(self, beta: int) -> None:
        """Set what an offload is charged until the next set_charge() or set_beta()."""
        self.charge = beta

    def change_costs(self, entries: "list[list[int]]") -> None:
        """Change entries of a cost matrix. ValueError for a policy without a matrix."""
        raise ValueError("policy %s has no cost matrix" % self.name)

    def set_prior(self, prior: "list[int]") -> None:
        """Set how often each bin holds an event, Q15. ValueError for a policy without such a table, or a wrong table."""
        raise ValueError("policy %s takes no table" % self.name)

    def report(self) -> "dict[str, int]":
        """Return what a policy with a miss_limit adds to the node's state."""
        return {}

    def reset(self) -> None:
        """Forget all labels. Costs, draws and ticket numbers continue, so that no old reply meets a new ticket."""
        self.tickets.drop_all()
        self.age = self.lessons = self.ticket = self.local = 0

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield a row for each number of the state: (owner, attribute, lower bound, upper bound).

        Outstanding tickets are not part of the state, as a start receives its own replies only.
        """
        for name, upper in (("beta", ONE), ("age", MAX_INT), ("lessons", MAX_INT), ("ticket", MAX_TICKET), ("local", 255)):
            yield self, name, 0, upper
        for name, upper in (("x", 30268), ("y", 30306), ("z", 30322)):
            yield self.rng, name, 1, upper
        for name, upper in (("last", MAX_TICKET), ("lost", MAX_INT), ("refused", MAX_INT)):
            yield self.tickets, name, 0, upper

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield a row for each stretch of an array of the state: (array, start, stop, lower bound, upper bound, reference).

        With a reference n, an item is at most the item n places before it in the state as well.
        """
        return iter(())

    def state_size(self) -> int:
        """Return the number of integers in the state."""
        return sum([1 for _ in self.number_rows()]) + sum([row[2] - row[1] for row in self.array_rows()])

    def state(self) -> "Iterator[int]":
        """Yield the integers of the state: all that changes between rounds."""
        for owner, name, _, upper in self.number_rows():
            yield min(upper, getattr(owner, name))  # a counter of many years stays at its upper bound
        for values, start, stop, _, _, _ in self.array_rows():
            for n in range(start, stop):
                yield values[n]
