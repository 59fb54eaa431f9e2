# The offloads whose label is still out: a bounded, allocation-free table. What a label teaches is the policy's.

# where a slot's fields are; its first is the ticket
BIN = 1
BETA = 2
LOCAL = 3
CHANCE = 4
FIELDS = 5


class Tickets:
    """At most `window` outstanding tickets; a ticket is taken once. A new one that needs the oldest's place expires it.

    `slots` holds five integers a ticket: itself (0: free), BIN, BETA (Q15, as charged), LOCAL (fallback class), and CHANCE,
    the probability the label's loss is divided by (Q29; 0: the label teaches nothing).
    """

    def __init__(self, window: int):
        """window: 1..4096 (boards: up to 8)."""
        if not 1 <= window <= 4096:
            raise ValueError("window %d is not in 1..4096" % window)
        self.window = window
        self.slots = [0] * (FIELDS * window)
        self.last = self.lost = self.refused = 0  # newest; expired or given up; unknown, expired or taken already

    def open(self, k: int, beta: int, local: int, chance: int) -> int:
        """A new ticket, 1..2^28 - 1."""
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
        """Where in `slots` an outstanding ticket is, which is free from now on, or -1 (counted in `refused`)."""
        at = ticket % self.window * FIELDS
        if ticket < 1 or self.slots[at] != ticket:
            self.refused += 1
            return -1
        self.slots[at] = 0
        return at

    def drop_all(self) -> None:
        """Give every outstanding ticket up; the next ones are numbered on."""
        for at in range(0, len(self.slots), FIELDS):
            self.slots[at] = 0

    def lose(self, ticket: int) -> int:
        """Give a ticket up (its label will not come): its fallback class, or -1 if it is not outstanding."""
        at = self.take(ticket)
        if at < 0:
            return -1
        self.lost += 1
        return self.slots[at + LOCAL]
