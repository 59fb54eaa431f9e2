# The node: sample -> LDL -> policy -> act or offload -> learn. Knows the interfaces of its parts, not their kinds.
from ..clock import ticks_diff, ticks_ms
from ..core.h2t2 import OFFLOAD
from ..core.numbers import ONE
from ..link import wire

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # where a decision came from


AT_ONCE = 16  # replies a poll takes at most
SILENT = 32  # offloads in a row without an answer, after which the connection is made anew: it may be half dead
WHEN_DOWN = ("ask", "raise", "pause")  # what to do while the link is down: see Node


class Node:
    """One edge device. Every sample handed to `step` gets exactly one decision, through `act`, within `deadline_ms`.

    policy: H2T2 or one with its decide/learn/lose. ldl: `run(x) -> q`, `bin(q) -> k`. link: `send(payload) -> bool`,
    `receive(wait_ms) -> payload or None`, `is_connected()`. act(tag, k, decision, source): called once a sample.
    model: the remote model's number, 0..65535. boot: this start's number, 0..2^30 - 1, never the last one's.
    window: offloads in flight, 1..8; one more makes `step` refuse (call `poll` until `busy()` is False). deadline_ms: the wait
    for a label ends an eighth earlier, so that the decision is out in time.
    when_down: "ask": the policy goes on, an offload falls back; "raise": beta is 1 meanwhile, so that it asks for less;
    "pause": the policy is not asked, and charged nothing. cost: a LinkCost, which then sets beta, or None.
    """

    def __init__(self, policy, ldl, link, act, model, boot, window=1, deadline_ms=2000, when_down="ask", cost=None):
        if when_down not in WHEN_DOWN:
            raise ValueError("when_down %r is not one of %s" % (when_down, ", ".join(WHEN_DOWN)))
        if not 1 <= window <= 8:
            raise ValueError("window %r is not in 1..8" % window)
        self.policy = policy
        self.ldl = ldl
        self.link = link
        self.act = act
        self.model = model
        self.boot = boot
        self.window = window
        self.wait_ms = deadline_ms - (deadline_ms >> 3)
        self.when_down = when_down
        self.cost = cost
        self.paused = False  # by a command: decide locally
        self.pending = {}  # ticket -> (tag, k, when it was sent, bytes)
        if cost:
            policy.set_beta(cost.expected)
        self.samples = 0
        self.offloads = 0
        self.replies = 0  # that taught and decided
        self.fallbacks = 0
        self.unasked = 0  # samples decided without the policy: paused, or when_down is "pause"
        self.silent = 0  # offloads without an answer since the last one
        self.strangers = 0  # replies malformed, of another boot, late, doubled, or without a usable label

    def _charge(self):
        """While the link is down and `when_down` is "raise", an offload is charged 1; else the policy's own beta."""
        beta = ONE if not self.link.is_connected() else self.policy.beta
        if beta != self.policy.charged:
            self.policy.set_charge(beta)

    def busy(self) -> bool:
        """True while as many offloads are out as the window holds."""
        return len(self.pending) >= self.window

    def step(self, x, shape, remote, tag) -> None:
        """Decide one sample. x: the LDL's input; remote: the int8 tensor an offload sends, of this shape; tag: the caller's."""
        if self.busy():
            raise RuntimeError("node: %d offloads are in flight already; poll first" % len(self.pending))
        k = self.ldl.bin(self.ldl.run(x))
        policy = self.policy
        self.samples += 1
        if self.paused or (self.when_down == "pause" and not self.link.is_connected()):
            self.unasked += 1
            self.act(tag, k, policy.likely(k), FALLBACK)
            return
        if self.when_down == "raise":
            self._charge()
        action = policy.decide(k)
        if action != OFFLOAD:
            self.act(tag, k, action, LOCAL)
            return
        self.offloads += 1
        ticket = policy.ticket
        payload = wire.encode_request(self.model, self.boot, ticket, shape, remote)
        self.pending[ticket] = (tag, k, ticks_ms(), len(payload))
        if not self.link.send(payload):
            self._fall_back(ticket)

    def poll(self, wait_ms: int = 0) -> None:
        """Take what replies have come, waiting at most wait_ms for the first; decide locally what is past its deadline."""
        for _ in range(AT_ONCE):  # a flood must not keep the samples waiting
            payload = self.link.receive(wait_ms)
            if payload is None:
                break
            self._reply(payload)
            wait_ms = 0
        if self.pending:
            now = ticks_ms()
            for ticket in list(self.pending):
                waited = ticks_diff(now, self.pending[ticket][2])
                if waited >= self.wait_ms or waited < 0:  # or the clock has jumped back
                    self._measure(ticket, self.wait_ms)
                    self._fall_back(ticket)
                    self.silent += 1
            if self.silent >= SILENT:
                self.silent = 0
                self.link.renew()

    def drop(self) -> None:
        """Decide locally all that is in flight."""
        for ticket in list(self.pending):
            self._fall_back(ticket)

    def _measure(self, ticket, waited):
        """What an offload that is over has cost, Q15, for `learn`; the beta of the rounds to come follows it."""
        if not self.cost:
            return -1
        beta = self.cost.paid(waited, self.pending[ticket][3])
        self.policy.set_beta(self.cost.next(self.policy.beta, beta))
        return beta

    def _reply(self, payload):
        try:
            status, boot, ticket, label, _ = wire.decode_reply(payload)
        except ValueError:
            self.strangers += 1
            return
        if boot != self.boot or ticket not in self.pending or label > 1:
            self.strangers += 1
            return
        self.silent = 0
        if status != wire.OK:
            self._fall_back(ticket)
        else:
            beta = self._measure(ticket, ticks_diff(ticks_ms(), self.pending[ticket][2]))
            tag, k, _, _ = self.pending.pop(ticket)
            self.policy.learn(ticket, label, beta)
            self.replies += 1
            self.act(tag, k, label, REMOTE)

    def _fall_back(self, ticket):
        tag, k, _, _ = self.pending.pop(ticket)
        self.fallbacks += 1
        self.act(tag, k, max(0, self.policy.lose(ticket)), FALLBACK)
