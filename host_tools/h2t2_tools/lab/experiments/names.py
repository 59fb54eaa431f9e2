"""The experiments' names, apart from them so that `--help` need not load them."""

NAMES = (
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
)
