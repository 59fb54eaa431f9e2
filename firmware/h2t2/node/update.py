# What came by update, and what becomes of it: which local model is in force, whether it is on trial, and the way back. The node
# that was flashed stays as it is; an update stands beside it, in a slot of its own with its own learned state, and one small
# record says which is in force. It is written last, in two places in turn: after a power cut at any moment it is the one or the
# other.
import json
import os
from binascii import crc32
from struct import unpack_from

from . import package
from .arrival import Arrival, folder, remove
from .store import file_store
from .trial import LONGEST, SECONDS, Stretch, in_words, worse

STARTS = 3  # of a trial; one more is a sign that the node does not survive it
ERRORS = 3  # exceptions of a trial
KINDS = (("event", int), ("arguments", dict), ("measured", dict), ("app", bool), ("seconds", int))  # of entries in MORE
SUFFIXES = (".h2m", ".test", ".json", ".0", ".1", ".ldl.0", ".ldl.1")  # files of a slot, beside its program


class Updates:
    """The updates of a node.

    config: its configuration, with `update`: `key`, its modulus in hexadecimal digits; `max_bytes` of a package; `app`,
    whether it may bring an app.py. log: told of every change. ValueError for an entry of another kind.
    """

    def __init__(self, config, log):
        if not config.get("snapshot"):
            raise ValueError("update: there is no snapshot beside which an update could stand")
        self.config = config
        self.log = log
        key = config["update"]["key"]
        self.app = config["update"]["app"]
        if len(key) != 2 * package.KEY:
            raise ValueError("update: a key of %d hexadecimal digits, want %d" % (len(key), 2 * package.KEY))
        self.base = config["snapshot"]
        self.store = file_store(self.base + ".update")
        self.arrival = Arrival(self.base + ".part", key=key, limit=config["update"]["max_bytes"], admit=self._admit)
        flashed = identity(config["ldl"])
        self.record = {
            "tried": 0, "slot": 0, "counter": 0, "before": 0, "was": 0, "trial": 0, "seconds": 0, "starts": 0,
            "flashed": flashed, "said": "", "old": None, "scores": None, "tried_id": "", "slots": [None, None],
        }  # type: dict  # fmt: skip
        try:
            blob = self.store.load()
            known = json.loads(blob.decode()) if blob else {}
        except (ValueError, OSError) as error:
            known = {}
            log("the record of updates cannot be read: %s; what was flashed is in force" % error)
        if known and known["flashed"] != flashed:
            log("flashed anew: what came by update is not in force any more")
            known = {"tried": known["tried"]}
        self.record.update(known)
        self.trying = self.record["trial"] > 0  # what runs since this start is on trial
        self.kept = False  # a package was, since news() was asked last
        self.stretch = Stretch()
        self.result = None  # what the stretch came to at the end of a trial

    def report(self) -> dict:
        """For the state: counter and id of the package in force (0 and "": what was flashed) and of the last one that was
        tried, samples and seconds of a trial, what came of the last."""
        record = self.record
        entries = {name: record[name] for name in ("counter", "tried", "tried_id", "trial", "seconds", "said")}
        slot = record["slot"]
        entries["id"] = record["slots"][slot - 1][1] if slot and record["slots"][slot - 1] else ""
        return entries

    def begin(self) -> dict:
        """The configuration that is in force, at a start; one of a trial is counted."""
        record = self.record
        if record["trial"]:
            record["starts"] += 1
            if record["starts"] > STARTS:
                self._back("it was started %d times and did not come to an end" % STARTS)
            else:
                self._save()
        while record["slot"]:
            try:
                return self._in_force(record["slot"])
            except Exception as error:
                self._back("its files cannot be used: %s" % (str(error) or type(error).__name__))
        return self.config

    def failed(self, error) -> bool:
        """The node could not be put together: True where there is a way back, which is gone."""
        if not self.record["slot"]:
            return False
        self._back("it does not start: %s" % error)
        return True

    def test(self, ldl) -> None:
        """The package's own test of its model, on trial: ValueError where it gives other outputs than at home."""
        if not self.trying:
            return
        with open(self._name(self.record["slot"]) + ".test", "rb") as file:
            wanted = unpack_from("<I", file.read(4), 0)[0]
            crc = 0
            x = bytearray(ldl.input_size)
            while True:
                n = file.readinto(x)
                if not n:
                    break
                if n < len(x):
                    raise ValueError("self-test: inputs of another size than the model's, %d" % len(x))
                ldl.reset()
                ldl.run(x)  # it takes the bytes of an int8 as it does the number
                crc = crc32(bytes(ldl.arena[ldl.output : ldl.output + ldl.classes]), crc)
        ldl.reset()
        if crc & 0xFFFFFFFF != wanted:
            raise ValueError("self-test: the model gives other outputs here than where it was signed")

    def takes(self, payload) -> bool:
        """Whether that came on the command topic for this: a chunk of a package."""
        return bytes(payload[: len(package.CHUNK)]) == package.CHUNK

    def take(self, payload, running) -> tuple:
        """(answer, JSON; whether the node is to start again, with the update) of a chunk."""
        why = ""
        whole = False
        try:
            whole = self.arrival.take(payload)
            if whole:
                self._install(running)
        except (ValueError, OSError, MemoryError) as error:
            why = str(error) or "no memory"
        except Exception as error:  # whatever a package holds, its sender has an answer
            why = "%s: %s" % (type(error).__name__, error)
        if why:
            whole = False
            self.log("update refused: %s" % why)
        number, size = package.named(payload)
        done = size if whole else self.arrival.next
        return json.dumps({"id": "u%08x" % number, "ok": not why, "why": why, "next": done}), whole

    def look(self, running) -> bool:
        """Once a turn: whether a trial is over, or cannot go on; True: the node is to start again, with the model before."""
        self.stretch.look(running)
        if not self.trying:
            return False
        why = self._verdict(running)
        if why is None:
            return False
        if why:
            self._back(why)
            return True
        self._keep()
        return False

    def news(self) -> bool:
        """True once after a package was kept: who waits for that has it at once, however rarely the node tells its state."""
        kept = self.kept
        self.kept = False
        return kept

    def _verdict(self, running):
        """None while a trial goes on; why the node goes back, "" where it keeps the package."""
        record = self.record
        node = running.node
        unscored = node.samples - sum(node.account.scores)
        if running.errors >= ERRORS:
            return "%d exceptions" % running.errors
        if unscored > 3 + (node.samples >> 4):
            return "the local model failed on %d of %d samples" % (unscored, node.samples)
        why = self.stretch.failing(running, record)
        if why:
            return why
        if not self.stretch.over(running, record):
            return None
        self.result = self.stretch.measured(running)
        return worse(self.result, node.account.scores, record)

    def _keep(self):
        record = self.record
        before = record["before"]
        self.trying = False
        self.kept = True
        record.update(trial=0, seconds=0, starts=0, before=0, was=0, old=None, scores=None)
        record["said"] = "kept: %s" % in_words(self.result)
        self._save()
        self.log("update %d %s" % (record["counter"], record["said"]))
        if before:
            self._clear(before)

    def _back(self, why):
        """The model before this one is in force from the next start on; of one that was kept already, what was flashed."""
        record = self.record
        slot = record["slot"]
        self.trying = False
        said = "back: %s" % why
        self.log("update %d %s" % (record["counter"], said))
        record.update(slot=record["before"], counter=record["was"], before=0, was=0)
        said = said.replace(self.base + ".", "")  # a file's name is enough: the reason is to have room
        record.update(trial=0, seconds=0, starts=0, old=None, scores=None, said=said[:120])
        self._save()
        self._clear(slot)

    def _admit(self, head):
        """ValueError for a genuine package that is not for this node, or not for now."""
        if head.model != self.config["model_id"]:
            raise ValueError("the package is of model %d, this node's is %d" % (head.model, self.config["model_id"]))
        if self.record["trial"]:
            raise ValueError("update %d is on trial" % self.record["counter"])
        if head.counter <= self.record["tried"]:
            raise ValueError("package %d; %d has been tried here already" % (head.counter, self.record["tried"]))
        if not 0 < head.trial < 1 << 20:
            raise ValueError("a trial of %d samples" % head.trial)

    def _install(self, running):
        """Put a verified package into the slot that is not in force; the record, last of all, makes it so."""
        record = self.record
        head = self.arrival.head
        slot = 2 if record["slot"] == 1 else 1
        name = self._name(slot)
        self._clear(slot)
        try:
            with open(self.arrival.path, "rb") as file:
                found = package.parts(file)
                tags = [tag for tag, _, _ in found]
                if package.LDL not in tags or package.TEST not in tags or package.MORE not in tags:
                    raise ValueError("the package lacks a model, its test, or what belongs to it")
                if package.APP in tags and not self.app:
                    raise ValueError("the package brings a program; this node's configuration does not allow that")
                for tag, offset, size in found:
                    package.copy(file, offset, size, self._file(slot, tag))
            more = checked(name + ".json", package.APP in tags)
            slots = list(record["slots"])
            slots[slot - 1] = [self._sum(slot), "%08x" % self.arrival.id]
            changed = dict(record)
            changed.update(slots=slots, tried_id=slots[slot - 1][1])
            changed.update(before=record["slot"], was=record["counter"], slot=slot, counter=head.counter, tried=head.counter)
            changed.update(trial=head.trial, seconds=more.get("seconds", SECONDS), starts=0, said="on trial")
            changed.update(old=self.stretch.measured(running), scores=more.get("scores"))
            self.store.save(json.dumps(changed).encode())
        except Exception:
            self._clear(slot)
            self.arrival.drop()
            raise
        self.record = changed
        self.arrival.drop()
        self.log("update %d is here; on trial for %d samples and %d s" % (head.counter, head.trial, changed["seconds"]))

    def _in_force(self, slot):
        """The configuration with what an update replaces."""
        name = self._name(slot)
        made = dict(self.config)
        os.stat(name + ".h2m")
        made["ldl"] = name + ".h2m"
        made["snapshot"] = name
        known = self.record["slots"][slot - 1]  # None: put there by a runtime that knew no sums
        if known and known[0] != self._sum(slot):
            raise ValueError("they are damaged: the checksum does not match")
        with open(name + ".json") as file:
            more = json.load(file)
        arguments = dict(made["arguments"])
        arguments.update(more.get("arguments", {}))
        if made["policy"] != "adaptive":
            arguments.pop("prior", None)
        made["arguments"] = arguments
        made["event"] = more["event"]
        if "measured" in more and "measured" in made:
            made["measured"] = more["measured"]
        if self.app and more.get("app"):
            program = self._program(slot)
            if not program:
                raise ValueError("its program is not there")
            made["app"] = program[:-3]
            _notice_new_modules()
        return made

    def _program(self, slot):
        """The name of a slot's program in the node's folder, "" where it has none."""
        names = _named(folder(self.base), "app_u%d" % slot)
        return names[0] if names else ""

    def _sum(self, slot):
        """The CRC-32 of what a slot has that bears no checksum of its own: the .json and the program."""
        crc = 0
        program = self._program(slot)
        for path in (self._name(slot) + ".json", program and folder(self.base) + program):
            if path:
                with open(path, "rb") as file:
                    while True:
                        data = file.read(package.PIECE)
                        if not data:
                            break
                        crc = crc32(data, crc)
        return crc & 0xFFFFFFFF

    def _name(self, slot):
        return "%s.u%d" % (self.base, slot)

    def _file(self, slot, tag):
        """The file of a part that is being installed. A program has its package's id in its name: a process that has imported
        another package's program does not import this one by that name."""
        if tag == package.APP:
            return "%sapp_u%d_%08x.py" % (folder(self.base), slot, self.arrival.id)
        return self._name(slot) + SUFFIXES[package.TAGS.index(tag)]

    def _clear(self, slot):
        """Remove a slot's files; no record names it any more, or yet."""
        if slot:
            for suffix in SUFFIXES:
                remove(self._name(slot) + suffix)
            for place in (folder(self.base), folder(self.base) + "__pycache__/"):
                for name in _named(place, "app_u%d" % slot):
                    remove(place + name)

    def _save(self):
        """What cannot be written holds until the next start, which then sees the one before."""
        try:
            self.store.save(json.dumps(self.record).encode())
        except OSError as error:
            self.log("the record of updates cannot be written: %s" % error)


