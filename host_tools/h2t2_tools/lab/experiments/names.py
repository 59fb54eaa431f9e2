"""The experiments' names. `--help` imports them without the experiments, which load slowly."""

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
    "guarantee",
    "flywheel",
    "head",
    "over-time",
)
