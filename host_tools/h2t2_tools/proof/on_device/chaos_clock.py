# For `h2t2 chaos`: a millisecond clock that jumps. CPython and MicroPython; install() before anything else of h2t2 is imported.
import h2t2.clock as clock

EVERY_MS = 7000  # between two jumps
JUMP_MS = 600000  # forward, then back


def install():
    """From now on the runtime's clock jumps ten minutes forward and back again, a jump each 7 s."""
    true = clock.ticks_ms
    start = true()

    def jumping():
        ticks = true()
        if clock.ticks_diff(ticks, start) // EVERY_MS & 1:
            return clock.ticks_add(ticks, JUMP_MS)
        return ticks

    clock.ticks_ms = jumping
