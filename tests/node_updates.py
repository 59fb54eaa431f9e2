"""A node that takes updates, and packages for it."""

import builtins
import errno
import hashlib
import itertools
import json
import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from struct import pack
from types import SimpleNamespace

from h2t2.ldl.open import open_ldl
from h2t2.node import board, update
from h2t2.node import package as package_format
from h2t2.node.asking import Asking
from h2t2.node.node import UP
from h2t2.node.update import Updates
from h2t2_tools.common import pairs
from h2t2_tools.fleet.update import keys, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions

PAIR = pairs.load("breast_cancer")
BLOB = (PAIR.folder / "ldl.h2m").read_bytes()
OTHER_BLOB = (pairs.load("digits").folder / "ldl.h2m").read_bytes()


def made_key(folder, name="fleet"):
    """Create a key. private, public: its files; modulus, id: the part that nodes know, and its name."""
    private, public = keys.make(folder / name)
    modulus = keys.modulus(public)
    return SimpleNamespace(private=private, public=public, modulus=modulus, id=package_format.key_id(bytes.fromhex(modulus)))


def signed(key, counter=7, blob=BLOB, seconds=0, *, costs=None, shares=None, **options):
    chosen = PackageOptions(counter=counter, trial=50, trial_time=seconds, **options)
    return signed_package.build(PAIR, blob, key.private, chosen, costs=costs, shares=shares)


def body(key, more, counter=7):
    """Return a signed package whose part MORE holds these bytes."""
    genuine = signed(key, counter)
    parts = genuine.content[package_format.SIGNED :]
    at = parts.index(b"MORE")
    content = parts[:at] + pack("<4sI", b"MORE", len(more)) + more
    numbers = genuine.head.model, counter, len(content), 50
    head = pack("<4sBBHIII32s", b"H2TU", package_format.VERSION, 0, *numbers, hashlib.sha256(content).digest())
    return signed_package.Package(head + keys.sign(key.private, head) + content, genuine.head, {})


class Device:
    """A node's Updates in a folder, and the steps of a start of that node. running: the configuration of the last start."""

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
                self.running = config
                return config
            except Exception as error:
                assert self.updates.failed(error), error

    def boot(self):
        """Start the node in a new process, or on a board that has been reset."""
        update.UNSAVED.clear()
        return self.start()

    def begun(self):
        """Return the configuration with which a start begins; the start may still fail."""
        self.updates = Updates(self.config, self.log_lines.append)
        return self.updates.begin()

    def take(self, payload, running=None):
        """Pass a chunk. Return the answer, and whether the node restarts."""
        answer, again = self.updates.take(payload, running or service())
        return json.loads(answer), again

    def bring(self, signed_package, first=0, running=None):
        """Pass every chunk of a package. Return the last answer, and whether the node restarts."""
        offset = first
        while True:
            answer, again = self.take(signed_package.chunk(offset), running)
            if again or not answer["ok"] or answer["next"] == len(signed_package.content):
                return answer, again
            assert answer["next"] > offset
            offset = answer["next"]

    def install(self, signed_package, first=0, running=None):
        """Pass all of a package that is taken, and start. Return the configuration that is then in force."""
        answer, again = self.bring(signed_package, first, running)
        assert again, answer
        return self.start()

    def keep(self, signed_package):
        """Install a package, and run it until it is kept."""
        self.install(signed_package)
        self.updates.look(service())
        assert self.updates.report()["said"].startswith("kept"), self.updates.report()

    def live(self, signed_package):
        """Go on from wherever it is now until the package is kept."""
        if self.updates.report()["tried"] != signed_package.head.counter:
            answer, again = self.take(signed_package.question())
            assert answer["ok"]
            if not again:  # all of it may have been there already
                answer, again = self.bring(signed_package, answer["next"])
            assert again, answer
        self.start()
        self.updates.look(service())

    def hold_flash(self, disk):
        """Let the operations of a chip's flash count on a disk; None: on none."""


class Restarted(BaseException):
    """A board resets itself."""


class Resetting(Device):
    """A device that is a board, which resets itself."""

    def __init__(self, folder, key, patched):
        def restart(cause):
            raise Restarted(cause)

        patched.chdir(folder)
        patched.setattr(board, "restart", restart)
        super().__init__(folder, key)


def service(
    samples=100, cost=100, answered=3, fallbacks=0, errors=0, lost=0, sensor_errors=0, act_errors=0, offloads=100, retry_ms=None
):  # fmt: skip
    """Return a running node that has decided some samples.

    cost: thousandths that each answered offload would have cost locally; offloads: their number; fallbacks: offloads without an
    answer; retry_ms: pause after failures of the sensor.
    """
    node = Asking(4)
    for k in range(16):
        node.scores[k] = (samples - lost) // 16 + (k < (samples - lost) % 16)
        node.answered[k] = answered
        node.local_cost[k] = cost * answered
    node.samples, node.offloads, node.fallbacks = samples, offloads, fallbacks
    node.complain = SimpleNamespace(counts={"act": act_errors})
    sensing = SimpleNamespace(errors=sensor_errors, every_ms=0, every_us=0, retry_ms=0)
    sensing.retry_ms = retry_ms if retry_ms is not None else 100 * sensor_errors
    return SimpleNamespace(node=node, errors=errors, sensing=sensing, standing=UP)


class Cut(BaseException):
    """The power is gone."""


