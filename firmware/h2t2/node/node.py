# The node: sample -> LDL -> policy -> act or offload -> learn. It knows the interfaces of its parts, not their kinds.
from ..clock import FAR_MS, longest, ticks_diff, ticks_ms
from ..core.numbers import ONE
from ..core.policy import OFFLOAD
from ..link import wire
from ..modules import IS_BOARD, call_once, text
from .asking import Asking

if 0:  # for type checkers
    from ..annotations import Any, Callable
    from ..core.budget import Budget
    from ..core.policy import Policy
    from ..ldl.ldl import Ldl
    from ..link.cost import LinkCost
    from ..link.link import Link

LOCAL, REMOTE, FALLBACK = 0, 1, 2  # source of a decision
UP, SILENT, NOBODY, DOWN = 0, 1, 2, 3  # what Node.standing() returns: the condition of the way to the remote model
STANDING = ("up", "silent", "nobody", "down")  # their names in the retained state

REPLIES_PER_POLL = 16
SILENT_AFTER = 3  # offloads in a row without an answer, after which the workers count as silent
RENEW_AFTER = 3  # probes in a row without an answer, after which the node makes a new connection
MAX_RETRY_MS = 60000  # between two probes of silent workers
WHEN_DOWN = ("ask", "raise", "pause")  # what to do while no worker answers: see Node
MAX_LOCATED = 8  # of Complaints
TAG, BIN, CLASS, DUE, SENT, SIZE, LEVEL = 0, 1, 2, 3, 4, 5, 6  # of an offload in flight


class Complaints:
    """Logs the 1st, 2nd, 4th, 8th ... trouble of each kind, so that it neither fills the log nor disappears.

    Attributes:
        counts: By kind.
        total: Of all kinds.
        locates: Whether the log names the lines of the user's program that raised an exception, once for each kind and type
            of exception, MAX_LOCATED in all.
        located: These kinds and types.
    """

    def __init__(self, log: "Callable[[str], object]"):
        """log: called with a line of text."""
        self.log = log
        self.counts = {}  # type: dict[str, int]
        self.total = 0
        self.locates = False
        self.located = []  # type: list[str]

    def __call__(self, kind: str, reason: "str | Exception") -> None:
        """Count trouble. kind: one of few, named in the code."""
        self.total += 1
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        lines = ""
        if isinstance(reason, Exception):
            name = type(reason).__name__
            key = "%s: %s" % (kind, name)
            if self.locates and key not in self.located and len(self.located) < MAX_LOCATED:
                self.located.append(key)
                try:
                    lines = call_once("node.tracebacks.user_lines", reason)
                except MemoryError:
                    pass
            reason = "%s: %s" % (name, reason)
        if lines or not n & (n - 1):
            self.log("%s: %s%s%s" % (kind, reason, lines, " (%d times so far)" % n if n > 1 else ""))


