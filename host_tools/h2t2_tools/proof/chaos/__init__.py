"""`h2t2 chaos`: injects faults of the field into real processes.

subjects: the nodes; storm: the faults; account: the decisions of a node, as an oracle in its process records them; report: the
counters, and those that must be 0; soak: memory and latency of a long run; model: the remote model. field: a quiet hour, and an
update whose sensor dies, in the virtual time of virtual.py.
"""

from . import field
from .report import FIGURES, broken
from .storm import unleash

__all__ = ["FIGURES", "broken", "field", "unleash"]
