"""The device's Watch compiled with numba: rounds, histograms of the scores, and what to forget when."""

from __future__ import annotations

import numpy as np

from h2t2.core import watch

from ...common.jit import compile_function, njit

YEAR, QUIET, INCREMENT, FLOOR = watch.YEAR, watch.QUIET, watch.INCREMENT, watch.FLOOR
GAMMA, MEMORIES, SHARE, STEP = watch.GAMMA, watch.MEMORIES, watch.SHARE, watch.STEP
AUDITS = np.array(watch.AUDITS)

drifted = compile_function(watch.drifted)
fade_histograms = compile_function(watch.fade_histograms)


@njit
def see(k, fast, slow, clock, shifts):
    """Watch.count_score; clock: age, quiet, audits. shifts: (4,) becomes what each memory is divided by, as a power of two."""
    shifts[:] = 0
    fast[k] += INCREMENT
    slow[k] += INCREMENT
    clock[1] = min(clock[1] + 1, QUIET)
    clock[0] += 1
    if not clock[0] & 31:
        if clock[1] >= QUIET and drifted(fast, slow):
            shifts[:] = 2
            slow[:] = fast
            clock[2] = min(clock[2], 1)
            clock[1] = 0
        fade_histograms(fast, slow)
    if not clock[0] % 250:
        for memory, every in ((3, 250), (2, 1000), (1, YEAR)):
            if not clock[0] % every:
                shifts[memory] += 1
        if clock[0] == YEAR:
            clock[0] = 0
