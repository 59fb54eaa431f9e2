# Cuts the power at every flash operation of the runtime and of `h2t2 flash`, on a file system of MicroPython's unix port on a
# block device in memory. The device behaves as a board's flash: it erases sectors of 4096 bytes and programs pages of 256. Each
# operation is cut before it and in its middle; those of an update also fail, each once and for good. The host defines SYSTEM
# (VfsLfs2 or VfsFat), ROUNDS, FINISH (the source of finish.py), SELECTOR (that of selector.py), KEY (a modulus, hexadecimal),
# LDL (a bundle), PACKAGES (signed, counters from 1, one a round) and RUNTIMES (the same, of a runtime whose h2t2/counter.py
# holds the counter). It prints JSON lines {"what", "operations", "cuts", "older", "newer", "lost", "why"} among log lines.
import json
import os
import sys
from binascii import crc32
from struct import pack

import vfs

from h2t2 import modules
from h2t2.ldl.open import open_ldl
from h2t2.node import package, provision, runtime, update
from h2t2.node.asking import Asking
from h2t2.node.board import Log
from h2t2.node.node import Complaints
from h2t2.node.store import file_store
from h2t2.node.update import Updates

SECTOR, PAGE, COUNT = 4096, 256, 40
ERASED = b"\xff" * SECTOR
EIO, ENOSPC, EROFS = 5, 28, 30
FAULTS = (EIO, False), (EIO, True), (ENOSPC, True), (EROFS, True)  # and whether all further operations fail, too


class Disk:
    """A block device on flash. operations: [(offset, bytes after the operation)]; None: not recorded.

    fails_in: operations up to the one that fails with the error `fault`, of FAULTS; 0: none fails.
    """

    def __init__(self, image=None, fails_in=0, fault=(0, False)):
        self.image = image or bytearray(b"\xff" * (SECTOR * COUNT))
        self.operations = None
        self.fails_in = fails_in
        self.error, self.lasting = fault

    def readblocks(self, n, buffer, offset=0):
        start = n * SECTOR + offset
        buffer[:] = self.image[start : start + len(buffer)]

    def writeblocks(self, n, buffer, offset=None):
        if offset is None:  # writes of whole sectors erase them first
            for at in range(0, len(buffer), SECTOR):
                self._program(n * SECTOR + at, ERASED)
            offset = 0
        if self._fails():
            return -self.error
        start = n * SECTOR + offset
        for at in range(0, len(buffer), PAGE):
            old = self.image[start + at : start + at + PAGE]
            new = buffer[at : at + PAGE]
            self._program(start + at, bytes([a & b for a, b in zip(old, new)]))

    def _fails(self):
        if self.fails_in > 1 or self.fails_in == 1 and not self.lasting:
            self.fails_in -= 1
            return self.fails_in == 0
        return self.fails_in == 1

    def _program(self, offset, data):
        if self.operations is not None:
            self.operations.append((offset, data))
        self.image[offset : offset + len(data)] = data

    def ioctl(self, operation, argument):
        if operation == 4:
            return COUNT
        if operation == 5:
            return SECTOR
        if operation == 6:
            if self._fails():
                return -self.error
            self._program(argument * SECTOR, ERASED)
        return 0


def mounted(disk):
    file_system = SYSTEM(disk, progsize=PAGE) if SYSTEM is vfs.VfsLfs2 else SYSTEM(disk)  # noqa: F821
    vfs.mount(file_system, "/d")
    os.chdir("/d")


def unmounted():
    os.chdir("/")
    vfs.umount("/d")


