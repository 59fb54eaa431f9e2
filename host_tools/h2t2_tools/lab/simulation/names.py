"""The policies' names on the command line. `--help` imports them without the policies, which load slowly."""

NAMES = (
    "no-offload",
    "full-offload",
    "single",
    "offline-single",
    "offline-pair",
    "offline-bin",
    "calibrated",
    "h2t2",
    "h2t2-all",
    "adaptive",
    "hi-lcb",
    "two-sided-bound",
    "sedna-threshold",
    "sedna-entropy",
    "kept-pair",
    "pairwise",
)
MULTICLASS = (
    "no-offload", "full-offload", "single", "offline-single", "calibrated", "adaptive", "hi-lcb", "sedna-threshold",
    "sedna-entropy", "pairwise",
)  # fmt: skip
BINARY = tuple(name for name in NAMES if name != "pairwise")
