# The node: sample -> LDL -> policy -> act or offload -> learn. Knows the interfaces of its parts, not their kinds.
from ..clock import FAR_MS, longest, ticks_diff, ticks_ms
from ..core.numbers import ONE
from ..core.policy import OFFLOAD
from ..link import wire
from .account import Account
from .complaints import Complaints

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # where a decision came from
UP, SILENT, NOBODY, DOWN = 0, 1, 2, 3  # what stands between a node and the remote model: Node.standing()
STANDING = ("up", "silent", "nobody", "down")  # their names in the retained state
STANDINGS = (
    "the remote model answers", "the workers are there and do not answer", "no worker serves the model", "the broker is away",
)  # fmt: skip

AT_ONCE = 16  # replies a poll takes at most
UNHEARD = 3  # offloads in a row without an answer, after which the workers count as silent
DEAF = 3  # tries of silent workers without an answer, after which the connection is made anew
RAREST_MS = 60000  # silent workers are asked this often at least
WHEN_DOWN = ("ask", "raise", "pause")  # what to do while nobody can be asked: see Node
TAG, BIN, CLASS, SINCE, SENT, SIZE = 0, 1, 2, 3, 4, 5  # what is known of an offload in flight


class Node:
    """One edge device. Every sample handed to `step` gets exactly one decision, through `act`, within `deadline_ms`.

    policy: H2T2 or one with its decide/learn/lose. ldl: `run(x) -> q`, `bin(q) -> k`; of a policy for more classes than two,
    whose bin() makes k of it, `run(x)` gives the scores (ldl.classes). link: MqttLink, PahoLink, SerialLink.
    act(tag, k, decision, source): called once a sample; k is -1 where the local model failed.
    model_id: the remote model's number, 0..65535. boot: this start's number, 0..2^30 - 1, never the last one's.
    window: offloads in flight, 1..8; a sample for which there is no room is decided locally. deadline_ms: the wait for a label
    ends an eighth earlier, so that the decision is out in time. A label that comes later still teaches, while the policy holds
    its ticket.
    when_down: while the broker is away, no worker serves the model, or those that do are silent: "ask": the policy goes on, an
    offload falls back at once; "raise": beta is 1 meanwhile, so that it asks for less; "pause": the policy is not asked, and
    charged nothing. Silent workers are asked ever more rarely, until one answers. cost: a LinkCost, which then sets beta, or
    None. log: called with a line of text about what went wrong. budget: a Budget, or None: where it does not afford an offload
    the sample is decided without the policy, and its price is added to beta. dtype, media: of the data that offloads send, and
    the media type of RAW bytes. data_limit: bytes of data; an offload that would have more falls back.
    """

    def __init__(
        self,
        policy,
        ldl,
        link,
        act,
        *,
        model_id,
        boot,
        window=1,
        deadline_ms=2000,
        when_down="ask",
        cost=None,
        log=print,
        budget=None,
        dtype=wire.INT8,
        media="",
        data_limit=wire.MAX_DATA,
    ):
        if when_down not in WHEN_DOWN:
            raise ValueError("when_down %r is not one of %s" % (when_down, ", ".join(WHEN_DOWN)))
        if not 1 <= window <= 8:
            raise ValueError("window %r is not in 1..8" % window)
        if policy.bits > 8:
            raise ValueError("policy of %d bits: scores have 8" % policy.bits)
        self.policy = policy
        self.ldl = ldl
        self.link = link
        self.actuate = act
        self.model_id = model_id
        self.boot = boot
        self.window = window
        self.wait_ms = deadline_ms - (deadline_ms >> 3)
        self.spare_ms = deadline_ms >> 3
        self.when_down = when_down
        self.cost = cost
        self.budget = budget
        self.dtype = dtype
        self.media = media
        self.data_limit = data_limit
        self.earned = ticks_ms()  # when the budget was credited last
        self.complain = Complaints(log)
        self.account = Account(policy.bits)
        self.last = None  # the last decision: bin, class, source
        self.paused = False  # by a command: decide locally
        self.pending = {}  # ticket -> what is known of it
        self.changing = False  # the policy is about to: an exception that comes now (Ctrl-C) leaves it half changed
        self.step_ms = 0  # how long the local model takes: the longest of late
        self.load = 0  # how busy the workers are, Q15: what an offload is charged on top, of what is left to 1
        self.unheard = 0  # offloads without an answer since the last one
        self.quiet_ms = 0  # how long silent workers are left alone; 0: they are not silent
        self.asked = 0  # when a silent one was asked last
        self.probe = 0  # the ticket of that
        self.probes = 0  # how often in a row that had no answer
        self.announced = 0  # what the link knew then of workers that came
        if cost:
            policy.set_beta(cost.expected)
        self.samples = 0
        self.offloads = 0
        self.replies = 0  # that taught and decided
        self.late = 0  # that came after the decision, and taught
        self.fallbacks = 0  # offloads that were decided locally
        self.unasked = 0  # samples decided without the policy: paused, or when_down is "pause"
        self.unaffordable = 0  # samples decided without the policy: the budget was spent
        self.crowded = 0  # samples decided without asking: the window was full, or their time was over
        self.strangers = 0  # replies malformed, of another boot, forgotten, doubled, or without a usable label

    def busy(self) -> bool:
        """True while as many offloads are out as the window holds."""
        return len(self.pending) >= self.window

    def standing(self) -> int:
        """UP, SILENT, NOBODY or DOWN."""
        if not self.link.is_connected():
            return DOWN
        if not self.link.workers():
            return NOBODY
        return SILENT if self.quiet_ms else UP

    def slack(self) -> int:
        """Milliseconds until an offload in flight must be decided; many where none is."""
        least = FAR_MS
        now = ticks_ms()
        for entry in self.pending.values():
            least = min(least, self.wait_ms - ticks_diff(now, entry[SINCE]))
        return least

    def step(self, x, shape, remote, tag, since=None) -> None:
        """Decide one sample, or ask for it.

        x: the LDL's input; remote: the bytes an offload sends, of this shape or RAW; tag: the caller's. since: when the sample
        was due (ticks), from which its deadline counts; None: now.
        """
        began = ticks_ms()
        if since is None:
            since = began
        if self.dtype == wire.RAW:
            shape = (len(remote),)
        self._expire(max(0, self.step_ms - self.spare_ms))  # what would be late after this step
        self.samples += 1
        policy = self.policy
        budget = self.budget
        if budget:
            budget.earn(ticks_diff(began, self.earned))
            self.earned = began
        try:
            seen = self.ldl.bin(self.ldl.run(x))  # what the policy decides by: a bin, or many scores
        except Exception as error:  # a sample of the wrong size, a sensor's garbage: the cheaper mistake
            self.complain("local model", error)
            self._act(tag, -1, self.policy.safest_class(), FALLBACK)
            return
        k = policy.bin(seen)
        self.account.count_score(k)
        now = ticks_ms()
        self.step_ms = longest(self.step_ms, began)
        standing = self.standing()
        asks = standing == UP or (standing == SILENT and self._may_ask(now))
        left = self.wait_ms - ticks_diff(now, since)
        if self.paused or not (asks or self.when_down != "pause"):
            self.unasked += 1
        elif self.busy() or left <= 0:
            self.crowded += 1
        elif budget and not budget.affords(wire.request_size(shape, self.dtype, self.media)):
            self.unaffordable += 1
        else:
            self._charge(asks)
            self.changing = True
            try:
                action = policy.decide(seen)
            except Exception as error:  # no memory: it stays as it is, half changed, and whoever runs the node begins anew
                self.complain("policy", error)
                self._act(tag, k, self.policy.safest_class(), FALLBACK)
                return
            self.changing = False
            if action == OFFLOAD:
                self._offload(k, shape, remote, tag, since, left if asks else 0)
            else:
                self._act(tag, k, action, LOCAL)
            return
        self._act(tag, k, policy.likely(seen), FALLBACK)

    def _offload(self, k, shape, remote, tag, since, left):
        """Send a sample that the policy wants labelled; left: ms in which an answer is of use, 0 where nobody can be asked."""
        self.offloads += 1
        policy = self.policy
        ticket = policy.ticket
        payload = b""
        if left:
            try:
                if len(remote) > self.data_limit:
                    raise ValueError("%d bytes of data, the model takes %d" % (len(remote), self.data_limit))
                payload = wire.encode_request(
                    self.model_id, self.boot, ticket, shape, remote, left, policy.offload_chance(), k, self.dtype, self.media
                )
            except Exception as error:  # what the sensor gave does not fit, or there is no room for a copy of it
                self.complain("request", error)
        now = ticks_ms()
        self.pending[ticket] = (tag, k, policy.local, since, now, len(payload))
        if not payload or not self.link.send(payload):
            self._give_up(ticket)
            return
        self.account.paid += policy.beta
        if self.budget:
            self.budget.spend(len(payload))
        if self.quiet_ms:
            self.probe = ticket
            self.asked = now
            self.announced = self.link.presence.announced

    def poll(self, wait_ms: int = 0) -> None:
        """Take what replies have come, waiting at most wait_ms for the first; decide locally what is past its deadline."""
        for _ in range(AT_ONCE):  # a flood must not keep the samples waiting
            payload = self.link.receive(wait_ms)
            if payload is None:
                break
            self._reply(payload)
            wait_ms = 0
        # without a connection no answer comes, and making one may block: what is in flight is decided now
        self._expire(0 if self.link.is_connected() else self.wait_ms)

    def drop(self) -> None:
        """Decide locally all that is in flight at once; its labels teach no more."""
        for ticket in list(self.pending):
            self._give_up(ticket)

    def _may_ask(self, now):
        """Whether it is time to ask a silent worker again, or one has just come."""
        waited = ticks_diff(now, self.asked)
        return waited >= self.quiet_ms or waited < 0 or self.announced != self.link.presence.announced

    def _charge(self, asks):
        """What an offload is charged now: 1 while nobody can be asked and `when_down` says so, more while workers are busy or
        the budget is low."""
        policy = self.policy
        beta = policy.beta
        if not asks and self.when_down == "raise":
            beta = ONE
        elif self.load:
            beta += (ONE - beta) * self.load >> 15
        if self.budget:
            beta = min(ONE, beta + self.budget.price())
        if beta != policy.charge:
            policy.set_charge(beta)

    def _expire(self, ahead_ms):
        """Decide locally what is past its deadline, or will be in so many milliseconds. Its label may still come, and teach."""
        if not self.pending:
            return
        now = ticks_ms()
        for ticket in list(self.pending):
            waited = ticks_diff(now, self.pending[ticket][SINCE])
            if waited >= self.wait_ms - ahead_ms or waited < 0:  # or the clock has jumped back
                self._measure(self.wait_ms, self.pending[ticket][SIZE])
                self._no_answer(now, ticket)
                self._fall_back(ticket)

    def _no_answer(self, now, ticket):
        """An offload has had no answer: after some in a row the workers are silent, then only what was sent to try them."""
        self.unheard += 1
        if not self.quiet_ms:
            if self.unheard >= UNHEARD:
                self.quiet_ms = self.wait_ms + self.spare_ms
                self.asked = now
                self.announced = self.link.presence.announced
                self.probes = 0
        elif ticket == self.probe:
            self.quiet_ms = min(2 * self.quiet_ms, RAREST_MS)
            self.probes += 1
            if self.probes == DEAF:
                self.link.renew()  # it may be half dead

    def _measure(self, waited, size):
        """What an offload that is over has cost, Q15, for `learn`; the beta of the rounds to come follows it."""
        if not self.cost:
            return -1
        beta = self.cost.paid(waited, size)
        self.policy.set_beta(self.cost.next(self.policy.beta, beta))
        return beta

    def _reply(self, payload):
        try:
            status, boot, ticket, label, _ = wire.decode_reply(payload)
        except ValueError:
            self.strangers += 1
            return
        if boot != self.boot or label >= self.policy.classes:
            self.strangers += 1
            return
        if status == wire.NOBODY:  # a gateway's word, not a worker's
            self._no_answer(ticks_ms(), ticket)
        else:
            self.unheard = self.quiet_ms = 0
        if status == wire.BUSY:
            self.load += ONE - self.load >> 2
        elif status == wire.OK:
            self.load -= self.load + 7 >> 3
        else:
            self.complain("remote model", wire.STATUS[status])
        entry = self.pending.get(ticket)
        if status != wire.OK:
            if entry:
                self._give_up(ticket)
            elif self.policy.lose(ticket) < 0:
                self.strangers += 1
        elif entry:
            waited = ticks_diff(ticks_ms(), entry[SENT])
            beta = self._measure(waited, entry[SIZE])
            del self.pending[ticket]
            self.replies += 1
            if self._learned(ticket, label, beta):
                self.account.count_answer(self.policy, entry[BIN], entry[CLASS], label, waited)
            self._act(entry[TAG], entry[BIN], label, REMOTE)
        elif self._learned(ticket, label, -1):
            self.late += 1
        else:
            self.strangers += 1

    def _learned(self, ticket, label, beta):
        """Whether a label has taught. A policy that fails stays half changed (`changing`), and is not to be saved."""
        self.changing = True
        try:
            taught = self.policy.learn(ticket, label, beta)
        except Exception as error:
            self.complain("policy", error)
            return False
        self.changing = False
        return taught

    def _give_up(self, ticket):
        """Decide an offload locally; no label will come."""
        if not self.changing:
            self.policy.lose(ticket)
        self._fall_back(ticket)

    def _fall_back(self, ticket):
        entry = self.pending.pop(ticket)
        self.fallbacks += 1
        self._act(entry[TAG], entry[BIN], entry[CLASS], FALLBACK)

    def _act(self, tag, k, decision, source):
        self.last = (k, decision, source)
        try:
            self.actuate(tag, k, decision, source)
        except Exception as error:  # the decision is made: what is done with it is the caller's
            self.complain("act", error)
