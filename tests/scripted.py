"""What the tests of commands share."""

from support import Ldl, paper

from h2t2.link import wire
from h2t2.node.node import Node
from h2t2.node.service import Service


class Link:
    """Answers every offload at once with `label`; commands are what a test puts there."""

    def __init__(self):
        self.up, self.commands, self.waiting, self.renewed, self.answers = True, [], [], 0, True

    def is_connected(self):
        return self.up

    def send(self, payload):
        if self.up and self.answers:
            _, boot, sequence, _, _ = wire.decode_request(payload)
            self.waiting.append(wire.encode_reply(wire.OK, boot, sequence, 1, 0))
        return self.up

    def receive(self, wait_ms):
        return self.waiting.pop(0) if self.waiting else None

    def command(self):
        return self.commands.pop(0) if self.commands else None

    def report(self, message):
        self.reported = message

    def renew(self):
        self.renewed += 1


def running(policy=None, bins=(5,) * 30, store=None, **options):
    """(service, node, decisions, said) over those bins."""
    decisions, said = [], []
    options = {"deadline_ms": 1000, **options}
    policy = policy or paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), Link(), lambda *args: decisions.append(args), 1, 9, **options)
    given = iter(bins)
    service = Service(
        node, lambda: next(((k, b"x", n) for n, k in enumerate(given)), None), (1,), store, 500, 0, log=said.append
    )
    return service, node, decisions, said
