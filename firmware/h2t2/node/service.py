# The loop around a node: sensor, node, snapshots, commands, telemetry, watchdog. One loop, bounded memory, no exception escapes
# it. The same file drives a board and a Pi.
import json

from ..clock import Stopwatch
from .board import rest
from .commands import Desk
from .node import DOWN, STANDINGS, UP
from .state import state

SOURCES = ("local", "remote", "fallback")  # what decisions are reported as: names of node.LOCAL, REMOTE, FALLBACK
COMMANDS = 4  # that are taken at once: an update comes in many
DECISION_S = 1  # seconds between two reports for the sake of a changed decision
FAILED_MS = 10  # between two turns, the first of which failed
IDLE_MS, BUSY_MS = 50, 5  # the longest waits between two looks at sensor and commands: with a schedule, and without


class Service:
    """Runs a node for as long as there are samples.

    sensing: a Sensing. keeper: a Keeper. shape: of the remote tensor. telemetry_s: seconds between two reports of the state, 0:
    at changes only. watchdog: called once a turn of the loop. log: called with a line of text, about what went wrong and about
    every change between the node and its remote model. cause: why this start was, for the state. app: an App, or None. sleep: a
    Sleep, or None: it sleeps where a schedule leaves time and nothing is in flight.
    report_decisions: the state is reported within a second after a decision that differs from the last reported one.
    updates: an Updates, or None; `again` is set when it wants the node put together anew.
    Counter: `errors` (exceptions caught).
    """

    def __init__(
        self, node, sensing, keeper, *, shape, telemetry_s=10, watchdog=lambda: None, log=print, cause="", app=None, sleep=None,
        report_decisions=False, updates=None
    ):  # fmt: skip
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
        self.again = False
        self.errors = 0
        self.outside = 0  # samples with a number far outside, at the last look
        self.desk = Desk(self._carry_out, log)
        self.watch = Stopwatch()
        self.said = -telemetry_s  # seconds of `watch` at the last report; the first is due at once
        self.pause_end = -1  # seconds of `watch`
        self.reported = -1  # the decision in the last report
        self.standing = UP
        self.trouble = ""  # why the broker was away the last time
        self.namesakes = False
        self.stopping = False

    def stop(self) -> None:
        """End run() soon: what is in flight is decided at once, what was learned is saved."""
        self.stopping = True

    def run(self, samples: int = 0) -> None:
        """Work through `samples` samples (0: until the sensor has no more), then wait for what is still in flight."""
        node = self.node
        end = node.samples + samples if samples else -1
        self.sensing.start()
        while not self.stopping and not self.sensing.ended and node.samples != end:
            try:
                self._turn()
            except Exception as error:
                self._caught(error)
                rest(FAILED_MS)  # what failed fails again at once, as a rule
        while node.pending and not self.stopping:
            try:
                self.watchdog()
                node.poll(BUSY_MS)
            except Exception as error:
                self._caught(error)
        self.end()
        self._report_if_possible()

    def end(self) -> None:
        """Decide what is in flight and save what was learned, unless that is half changed."""
        self.node.drop()
        if not self.node.changing:
            self.keeper.save()

    def _turn(self):
        self.watchdog()
        self._look()
        node = self.node
        sensing = self.sensing
        given = None
        if not (sensing.patient and node.busy()):
            given = sensing.take(node.slack())
        if given is None:
            wait = min(sensing.wait(), IDLE_MS) or BUSY_MS
            if not sensing.ended and not self._slept(sensing.wait()):
                node.poll(max(0, min(wait, node.slack())))
            return
        if self.app:
            self._outside(self.app.saturated())
        x, remote, tag = given
        node.step(x, self.shape, remote, tag, sensing.since)
        node.poll(0)
        if node.changing:
            self.log("policy half changed: starting again from what was saved")
            self._start_again()
            return
        self.keeper.save_if_due()

    def _outside(self, n):
        """Say the 1st, 2nd, 4th, 8th ... sample that no calibration saw the like of."""
        if n != self.outside and not n & (n - 1):
            self.log("a number far outside what the models were calibrated with (%d samples so far)" % n)
        self.outside = n

    def _slept(self, ms):
        """Sleep until the next sample is due, where that is worth it. Deep sleep ends this start; what was learned is saved."""
        sleep = self.sleep
        node = self.node
        if not sleep or not node.samples or node.pending or node.link.is_connecting() or not sleep.worth(ms, node.link):
            return False
        if sleep.deep:
            self.keeper.save()
            self._report_if_possible()
        sleep.nap(ms, node, self.watchdog)
        return True

    def _report_if_possible(self):
        """The last report before a sleep or the end, neither of which waits for it."""
        try:
            self._report()
        except Exception as error:
            self._caught(error)

    def _caught(self, error):
        self.errors += 1
        self.node.complain("error", error)

    def _look(self):
        """What else there is to see to: a command, the end of a pause, news to tell, the state to report."""
        node = self.node
        done = self.desk.carried_out
        for _ in range(COMMANDS):
            payload = node.link.command()
            if payload is None:
                break
            node.link.answer(self._told(payload))
        changed = self.desk.carried_out != done  # what it is now is seen at once
        if self.updates:
            if self.updates.look(self):
                self._start_again()
            changed = changed or self.updates.news()
        now = self.watch.seconds()
        if self.pause_end >= 0 and now >= self.pause_end:
            self.pause_end = -1
            node.paused = False
            changed = True
        standing = node.standing()
        why = standing == DOWN and node.link.trouble
        self.trouble = why or self.trouble
        if standing != self.standing:
            self.log("from now on: %s%s" % (STANDINGS[standing], " (%s)" % why if why else ""))
            self.standing = standing
            changed = True
        if node.link.namesakes.found() != self.namesakes:
            self.namesakes = not self.namesakes
            self.log("another device bears this name: each takes the other's connection away; rename one")
            changed = True
        if self.report_decisions and node.last and node.last[1] != self.reported and now - self.said >= DECISION_S:
            changed = True
        if changed or (self.telemetry_s and not 0 <= now - self.said < self.telemetry_s):
            self._report()

    def _told(self, payload):
        """The answer to what came on the command topic."""
        if not self.updates or not self.updates.takes(payload):
            return self.desk.take(payload)
        answer, installed = self.updates.take(payload, self)
        if installed:
            self._start_again()
        return answer

    def _start_again(self):
        self.again = True
        self.stop()

    def _report(self):
        last = self.node.last
        self.reported = last[1] if last else -1
        self.said = self.watch.seconds()
        self.node.link.report(json.dumps(state(self)))

    def _carry_out(self, command):
        """Do what a command says; what its sender should know, or None."""
        policy = self.node.policy
        value = command.value
        if command.what == "pause":
            self.pause_end = self.watch.seconds() + value if value else -1
            self.node.paused = value > 0
            return None
        note = None
        if command.what == "set":
            if "costs" in value and policy.classes == 2:
                raise ValueError("policy %s decides between two classes: set delta_fp and delta_fn" % policy.name)
            policy.set_deltas(value.get("delta_fp", policy.delta_fp), value.get("delta_fn", policy.delta_fn))
            if "costs" in value:
                policy.change_costs(value["costs"])
            if "beta" in value and self.node.cost:
                note = "beta follows what offloads cost: it will not stay"
            policy.set_beta(value.get("beta", policy.beta))
        elif command.what == "prior":
            policy.set_prior(value)
        elif command.what == "reset":
            self.node.drop()
            policy.reset()
        unsaved = self.keeper.unsaved
        self.keeper.save()
        if self.keeper.unsaved > unsaved:
            return "done, and not saved"
        return note
