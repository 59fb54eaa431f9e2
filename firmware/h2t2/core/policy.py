# What every policy has in common: options and their ranges, the costs in force, draws, tickets, and a state that can be kept.
# What a policy decides and learns is in h2t2, adaptive and pairwise.

from .numbers import ONE
from .rng import Rng
from .tickets import Tickets

OFFLOAD = -1  # decide()'s other answer, beside the classes 0, 1, ...
MOST = 1073741823  # 2^30 - 1, the largest small int of a 32-bit port
TICKET = 268435455  # the largest ticket


def checked_options(bits, beta, delta_fp, delta_fn, half_life, rdl_fp, rdl_fn):
    """Raise ValueError, naming it, for an option that every policy has and that is out of range."""
    checked_integer("bits", bits, 1, 12)
    checked_integer("half_life", half_life, 0, 268435455)
    shares = (("beta", beta), ("delta_fp", delta_fp), ("delta_fn", delta_fn), ("rdl_fp", rdl_fp), ("rdl_fn", rdl_fn))
    for name, value in shares:
        checked_integer(name, value, 0, ONE)


def checked_integer(name, value, low, high, unit="q15"):
    """Raise ValueError, naming it, for a value that is a float or out of range. unit: what makes it, a name in h2t2.units."""
    if type(value) is float:
        raise ValueError("%s %s is a float: give %s, or h2t2.units.%s(%s)" % (name, value, unit.upper(), unit, value))
    if not low <= value <= high:
        raise ValueError("%s %r is not in %d..%d" % (name, value, low, high))


class Policy:
    """A policy decides a round (`decide`) and may be taught its label later (`learn`), by the ticket of an offload.

    Its owner reads after decide(): `ticket` (0 unless offloaded), `local` (the class to act on without the remote model).
    `beta`, `delta_fp` and `delta_fn` are the costs in force, Q15; the policy alone owns them. `bits`: 2^bits score bins.
    """

    kind = 0  # of its snapshots
    name = ""
    classes = 2  # it decides between two by a score's bin; where they are more, by the scores of all, with `costs` for deltas
    limit = 0  # the most events that it may miss, Q15, where it keeps such a limit; then it has report()
    reprices = False  # whether what it has learned follows a change of costs at once

    def __init__(self, seed: int, window: int):
        self.rng = Rng(seed)
        self.tickets = Tickets(window)
        self.delta_fp = self.delta_fn = ONE
        self.beta = self.charged = 0  # the cost of an offload, and what is charged for one now
        self.age = self.taught = 0  # rounds since the last halving by half_life; labels learned from
        self.ticket = self.local = 0

    def set_beta(self, beta: int) -> None:
        """The cost of an offload from the next round on, Q15, 0..32768."""
        checked_integer("beta", beta, 0, ONE)
        self.beta = beta
        self.set_charge(beta)

    def set_charge(self, beta: int) -> None:
        """What offloads are charged for the time being (a link that is down), until set_beta() or another set_charge(); Q15."""
        self.charged = beta

    def lose(self, ticket: int) -> int:
        """Give up on a label: the class to act on, or -1 for a ticket not outstanding. Its beta is charged already."""
        return self.tickets.lose(ticket)

    def set_prior(self, prior) -> None:
        """Another table of how often each bin holds an event. ValueError where the policy takes none, or it is none."""
        raise ValueError("policy %s takes no table" % self.name)

    def settings(self) -> "tuple[int, ...]":
        """The options it was made with, as integers: policies of one kind with equal settings may exchange states."""
        raise NotImplementedError

    def asked(self) -> int:
        """The probability, Q15, with which the last round offloaded."""
        raise NotImplementedError

    def restored(self) -> None:
        """After restore(): what follows from the state is computed anew."""
        raise NotImplementedError

    def scalars(self):
        """The numbers that change while it runs: yields (owner, attribute, least, most). Tickets are not kept: the replies
        that a later start gets are its own."""
        for name, most in (("beta", ONE), ("age", MOST), ("taught", MOST), ("ticket", TICKET), ("local", 255)):
            yield self, name, 0, most
        for name, most in (("x", 30268), ("y", 30306), ("z", 30322)):
            yield self.rng, name, 1, most
        for name, most in (("last", TICKET), ("lost", MOST), ("refused", MOST)):
            yield self.tickets, name, 0, most

    def arrays(self):
        """The arrays that change while it runs: yields (array, bounds).

        Bounds are (least, most) of the items, several where items of several meanings alternate; a number n where no item is
        below 0 or above the one n places before; None for the losses of a tree, sums over ranges of bins, each at most twice
        the `spent` before it; () for what is below a unit in each.
        """
        return iter(())

    def state_size(self) -> int:
        """Integers of its state."""
        size = 0
        for _ in self.integers():
            size += 1
        return size

    def integers(self):
        """Everything that changes while it runs, integer by integer: what restore() takes."""
        for owner, name, _, most in self.scalars():
            yield min(most, getattr(owner, name))  # a counter of many years stays at its most
        for values, _ in self.arrays():
            yield from values

    def restore(self, state) -> None:
        """Put integers() back into a policy made with the same options; it goes on bit for bit, without outstanding tickets.

        state: any sequence of integers; it is read from begin to end twice, never all at once.

        ValueError, and the policy untouched, for another number of integers or one out of range.
        """
        want = self.state_size()
        if len(state) != want:
            raise ValueError("%d integers, want %d" % (len(state), want))
        for put in (False, True):  # look at everything first
            at = 0
            limits = []
            for owner, name, least, most in self.scalars():
                value = within(state[at], least, most)
                if put:
                    setattr(owner, name, value)
                if name == "spent":
                    limits.append(2 * value + 64)
                elif name == "unit":
                    limits.append((16384 << value) - 1)
                at += 1
            for values, bounds in self.arrays():
                limit = 0 if bounds else limits.pop(0)
                for n in range(len(values)):
                    if type(bounds) is int:
                        least, most = 0, state[at - bounds]
                    elif bounds:
                        least, most = bounds[n % len(bounds)]
                    elif bounds is None:  # the first of each half is no node's
                        most = limit if n % (len(values) >> 1) else 0
                        least = -most
                    else:
                        least, most = 0, limit
                    value = within(state[at], least, most)
                    if put:
                        values[n] = value
                    at += 1
        self.tickets.drop_all()
        self.restored()

    def reset(self) -> None:
        """Forget everything learned. Costs, draws and the numbers of tickets go on, so that no old reply meets a new ticket."""
        self.tickets.drop_all()
        self.age = self.taught = self.ticket = self.local = 0


def within(value, least: int, most: int) -> int:
    """The value, or ValueError where it is outside least..most."""
    if not least <= value <= most:
        raise ValueError("%d is not in %d..%d" % (value, least, most))
    return value
