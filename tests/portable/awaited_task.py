# A task that is due every 50 ms, and how long it waits. Time for which another process had this one's core does not count.
from h2t2.clock import ticks_diff, ticks_ms
from h2t2.node.awaited import sleep_ms

TASK_MS = 50


def moment():
    """The ticks; the milliseconds that this process computed, and those for which it was ready and had no core. 0 where no
    scheduler tells."""
    try:
        with open("/proc/self/schedstat") as file:
            computed, waited = file.read().split()[:2]
            return ticks_ms(), int(computed) // 1000000, int(waited) // 1000000
    except OSError:
        return ticks_ms(), 0, 0


def since(then):
    """Milliseconds since a moment()."""
    now, _, waited = moment()
    return ticks_diff(now, then[0]) - (waited - then[2])


async def task(gaps, networked=True):
    """Append the milliseconds between two runs, for ever.

    Of a node without a network nothing but computing makes a run late on a host, whose disk and hypervisor may stop it as well.
    """
    while True:
        then = moment()
        await sleep_ms(TASK_MS)
        gap, computed = since(then), moment()[1]
        gaps.append(gap if networked or not computed else min(gap, TASK_MS + computed - then[1]))
