"""A node beside the other tasks of a program with asyncio, on CPython."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from scripted import Link
from support import ROOT, need

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.numbers import Rng
from h2t2.ldl.bundle import Int8Model
from h2t2.node import start
from h2t2.node.awaited import ACTS, AwaitedService
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.store import FileSlot, Store, file_store
from h2t2_lab.boards import drive
from h2t2_lab.emulators import lwip
from h2t2_lab.emulators.built import PICO_FROZEN
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.common import pairs

PAIR = pairs.load("breast_cancer")
BLOB = (ROOT / "models/breast_cancer/ldl.h2m").read_bytes()
SAMPLE = [3] * 5


def service(sense, act, link=None, blob=BLOB, **entries):
    """(service, log) of a node with these functions, each offload of which `link` answers at once."""
    log = []
    config = {
        "policy": "h2t2", "arguments": units.policy(bits=4, exploration="epsilon", epsilon=1.0, beta=0.2),
        "ldl": "ldl.h2m", "event": 1, "remote_shape": [30], "model_id": 1, "in_flight": 1, "deadline_ms": 2000,
        "telemetry_s": 0, "awaitable": True, **entries,
    }  # fmt: skip
    made = start.service(config, link or Link(), act, sensor=sense, log=log.append, opener=lambda *_: Int8Model(blob, 1))
    return made, log


def rows(count):
    """A plain sense() of so many samples."""
    numbers = iter(range(count))
    return lambda: (SAMPLE, bytes(30), next(numbers))


async def beside(node, act, rest_s=0):
    """Run a node to its end, and another task beside it that acts again and again."""

    async def other():
        while True:
            act()
            await asyncio.sleep(rest_s)

    task = asyncio.create_task(other())
    await node.arun()
    task.cancel()


def test_async_functions_are_awaited_in_order_beside_a_task():
    """sense() waits for its measurement, act() for its actuator, and a third task runs meanwhile."""
    decided, ran, acting = [], [], []
    numbers = iter(range(6))

    async def sense():
        await asyncio.sleep(0.01)
        n = next(numbers, None)
        if n is None:
            raise StopAsyncIteration
        return SAMPLE, bytes(30), n

    async def act(tag, k, decision, source):
        acting.append(tag)
        assert len(acting) == 1
        await asyncio.sleep(0.02)
        acting.clear()
        decided.append(tag)

    node, log = service(sense, act)
    asyncio.run(beside(node, lambda: ran.append(len(decided)), 0.001))
    assert decided == list(range(6)) and {*ran} >= {0, 1, 2, 3, 4, 5} and log == []
    assert node.node.samples == node.node.replies == 6


def test_other_tasks_run_between_the_steps_of_the_local_model(monkeypatch):
    order = []
    run_step = Int8Model.run_step
    monkeypatch.setattr(Int8Model, "run_step", lambda model, n: (order.append(n), run_step(model, n)))
    monkeypatch.setattr("h2t2.node.awaited.SLICE_MS", 0)  # a step a slice

    decided = []
    node, _ = service(rows(1), lambda *decision: decided.append(decision))
    asyncio.run(beside(node, lambda: order.append("other")))
    steps = len(Int8Model(BLOB, 1).steps)
    at = [order.index(n) for n in range(steps)]
    assert all("other" in order[a:b] for a, b in zip(at, at[1:])), order
    model = Int8Model(BLOB, 1)
    assert decided[0][1] == model.level(model.run(SAMPLE)) >> 4


def test_the_score_is_that_of_the_model_at_once():
    """Of two hundred samples, each decision and bin is the blocking node's."""
    import random

    draw = random.Random(3)
    samples = [[draw.randrange(-128, 128) for _ in range(5)] for _ in range(200)]

    def played(awaitable):
        decided, stream = [], iter(enumerate(samples))
        node, _ = service(lambda: (lambda n, x: (x, bytes(30), n))(*next(stream)), lambda *decision: decided.append(decision))
        if awaitable:
            asyncio.run(node.arun())
        else:
            super(AwaitedService, node).run()
        return decided

    assert played(True) == played(False)


