# Repeated trouble in the log: reported ever more rarely, so that it neither fills the log nor disappears.

if 0:  # for type checkers
    from ..annotations import Callable

MAX_LOCATED = 8


class Complaints:
    """Logs the 1st, 2nd, 4th, 8th ... trouble of each kind.

    Attributes:
        counts: By kind.
        total: Of all kinds.
        locates: Whether the log names the lines of the user's program that raised an exception, once for each kind and type
            of exception, MAX_LOCATED in all.
        located: These kinds and types.
    """

    def __init__(self, log: "Callable[[str], object]"):
        """log: called with a line of text."""
        self.log = log
        self.counts = {}  # type: dict[str, int]
        self.total = 0
        self.locates = False
        self.located = []  # type: list[str]

    def __call__(self, kind: str, reason: "str | Exception") -> None:
        """Count trouble. kind: one of few, named in the code."""
        self.total += 1
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        lines = ""
        if isinstance(reason, Exception):
            name = type(reason).__name__
            lines = self._lines("%s: %s" % (kind, name), reason)
            reason = "%s: %s" % (name, reason)
        if lines or not n & (n - 1):
            self.log("%s: %s%s%s" % (kind, reason, lines, " (%d times so far)" % n if n > 1 else ""))

    def _lines(self, key: str, error: Exception) -> str:
        """Return the lines of the user's program that raised an exception, or "" if the log has named such lines."""
        if not self.locates or key in self.located or len(self.located) == MAX_LOCATED:
            return ""
        self.located.append(key)
        try:
            from .tracebacks import user_lines

            return user_lines(error)
        except MemoryError:
            return ""
