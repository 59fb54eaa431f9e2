# The loop around a node: sensor, node, snapshots, commands, telemetry, watchdog; and its reports, whose entries docs/json.md
# explains. One loop, bounded memory; no exception escapes it. The same file drives a board and a Pi.
from .. import __version__
from ..clock import Stopwatch, ticks_ms, unix_now
from ..link import wire
from ..modules import IS_BOARD, forget, text
from . import snapshot
from .board import DEAF as DEAF_RADIO
from .board import UPDATED, pause
from .node import DOWN, STANDING, UP
from .remarks import DEAF, NAMESAKE, TORN
from .sensing import PARTIAL

if 0:  # for type checkers
    from ..annotations import Any, App, Callable, Iterator
    from .keeper import Keeper
    from .limit import Limit
    from .node import Node
    from .sensing import Sensing
    from .sleep import Sleep
    from .update import Updates

SOURCES = ("local", "remote", "fallback")  # names of node.LOCAL, REMOTE, FALLBACK in reports
COMMANDS_PER_TURN = 4  # an update comes in many commands
DECISION_S = 1  # between two reports of changed decisions
FAILED_MS = 10  # pause after a turn that failed
IDLE_MS, BUSY_MS = 50, 5  # longest wait between two looks at sensor and commands: with a schedule, and without


def show(tag: "Any", k: int, decision: int, source: int) -> None:
    """Print a decision as a JSON line."""
    print('{"n": %d, "bin": %d, "decision": %d, "source": "%s"}' % (tag, k, decision, SOURCES[source]))


