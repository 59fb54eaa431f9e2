# For `h2t2-lab chaos`: a millisecond clock that jumps. CPython and MicroPython; call install() before other imports of h2t2.
import h2t2.clock as clock

EVERY_MS = 7000  # interval of jumps
JUMP_MS = 600000  # forward, then back


def install():
    """Make the runtime's clock jump ten minutes forward and back again, once in 7 s."""
    true = clock.ticks_ms
    start = true()

    def jumping():
        ticks = true()
        if clock.ticks_diff(ticks, start) // EVERY_MS & 1:
            return clock.ticks_add(ticks, JUMP_MS)
        return ticks

    clock.ticks_ms = jumping
