"""The policies' names on the command line. `--help` imports them without the policies, which load slowly."""

from typing import Any

PAST = "adaptive-past"  # the adaptive policy that reads its past
# name on the command line: (file in policies/, class, fixed options)
POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-offload": ("baselines", "NoOffload", {}),
    "full-offload": ("baselines", "FullOffload", {}),
    "single": ("by_confidence", "SingleThreshold", {}),
    "offline-single": ("baselines", "OfflineSingle", {}),
    "offline-pair": ("baselines", "OfflinePair", {}),
    "paper-pair": ("baselines", "PaperPair", {}),
    "offline-bin": ("baselines", "OfflineBin", {}),
    "calibrated": ("baselines", "Calibrated", {}),
    "h2t2": ("learners", "H2T2", {}),
    "h2t2-all": ("learners", "H2T2", {"feedback": "all", "exploration": "anytime"}),
    "adaptive": ("learners", "Adaptive", {}),
    PAST: ("learners", "WithPast", {}),
    "hi-lcb": ("by_confidence", "HiLcb", {}),
    "two-sided-bound": ("by_confidence", "TwoSidedBound", {}),
    "sedna-threshold": ("baselines", "Filter", {"kind": "threshold"}),
    "sedna-entropy": ("baselines", "Filter", {"kind": "entropy"}),
    "kept-pair": ("baselines", "FixedPair", {}),
    "pairwise": ("learners", "Pairwise", {}),
}
# the classes that replace those above if a trace has more than two classes
FOR_CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {"adaptive": ("learners", "AdaptiveClasses", {})}
NAMES = tuple(POLICIES)
MULTICLASS = (
    "no-offload", "full-offload", "single", "offline-single", "calibrated", "adaptive", "hi-lcb", "sedna-threshold",
    "sedna-entropy", "pairwise",
)  # fmt: skip
BINARY = tuple(name for name in NAMES if name != "pairwise")
