# A node in a program with asyncio, beside a task that is due every 50 ms. It prints JSON: the decisions, the gaps between the
# task's runs, and how long each part of the node took. It runs on every MicroPython and on a chip. FOLDER: prefix of the path
# of ldl.h2m.
import asyncio
import gc
import json

from answering import Remote
from awaited_task import moment, since, task

from h2t2.clock import ticks_diff, ticks_ms
from h2t2.core.numbers import Rng
from h2t2.node import start
from h2t2.node.awaited import sleep_ms
from h2t2.node.keeper import Keeper

SAMPLE_MS, SAMPLES, DEADLINE_MS = 120, 40, 10_000  # a host may stop this process longer than a remote model takes


def timed(running, parts, writing):
    """Run a coroutine; append (ms, whether it wrote a snapshot) of each part, from one pause to the next."""
    while True:
        began, pieces = ticks_ms(), len(writing)
        try:
            pause = running.send(None)
        except StopIteration:
            return
        parts.append((ticks_diff(ticks_ms(), began), len(writing) > pieces))
        yield pause


def run(decided, gaps, parts, writing):
    """Run the node to its end; return it and its link. writing: of each piece of a snapshot, whether a sample was undecided"""
    draw, numbers = Rng(5), iter(range(SAMPLES))
    collects = hasattr(gc, "threshold")
    if collects:
        gc.threshold(2048)  # as main.py does: garbage of the imports would lie between the modules

    async def sense():
        await sleep_ms(5)  # a sensor that converts
        n = next(numbers, None)
        if n is None:
            raise StopAsyncIteration
        return [(draw.draw() >> 7) - 128 for _ in range(64)], bytes(64), (n, moment())

    async def act(tag, k, decision, source):
        n, then = tag
        decided.append((n, k, decision, source, since(then)))
        await sleep_ms(10)  # a relay that settles

    config = {
        "policy": "adaptive", "arguments": {"bits": 4, "beta": 6554}, "ldl": FOLDER + "ldl.h2m", "event": 1,  # noqa: F821
        "remote_shape": [8, 8, 1], "model_id": 2, "in_flight": 1, "deadline_ms": DEADLINE_MS, "every_ms": SAMPLE_MS,
        "snapshot": FOLDER + "state", "snapshot_every": 100,  # noqa: F821
        "telemetry_s": 1, "awaitable": True,
    }  # fmt: skip
    link = Remote()
    node = start.service(config, link, act, sensor=sense)

    saving = Keeper.saving

    def noted(keeper):
        for _ in saving(keeper):
            writing.append(bool(node.node.in_flight or node.sensing.sample))
            yield
        writing.append(bool(node.node.in_flight or node.sensing.sample))

    Keeper.saving = noted
    gc.collect()
    if collects:
        gc.threshold(-1)

    async def main():
        other = asyncio.create_task(task(gaps, networked=False))
        await timed(node.arun(), parts, writing)
        other.cancel()

    asyncio.run(main())
    return node, link


decided, gaps, parts, writing = [], [], [], []
node, link = run(decided, gaps, parts, writing)
print(
    json.dumps(
        {
            "decided": decided, "gaps": gaps, "reports": link.reports, "errors": node.errors, "saves": node.keeper.saves,
            "longest": sorted(ms for ms, writes in parts if not writes)[-5:],
            "pieces": sorted(ms for ms, writes in parts if writes),
            "amid": sum(writing),
        }
    )
)  # fmt: skip
