# The loop around a node: sensor, node, snapshots, telemetry, watchdog. One loop, bounded memory, no exception escapes it. The
# same file drives a board and a Pi.
import json

from ..clock import ticks_add, ticks_diff, ticks_ms
from .commands import Limit, parse
from .snapshot import restore, save

SOURCES = ("local", "remote", "fallback")  # what decisions are reported as: names of node.LOCAL, REMOTE, FALLBACK


def telemetry(node) -> dict:
    """The counters of a node, for its retained state."""
    return {
        "samples": node.samples,
        "offloads": node.offloads,
        "replies": node.replies,
        "fallbacks": node.fallbacks,
        "unasked": node.unasked,
        "strangers": node.strangers,
        "taught": node.policy.taught,
    }


class Service:
    """Runs a node for as long as there are samples.

    sensor: called without arguments, gives (LDL input, remote tensor, tag), or None when there is none (now, or ever again).
    store: a snapshot store, or None; every: samples between two saves. telemetry_every: samples between two reports.
    watchdog: called once a turn of the loop. log: called with a line of text about what went wrong.
    Counters: `errors` (exceptions caught), `saves`, `unsaved` (saves that failed), `commands` (carried out), `commands_refused`
    (malformed, or more than commands.Limit lets through).
    """

    def __init__(self, node, sensor, shape, store=None, every=500, telemetry_every=100, watchdog=lambda: None, log=print):
        self.node = node
        self.sensor = sensor
        self.shape = shape
        self.store = store
        self.every = every
        self.telemetry_every = telemetry_every
        self.watchdog = watchdog
        self.log = log
        self.errors = self.saves = self.unsaved = self.commands = self.commands_refused = 0
        self.restored = False
        self.limit = Limit()
        self.pause_left = 0  # seconds of a pause still to come
        self.pause_since = 0
        if store:
            self._restore()

    def _restore(self):
        try:
            blob = self.store.load()
            if blob is not None:
                restore(self.node.policy, blob)
                if self.node.cost:  # what is measured now says more than what was measured then
                    self.node.policy.set_beta(self.node.cost.expected)
                self.restored = True
        except (ValueError, OSError) as error:
            self.log("snapshot not used: %s" % error)

    def save(self) -> None:
        """Write a snapshot over the older of the two; what cannot be written is counted and said, and work goes on."""
        try:
            self.store.save(save(self.node.policy))
            self.saves += 1
        except OSError as error:
            self.unsaved += 1
            self.log("snapshot not saved: %s" % error)

    def run(self, samples: int = 0, idle_ms: int = 5) -> None:
        """Work through `samples` samples (0: until the sensor has none), then wait for what is still in flight."""
        node = self.node
        left = samples
        while True:
            try:
                self.watchdog()
                self._command()
                if node.busy():
                    node.poll(idle_ms)
                    continue
                given = self.sensor()
                if given is None:
                    break
                x, remote, tag = given
                node.step(x, self.shape, remote, tag)
                node.poll(0)
                self._after()
            except Exception as error:
                self._caught(error)
            left -= 1
            if left == 0:
                break
        while node.pending:
            try:
                self.watchdog()
                node.poll(idle_ms)
            except Exception as error:
                self._caught(error)
        if self.store:
            self.save()
        node.link.report(json.dumps(telemetry(node)))

    def _caught(self, error):
        self.errors += 1
        self.log("sample %d: %s: %s" % (self.node.samples, type(error).__name__, error))

    def _after(self):
        n = self.node.samples
        if self.telemetry_every and n % self.telemetry_every == 0:
            self.node.link.report(json.dumps(telemetry(self.node)))
        if self.store and n % self.every == 0:
            self.save()

    def _command(self):
        """Carry out at most one command; end a pause that is over."""
        if self.pause_left:
            self._count_down()
        payload = self.node.link.command()
        if payload is None:
            return
        try:
            what, value = parse(payload)
            if not self.limit.passes():
                raise ValueError("more commands than one each 15 s")
        except ValueError as error:
            self.commands_refused += 1
            if self.commands_refused < 20 or not self.commands_refused & 1023:  # a stranger must not fill the log
                self.log("command refused: %s" % error)
            return
        self.commands += 1
        self.log("command: %s" % what)
        policy = self.node.policy
        if what == "set":
            policy.set_deltas(value.get("delta_fp", policy.delta_fp), value.get("delta_fn", policy.delta_fn))
            policy.set_beta(value.get("beta", policy.beta))
        elif what == "pause":
            self.pause_left = value
            self.pause_since = ticks_ms()
            self.node.paused = value > 0
        elif what == "reset":
            self.node.drop()
            policy.reset()
        if self.store and what != "pause":
            self.save()

    def _count_down(self):
        """A pause may be longer than the ticks' period: it is counted second by second."""
        waited = ticks_diff(ticks_ms(), self.pause_since) // 1000
        if waited < 0:
            self.pause_since = ticks_ms()
        elif waited:
            self.pause_left = max(0, self.pause_left - waited)
            self.pause_since = ticks_add(self.pause_since, waited * 1000)
        self.node.paused = self.pause_left > 0
