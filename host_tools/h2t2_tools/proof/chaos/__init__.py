"""`h2t2 chaos`: what goes wrong in the field, on purpose, to real processes.

subjects: the nodes; storm: what happens to them; report: what is counted, and what must be true."""

from .report import FIGURES, broken
from .storm import unleash

__all__ = ["FIGURES", "broken", "unleash"]
