# The offloads whose label is still out: a bounded, allocation-free table. What a label teaches is the policy's.
from array import array


class Tickets:
    """At most `window` outstanding tickets; a ticket is taken once. A new one that needs the oldest's place expires it.

    Columns, one entry a slot: `bin`, `beta` (Q15, as charged), `local` (fallback class), `den` and `shift` (the
    probability the label's loss is divided by: den / 2^(15 + shift); den = 0: the label teaches nothing).
    """

    def __init__(self, window):
        """window: 1..4096 (boards: up to 8)."""
        if not 1 <= window <= 4096:
            raise ValueError("window %d is not in 1..4096" % window)
        self.window = window
        self.id = array("i", [0] * window)  # 0: free
        self.bin = array("i", self.id)
        self.beta = array("H", self.id)
        self.local = array("b", self.id)
        self.den = array("H", self.id)
        self.shift = array("b", self.id)
        self.last = 0
        self.lost = 0  # expired, or given up by lose()
        self.refused = 0  # unknown, expired or already taken

    def open(self, k, beta, local, den, shift):
        """A new ticket, 1..2^28 - 1."""
        self.last = ticket = self.last % 268435455 + 1
        slot = ticket % self.window
        if self.id[slot]:
            self.lost += 1
        self.id[slot] = ticket
        self.bin[slot] = k
        self.beta[slot] = beta
        self.local[slot] = local
        self.den[slot] = den
        self.shift[slot] = shift
        return ticket

    def take(self, ticket):
        """The slot of an outstanding ticket, which is free from now on, or -1 (counted in `refused`)."""
        slot = ticket % self.window
        if ticket < 1 or self.id[slot] != ticket:
            self.refused += 1
            return -1
        self.id[slot] = 0
        return slot

    def lose(self, ticket):
        """Give a ticket up (its label will not come): its fallback class, or -1 if it is not outstanding."""
        slot = self.take(ticket)
        if slot < 0:
            return -1
        self.lost += 1
        return self.local[slot]