def checked(path, program) -> dict:
    """The object in a package's part MORE, in a file. program: whether it brings one. ValueError for what no node could use."""
    try:
        with open(path) as file:
            more = json.load(file)
    except RuntimeError:  # CPython's RecursionError
        raise ValueError("part MORE: nested too deep") from None
    if type(more) is not dict:
        raise ValueError("part MORE is no JSON object")
    for name, kind in KINDS:
        if name in more and type(more[name]) is not kind:
            raise ValueError("part MORE: %s is of another kind than %s" % (name, kind.__name__))
    scores = more.get("scores")
    if scores is not None and (type(scores) is not list or [n for n in scores if type(n) is not int or not 0 <= n <= 32768]):
        raise ValueError("part MORE: scores are no list of shares")
    if "event" not in more or not 0 <= more.get("seconds", 0) <= LONGEST:
        raise ValueError("part MORE: it lacks an event, or its seconds are out of range")
    if more.get("app") and not program:
        raise ValueError("part MORE: it names a program, and there is none")
    return more


def _named(place, start) -> list:
    """The files in a folder ("" or with a slash at its end) whose names start so."""
    try:
        return [name for name in os.listdir(place or ".") if name.startswith(start)]
    except OSError:
        return []


def _notice_new_modules():
    """CPython remembers which modules a folder has."""
    try:
        from importlib import invalidate_caches
    except ImportError:  # MicroPython does not
        return
    invalidate_caches()


def identity(path: str) -> list:
    """[size, CRC-32 of the first KB] of a file: whether what was flashed is still the same. [0, 0] where there is none."""
    try:
        with open(path, "rb") as file:
            return [file.seek(0, 2), file.seek(0) or crc32(file.read(1024)) & 0xFFFFFFFF]
    except OSError:
        return [0, 0]
