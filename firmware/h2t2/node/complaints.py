# What goes wrong again and again, said now and then: a log must not fill, and must not be silent.


class Complaints:
    """Says the 1st, 2nd, 4th, 8th ... of each kind of trouble. log: called with a line. `total`: how many there were."""

    def __init__(self, log):
        self.log = log
        self.counts = {}
        self.total = 0

    def __call__(self, kind: str, what) -> None:
        """kind: one of few, named in the code. what: a text or an exception."""
        self.total += 1
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        if not n & (n - 1):
            if isinstance(what, Exception):
                what = "%s: %s" % (type(what).__name__, what)
            self.log("%s: %s%s" % (kind, what, " (%d times so far)" % n if n > 1 else ""))
