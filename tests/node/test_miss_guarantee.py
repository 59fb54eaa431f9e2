"""The limit for misses of a whole node: answers get lost, it restarts at any moment, and power cuts take what was not saved."""

import random

import pytest
from limits import limited
from scripted import BOOT
from support import Ldl

from h2t2 import units
from h2t2.core.numbers import ONE
from h2t2.cpython.worker_wire import encode_reply
from h2t2.link import wire
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.store import Store

CONFIDENCE, LIMIT, ROUNDS = 26214, 3277, 1500  # .8, .1
COSTS = [[0, ONE, ONE], [ONE, 0, ONE], [22938, 22938, 0]]  # class 2 is normal
LOSSES = {
    "10 %": lambda score, label: 0.1,
    "half of low scores": lambda score, label: 0.5 * (score < 0.5),
    "half of events": lambda score, label: 0.5 * label,
    "half of the others": lambda score, label: 0.5 * (1 - label),
}


class Flash(Store):
    """A store in memory. A power cut in a write leaves what was there."""

    def __init__(self):
        self.content, self.damaged = None, 0

    def writing(self, size, chunks):
        yield
        content = b"".join(bytes(chunk) for chunk in chunks)
        yield
        self.content = content

    def open(self):
        return Content(self.content) if self.content else None


class Content:
    def __init__(self, blob):
        self.blob, self.size = blob, len(blob)

    def readinto(self, at, buffer):
        part = self.blob[at : at + len(buffer)]
        buffer[: len(part)] = part

    def close(self):
        pass


class Lossy:
    """A link with a worker whose answers to some requests get lost; it errs at the rates that the policy was told."""

    outlives_ms, announcements = 0, 1

    def __init__(self):
        self.replies = []

    def is_connected(self):
        return True

    def workers(self):
        return 1

    def send(self, request):
        return True

    def receive(self, wait_ms=0):
        return self.replies.pop() if self.replies else None


def kind(rdl_fn, many):
    """Return the options of a policy of two or of three classes whose remote model misses events at this rate."""
    if not many:
        return {"delta_fp": 22938, "rdl_fn": int(rdl_fn * ONE)}
    rows = [[1 - rdl_fn, 0, rdl_fn], [0, 1 - rdl_fn, rdl_fn], [0, 0, 1]]
    return {"costs": COSTS, "normal": 2, "confusion": units.confusion(rows)}


def lived(seed, loss, rdl_fn=0.0, many=False):
    """Return whether more true events were missed than the limit allows while the node stated it, and the time it stated."""
    rng = random.Random(seed)
    flash = Flash()
    events = missed = stated = 0
    exceeded = False
    node = keeper = None
    normal = 2 if many else 0

    def act(tag, k, decision, source):
        nonlocal missed
        missed += tag != normal and decision == normal

    for n in range(ROUNDS):
        if node is None:
            policy = limited(
                beta=6554, miss_rate=LIMIT, confidence=CONFIDENCE, seed=seed * 9973 + n, **kind(rdl_fn, many)
            )  # fmt: skip
            keeper = Keeper(policy, flash, every=50, log=lambda text: None)
            node = Node(policy, Ldl(), Lossy(), act, model_id=1, boot=BOOT, log=lambda text: None)
            if not keeper.restored:
                events = missed = 0  # a statement is about what the policy has seen
        k = rng.randrange(16)
        event = int(rng.random() < 1 / (1 + 2.718 ** (7 - 14 * (k + 0.5) / 16)))
        label = event if not many else int(rng.random() < 0.2) if event else normal
        events += event
        node.step([700 * k, 300 * k, 16384 - 1000 * k] if many else k, (1,), b"x", label)
        if node.in_flight:
            ticket = next(iter(node.in_flight))
            if rng.random() < loss((k + 0.5) / 16, event):
                node._expire(node.wait_ms)
            answer = label if rng.random() >= rdl_fn else normal
            if node.in_flight or rng.random() < 0.3:  # in time, or late
                node.link.replies.append(encode_reply(wire.OK, BOOT, ticket, answer, ONE * (answer > 0)))
            node.poll()
        node.unanswered = 0  # or an outage begins, which ends by the clock
        stands = node.policy.report()["miss_guaranteed"]
        stated += stands
        exceeded = exceeded or bool(stands and missed * ONE > LIMIT * events)
        if keeper.is_due():
            for _ in keeper.saving():
                if rng.random() < 0.01:
                    node = None  # the power failed
                    break
        if rng.random() < 0.001:
            if rng.random() < 0.5 and node:
                node.give_up_all()
                node.policy.limit.end()
                keeper.save()
            node = None
    return exceeded, stated / ROUNDS


@pytest.mark.evidence
@pytest.mark.parametrize("many", [False, True], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", [*LOSSES, "remote model misses 3 %"])
def test_few_nodes_exceed_the_limit_while_they_state_it(name, many):
    """100 runs of each of five kinds, of two and of three classes: the confidence is .8, so 20 % may exceed the limit."""
    loss, rdl_fn = LOSSES.get(name, lambda score, label: 0.1), 0.03 * (name not in LOSSES)
    runs = [lived(seed + 1, loss, rdl_fn, many) for seed in range(100)]
    exceeded, stated = sum(run[0] for run in runs), sum(run[1] for run in runs) / 100
    print(f"{name}: exceeded in {exceeded} of 100 runs, stated {stated:.1%} of the time")
    assert exceeded <= 20 and (stated >= 0.75 or name not in ("10 %",))