class Service:
    """Runs a node for as long as there are samples. start.service() makes it of a configuration.

        node = service(config, link, act, sensor=measure)
        node.run()  # until measure() raises StopIteration

    Args:
        node: A Node.
        sensing: Its sensor.
        keeper: Saves its policy.
        shape: Of the remote tensor.
        telemetry_s: Seconds between two reports of the state; 0: the state is reported after changes only.
        watchdog: Called once a turn of the loop.
        log: Called with a line of text about trouble, and about changes between the node and the remote model.
        cause: Of this start, for the state.
        app: The user's program.
        sleep: If given, the service sleeps while a schedule leaves time and nothing is in flight.
        report_decisions: Report the state within a second after a decision that differs from the last reported one.
        updates: Takes updates of the local model.
        class_names: Names of the classes for the state, or None.

    Attributes:
        next_cause: Cause of the start that follows the end of run(); "": none follows.
        errors: Counter of exceptions caught.
        carried_out: Counter of commands.
        refused: Counter of commands that were malformed, expired, too many, or impossible.
        limit, answers: Of commands.take().
    """

    def __init__(
        self,
        node: "Node",
        sensing: "Sensing",
        keeper: "Keeper",
        *,
        shape: "tuple[int, ...]",
        telemetry_s: int = 10,
        watchdog: "Callable[[], object]" = lambda: None,
        log: "Callable[[str], object]" = print,
        cause: str = "",
        app: "App | None" = None,
        sleep: "Sleep | None" = None,
        report_decisions: bool = False,
        updates: "Updates | None" = None,
        class_names: "list[str] | None" = None,
    ):
        self.node = node
        self.sensing = sensing
        self.shape = shape
        self.keeper = keeper
        self.telemetry_s = telemetry_s
        self.watchdog = watchdog
        self.log = log
        self.cause = cause
        self.app = app
        self.sleep = sleep
        self.report_decisions = report_decisions
        self.updates = updates
        self.class_names = class_names
        self.next_cause = ""
        self.stopping = self.namesakes = False
        self.errors = 0
        self.room: "bytearray | None" = None
        self._reserve()
        self.limit: "Limit | None" = None
        self.answers: "list[tuple[str, str]]" = []
        self.carried_out = self.refused = 0
        self.commands_loaded = False  # whether a board has the code of commands in memory
        self.watch = Stopwatch()
        self.reported_at = -telemetry_s  # seconds of `watch`; the first report is due at once
        self.reported_decision = -1
        self.pause_end = -1  # seconds of `watch`
        self.standing = UP
        self.trouble = ""  # why the broker was away the last time

    def stop(self, next_cause: str = "") -> None:
        """End run() soon. It decides what is in flight at once and saves the policy. next_cause: of a start that follows."""
        self.stopping = True
        self.next_cause = self.next_cause or next_cause

    def run(self, samples: int = 0) -> "Any":
        """Work through `samples` samples (0: until the sensor ends), then wait for what is in flight."""
        for wait_ms in self.turns(samples):
            try:
                self.node.poll(wait_ms)
            except Exception as error:
                self._count_error(error)

    def turns(self, samples: int) -> "Iterator[int]":
        """Do one turn after the other; yield for how many milliseconds the caller may poll the node before the next."""
        node = self.node
        end = node.samples + samples if samples else -1
        self.sensing.due = ticks_ms()  # the first sample is due now
        while not self.stopping and not self.sensing.ended and node.samples != end:
            try:
                wait_ms = self._turn()
            except Exception as error:
                self._count_error(error)
                wait_ms = 0
            yield wait_ms
        while node.in_flight and not self.stopping:
            self.watchdog()
            yield BUSY_MS
        self.end(not self.sensing.ended)
        self.report_state()

    def end(self, orderly: bool = False) -> None:
        """Decide what is in flight and save the policy. orderly: the program itself would have gone on."""
        self.node.give_up_all()
        keeper = self.keeper
        if keeper.spent:
            keeper.spent.ended = True
        if keeper.policy.limit:
            keeper.policy.limit.end()
        self.save()
        if orderly and self.updates:
            self.updates.pause(self)

    def save(self) -> None:
        """Save the policy, unless it is torn."""
        if not self.node.policy_torn:
            self.keeper.save()

    def _turn(self) -> int:
        """Take commands, report, and decide a sample if one is due; return for how long to wait afterwards, ms."""
        self.watchdog()
        if self.node.policy_torn:
            self._remark(TORN)
            self.stop(UPDATED)
            return 0
        self._housekeeping()
        node = self.node
        sensing = self.sensing
        sample = None
        if not (sensing.patient and len(node.in_flight) >= node.window):
            sample = sensing.take(node.slack_ms())
        if sample is None:
            wait_ms = min(sensing.wait_ms(), IDLE_MS) or BUSY_MS
            if sensing.ended or self.sleep and self.sleep.take_turn(sensing.wait_ms(), self):
                return 0
            return max(0, min(wait_ms, node.slack_ms()))
        if self.app:
            self.app.log_measurements(self._remark)
        if sample is not PARTIAL:
            x, remote, tag = sample
            sensing.errors += isinstance(x, Exception) or isinstance(remote, Exception)
            node.step(x, self.shape, remote, tag, sensing.since)
            if self.keeper.is_due():
                self.save()
        return 0

    def _count_error(self, error: Exception) -> None:
        """Count and log an error, and pause: a second try would fail as well."""
        self.errors += 1
        self.node.complain("error", error)
        pause(FAILED_MS)

    def _answer(self, payload: bytes) -> str:
        """Carry out what came on the command topic; return the answer."""
        if not self.updates or not self.updates.takes(payload):
            self.room = None  # for the code of commands
            try:
                from .commands import carry_out, take

                self.commands_loaded = IS_BOARD
                return take(self, payload, carry_out)
            finally:
                self._reserve()
        answer, installed = self.updates.take(payload, self)
        if installed:
            self.stop(UPDATED)
        return answer

    def _housekeeping(self) -> None:
        """Take commands; report the state if it is due or has changed."""
        link = self.node.link
        carried_out = self.carried_out
        for _ in range(COMMANDS_PER_TURN):
            payload = link.command()
            if payload is None:
                if self.commands_loaded:
                    forget("node.commands")
                    self.commands_loaded = False
                break
            link.answer(self._answer(payload))
        changed = self.carried_out != carried_out
        if self.updates:
            if self.updates.look(self):
                self.stop(UPDATED)
            changed = self.updates.news() or changed
        seconds = self.watch.seconds()
        if self.pause_end >= 0 and seconds >= self.pause_end:
            self.pause_end = -1
            self.node.paused = False
            changed = True
        changed = self._log_link() or changed
        if link.is_deaf():
            self._remark(DEAF)
            self.stop(DEAF_RADIO)
        since = seconds - self.reported_at
        last = self.node.last
        if self.report_decisions and last and last[1] != self.reported_decision and since >= DECISION_S:
            changed = True
        if changed or (self.telemetry_s and not 0 <= since < self.telemetry_s):
            self.report_state()

    def _log_link(self) -> bool:
        """Log changes between the node and the remote model; return whether there are any."""
        node = self.node
        changed = False
        standing = node.standing()
        reason = node.link.trouble if standing == DOWN else ""
        self.trouble = reason or self.trouble
        if standing != self.standing:
            self._remark(standing, reason)
            self.standing = standing
            changed = True
        if node.link.has_namesake() != self.namesakes:
            self.namesakes = not self.namesakes
            if self.namesakes:
                self._remark(NAMESAKE)
            changed = True
        return changed

    def _remark(self, number: int, detail: str = "") -> None:
        """Log a remark."""
        self.log(text("node.remarks.TEXTS", number) + (" (%s)" % detail if detail else ""))

    def report_state(self, entries: "dict[str, Any] | None" = None) -> None:
        """Report the state if that is possible; a sleep and the end do not wait for it. entries: of the state, made before."""
        last = self.node.last
        self.reported_decision = last[1] if last else -1
        self.reported_at = self.watch.seconds()
        self.room = None
        try:
            self.node.link.report_state(entries or state(self))
        except Exception as error:
            self._count_error(error)
        finally:
            self._reserve()

    def _reserve(self) -> None:
        """Keep an unbroken block free for the next report: later the heap of a board is in pieces."""
        if IS_BOARD and self.node.link.report_room:
            try:
                self.room = bytearray(self.node.link.report_room)
            except MemoryError:
                pass


