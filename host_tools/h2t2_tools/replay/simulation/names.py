"""The policies' names on the command line. `--help` imports them without the policies, which load slowly."""

from typing import Any

PAST = "adaptive-past"  # the adaptive policy that reads its past
# name on the command line: (file in policies/, class, fixed options)
POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-offload": ("local", "NoOffload", {}),
    "full-offload": ("local", "FullOffload", {}),
    "single": ("by_confidence", "SingleThreshold", {}),
    "offline-single": ("offline", "OfflineSingle", {}),
    "offline-pair": ("offline", "OfflinePair", {}),
    "paper-pair": ("offline", "PaperPair", {}),
    "offline-bin": ("offline", "OfflineBin", {}),
    "calibrated": ("calibrated", "Calibrated", {}),
    "h2t2": ("h2t2", "H2T2", {}),
    "h2t2-all": ("h2t2", "H2T2", {"feedback": "all", "exploration": "anytime"}),
    "adaptive": ("adaptive", "Adaptive", {}),
    PAST: ("adaptive", "WithPast", {}),
    "hi-lcb": ("by_confidence", "HiLcb", {}),
    "two-sided-bound": ("by_confidence", "TwoSidedBound", {}),
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
