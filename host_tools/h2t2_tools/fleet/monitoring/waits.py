"""Histograms of waits by powers of two (h2t2.node.asking): what lies within them."""


def quantile(waits: list[int], share: float) -> float | None:
    """The milliseconds within which that share was answered, linear within an entry; None of none. What took 2048 ms and more
    counts as up to 4096."""
    total = sum(waits)
    if total <= 0 or min(waits) < 0:
        return None
    want = share * total
    for n, count in enumerate(waits):
        if count and want <= count:
            low = 0.0 if n == 0 else float(1 << (n - 1))
            return low + want / count * ((1 << n) - low)
        want -= count
    return float(1 << (len(waits) - 1))