# arguments of Disk
FAULTS = {
    "power cut before": {},
    "power cut after": {"after": True},
    "EIO": {"error": OSError(errno.EIO, "Input/output error"), "reads": True},
    "EIO from then on": {"error": OSError(errno.EIO, "Input/output error"), "lasting": True},
    "ENOSPC": {"error": OSError(errno.ENOSPC, "No space left on device"), "lasting": True, "removes": True},
    "EROFS": {"error": OSError(errno.EROFS, "Read-only file system"), "lasting": True},
}


class Disk:
    """A folder on which every operation that changes something is counted, and the n-th one is not finished.

    error: What that operation raises; after: it is finished before; lasting: the further ones raise it, too; removes: files can
    be removed all the same; reads: opening a file of an update to read it is an operation, too.
    """

    def __init__(self, folder, n, error=None, *, after=False, lasting=False, removes=False, reads=False):
        self.folder, self.left = folder, n
        self.error, self.after, self.removes, self.reads = error or Cut(), after, removes, reads
        self.lasting = lasting or error is None

    def install(self, patched):
        whole, remove = builtins.open, os.remove

        def opened(path, mode="r", *rest, **given):
            mine = isinstance(path, str) and Path(path).absolute().is_relative_to(self.folder)
            if mine and mode[0] in "wa":
                return File(self, self.do(whole, path, mode, *rest, **given))
            if mine and self.reads and "state." in path:
                return self.do(whole, path, mode, *rest, **given)
            return whole(path, mode, *rest, **given)

        def removed(path):
            if self.removes or not os.path.exists(path):
                return remove(path)
            return self.do(remove, path)

        patched.setattr(builtins, "open", opened)
        patched.setattr(os, "remove", removed)
        for name in ("rename", "mkdir", "rmdir"):
            patched.setattr(os, name, partial(self.do, getattr(os, name)))

    def do(self, operation, *arguments, **given):
        """Do an operation, unless it fails."""
        if self.after:
            result = operation(*arguments, **given)
            self.step()
            return result
        self.step()
        return operation(*arguments, **given)

    def step(self):
        self.left -= 1
        if self.left == 0 or self.left < 0 and self.lasting:
            raise self.error


class File:
    """A file open for writing there."""

    def __init__(self, disk, file):
        self.disk, self.file = disk, file

    def write(self, data):
        try:
            self.disk.step()
        except BaseException:
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            raise
        return self.file.write(data)

    def flush(self):
        self.file.flush()
        self.disk.step()

    def fileno(self):
        return self.file.fileno()

    def tell(self):
        return self.file.tell()

    def close(self):
        """Close the file; writing what is left may fail, and then it is closed all the same."""
        if not self.file.closed:
            self.file.close()
            self.disk.step()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def assert_says(device, newer, counter):
    """What `h2t2 update` reads in the state is what runs. newer: the package of that counter does."""
    report = device.updates.report()
    assert newer == (report["runtime"] == counter), "\n".join([str(report), *device.log_lines])
    if report["said"].startswith("back"):
        assert not newer and not report["trial"]
    elif report["tried"] == counter:
        assert newer and report["said"].startswith("kept") != bool(report["trial"])


def after_each_cut(tmp_path, monkeypatch, begin, made, check_end=lambda device: None):
    """Cut the power at each operation from the first chunk to the end of a package's trial.

    Yield each device: begin(folder), started again after the cut. Then the same package must come through; check_end(device)
    asserts what runs then.
    """
    for n in itertools.count(1):
        folder = tmp_path / str(n)
        folder.mkdir()
        device, disk, cut = begin(folder), Disk(folder, n), False
        device.hold_flash(disk)
        with monkeypatch.context() as patched:
            disk.install(patched)
            try:
                device.live(made)
            except Cut:
                cut = True
        device.hold_flash(None)
        device.start()
        yield device
        device.live(made)
        assert device.updates.report()["said"].startswith("kept"), (n, device.log_lines)
        device.start()
        check_end(device)
        if not cut:
            break
    assert n > 15


def after_each_fault(tmp_path, monkeypatch, fault, begin, made, good, check, kept_holds=False):
    """Let each operation fail while a package is installed, tried, and confirmed or (not good) taken back.

    begin: makes a device in a folder. check: whether what a device tells in its state is what runs. kept_holds: a package that
    was kept stays so even if no later start can be recorded. Yield each device at the end, when nothing is on trial any more.
    """
    verdict = service(errors=0 if good else 3)
    for n in itertools.count(1):
        folder = tmp_path / str(n)
        folder.mkdir()
        device, disk = begin(folder), Disk(folder, n, **FAULTS[fault])
        device.hold_flash(disk if "EIO" in fault or "cut" in fault else None)
        with monkeypatch.context() as patched, suppress(Cut):
            disk.install(patched)
            if device.bring(made)[1]:
                device.boot()
                check(device)
                if device.updates.look(verdict):
                    device.start()  # as a computer does it: in this process
            said = device.updates.report()["said"].partition(":")[0]
            for _ in range(3 if disk.lasting and disk.left < 0 else 0):
                device.boot()
                check(device)
                assert not device.updates.trying, "it is tried, although no start can be counted"
                now = device.updates.report()["said"].partition(":")[0]
                assert said in ("", "on trial", now) or (said == "kept" and not kept_holds)
        device.hold_flash(None)
        for _ in range(4):
            device.boot()
            check(device)
            device.updates.look(verdict)
        assert not device.updates.trying
        yield device
        if disk.left > 0:
            break
    assert n > 20