class Node(Asking):
    """An edge device. It calls `act` exactly once for every sample given to step(), within `deadline_ms`.

        node = Node(Adaptive(), open_ldl("ldl.h2m"), link, act, model_id=1, boot=link.boot)
        while True:
            node.step(x, (30,), remote, tag)  # act(tag, bin, decision, source) is called here,
            node.poll(100)  # or here, with an answer or at the deadline

    Args:
        policy: Decides about scores.
        ldl: The local model. For a policy of more than two classes it gives the scores of all (ldl.classes).
        link: The way to the remote model.
        act: Called with the sample's tag, its bin (-1: the local model failed), the decision, and its source.
        model_id: Number of the remote model, 0..65535.
        boot: Number of this start, 0..2^30 - 1; the last start had another.
        window: Largest number of offloads in flight, 1..8. The node decides further samples locally.
        deadline_ms: Time for a decision. The node waits for an answer seven eighths of it. A later label still teaches while
            the policy holds its ticket.
        when_down: What to do while the broker is away, no worker serves the model, or the workers are silent. "ask": the
            policy decides as usual, and an offload falls back at once. "raise": beta is 1 meanwhile, so that the policy
            offloads less. "pause": the policy is not asked and charges nothing. Silent workers are probed ever more rarely.
        cost: Sets beta, if given.
        log: Called with a line of text about a trouble.
        budget: If it does not afford an offload, the node decides without the policy; its price is added to beta.
        dtype, media: Of the data that an offload sends; media is the type of RAW bytes.
        data_limit: Largest number of data bytes. A larger sample falls back.

    Attributes:
        level: Score of the sample that `act` is called for, in 256ths, as of Ldl.level(); -1: the local model failed.
        reason: Why the last sample without a score had none.
        paused: Whether a command has paused offloads.
        decided_at: Ticks of the last sample that the policy decided; None: unknown.
        in_flight: Offloads without an answer by their tickets: (TAG, BIN, CLASS, DUE, SENT, SIZE, LEVEL).
        policy_torn: Whether an exception (Ctrl-C) interrupted a change of the policy. It is True during each change. Only a new
            start repairs a torn policy: nobody calls it any more, and it is not saved.
        safe_class: What the node answers once the policy is torn.
        step_ms: Time that the local model takes: the longest of late.
        load: How busy the workers are, Q15: the share by which an offload is charged more, up to 1.
        unanswered: Offloads in a row without an answer.
        retry_ms: Time between two probes of silent workers; 0: they are not silent.
        probes: Probes in a row without an answer.
        probe: Of the last one: its ticket, when it was sent, and the link's counter of workers that came.
        strangers: Malformed replies, and those of another boot, of an unknown ticket, or without a usable label.
    """

    def __init__(
        self,
        policy: "Policy",
        ldl: "Ldl",
        link: "Link",
        act: "Callable[[Any, int, int, int], object]",
        *,
        model_id: int,
        boot: int,
        window: int = 1,
        deadline_ms: int = 2000,
        when_down: str = "ask",
        cost: "LinkCost | None" = None,
        log: "Callable[[str], object]" = print,
        budget: "Budget | None" = None,
        dtype: int = wire.INT8,
        media: str = "",
        data_limit: int = wire.MAX_DATA,
    ):
        if when_down not in WHEN_DOWN:
            raise ValueError("when_down %r is not one of %s" % (when_down, ", ".join(WHEN_DOWN)))
        if not 1 <= window <= 8:
            raise ValueError("window %r is not in 1..8" % window)
        if not IS_BOARD and policy.bits > 8:  # entries.py checks it on boards
            raise ValueError("policy of %d bits: scores have 8" % policy.bits)
        Asking.__init__(self, policy.bits, deadline_ms, budget)
        self.policy = policy
        self.ldl = ldl
        self.link = link
        self.actuate = act
        self.model_id = model_id
        self.boot = boot
        self.window = window
        self.when_down = when_down
        self.cost = cost
        self.dtype = dtype
        self.media = media
        self.data_limit = data_limit
        self.complain = Complaints(log)
        self.in_flight = {}  # type: dict[int, tuple[Any, int, int, int, int, int, int]]
        self.level = -1
        self.reason = ""
        self.decided_at = None  # type: int | None
        self.paused = self.policy_torn = False
        self.safe_class = policy.safest_class()
        self.step_ms = self.load = 0
        self.unanswered = self.retry_ms = self.probes = 0
        self.probe = (0, 0, 0)
        self.strangers = 0
        if cost:
            policy.set_beta(cost.expected)

    def standing(self) -> int:
        """Return UP, SILENT, NOBODY or DOWN."""
        if not self.link.is_connected():
            return DOWN
        if not self.link.workers():
            return NOBODY
        return SILENT if self.retry_ms else UP

    def slack_ms(self) -> int:
        """Return the time until an offload in flight must be decided; FAR_MS without one."""
        slack = FAR_MS
        ticks = ticks_ms()
        for offload in self.in_flight.values():
            slack = min(slack, self.wait_ms - ticks_diff(ticks, offload[DUE]))
        return slack

    def step(self, x: "Any", shape: "tuple[int, ...]", remote: "Any", tag: "Any", due: "int | None" = None) -> None:
        """Decide a sample, or offload it.

        Args:
            x: Input of the local model, or the exception that says why there is none.
            shape: Of the remote tensor; ignored for RAW bytes.
            remote: Bytes that an offload sends, or the exception that says why there are none.
            tag: The caller's; `act` is called with it.
            due: Ticks from which the deadline counts; None: now.
        """
        began = ticks_ms()
        if due is None:
            due = began
        has_data = not isinstance(remote, Exception)
        if not has_data:
            self.complain("request", remote)
        elif self.dtype == wire.RAW:
            shape = (len(remote),)
        self._expire(max(0, self.step_ms - self.wait_ms // 7))  # what would be late after this step
        self.samples += 1
        policy = self.policy
        self.credit_budget(True)
        try:
            if isinstance(x, Exception):
                raise x
            output = self.ldl.run(x)
            self.level = self.ldl.level(output)
        except Exception as error:  # a sample of the wrong size, or garbage of a sensor
            self.complain("sensor" if error is x else "local model", error)
            self.reason = str(error)
            self.level = -1
            if not self.policy_torn:
                self.safe_class = policy.safest_class()
            self._bypass(tag, -1, self.safe_class)
            return
        if self.policy_torn:
            self._bypass(tag, -1, self.safe_class)
            return
        reading = policy.reading(output, self.level)
        k = policy.bin(reading)
        self.count_score(k)
        self.step_ms = longest(self.step_ms, began)
        ticks = ticks_ms()
        reachable = self._is_reachable(ticks)
        time_left = self.wait_ms - ticks_diff(ticks, due)
        may_ask = has_data and not self.paused and (reachable or self.when_down != "pause")
        size = wire.request_size(shape, self.dtype, self.media) if self.budget else 0
        if not self.may_decide(may_ask, time_left > 0 and len(self.in_flight) < self.window, size):
            self._bypass(tag, k, policy.likely(reading))
            return
        action = self.change(self._decide, reading, reachable)
        if action is None:
            self._bypass(tag, k, self.safe_class)
        elif action == OFFLOAD:
            self._offload((tag, k, policy.local, due), shape, remote, time_left if reachable else 0)
        else:
            self._act(tag, k, action, LOCAL)

    def _is_reachable(self, ticks: int) -> bool:
        """Return whether to send an offload: workers answer, or it is time to probe silent ones."""
        standing = self.standing()
        if standing != SILENT:
            return standing == UP
        waited = ticks_diff(ticks, self.probe[1])
        return waited >= self.retry_ms or waited < 0 or self.probe[2] != self.link.announcements

    def change(self, call: "Callable[..., Any]", *arguments: "Any") -> "Any":
        """Call what changes the policy and return its result; None if it fails: then the policy is torn.

        A policy that was torn before is not called. A ValueError that refuses a change is not expected here.
        """
        if self.policy_torn:
            return None
        self.policy_torn = True
        try:
            result = call(*arguments)
        except Exception as error:  # no memory: the service starts again
            self.complain("policy", error)
            return None
        self.policy_torn = False
        return result

    def _decide(self, reading: "Any", reachable: bool) -> int:
        """Let the policy decide, with a charge above beta while no worker answers, workers are busy, or the budget is low."""
        policy = self.policy
        ticks = ticks_ms()
        if self.decided_at is not None:
            policy.pass_time(ticks_diff(ticks, self.decided_at))
        self.decided_at = ticks
        beta = policy.beta
        if not reachable and self.when_down == "raise":
            beta = ONE
        elif self.load:
            beta += (ONE - beta) * self.load >> 15
        self.set_charge(policy, beta)
        return policy.decide(reading)

    def _offload(self, sample: "tuple[Any, int, int, int]", shape: "tuple[int, ...]", remote: bytes, time_left: int) -> None:
        """Send a sample, or fall back.

        Args:
            sample: Its tag, bin, fallback class and due ticks.
            shape, remote: As of step().
            time_left: Milliseconds in which an answer is of use; 0: no worker is reachable.
        """
        self.offloads += 1
        policy = self.policy
        ticket = policy.ticket
        request = b""
        if time_left:
            try:
                if len(remote) > self.data_limit:
                    raise ValueError("%d bytes of data, the model takes %d" % (len(remote), self.data_limit))
                request = wire.encode_request(
                    self.model_id,
                    self.boot,
                    ticket,
                    shape,
                    remote,
                    remaining_ms=time_left,
                    chance=policy.offload_chance(),
                    k=sample[1],
                    dtype=self.dtype,
                    media=self.media,
                )
            except Exception as error:  # the sensor's data do not fit, or the heap has no room for a copy
                self.complain("request", error)
        ticks = ticks_ms()
        self.in_flight[ticket] = sample + (ticks, len(request), self.level)
        if not request or not self.link.send(request):
            self._give_up(ticket)
            return
        self.pay(policy, len(request))
        if self.retry_ms:
            self.probe = (ticket, ticks, self.link.announcements)

    def poll(self, wait_ms: int = 0) -> None:
        """Take replies, waiting at most wait_ms for the first; decide offloads past their deadline locally."""
        for _ in range(REPLIES_PER_POLL):  # a flood of replies must not delay the samples
            payload = self.link.receive(wait_ms)
            if payload is None:
                break
            self._take_reply(payload)
            wait_ms = 0
        # without a connection no answer comes, and making one may block: decide all that is in flight now
        self._expire(0 if self.link.is_connected() else self.wait_ms)

    def give_up_all(self) -> None:
        """Decide all offloads in flight locally; their labels teach no more."""
        for ticket in list(self.in_flight):
            self._give_up(ticket)

    def _expire(self, ahead_ms: int) -> None:
        """Decide locally what is past its deadline or will be in so many milliseconds. Its label may still come and teach."""
        if not self.in_flight:
            return
        ticks = ticks_ms()
        for ticket in list(self.in_flight):
            offload = self.in_flight[ticket]
            waited = ticks_diff(ticks, offload[DUE])
            if waited >= self.wait_ms - ahead_ms or waited < 0:  # or the clock has jumped back
                self._measure(self.wait_ms, offload[SIZE])
                if self.link.is_connected() and not self.retry_ms:  # otherwise it was known that no answer may come
                    self.change(self.count_question, self.policy, offload[BIN], offload[CLASS], 0)
                self._count_unanswered(ticks, ticket)
                self._fall_back(ticket)

    def _count_unanswered(self, ticks: int, ticket: int) -> None:
        """Count an offload without an answer. After some in a row the workers are silent, and only probes count."""
        self.unanswered += 1
        if not self.retry_ms:
            if self.unanswered >= SILENT_AFTER:
                self.retry_ms = self.wait_ms * 8 // 7
                self.probes = 0
                self.probe = (self.probe[0], ticks, self.link.announcements)
        elif ticket == self.probe[0]:
            self.retry_ms = min(2 * self.retry_ms, MAX_RETRY_MS)
            self.probes += 1
            if self.probes == RENEW_AFTER:
                self.link.renew()  # the connection may be half dead

    def _measure(self, waited_ms: int, size: int) -> int:
        """Return the cost of a finished offload, Q15, for learn(), and let beta follow it; -1 without a LinkCost."""
        if not self.cost or self.policy_torn:
            return -1
        beta = self.cost.beta_of(waited_ms, size)
        self.policy.set_beta(self.cost.average(self.policy.beta, beta))
        return beta

    def _take_reply(self, payload: bytes) -> None:
        try:
            status, boot, ticket, label, _ = wire.decode_reply(payload)
        except ValueError:
            self.strangers += 1
            return
        if boot != self.boot or label >= self.policy.classes:
            self.strangers += 1
            return
        self._note_status(status, ticket)
        offload = self.in_flight.get(ticket)
        if status != wire.OK:
            if offload:
                if status not in (wire.NOBODY, wire.LATER, wire.BUSY):
                    self.change(self.count_question, self.policy, offload[BIN], offload[CLASS], 0)
                self._give_up(ticket)
            elif self.policy_torn or self.policy.lose(ticket) < 0:
                self.strangers += 1
        elif offload:
            waited_ms = ticks_diff(ticks_ms(), offload[SENT])
            beta = self._measure(waited_ms, offload[SIZE])
            del self.in_flight[ticket]
            self.replies += 1
            self.change(self.count_question, self.policy, offload[BIN], offload[CLASS], 1)
            if self.change(self.policy.learn, ticket, label, beta):
                self.count_answer(self.policy, offload[BIN], offload[CLASS], label, waited_ms)
            self.level = offload[LEVEL]
            self._act(offload[TAG], offload[BIN], label, REMOTE)
        elif self.change(self.policy.learn, ticket, label, -1):
            self.late += 1
        else:
            self.strangers += 1

    def _note_status(self, status: int, ticket: int) -> None:
        """Update what the node knows of the workers."""
        if status == wire.NOBODY or status == wire.LATER:  # a gateway or a worker says so: the remote model is away
            self._count_unanswered(ticks_ms(), ticket)
        else:
            self.unanswered = self.retry_ms = 0
        if status == wire.BUSY:
            self.load += ONE - self.load >> 2
        elif status == wire.OK:
            self.load -= self.load + 7 >> 3
        else:
            self.complain("remote model", text("link.statuses.STATUS", status))

    def _give_up(self, ticket: int) -> None:
        """Decide an offload locally; no label will come."""
        if not self.policy_torn:
            self.policy.lose(ticket)
        self._fall_back(ticket)

    def _fall_back(self, ticket: int) -> None:
        offload = self.in_flight.pop(ticket)
        self.fallbacks += 1
        self.level = offload[LEVEL]
        self._bypass(offload[TAG], offload[BIN], offload[CLASS], ticket)

    def _bypass(self, tag: "Any", k: int, decision: int, ticket: int = 0) -> None:
        """Act on a class that neither the policy nor an answer has decided. ticket: as of MissRate.bypass()."""
        policy = self.policy
        if policy.limit and not self.policy_torn:
            decision = policy.limit.bypass(policy, decision, ticket)
        self._act(tag, k, decision, FALLBACK)

    def _act(self, tag: "Any", k: int, decision: int, source: int) -> None:
        self.last = (k, decision, source)
        try:
            self.actuate(tag, k, decision, source)
        except Exception as error:  # the decision stands; the caller's action failed
            self.complain("act", error)
