"""The policies' names on the command line. `--help` imports them without the policies, which load slowly."""

from typing import Any

PAST = "adaptive-past"  # the adaptive policy that reads its past
# name on the command line: (file in policies/, class, fixed options)
POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-offload": ("baselines", "NoOffload", {}),
    "full-offload": ("baselines", "FullOffload", {}),
    "offline-single": ("baselines", "OfflineSingle", {}),
    "offline-pair": ("baselines", "OfflinePair", {}),
    "calibrated": ("baselines", "Calibrated", {}),
    "h2t2": ("learners", "H2T2", {}),
    "h2t2-all": ("learners", "H2T2", {"feedback": "all", "exploration": "anytime"}),
    "adaptive": ("learners", "Adaptive", {}),
    PAST: ("learners", "WithPast", {}),
    "kept-pair": ("baselines", "FixedPair", {}),
}
# the classes that replace those above if a trace has more than two classes
FOR_CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {"adaptive": ("learners", "AdaptiveClasses", {})}
NAMES = tuple(POLICIES)
MULTICLASS = ("no-offload", "full-offload", "offline-single", "calibrated", "adaptive")
