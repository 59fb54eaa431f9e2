# The desk takes commands from outside: how often they are carried out, and the answers to their senders.
from ..modules import IS_BOARD, forget

if 0:  # for type checkers
    from ..annotations import Callable
    from .commands import Command
    from .limit import Limit


class Desk:
    """Takes commands, has each carried out once, and answers.

    Attributes:
        carried_out: Counter.
        refused: Counter of commands that were malformed, expired, too many, or impossible.
    """

    def __init__(self, act: "Callable[[Command], str | None]", log: "Callable[[str], object]"):
        """act: carries out a command and returns a note or None, or raises ValueError. log: called with a line of text."""
        self.act = act
        self.log = log
        self.limit: "Limit | None" = None  # from the first command on
        self.answers = []  # type: list[tuple[str, str]]  # (id, answer) of the last commands
        self.carried_out = self.refused = 0
        self.loaded = False  # whether a board has the code of commands in memory

    def unload_commands(self) -> None:
        """Unload the code of commands on a board, as no further command waits."""
        if self.loaded:
            forget("node.commands")
            self.loaded = False

    def take(self, payload: bytes) -> str:
        """Carry out a command; return the answer, JSON: {"id", "ok", "why"}; why: the reason of a refusal, or a note."""
        from .commands import take

        self.loaded = IS_BOARD
        return take(self, payload)
