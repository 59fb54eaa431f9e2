# What all policies share: costs in force, random draws, outstanding tickets, and a state that can be saved and restored.
# The policies themselves are in h2t2, adaptive, miss_rate and adaptive_classes.
from array import array

from .numbers import ONE, Rng

if 0:  # for type checkers; MicroPython has no typing
    from ..annotations import Any, Iterator, Sequence, UInt16s

OFFLOAD = -1  # what decide() returns beside the classes 0, 1, ...
MAX_INT = 1073741823  # 2^30 - 1, the largest small int of a 32-bit port
MAX_TICKET = 268435455
BIN, BETA, LOCAL, CHANCE = 1, 2, 3, 4  # fields of a slot of Tickets; field 0 is the ticket
FIELDS = 5
# How often a question gets an answer in time: one that gets none costs beta too, so a question costs beta / P(answer). Counts
# of questions: for each CELLS-th of the scores, then of all, those without an answer in time and those with one.
CELLS = 16  # parts of the scores that have counts of their own
LOST, CAME, SIZE = 2 * CELLS, 2 * CELLS + 1, 2 * CELLS + 2  # LOST, CAME: of all
QUESTION = 16  # what a question adds to a count
MOST = 16383  # of a count
PRIOR = 128  # worth of the mean of all cells, as that of 8 questions
SMALLEST = 1024  # 1/32 in Q15, the smallest P(answer)
EVERY = 256  # rounds, a power of 2, after which the counts are halved: an outage is soon forgotten
IS_BOARD = 0  # 1 on boards, whose nodes learn by tickets alone: h2t2_tools.boards.folding sets it


def checked_integer(name: str, value: int, low: int, high: int, unit: str = "q15") -> None:
    """Raise ValueError, naming it, for a value that is a float or out of range. unit: the function of h2t2.units for it."""
    if type(value) is float:
        raise ValueError("%s %s is a float: give %s, or h2t2.units.%s(%s)" % (name, value, unit.upper(), unit, value))
    if not low <= value <= high:
        raise ValueError("%s %r is not in %d..%d" % (name, value, low, high))


def add_question(counts: "UInt16s", k: int, bits: int, came: int) -> None:
    """Count a question about bin k of 2^bits. came: 1 if it was answered in time, 0 if not."""
    for at in ((k << 4 >> bits << 1) + came, LOST + came):
        counts[at] = min(counts[at] + QUESTION, MOST)


