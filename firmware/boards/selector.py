# Puts the runtime of an update before the flashed one, and counts its starts while it is on trial: h2t2/node/runtime.py writes
# the mark. No update replaces this file.
import os
import sys

with open("h2t2.runtime") as file:
    before, trial, starts = file.read().split()
if starts != "0":
    try:
        with open("h2t2.runtime.new", "w") as file:
            file.write("%s %s %d" % (before, trial, int(starts) - 1))
        os.rename("h2t2.runtime.new", "h2t2.runtime")
        before = trial
    except OSError:
        pass  # a start that cannot be counted is none of the new one
sys.path.insert(0, before)
