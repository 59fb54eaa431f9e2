"""The policies' names on the command line. `--help` imports them without the policies, which load slowly."""

from typing import Any

# name on the command line: (file in policies/, class, fixed options)
POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-offload": ("local", "NoOffload", {}),
    "full-offload": ("local", "FullOffload", {}),
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
FOR_CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {"adaptive": ("adaptive_classes", "AdaptiveClasses", {})}
NAMES = tuple(POLICIES)
MULTICLASS = (
    "no-offload", "full-offload", "single", "offline-single", "calibrated", "adaptive", "hi-lcb", "sedna-threshold",
    "sedna-entropy", "pairwise",
)  # fmt: skip
BINARY = tuple(name for name in NAMES if name != "pairwise")