def test_what_the_functions_raise_is_said_and_the_node_goes_on():
    numbers, decided = iter(range(8)), []

    async def sense():
        n = next(numbers, None)
        if n is None:
            raise StopAsyncIteration
        if n == 2:
            raise OSError("no sensor")
        return (SAMPLE[1:] if n == 4 else SAMPLE), bytes(30), n

    async def act(tag, *_):
        decided.append(tag)
        if tag == 1:
            raise RuntimeError("no relay")

    node, log = service(sense, act)
    asyncio.run(node.arun())
    assert decided == [0, 1, 3, 4, 5, 6, 7]
    said = "\n".join(log)
    assert "no sensor" in said and "no relay" in said and "4 numbers" in said and node.errors == 0


def test_an_act_that_hangs_stops_the_samples_and_not_the_loop():
    fed, decided = [], []

    async def act(*decision):
        decided.append(decision)
        await asyncio.Event().wait()

    async def main():
        running = asyncio.create_task(node.arun())
        while len(fed) < 50:
            await asyncio.sleep(0.001)
        assert len(node.sensing.awaited.acts) == node.node.samples == ACTS and len(decided) == 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    node, _ = service(rows(100), act)
    node.watchdog = lambda: fed.append(1)
    asyncio.run(main())


def test_a_node_that_is_cancelled_decides_and_saves(tmp_path):
    link, decided = Link(), []
    link.answers = False

    async def main():
        running = asyncio.create_task(node.arun())
        while not node.node.in_flight:
            await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    node, _ = service(rows(100), lambda *decision: decided.append(decision), link, snapshot=str(tmp_path / "state"))
    asyncio.run(main())
    assert len(decided) == node.node.samples >= 1 and not node.node.in_flight and node.keeper.saves


def test_other_tasks_run_between_the_pieces_of_a_snapshot_and_nothing_changes_the_policy(tmp_path, monkeypatch):
    """Beside samples and answers without pause, each snapshot on the disk is the policy as it was when its writing began."""
    order, saves, arguments = [], [], units.policy(bits=4, beta=0.0)
    writing, poll = Store.writing, Node.poll

    def noted(store, size, chunks):
        state = list(node.node.policy.state())
        for _ in writing(store, size, chunks):
            order.append("piece")
            yield
        order.append("saved")
        again = Adaptive(**arguments)
        kept = Keeper(again, file_store(str(tmp_path / "state")))
        saves.append((again.lessons, kept.restored, list(again.state()) == state))

    monkeypatch.setattr(Store, "writing", noted)
    monkeypatch.setattr(Node, "poll", lambda node, *ms: (order.append("poll"), poll(node, *ms)))
    monkeypatch.setattr("h2t2.node.awaited.SLICE_MS", 0)  # a piece a slice

    node, log = service(
        rows(40), lambda *_: None, policy="adaptive", arguments=arguments, snapshot=str(tmp_path / "state"), snapshot_every=10
    )
    asyncio.run(beside(node, lambda: order.append("other")))
    assert saves[:4] == [(n, True, True) for n in (1, 2, 4, 8)] and node.keeper.saves == len(saves) and not log
    for during in "".join({"piece": "p", "other": "o", "saved": "s", "poll": " "}[each] for each in order).split("s")[:-1]:
        pieces = during[during.index("p") :]
        assert " " not in pieces and "pp" not in pieces and pieces.count("p") > 20


def test_a_node_that_is_cancelled_amid_a_snapshot_writes_it_anew(tmp_path, monkeypatch):
    streams = []
    monkeypatch.setattr("h2t2.node.awaited.SLICE_MS", 0)
    begin = FileSlot.begin
    monkeypatch.setattr(FileSlot, "begin", lambda slot, size: (streams.append(begin(slot, size)), streams[-1])[1])

    async def main():
        running = asyncio.create_task(node.arun())
        while not streams:
            await asyncio.sleep(0)
        assert not streams[0].closed
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    node, _ = service(rows(100), lambda *_: None, snapshot=str(tmp_path / "state"))
    asyncio.run(main())
    again, _ = service(rows(0), lambda *_: None, snapshot=str(tmp_path / "state"))
    assert len(streams) == 2 and streams[0].closed and node.keeper.saves == 1 and again.keeper.restored
    assert list(again.node.policy.state()) == list(node.node.policy.state())


