"""The policies' names on the command line, apart from the policies so that `--help` need not load them."""

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
    "pairwise",
)
MULTICLASS = ("no-offload", "full-offload", "single", "offline-single", "calibrated", "adaptive", "pairwise")
BINARY = tuple(name for name in NAMES if name != "pairwise")
