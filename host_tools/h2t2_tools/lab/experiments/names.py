"""The experiments' names. `--help` imports them without the experiments, which load slowly."""

NAMES = tuple(
    "in-order plane cost eta bits regions regret shift modes multiclass late horizon trust "
    "adversary budget misses guarantee flywheel head averaged-head over-time".split()
)
