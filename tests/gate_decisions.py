"""Decisions of a gate, for tests."""

from h2t2_tools.fleet.gate.detection import Decision


def decision(identity, **entries):
    """A local decision about a sample of one stream, with some entries of its own."""
    usual = {
        "key": "porch", "decision": 1, "label": "1", "source": "local", "score": 0.9, "bin": 14, "cost": 0.1,
        "unfamiliar": False, "detected": "", "ms": 1, "topic": "x/porch",
    }  # fmt: skip
    return Decision(id=str(identity), **{**usual, **entries})
