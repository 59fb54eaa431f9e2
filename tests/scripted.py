"""A link that a test controls, and a service over scripted bins."""

from support import Ldl, paper

import h2t2.clock
import h2t2.node.asking
import h2t2.node.node
import h2t2.node.sensing
import h2t2.node.service
import h2t2.node.windowed
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.link.link import Link as Interface
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.sensing import Sensing
from h2t2.node.service import Service

BOOT = 9


class Link(Interface):
    """Answers every offload at once with `label`; a test appends to `commands`.

    up: it is connected; worker_count: workers that announced themselves; answers: they answer.
    """

    def __init__(self):
        super().__init__(BOOT)
        self.up, self.worker_count, self.answers = True, 1, True
        self.label, self.status = 1, wire.OK
        self.sent, self.commands, self.waiting, self.renewed = [], [], [], 0
        self.reported, self.answered = [], []

    def is_connected(self):
        return self.up

    def workers(self):
        return self.worker_count

    def send(self, payload):
        if not self.up:
            return False
        self.sent.append(payload)
        if self.answers:
            self.answer_to(payload)
        return True

    def answer_to(self, payload=None, label=None, status=None, boot=None):
        """Queue a reply to a request, by default the last one."""
        request = worker_wire.decode_request(payload or self.sent[-1])
        status = self.status if status is None else status
        label = (self.label if label is None else label) if status == wire.OK else -1
        self.waiting.append(
            worker_wire.encode_reply(status, request.boot if boot is None else boot, request.sequence, label, 0)
        )

    def receive(self, wait_ms):
        return self.waiting.pop(0) if self.waiting else None

    def command(self):
        return self.commands.pop(0) if self.commands else None

    def report(self, message):
        self.reported.append(message)

    def answer(self, message):
        self.answered.append(message)

    def renew(self):
        self.renewed += 1


def set_clock(monkeypatch, ticks):
    """Let the runtime's clock return ticks()."""
    for module in (h2t2.clock, h2t2.node.asking, h2t2.node.node, h2t2.node.sensing, h2t2.node.service, h2t2.node.windowed):
        monkeypatch.setattr(module, "ticks_ms", ticks)


def recorded(bins):
    """Return a sensor that gives these bins and then ends."""
    numbered = enumerate(bins)

    def sensor():
        n, k = next(numbered)
        return k, b"x", n

    return sensor


def running(policy=None, bins=(5,) * 30, store=None, every=250, mismatch="fresh", sensing=None, origin=b"", **options):
    """Return (service, node, decisions, log) over these bins."""
    decisions, log = [], []
    options = {"deadline_ms": 1000, **options}
    policy = policy or paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), Link(), lambda *args: decisions.append(args), model_id=1, boot=BOOT, log=log.append, **options)
    keeper = Keeper(policy, store, every=every, mismatch=mismatch, complain=node.complain, log=log.append, origin=origin)
    sensing = sensing or Sensing(recorded(bins), patient=True, complain=node.complain)
    service = Service(node, sensing, keeper, shape=(1,), telemetry_s=0, log=log.append)
    return service, node, decisions, log