def answer_rate(counts: "UInt16s", k: int, bits: int) -> int:
    """Return P(an answer in time) to a question about bin k of 2^bits, Q15; ONE while no question has lost its answer."""
    if not counts[LOST]:
        return ONE
    at = k << 4 >> bits << 1
    mean = (counts[CAME] + 64 << 15) // (counts[LOST] + counts[CAME] + 64)
    return max(SMALLEST, ((counts[at + 1] << 15) + PRIOR * mean) // (counts[at] + counts[at + 1] + PRIOR))


class Tickets:
    """The offloads without a label so far: at most `window` outstanding tickets, each taken once.

    A new ticket expires the one whose slot it needs.

    Attributes:
        slots: Five integers a ticket: the ticket (0: free slot), BIN, BETA (Q15, as charged), LOCAL (the fallback class), and
            CHANCE, the probability that divides the label's loss (Q29; 0: the label teaches nothing).
        last: The newest ticket.
        lost: Number of tickets that expired or that lose() gave up.
        refused: Number of labels for tickets that were unknown, expired or taken before.
    """

    def __init__(self, window: int):
        """window: 1..4096 (boards: up to 8)."""
        if not 1 <= window <= 4096:
            raise ValueError("window %d is not in 1..4096" % window)
        self.window = window
        self.slots = array("i", [0] * (FIELDS * window))
        self.last = self.lost = self.refused = 0

    def open(self, k: int, beta: int, local: int, chance: int) -> int:
        """Return a new ticket, 1..2^28 - 1."""
        self.last = ticket = self.last % 268435455 + 1
        at = ticket % self.window * FIELDS
        slots = self.slots
        if slots[at]:
            self.lost += 1
        slots[at] = ticket
        slots[at + BIN] = k
        slots[at + BETA] = beta
        slots[at + LOCAL] = local
        slots[at + CHANCE] = chance
        return ticket

    def take(self, ticket: int) -> int:
        """Free an outstanding ticket and return its index in `slots`; return -1 for any other and count it in `refused`."""
        at = ticket % self.window * FIELDS
        if ticket < 1 or self.slots[at] != ticket:
            self.refused += 1
            return -1
        self.slots[at] = 0
        return at

    def drop_all(self) -> None:
        """Give up all outstanding tickets. The numbering continues."""
        for at in range(0, len(self.slots), FIELDS):
            self.slots[at] = 0


class Policy:
    """Decides for each sample whether to act locally or to offload, and learns from the labels of offloads.

    A node calls decide() once a sample, and then learn() or lose() with the ticket of each offload. Costs are Q15 integers. A
    score is a bin, 0..2^bits - 1, or, for more than two classes, a list of the scores of all classes in Q14.

    Attributes:
        kind: Number of this class in snapshots.
        name: Name in the node's state.
        classes: Number of classes.
        bits: The score is cut into 2^bits bins.
        limit: MissRate or MissGuarantee: a limit for the events that it may miss; None: it has none.
        reprices: Whether a change of costs applies to all that the policy has learned at once.
        beta: Cost of an offload.
        charge: What an offload is charged at present: beta, or more while the link is down or the budget low.
        delta_fp, delta_fn: Costs of a false positive and of a false negative.
        ticket: Ticket of the last round, 0 unless it offloaded.
        local: Class to act on if the last offload gets no answer.
        lessons: Number of labels learned from.
        older: Numbers of the state that snapshots before version 6 lack, and what to take for them.
        answers: Counts of questions, as of add_question(), which snapshots before version 7 lack; None: the policy keeps none.
        tickets: Outstanding offloads, with the counters of lost and refused ones.
    """

    kind = 0
    name = ""
    older = {}  # type: dict[str, int]
    answers = None  # type: Any
    classes = 2
    bits = 0
    limit = None  # type: Any
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
        """Play a round by a score as people write it: 0.37, or, for more than two classes, the list of all scores."""
        from .score import cut

        return self.decide(cut(score, self.steps()))

    def lose(self, ticket: int) -> int:
        """Give up a ticket; return its fallback class, or -1 if it is not outstanding. Its cost stays charged."""
        tickets = self.tickets
        at = tickets.take(ticket)
        if at < 0:
            return -1
        tickets.lost += 1
        return tickets.slots[at + LOCAL]

    def count_question(self, k: int, came: int) -> None:
        """Take note of a question about bin k. came: 1 if it was answered in time, 0 if it was sent and no answer came."""

    def pass_time(self, ms: int) -> None:
        """Take note of the milliseconds, 0..2^29, since the sample before, where a clock tells; -1: too long, or unknown."""

    def reading(self, output: "Any", level: int) -> "Any":
        """Return what decide() takes: the bin of a score, or the output itself for more classes or a head.

        Args:
            output: What Ldl.run() returned.
            level: Its score in 256ths, 0..255, as of Ldl.level().
        """
        return level >> 8 - self.bits

    def steps(self) -> int:
        """Return in how many steps decide() takes the score of two classes."""
        return 1 << self.bits

    def bin(self, reading: "Any") -> int:
        """Return the bin of a reading."""
        return reading  # type: ignore[no-any-return]

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

    def report(self) -> "dict[str, Any]":
        """Return what the policy adds to the node's state."""
        return self.limit.report() if self.limit else {}

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
        size = 0
        for _ in self.number_rows():
            size += 1
        for row in self.array_rows():
            size += row[2] - row[1]
        return size

    def state(self) -> "Iterator[int]":
        """Yield the integers of the state: all that changes between rounds."""
        for owner, name, _, upper in self.number_rows():
            yield min(upper, getattr(owner, name))  # a counter of many years stays at its upper bound
        for values, start, stop, _, _, _ in self.array_rows():
            for i in range(start, stop):
                yield values[i]

    if not IS_BOARD:

        def columns(self, ticket: int) -> "dict[str, tuple[array[int], int]]":
            """Return where a ticket keeps what its label teaches, by name: an array and an index."""
            at = ticket % self.tickets.window * FIELDS
            fields = (("bin", BIN), ("beta", BETA), ("local", LOCAL), ("chance", CHANCE))
            return {name: (self.tickets.slots, at + field) for name, field in fields}

        def show(self, ticket: int, lesson: "dict[str, Any]") -> None:
            """Make the sample of a lesson that of a ticket; 0: it is of none any more."""

        def lesson(self, ticket: int) -> "dict[str, Any]":
            """Return what the label of an outstanding ticket teaches, by name: integers, and tuples of them.

            It may be stored, and outlives the ticket: teach() takes it.
            """
            return {name: values[i] for name, (values, i) in self.columns(ticket).items()}

        def teach(self, lesson: "dict[str, Any]", label: int) -> bool:
            """Learn the label of a lesson as learn() would have in time; return whether it taught something.

            Outstanding tickets and the numbers of the next ones stay as they are.
            """
            tickets = self.tickets
            ticket = tickets.last % MAX_TICKET + 1  # the lesson borrows its slot
            at = ticket % tickets.window * FIELDS
            columns = self.columns(ticket).items()
            borrowed = [values[i] for _, (values, i) in columns]
            outstanding = tickets.slots[at]
            try:
                tickets.slots[at] = ticket
                for name, (values, i) in columns:
                    values[i] = lesson[name]
                self.show(ticket, lesson)
                return self.learn(ticket, label)
            finally:
                tickets.slots[at] = outstanding
                for (_, (values, i)), value in zip(columns, borrowed):
                    values[i] = value
                self.show(0, lesson)
