"""The experiments' names, apart from them so that `--help` need not load them."""

NAMES = (
    "in-order",
    "plane",
    "cost",
    "eta",
    "bits",
    "regions",
    "regret",
    "shift",
    "modes",
    "multiclass",
    "late",
    "horizon",
    "adversary",
    "budget",
    "misses",
    "flywheel",
)
