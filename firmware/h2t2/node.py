# The node: sample -> LDL -> policy -> act or offload -> learn. Knows the interfaces of its parts, not their kinds.
from . import wire
from .clock import ticks_add, ticks_diff, ticks_ms
from .policy import OFFLOAD

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # where a decision came from


class Node:
    """One edge device. Every sample handed to `step` gets exactly one decision, through `act`, within `deadline_ms`.

    policy: H2T2 or one with its decide/learn/lose. ldl: `run(x) -> q`, `bin(q) -> k`. link: `send(payload) -> bool`,
    `receive(wait_ms) -> payload or None`. act(tag, k, decision, source): called once a sample.
    model: the remote model's number, 0..65535. boot: this start's number, 0..2^30 - 1, never the last one's.
    window: offloads in flight; one more makes `step` refuse (call `poll` until `busy()` is False).
    """

    def __init__(self, policy, ldl, link, act, model, boot, window=1, deadline_ms=2000):
        self.policy = policy
        self.ldl = ldl
        self.link = link
        self.act = act
        self.model = model
        self.boot = boot
        self.window = window
        self.deadline_ms = deadline_ms
        self.pending = {}  # ticket -> (tag, k, when it expires)
        self.samples = 0
        self.offloads = 0
        self.replies = 0  # that taught and decided
        self.fallbacks = 0
        self.strangers = 0  # replies malformed, of another boot, late, doubled, or without a usable label

    def busy(self):
        """True while as many offloads are out as the window holds."""
        return len(self.pending) >= self.window

    def step(self, x, shape, remote, tag):
        """Decide one sample. x: the LDL's input; remote: the int8 tensor an offload sends, of this shape; tag: the caller's."""
        if self.busy():
            raise RuntimeError("node: %d offloads are in flight already; poll first" % len(self.pending))
        k = self.ldl.bin(self.ldl.run(x))
        policy = self.policy
        action = policy.decide(k)
        self.samples += 1
        if action != OFFLOAD:
            self.act(tag, k, action, LOCAL)
            return
        self.offloads += 1
        ticket = policy.ticket
        self.pending[ticket] = (tag, k, ticks_add(ticks_ms(), self.deadline_ms))
        if not self.link.send(wire.encode_request(self.model, self.boot, ticket, shape, remote)):
            self._fall_back(ticket)

    def poll(self, wait_ms=0):
        """Take what replies have come, waiting at most wait_ms for the first; decide locally what is past its deadline."""
        payload = self.link.receive(wait_ms)
        while payload is not None:
            self._reply(payload)
            payload = self.link.receive(0)
        if self.pending:
            now = ticks_ms()
            for ticket in list(self.pending):
                if ticks_diff(now, self.pending[ticket][2]) >= 0:
                    self._fall_back(ticket)

    def _reply(self, payload):
        try:
            status, boot, ticket, label, _ = wire.decode_reply(payload)
        except ValueError:
            self.strangers += 1
            return
        if boot != self.boot or ticket not in self.pending or label > 1:
            self.strangers += 1
        elif status != wire.OK:
            self._fall_back(ticket)
        else:
            tag, k, _ = self.pending.pop(ticket)
            self.policy.learn(ticket, label)
            self.replies += 1
            self.act(tag, k, label, REMOTE)

    def _fall_back(self, ticket):
        tag, k, _ = self.pending.pop(ticket)
        self.fallbacks += 1
        self.act(tag, k, max(0, self.policy.lose(ticket)), FALLBACK)