def cut_everywhere(name, before, write, after, faults=()):
    """Cut write(n) in every round n, after before(). after(n) returns "older", "newer" or a reason why it is neither.

    faults: errors with which every operation of the first round fails, of FAULTS. after() comes on the disk as it is then, and
    again on one that works.
    """
    disk = Disk()
    SYSTEM.mkfs(disk)  # noqa: F821
    mounted(disk)
    before()
    counts = {"older": 0, "newer": 0, "lost": 0}
    operations = 0
    why = ""
    image, torn = bytearray(disk.image), bytearray(disk.image)
    for n in range(ROUNDS):  # noqa: F821
        image[:] = disk.image
        if faults and n == 0:
            unmounted()
            for fault in faults:
                for verdict in failed_everywhere(image, torn, write, after, fault):
                    counts[verdict if verdict in counts else "lost"] += 1
                    why = why or ("" if verdict in counts else f"{fault}: {verdict}")
            mounted(disk)
        disk.operations = []
        write(n)
        unmounted()
        recorded = disk.operations
        disk.operations = None
        operations += len(recorded)
        for offset, data in recorded:
            for written in (0, len(data) // 2):
                torn[:] = image
                torn[offset : offset + written] = data[:written]
                verdict = judged(torn, after, n)
                counts[verdict if verdict in counts else "lost"] += 1
                if verdict not in counts:
                    why = why or verdict
            image[offset : offset + len(data)] = data
        torn[:] = image
        verdict = judged(torn, after, n)
        counts[verdict if verdict in counts else "lost"] += 1
        if verdict != "newer":
            why = why or f"even after the last operation: {verdict}"
        mounted(disk)
    unmounted()
    row = {"what": name, "operations": operations, "cuts": sum(counts.values()), "why": why}
    row.update(counts)
    print(json.dumps(row))


def failed_everywhere(image, torn, write, after, fault):
    """Yield what a board finds after write(0) on this flash, of which one operation after the other fails. torn: a buffer."""
    fails_in = 0
    while True:
        fails_in += 1
        torn[:] = image
        disk = Disk(torn, fails_in, fault)
        mounted(disk)
        try:
            write(0)
        except OSError as error:
            print("the write ends:", error)
        unmounted()
        reached = disk.fails_in == (1 if disk.lasting else 0)
        yield judged(torn, after, 0, disk)
        yield judged(torn, after, 0)
        if not reached:
            return


def judged(image, after, n, disk=None):
    """Return what a board finds if it starts with this flash. disk: where some operations fail."""
    try:
        mounted(disk or Disk(image))
    except OSError as error:
        return f"the file system is gone: {error}"
    try:
        return after(n)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        unmounted()


def blob(n):
    return bytes([n, n >> 8]) + bytes([n * 7 + i & 255 for i in range(600)])


def saved_state(n):
    """Return whether the snapshot of round n or of the one before exists."""
    snapshot = file_store("h2t2.state").load()
    for m, verdict in ((n, "newer"), (n - 1, "older")):
        if snapshot == blob(m + 1):
            return verdict
    return "nothing is left" if snapshot is None else "another state"


def first():
    file_store("h2t2.state").save(blob(0))


# a log line, in the current file or as the first of a new one
def line(n):
    return f"what happened in round {n}: " + "x" * 100


def logged(n):
    Log("h2t2.log", 1000)(line(n))


def log_kept(n):
    """Check that every line up to the previous round's exists in order. The log drops a file that was set aside twice."""
    lines = []
    for name in ("h2t2.log.old", "h2t2.log"):
        if name in os.listdir():
            with open(name) as file:
                lines += [text.split(" ", 1)[1].strip() for text in file.read().split("\n") if text]
    expected = [line(m) for m in range(-1, n + 1)]
    if lines == expected[-len(lines) :]:
        return "newer"
    if lines and lines == expected[:-1][-len(lines) :]:
        return "older"
    return f"{len(lines)} lines, the last {lines[-1:]}"


NAMES = ["main.py", "config.json", "ldl.h2m", "finish.py"]


def content(name, n):
    return f"{name} of version {n}\n".encode() * 40


def flash_files(n):
    """Write as `h2t2 flash` does: the new files beside the old ones, their list, then finish.py."""
    for name in NAMES:
        with open(name + ".new", "wb") as file:
            file.write(content(name, n))
    with open("flash.todo", "wb") as file:
        file.write("\n".join(NAMES).encode())
    exec(FINISH)  # noqa: F821


def version_minus_one():
    for name in NAMES:
        with open(name, "wb") as file:
            file.write(content(name, -1))


def complete_files(n):
    """Complete an interrupted flash as main.py does. All files must then have one version."""
    if "flash.todo" in os.listdir():
        with open("main.py", "rb"):  # main.py starts the completion, so it must exist
            exec(FINISH)  # noqa: F821
    versions = []
    for name in NAMES:
        with open(name, "rb") as file:
            data = file.read()
        versions.append([m for m in (n - 1, n) if data == content(name, m)])
    for verdict, m in (("newer", n), ("older", n - 1)):
        if versions == [[m]] * len(NAMES):
            return verdict
    return "files of two versions"


# an update, from its first chunk to the end of its trial
CONFIG = {
    "ldl": "ldl.h2m", "snapshot": "state", "event": 1, "model_id": 1, "policy": "adaptive", "arguments": {"bits": 4},
    "update": {"key": KEY, "max_bytes": 1 << 16, "app": False},  # noqa: F821
}  # fmt: skip


class Running(Asking):
    """The part of a service that an update reads. It has decided as many samples as a trial needs."""

    def __init__(self):
        Asking.__init__(self, 4)
        self.node = self.sensing = self
        self.errors = self.every_ms = self.every_us = self.retry_ms = self.standing = 0
        self.complain = Complaints(print)
        self.samples = self.scores[3] = 1000


def started():
    """Return the updates of a starting node. Raises if its model does not open, or fails its test."""
    update.UNSAVED.clear()
    updates = Updates(CONFIG, lambda line: None)
    loaded = updates.begin()
    ldl = open_ldl(loaded["ldl"], loaded["event"])
    updates.test(ldl)
    return updates


def flashed():
    with open("ldl.h2m", "wb") as file:
        file.write(LDL)  # noqa: F821


def updated(n):
    bring(PACKAGES[n], started)  # noqa: F821


def bring(content, started):
    number = package.id_of(content)
    updates = started()
    for at in range(0, len(content), package.MOST_DATA):
        data = content[at : at + package.MOST_DATA]
        updates.take(pack("<4sIIII", package.CHUNK, number, len(content), at, crc32(data)) + data, Running())
    started().look(Running())


def in_force(n):
    updates = started()
    counter = updates.report()["counter"]
    if (counter == n + 1) != (updates.report()["said"][:4] in ("on t", "kept")) and not n:
        return f"package {counter} is in force, and the state says {updates.report()['said']}"
    return {n: "older", n + 1: "newer"}.get(counter, f"package {counter} is in force")


# a runtime, from its first chunk to the end of its trial
chosen = runtime.FLASHED  # folder whose runtime a start would run; this process always runs its own
update.forget = modules.forget = lambda name: None  # the next line replaces a function of that module
runtime.running_folder = lambda: chosen


def booted():
    """As started(), behind selector.py; a start that wants another runtime starts again."""
    global chosen
    for _ in range(10):
        if runtime.MARK in os.listdir():
            exec(SELECTOR)  # noqa: F821
            chosen = sys.path.pop(0)
        else:
            chosen = runtime.FLASHED
        try:
            return started()
        except SystemExit:
            pass
    raise ValueError("no runtime stays")


def runtime_updated(n):
    bring(RUNTIMES[n], booted)  # noqa: F821


def runtime_in_force(n):
    counter = booted().report()["runtime"]
    folders = [name for name in runtime.FOLDERS if name in os.listdir() and name != chosen]
    if counter:
        with open(chosen + "/h2t2/counter.py") as file:
            if file.read() != str(counter) * 500:
                return "the runtime in force is not whole"
    if folders and not booted().trying:
        return f"{folders} remain"
    return {n: "older", n + 1: "newer"}.get(counter, f"runtime {counter} is in force")


def told(n):
    """Store what the page of provision.py was told, then finish.py, as main.py does at the next start."""
    provision.store({"wifi_name": f"network {n}", "arguments": list(range(200))})
    exec(FINISH)  # noqa: F821


def configured(n):
    if "flash.todo" in os.listdir():
        exec(FINISH)  # noqa: F821
    with open("config.json") as file:
        name = json.load(file)["wifi_name"]
    return {f"network {n}": "newer", f"network {n - 1}": "older"}.get(name, name)


cut_everywhere("what a page was told", lambda: told(-1), told, configured)
cut_everywhere("a snapshot", first, lambda n: file_store("h2t2.state").save(blob(n + 1)), saved_state)
cut_everywhere("a line of the log", lambda: logged(-1), logged, log_kept)
cut_everywhere("h2t2 flash", version_minus_one, flash_files, complete_files)
cut_everywhere("an update", flashed, updated, in_force, FAULTS if SYSTEM is vfs.VfsLfs2 else ())  # noqa: F821
if SYSTEM is vfs.VfsLfs2:  # noqa: F821  boards with FAT are refused, and a folder of a damaged one may lie within itself
    cut_everywhere("an update of the runtime", flashed, runtime_updated, runtime_in_force)