def test_an_app_with_an_async_function_needs_no_word_for_it():
    """As `h2t2 flash` and `h2t2 node` run it: run() waits as ever."""
    numbers, decided = iter(range(3)), []

    async def sense():
        n = next(numbers, None)
        if n is None:
            raise StopAsyncIteration
        return PAIR.x[n].ravel().tolist()

    program = SimpleNamespace(sense=sense, act=lambda decision: decided.append(decision.tag))
    measured = pair_node().configuration(PAIR.folder)[0]["measured"]
    config = {
        "policy": "h2t2", "arguments": units.policy(bits=4), "ldl": "ldl.h2m", "event": 1, "remote_shape": [30],
        "model_id": 1, "in_flight": 1, "deadline_ms": 2000, "app": program, "measured": measured, "telemetry_s": 0,
        "awaitable": True,
    }  # fmt: skip
    node = start.service(config, Link(), lambda *_: None, opener=lambda *_: Int8Model(BLOB, 1))
    node.run()
    assert len(decided) == 3 and node.node.samples == 3


def pair_node():
    from h2t2.cpython import pair

    return pair


def test_a_node_that_lets_the_board_sleep_is_refused(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "machine", SimpleNamespace(lightsleep=None))
    with pytest.raises(ValueError, match="sleep: it would stop the other tasks"):
        service(rows(1), print, sleep={"kind": "light", "power": None})


@pytest.mark.slow
@pytest.mark.parametrize(
    "board",
    [UNIX, *(pytest.param(board, marks=pytest.mark.whole) for board in (ARM32, lwip.LWIP, PICO_FROZEN))],
    ids=lambda board: board.name,
)
def test_a_task_that_is_due_every_50_ms_runs_beside_a_node(board):
    """On MicroPython: async functions, offloads, commands, reports and snapshots; the bins are the host's."""
    source = (ROOT / "tests/portable/awaited.py").read_text()
    blob = (ROOT / "models/digits/ldl.h2m").read_bytes()
    if board is PICO_FROZEN and board.is_quick():
        board.build(lambda step: None)  # with the runtime of this checkout
    files = {name: (ROOT / "tests/portable" / name).read_bytes() for name in ("answering.py", "awaited_task.py")}
    told = json.loads(drive.run(need(board), source, {**files, "ldl.h2m": blob}).splitlines()[-1])
    gaps, decided = sorted(told["gaps"]), told["decided"]
    # a snapshot of less than 4 KB erases one sector of the flash, 45 ms; once in many, as its log fills, littlefs another one
    erases = told["saves"] + 1 if board is PICO_FROZEN else 0
    excepted = erases or len(gaps) // 100  # the chip's time is the chip's alone
    assert len(gaps) > 60 and gaps[-excepted - 1] <= 70, gaps
    if board is PICO_FROZEN:
        pieces = told["pieces"]
        assert told["longest"][-1] <= 20 and pieces[-1] <= 45 + 20 and [ms for ms in pieces[:-erases] if ms > 20] == [], told
        assert gaps[-1] <= 70 + 45, gaps
    assert told["saves"] > 3 and told["amid"] == 0  # no offload waited, and the local model held no sample
    assert sorted(n for n, *_ in decided) == list(range(40)) and told["errors"] == 0
    assert max(late for *_, late in decided) <= 400 and {source for *_, source, _ in decided} == {0, 1}
    model, draw = Int8Model(blob, 1), Rng(5)
    samples = [[(draw.draw() >> 7) - 128 for _ in range(64)] for _ in range(40)]
    assert [k for _, k, *_ in sorted(decided)] == [model.level(model.run(x)) >> 4 for x in samples]
