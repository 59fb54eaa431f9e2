# The offloads without a label so far: a bounded, allocation-free table. The policy knows what a label teaches.
from array import array

# fields of a slot; field 0 is the ticket
BIN = 1
BETA = 2
LOCAL = 3
CHANCE = 4
FIELDS = 5


class Tickets:
    """Holds at most `window` outstanding tickets. Each is taken once. A new ticket expires the one whose slot it needs.

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
