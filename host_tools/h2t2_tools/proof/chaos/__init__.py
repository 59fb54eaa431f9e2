"""`h2t2 chaos`: faults of the field, injected into real processes.

subjects: the nodes; storm: the faults; account: what a node did, recorded by an oracle in its process; report: the counters,
and the ones that must be 0; soak: memory and latency of a long run; model: the remote model. field: a quiet hour, and an
update whose sensor dies, in the virtual time of virtual.py."""

from . import field
from .report import FIGURES, broken
from .storm import unleash

__all__ = ["FIGURES", "broken", "field", "unleash"]
