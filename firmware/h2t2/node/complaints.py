# Repeated trouble in the log: reported ever more rarely, so that it neither fills the log nor disappears.

if 0:  # for type checkers
    from collections.abc import Callable


class Complaints:
    """Logs the 1st, 2nd, 4th, 8th ... trouble of each kind.

    Attributes:
        counts: By kind.
        total: Of all kinds.
    """

    def __init__(self, log: "Callable[[str], object]"):
        """log: called with a line of text."""
        self.log = log
        self.counts = {}  # type: dict[str, int]
        self.total = 0

    def __call__(self, kind: str, reason: "str | Exception") -> None:
        """Count trouble. kind: one of few, named in the code."""
        self.total += 1
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        if not n & (n - 1):
            if isinstance(reason, Exception):
                reason = "%s: %s" % (type(reason).__name__, reason)
            self.log("%s: %s%s" % (kind, reason, " (%d times so far)" % n if n > 1 else ""))
