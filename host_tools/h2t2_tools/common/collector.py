"""Python's garbage collector in programs that run for long."""

import gc


def spare_collections() -> None:
    """Take what lives as long as the program out of the collector's sight, when a program is ready: modules, mostly.

    Otherwise the collector traverses them again and again: 13 % of a dashboard's time, and pauses of 0.1 s of a gate.
    """
    gc.collect()
    gc.freeze()