def state(running: Service) -> "dict[str, Any]":
    """Return the counters and the condition of a service."""
    node = running.node
    policy = node.policy
    entries = node.report("strangers", "paused", "boot")
    copy(entries, running, "trouble", "namesakes", "telemetry_s")
    copy(entries, policy, "bits", "classes", "beta")
    if policy.classes == 2:
        copy(entries, policy, "delta_fp", "delta_fn", "rdl_fp", "rdl_fn")
    entries.update(
        model=node.model_id,
        taught=policy.lessons,
        complaints=node.complain.total,
        errors=running.errors,
        sensor_errors=running.sensing.errors,
        act_errors=node.complain.counts.get("act", 0),
        skipped=running.sensing.skipped,
        budget=max(0, node.budget.level) * 100 // node.budget.capacity if node.budget else 100,
        link=STANDING[node.standing()],
        time=unix_now(),
        uptime_s=running.watch.seconds(),
        start=running.cause,
        policy=policy.name,
        runtime=__version__,
        wire=wire.VERSION,
        snapshot=snapshot.VERSION,
        snapshot_age_s=running.keeper.age(),
    )
    if running.class_names:
        entries["class_names"] = running.class_names
    if running.app:
        entries.update(running.app.report())
    if running.sleep:
        running.sleep.count(node.offloads)
        entries.update(running.sleep.report())
    if running.updates:
        entries["update"] = running.updates.report()
    if not node.policy_torn:
        entries.update(policy.report())
    return entries


def summary(running: Service) -> "dict[str, Any]":
    """Return the state of a service at its end, with the counters of its keeper, its link and its commands."""
    entries = state(running)
    entries.update(commands=running.carried_out, commands_refused=running.refused)
    copy(entries, running.keeper, "restored", "saves", "unsaved")
    copy(entries, running.node.link, "connections", "oversize", "dropped", "refused")
    return entries


def copy(entries: "dict[str, Any]", owner: object, *names: str) -> None:
    """Add attributes of an object to entries of the state."""
    for name in names:
        entries[name] = getattr(owner, name)
