"""`h2t2 chaos`: what goes wrong in the field, on purpose, to real processes.

subjects: the nodes; storm: what happens to them; account: what a node did, as an oracle inside it saw it; report: what is
counted, and what must be true; soak: what a long run uses; model: what the workers serve. field: a quiet hour and an update
whose sensor dies, in the time of virtual."""

from . import field
from .report import FIGURES, broken
from .storm import unleash

__all__ = ["FIGURES", "broken", "field", "unleash"]
