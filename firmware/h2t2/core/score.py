# A score as people write it.

if 0:  # for type checkers
    from ..annotations import Any


def cut(score: "Any", steps: int) -> int:
    """Return which of `steps` equal steps from 0 to 1 holds a score. ValueError for a score outside 0..1."""
    if not 0 <= score <= 1:  # also of NaN
        raise ValueError("score %r is not in 0..1" % (score,))
    return min(int(score * steps), steps - 1)
