"""The simulator's policies, one class a file. make() creates them by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....common.errors import UserError
from ..names import NAMES
from .base import Policy

# name on the command line: (file, class, fixed options)
_POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-offload": ("no_offload", "NoOffload", {}),
    "full-offload": ("full_offload", "FullOffload", {}),
    "single": ("single_threshold", "SingleThreshold", {}),
    "offline-single": ("offline_single", "OfflineSingle", {}),
    "offline-pair": ("offline_pair", "OfflinePair", {}),
    "offline-bin": ("offline_bin", "OfflineBin", {}),
    "calibrated": ("calibrated", "Calibrated", {}),
    "h2t2": ("h2t2", "H2T2", {}),
    "h2t2-all": ("h2t2", "H2T2", {"feedback": "all", "exploration": "anytime"}),
    "adaptive": ("adaptive", "Adaptive", {}),
    "hi-lcb": ("confidence_bounds", "HiLcb", {}),
    "two-sided-bound": ("confidence_bounds", "TwoSidedBound", {}),
    "sedna-threshold": ("fixed", "Filter", {"kind": "threshold"}),
    "sedna-entropy": ("fixed", "Filter", {"kind": "entropy"}),
    "kept-pair": ("fixed", "FixedPair", {}),
    "pairwise": ("pairwise", "Pairwise", {}),
}
# the classes that replace those above if a trace has more than two classes
_MULTICLASS: dict[str, tuple[str, str, dict[str, Any]]] = {"adaptive": ("adaptive_classes", "AdaptiveClasses", {})}


def make(name: str, bits: int, half_life: int = 0, classes: int = 2, **settings: Any) -> Policy:
    """Create a policy by its name on the command line.

    It imports the chosen policy only, because the compiled learners need numba and the baselines do not.

    Args:
        name: One of NAMES. `h2t2` is the paper's setting, `h2t2-all` uses feedback "all" and exploration "anytime".
        bits: Score bits.
        half_life: Rounds after which losses count half; 0: never.
        classes: Classes of the streams.
        settings: Further options; a policy ignores those that it does not have.

    Raises:
        UserError: No policy has this name.
    """
    if name not in _POLICIES:
        raise UserError(f"policy {name}: not one of {', '.join(NAMES)}")
    file, kind, options = (_MULTICLASS if classes > 2 and name in _MULTICLASS else _POLICIES)[name]
    policy_class: Any = getattr(import_module(f".{file}", __package__), kind)
    fields = policy_class.__dataclass_fields__
    arguments = {"bits": bits, "half_life": half_life, **settings, **options}
    policy: Policy = policy_class(**{key: value for key, value in arguments.items() if key in fields})
    return policy
