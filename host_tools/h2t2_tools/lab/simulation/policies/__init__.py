"""The policies the simulator knows, one class a file, and by name."""

from __future__ import annotations

from ....common.errors import UserError
from ..names import NAMES
from .base import Policy
from .calibrated import Calibrated
from .calibrating import Calibrating
from .full_offload import FullOffload
from .h2t2 import H2T2
from .no_offload import NoOffload
from .offline_bin import OfflineBin
from .offline_pair import OfflinePair
from .offline_single import OfflineSingle
from .pairwise import Pairwise
from .single_threshold import SingleThreshold


def make(name: str, bits: int, half_life: int = 0) -> Policy:
    """A policy by its name on the command line, one of NAMES: `h2t2` is the paper's setting, `h2t2-all` all + anytime."""
    made: dict[str, Policy] = {
        "no-offload": NoOffload(),
        "full-offload": FullOffload(),
        "single": SingleThreshold(),
        "offline-single": OfflineSingle(),
        "offline-pair": OfflinePair(bits),
        "offline-bin": OfflineBin(bits),
        "calibrated": Calibrated(),
        "h2t2": H2T2(bits, half_life=half_life),
        "h2t2-all": H2T2(bits, feedback="all", exploration="anytime", half_life=half_life),
        "calibrating": Calibrating(bits, half_life),
        "pairwise": Pairwise(bits, half_life=half_life),
    }
    if name not in made:
        raise UserError(f"policy {name}: not one of {', '.join(NAMES)}")
    return made[name]


__all__ = [
    "Calibrated", "Calibrating", "FullOffload", "H2T2", "NoOffload", "OfflineBin", "OfflinePair", "OfflineSingle", "Pairwise",
    "Policy", "SingleThreshold", "make",
]  # fmt: skip
