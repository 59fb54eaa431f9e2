# Keeps what a budget has spent in a calendar period, so that a restart does not spend it again. It writes ahead: at most a 32nd
# of the limit is spent beyond what the file says.
from struct import calcsize, pack, unpack

from ..core.budget import KEPT

if 0:  # for type checkers
    from ..annotations import Iterator
    from ..core.budget import Budget
    from .store import Store

RECORD = "<%di" % (2 + len(KEPT))  # limit and span, and Budget.memory() with the mark as `used`
TURN, USED, BLIND = KEPT.index("turn"), KEPT.index("used"), KEPT.index("blind")


class Spent:
    """The memory of a budget with a limit.

    Args:
        budget: It continues with what the store says, if that has a calendar period and the budget has not continued yet.
        store: A store of its own.

    Attributes:
        ended: Whether nothing more will be spent in this start.
    """

    def __init__(self, budget: "Budget", store: "Store"):
        self.budget = budget
        self.store = store
        self.ended = False
        budget.remembers = True
        budget.mark = 0
        try:
            blob = store.load() or b""
        except OSError:
            return
        if len(blob) != calcsize(RECORD):
            return
        limit, span, *memory = unpack(RECORD, blob)
        if (limit, span) == (budget.limit, budget.span):
            if budget.complete:  # a deep sleep's record has told it
                budget.mark = memory[USED] if memory[TURN] == budget.turn else 0
            elif memory[TURN] >= 0:
                budget.recall(memory)
            else:  # a clock that will be set may show the same day
                budget.blind = memory[USED] + memory[BLIND]

    def saving(self) -> "Iterator[None]":
        """Write a new mark in pieces; OSError where it cannot be written."""
        budget = self.budget
        turn = budget.turn
        mark = budget.used if self.ended else budget.next_mark()
        memory = budget.memory()
        memory[USED] = mark
        blob = pack(RECORD, budget.limit, budget.span, *memory)
        yield from self.store.writing(len(blob), (blob,))
        if turn == budget.turn:
            budget.mark = mark
