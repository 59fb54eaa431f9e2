# The loop around a node: sensor, node, snapshots, telemetry, watchdog. One loop, bounded memory, no exception escapes it. The
# same file drives a board and a Pi.
import json

from .snapshot import restore, save

SOURCES = ("local", "remote", "fallback")  # what decisions are reported as: names of node.LOCAL, REMOTE, FALLBACK


def telemetry(node):
    """The counters of a node, for its retained state."""
    return {
        "samples": node.samples,
        "offloads": node.offloads,
        "replies": node.replies,
        "fallbacks": node.fallbacks,
        "strangers": node.strangers,
        "taught": node.policy.taught,
    }


class Service:
    """Runs a node for as long as there are samples.

    sensor: called without arguments, gives (LDL input, remote tensor, tag), or None when there is none (now, or ever again).
    store: a snapshot store, or None; every: samples between two saves. telemetry_every: samples between two reports.
    watchdog: called once a turn of the loop. log: called with a line of text about what went wrong.
    Counters: `errors` (exceptions caught), `saves`, `unsaved` (saves that failed).
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
        self.errors = self.saves = self.unsaved = 0
        self.restored = False
        if store:
            self._restore()

    def _restore(self):
        try:
            blob = self.store.load()
            if blob is not None:
                restore(self.node.policy, blob)
                self.restored = True
        except (ValueError, OSError) as error:
            self.log("snapshot not used: %s" % error)

    def save(self):
        """Write a snapshot over the older of the two; what cannot be written is counted and said, and work goes on."""
        try:
            self.store.save(save(self.node.policy))
            self.saves += 1
        except OSError as error:
            self.unsaved += 1
            self.log("snapshot not saved: %s" % error)

    def run(self, samples=0, idle_ms=5):
        """Work through `samples` samples (0: until the sensor has none), then wait for what is still in flight."""
        node = self.node
        left = samples
        while True:
            try:
                self.watchdog()
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
            except (ValueError, OSError, MemoryError, RuntimeError) as error:
                self.errors += 1
                self.log("sample %d: %s: %s" % (node.samples, type(error).__name__, error))
            left -= 1
            if left == 0:
                break
        while node.pending:
            self.watchdog()
            node.poll(idle_ms)
        if self.store:
            self.save()
        node.link.report(json.dumps(telemetry(node)))

    def _after(self):
        n = self.node.samples
        if self.telemetry_every and n % self.telemetry_every == 0:
            self.node.link.report(json.dumps(telemetry(self.node)))
        if self.store and n % self.every == 0:
            self.save()
