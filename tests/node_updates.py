"""A node that takes updates, and packages for it."""

import hashlib
import json
import shutil
from struct import pack
from types import SimpleNamespace

from h2t2.ldl.open import open_ldl
from h2t2.node import package as package_format
from h2t2.node.account import Account
from h2t2.node.node import UP
from h2t2.node.update import Updates
from h2t2_tools.common import pairs
from h2t2_tools.fleet.update import keys, package

PAIR = pairs.load("breast_cancer")
BLOB = (PAIR.folder / "ldl.h2m").read_bytes()
OTHER_BLOB = (pairs.load("digits").folder / "ldl.h2m").read_bytes()


def made_key(folder, name="fleet"):
    """Create a key. private: its file; modulus: the part that nodes know."""
    private, public = keys.make(folder / name)
    return SimpleNamespace(private=private, modulus=keys.modulus(public))


def signed(key, counter=7, blob=BLOB, seconds=0, **options):
    return package.build(PAIR, blob, key.private, package.Options(counter, trial=50, seconds=seconds, **options))


def body(key, more, counter=7):
    """Return a signed package whose part MORE holds these bytes."""
    genuine = signed(key, counter)
    parts = genuine.content[package_format.SIGNED :]
    at = parts.index(b"MORE")
    content = parts[:at] + pack("<4sI", b"MORE", len(more)) + more
    numbers = genuine.head.model, counter, len(content), 50
    head = pack("<4sBBHIII32s", b"H2TU", package_format.VERSION, 0, *numbers, hashlib.sha256(content).digest())
    return package.Package(head + keys.sign(key.private, head) + content, genuine.head, {})


class Device:
    """A node's Updates in a folder, and the steps of a start of that node."""

    def __init__(self, folder, key, max_bytes=1 << 16, app=False, **config):
        shutil.copyfile(PAIR.folder / "ldl.h2m", folder / "ldl.h2m")
        self.folder, self.log_lines = folder, []
        self.config = {
            "ldl": str(folder / "ldl.h2m"), "snapshot": str(folder / "state"), "event": 1, "model_id": 1, "policy": "adaptive",
            "arguments": {"bits": 4}, "update": {"key": key.modulus, "max_bytes": max_bytes, "app": app}, **config,
        }  # fmt: skip
        self.start()

    def start(self):
        """Start the node. Return the configuration that is then in force."""
        while True:
            self.updates = Updates(self.config, self.log_lines.append)
            config = self.updates.begin()
            try:
                self.updates.test(open_ldl(config["ldl"], config["event"]))
                return config
            except Exception as error:
                assert self.updates.failed(error), error

    def begun(self):
        """Return the configuration with which a start begins; the start may still fail."""
        self.updates = Updates(self.config, self.log_lines.append)
        return self.updates.begin()

    def take(self, payload, running=None):
        """Pass a chunk. Return the answer, and whether the node restarts."""
        answer, again = self.updates.take(payload, running or service())
        return json.loads(answer), again

    def bring(self, signed_package, first=0):
        """Pass every chunk of a package. Return the last answer, and whether the node restarts."""
        offset = first
        while True:
            answer, again = self.take(signed_package.chunk(offset))
            if again or not answer["ok"]:
                return answer, again
            assert answer["next"] > offset
            offset = answer["next"]


def service(
    samples=100, cost=100, answered=3, fallbacks=0, errors=0, lost=0, sensor_errors=0, act_errors=0, offloads=100, retry_ms=None
):  # fmt: skip
    """Return a running node that has decided some samples.

    cost: thousandths that each answered offload would have cost locally; offloads: their number; fallbacks: offloads without an
    answer; retry_ms: pause after failures of the sensor.
    """
    account = Account(4)
    for k in range(16):
        account.scores[k] = (samples - lost) // 16 + (k < (samples - lost) % 16)
        account.answered[k] = answered
        account.local_cost[k] = cost * answered
    node = SimpleNamespace(samples=samples, account=account, offloads=offloads, fallbacks=fallbacks)
    node.complain = SimpleNamespace(counts={"act": act_errors})
    sensing = SimpleNamespace(errors=sensor_errors, period_s=0, retry_ms=0)
    sensing.retry_ms = retry_ms if retry_ms is not None else 100 * sensor_errors
    return SimpleNamespace(node=node, errors=errors, sensing=sensing, standing=UP)
