# Updates of the local model: which model is in force, whether it is on trial, how it is judged, and the way back. What was
# flashed remains as it is; an update lies beside it, in a slot of its own with its own learned state, and one small record says
# which is in force. The node writes the record last, to two places in turn: a power cut leaves either the old or the new one.
# A runtime that comes by update has the same record and the same trial; runtime.py has its folders.
import json
from binascii import crc32, hexlify, unhexlify
from struct import unpack_from

from ..clock import Stopwatch
from ..modules import IS_BOARD, call_once, forget
from . import board, package
from .arrival import Arrival
from .node import UP
from .slots import Slots, identity
from .store import file_store

if 0:  # for type checkers
    from ..annotations import Any, BinaryIO, Callable, Sequence, Service
    from ..ldl.bundle import Int8Model
    from .package import Head
    from .sensing import Sensing

STARTS = 3  # of a trial; a further one shows that the node does not survive it
ERRORS = 3  # exceptions that end a trial
TRIAL_S = 600  # length of a trial, if the package does not say
MIN_ANSWERS = 30  # for a cost to mean something; also offloads, for their share without an answer
MISSED_LIMIT = 125  # thousandths of the offloads that may have no answer, above those of the model before
COST_LIMIT = 10  # thousandths that a sample may cost more
DRIFT_LIMIT = 300  # thousandths of the scores that may lie in other bins than the package says
EXTRA_ERRORS, EXTRA_SHARE = 3, 20  # errors of a program above those before it: so many, and thousandths of its tries
OPENING_S = 60  # after a start a sensor may still warm up
QUIET_S = 60  # seconds without a decision that end a trial, at least
UNKNOWN_S = 600  # the same, if the node has not seen the program before run as long as QUIET_S
PATIENCE = 4  # a trial fails after so many times the usual silence, or the usual time
UNWRITTEN_S = 60  # seconds between two tries to write a record that could not be written
LATE_S = 3600  # a trial may take as long, whatever the model before took
OLD_KEYS = 8  # that a node remembers: none of them comes back with what is flashed
NO_RUNTIME = [".", 0, ""]  # of the record: folder, counter and id of the runtime in force; "." is the flashed one
OF_KEYS = ("tried", "key", "key_counter", "old_keys")  # of the record, valid whatever is flashed
UNSAVED = {}  # type: dict[str, dict[str, Any]]  # records that could not be written, for further starts in this process


class Updates:
    """The updates of a node.

    Args:
        config: The flashed configuration. Its entry `update` holds key (modulus, hexadecimal), max_bytes (of a package) and app
            (whether a package may bring an app.py).
        log: Called with a line of text about every change.

    Attributes:
        trying: Whether the model that runs since this start is on trial.
        key_id: Of the key that signs packages.

    Raises:
        ValueError: An entry is wrong.
    """

    def __init__(self, config: "dict[str, Any]", log: "Callable[[str], object]"):
        if not config.get("snapshot"):
            raise ValueError("update: there is no snapshot beside which an update could stand")
        self.config = config
        self.log = log
        key = config["update"]["key"]
        if len(key) != 2 * package.KEY:
            raise ValueError("update: a key of %d hexadecimal digits, want %d" % (len(key), 2 * package.KEY))
        self.slots = Slots(config)
        self.base = config["snapshot"]  # type: str
        self.store = file_store(self.base + ".update")
        self.record = self._load(identity(config["ldl"]))
        self.key_id = package.key_id(unhexlify(key))
        if self.key_id in self.record["old_keys"]:
            key = self.record["key"]
            self.key_id = package.key_id(unhexlify(key))
        self.arrival = Arrival(self.base + ".part", key=key, limit=config["update"]["max_bytes"], admit=self._admit)
        self.trying = self.record["trial"] > 0
        self.news_waiting = False
        self.stats = TrialStats(self.record["past"])
        self.figures = {}  # type: dict[str, Any]  # of the stats at the end of a trial
        self.write_at = 0  # seconds, of a record that could not be written

    def _load(self, flashed: "list[int]") -> "dict[str, Any]":
        """Return the record. flashed: identity() of the flashed model."""
        record = {
            "tried": 0, "slot": 0, "counter": 0, "before": 0, "was": 0, "trial": 0, "seconds": 0, "starts": 0,
            "flashed": flashed, "said": "", "old": None, "scores": None, "tried_id": "", "slots": [None, None],
            "key": "", "key_counter": 0, "old_keys": [], "runtime": NO_RUNTIME, "runtime_before": NO_RUNTIME,
            "state_back": False, "past": {},
        }  # type: dict[str, Any]  # fmt: skip
        try:
            blob = self.store.load()
            saved = UNSAVED.get(self.base) or (json.loads(blob.decode()) if blob else {})
        except (ValueError, OSError) as error:
            saved = {}
            self.log("the record of updates cannot be read: %s; what was flashed is in force" % error)
        if saved and saved["flashed"] != flashed:
            self.log("flashed anew: what came by update is not in force any more")
            saved = {name: saved[name] for name in OF_KEYS if name in saved}
        record.update(saved)
        return record

    def report(self) -> "dict[str, Any]":
        """Return entries for the state: counter and id of the package in force (0 and "": the flashed one) and of the last
        tried one, samples and seconds of a trial, the result of the last trial, and id and counter of the key."""
        record = self.record
        entries = {name: record[name] for name in ("counter", "tried", "tried_id", "trial", "seconds", "said")}
        slot = record["slot"]
        if self.base in UNSAVED:
            entries["said"] += "; not on the disk yet: a later start may try it again"
        entries["key"] = self.key_id
        entries["key_counter"] = record["key_counter"]
        entries["id"] = record["slots"][slot - 1][1] if slot and record["slots"][slot - 1] else ""
        entries["runtime"], entries["runtime_id"] = record["runtime"][1:]
        return entries

    def begin(self) -> "dict[str, Any]":
        """Return the configuration in force at a start, and count a start of a trial."""
        record = self.record
        record["starts"] += record["trial"] > 0
        failure = self._save() if record["trial"] or self.base in UNSAVED else ""
        if record["trial"] and failure:  # a start that is not counted would be repeated for ever
            self._go_back("its start cannot be recorded: %s" % failure)
        elif record["starts"] > STARTS << (self._tries_runtime() and self._has_firmware()):  # the old one starts before each
            self._go_back("it was started %d times and did not come to an end" % STARTS)
        self._settle_runtime()
        while record["slot"]:
            installed = record["slots"][record["slot"] - 1]
            try:
                return self.slots.configuration(record["slot"], installed and installed[0])
            except Exception as error:
                self._go_back("its files cannot be used: %s" % (str(error) or type(error).__name__))
        return self.config

    def failed(self, error: Exception) -> bool:
        """Go back after the node could not be put together; return whether there was a way back."""
        if not self.record["slot"] and not self._tries_runtime():
            return False
        self._go_back("it does not start: %s" % error)
        return True

    def test(self, ldl: "Int8Model") -> None:
        """Run the package's own test during a trial; ValueError if the model gives other outputs than at home."""
        if not self.trying or self._tries_runtime():
            return
        with open(self.slots.name(self.record["slot"]) + ".test", "rb") as file:
            expected = unpack_from("<I", file.read(4), 0)[0]
            crc = 0
            x = bytearray(ldl.input_size)
            while True:
                n = file.readinto(x)
                if not n:
                    break
                if n < len(x):
                    raise ValueError("self-test: inputs of another size than the model's, %d" % len(x))
                ldl.reset()
                ldl.run(x)  # a model takes the bytes of int8 numbers as well
                crc = crc32(bytes(ldl.arena[ldl.output : ldl.output + ldl.classes]), crc)
        ldl.reset()
        if crc & 0xFFFFFFFF != expected:
            raise ValueError("self-test: the model gives other outputs here than where it was signed")

    def takes(self, payload: bytes) -> bool:
        """Return whether a payload on the command topic is a chunk of a package."""
        return bytes(payload[: len(package.CHUNK)]) == package.CHUNK

    def take(self, payload: bytes, running: "Service") -> "tuple[str, bool]":
        """Take a chunk; return the answer (JSON) and whether the node is to start again, with the update."""
        reason = ""
        complete = again = False
        try:
            complete = self.arrival.take(payload)
            if complete and self.arrival.head.rotates:
                self._rotate()
            elif complete:
                self._install(running)
                again = True
        except (ValueError, OSError, MemoryError) as error:
            reason = str(error) or "no memory"
        except Exception as error:  # whatever a package holds, its sender gets an answer
            reason = "%s: %s" % (type(error).__name__, error)
        if reason:
            complete = False
            self.log("update refused: %s" % reason)
        number, size = package.chunk_target(payload)
        received = size if complete else self.arrival.next
        return json.dumps({"id": "u%08x" % number, "ok": not reason, "why": reason, "next": received}), again

    def look(self, running: "Service") -> bool:
        """Judge a trial; call it once a turn. Return whether the node is to start again, with the model before."""
        self.stats.look(running)
        if not self.trying:
            if self.base in UNSAVED and self.stats.watch.seconds() >= self.write_at:
                self.write_at = self.stats.watch.seconds() + UNWRITTEN_S
                self._save()
            return False
        reason = self._judge(running)
        if reason is None:
            return False
        reason = reason or self._keep()
        if reason:
            self._go_back(reason)
        return bool(reason)

    def pause(self, running: "Service") -> None:
        """Let a trial continue at the next start with what it has so far: this start has an orderly end."""
        if self.trying:
            self.record.update(starts=0, past=Counts(running, self.stats).__dict__)
            self._save()

    def news(self) -> bool:
        """Return True once after a package was kept or a key replaced, so that the state is reported at once."""
        news = self.news_waiting
        self.news_waiting = False
        return news

    def _judge(self, running: "Service") -> "str | None":
        """Return None while a trial continues, the reason to go back, or "" to keep the package."""
        record = self.record
        counts = Counts(running, self.stats)
        unscored = counts.samples - sum(counts.scores)
        if counts.exceptions >= ERRORS:
            return "%d exceptions" % counts.exceptions
        if unscored > 3 + (counts.samples >> 4):
            return "the local model failed on %d of %d samples" % (unscored, counts.samples)
        reason = self.stats.failure(running, counts, record)
        if reason:
            return reason
        if not self.stats.complete(running, counts, record):
            return None
        self.figures = self.stats.figures(running)
        return compare(self.figures, counts.scores, record)

    def _keep(self) -> str:
        """Keep the package; return why that is impossible."""
        record = dict(self.record)
        previous = record["before"]
        record.update(trial=0, seconds=0, starts=0, before=0, was=0, old=None, scores=None, past={})
        record["said"] = "kept: %s" % summary(self.figures)
        if not self._has_firmware():  # _settle_firmware() lets the bootloader keep it, too
            record["runtime_before"] = record["runtime"]
        on_trial, self.record = self.record, record
        failure = self._save()
        if failure and not self._is_written():
            self.record = on_trial
            return "its end cannot be recorded: %s" % failure
        self.trying = False
        self.news_waiting = True
        self.log("update %d %s" % (record["tried"], record["said"]))
        if previous != record["slot"]:
            self.slots.clear(previous)
        self._settle_runtime()
        return ""

    def _go_back(self, reason: str) -> None:
        """Put the model before this one in force from the next start on; after a kept package, the flashed one."""
        record = self.record
        slot = record["slot"]
        self.trying = False
        result = "back: %s" % reason
        self.log("update %d %s" % (record["tried"] if self._tries_runtime() else record["counter"], result))
        record["state_back"] = self._tries_runtime()
        record.update(slot=record["before"], counter=record["was"], before=0, was=0, runtime=record["runtime_before"])
        result = result.replace(self.base + ".", "")  # the name of a file is enough, so that the reason fits
        record.update(trial=0, seconds=0, starts=0, old=None, scores=None, past={}, said=result[:120])
        self._save()
        if slot != record["slot"]:
            self.slots.clear(slot)

    def _tries_runtime(self) -> bool:
        """Return whether a runtime is on trial; the model in force stays."""
        tries: bool = self.record["runtime"][0] != self.record["runtime_before"][0]
        return tries

    def _settle_runtime(self) -> None:
        """Let the record decide which runtime runs, whatever a power cut has left; start again with it if it is another."""
        from . import runtime

        try:
            if self._has_firmware():
                self._settle_firmware(runtime)
            elif runtime.is_used(self.record["runtime"][0]):
                self._settle(runtime)
        except OSError as error:
            self.log("the folders of runtimes cannot be put in order: %s" % error)
            running = runtime.running_folder()
            if running != self.record["runtime"][0] and not self._has_firmware():
                if self.record["state_back"]:  # selector.py cannot count a start of it either: it chooses the one before
                    board.restart(board.UPDATED)
                    raise SystemExit("another runtime is in force: start again") from None
                self.record.update(runtime=[running, 0, ""], said="back: its runtime cannot be chosen")
        del runtime
        if IS_BOARD:
            forget("node.runtime")
            forget("node.partition")

    def _has_firmware(self) -> bool:
        """Return whether the runtime in force, or on trial, came with a firmware: the record then names its partition."""
        return self.record["runtime"][0] not in (".", "h2t2_1", "h2t2_2")

    def _settle_firmware(self, runtime: "Any") -> None:
        from . import partition

        record = self.record
        running = partition.running()
        if running != record["runtime"][0] and (self._tries_runtime() or record["state_back"]):
            try:
                if self.base not in UNSAVED:  # otherwise the one on trial runs, to which the bootloader does not return
                    partition.select(record["runtime"][0])
                board.restart(board.UPDATED)
                raise SystemExit("another firmware is in force")
            except OSError as error:
                self._go_back("its firmware cannot be chosen: %s" % error)
        if running != record["runtime"][0]:
            self.log("flashed anew: the firmware that came by update is not in force any more")
            record.update(runtime=NO_RUNTIME, runtime_before=NO_RUNTIME)
            self._save()
        if not record["trial"]:
            partition.keep()
            if self._tries_runtime():
                record["runtime_before"] = record["runtime"]
                self._save()
            self._settle_state(runtime)

    def _settle_state(self, runtime: "Any") -> None:
        """Return to what was learned before a trial that failed."""
        record = self.record
        runtime.settle_state(self._state(), record["state_back"])
        if record["state_back"]:
            record["state_back"] = False
            self._save()

    def _state(self) -> str:
        """Return how the names of the files begin that hold what the node has learned."""
        slot = self.record["slot"]
        return self.slots.name(slot) if slot else self.base

    def _settle(self, runtime: "Any") -> None:
        record = self.record
        marked, running = runtime.mark(), runtime.running_folder()
        if self._tries_runtime():
            if running != record["runtime"][0] and not (marked and marked[2] == STARTS):  # selector.py has counted its starts
                self._go_back("the runtime does not start")
            elif marked and record["starts"] == 1:  # the start before had an orderly end
                runtime.select(marked[0], marked[1], STARTS)
        elif not marked and record["runtime"][0] != running:
            self.log("flashed anew: the runtime that came by update is not in force any more")
            record.update(runtime=NO_RUNTIME, runtime_before=NO_RUNTIME)
            self._save()
        if not self._tries_runtime():
            folder = record["runtime"][0]
            if marked and (marked[0] != folder or marked[2]):
                runtime.select(folder)
            if running == folder:
                self._settle_state(runtime)
                runtime.clear_others(folder)
        if running != record["runtime"][0]:
            board.restart(board.UPDATED)
            raise SystemExit("another runtime is in force: start again")  # a computer cannot reset itself

    def _admit(self, head: "Head") -> None:
        """Raise ValueError for a genuine package that is not for this node, or not for now."""
        if head.rotates:
            if head.counter <= self.record["key_counter"]:
                raise ValueError("key %d; this node has had %d already" % (head.counter, self.record["key_counter"]))
            if head.size != package.KEY:
                raise ValueError("a key of %d bytes, want %d" % (head.size, package.KEY))
            return
        if head.runtime and head.firmware != self._has_firmware() and self.record["runtime"] != NO_RUNTIME:
            raise ValueError("the runtime in force came by %s" % ("files" if head.firmware else "a firmware"))
        if head.firmware:
            call_once("node.partition.check", head.model, head.size)
        elif head.runtime:
            call_once("node.runtime.check", head.model)
        elif head.model != self.config["model_id"]:
            raise ValueError("the package is of model %d, this node's is %d" % (head.model, self.config["model_id"]))
        if self.record["trial"]:
            raise ValueError("update %d is on trial" % self.record["counter"])
        if head.counter <= self.record["tried"]:
            tried = "package %d; %d has been tried here already: sign again, or see updates.md, A wrong clock"
            raise ValueError(tried % (head.counter, self.record["tried"]))
        if not 0 < head.trial < 1 << 20:
            raise ValueError("a trial of %d samples" % head.trial)

    def _rotate(self) -> None:
        """Trust the key that has arrived in place of the one that signed it. Both stay so, whatever is flashed later."""
        with open(self.arrival.path, "rb") as file:
            file.seek(package.SIGNED)
            key = file.read(package.KEY)
        old = self.key_id
        new = package.key_id(key)
        old_keys = [name for name in self.record["old_keys"] if name not in (old, new)] + [old]
        changed = dict(self.record, key=hexlify(key).decode(), key_counter=self.arrival.head.counter)
        changed["old_keys"] = old_keys[-OLD_KEYS:]
        if new not in self.record["old_keys"] and not changed["trial"]:
            changed.update(tried=0, tried_id="")  # it has signed nothing before; that counter may be of a wrong clock
        self.arrival.drop()
        for _ in range(2):  # both places: a damaged one must not bring the old key back
            self.store.save(json.dumps(changed).encode())
        self.record = changed
        self.arrival.key = changed["key"]
        self.key_id = new
        self.news_waiting = True
        self.log("key %s signs updates from now on, no longer %s" % (new, old))

    def _install(self, running: "Service") -> None:
        """Put a verified package where it is not in force; the record, written last, puts it in force."""
        head = self.arrival.head
        changed = dict(self.record, tried=head.counter, tried_id="%08x" % self.arrival.id)
        install = self._install_model
        if head.runtime:
            install = self._install_firmware if head.firmware else self._install_runtime
        try:
            with open(self.arrival.path, "rb") as file:
                content = install(file, changed)
            changed.update(before=self.record["slot"], was=self.record["counter"])
            changed.update(trial=head.trial, seconds=content.get("seconds", TRIAL_S), starts=0, said="on trial")
            changed.update(old=self.stats.figures(running), scores=content.get("scores"), past={})
            self.store.save(json.dumps(changed).encode())
        except Exception:
            if not head.runtime:
                self.slots.clear(changed["slot"])
            elif not head.firmware:  # nothing chooses a firmware that the record does not name
                self._settle_runtime()
            self.arrival.drop()
            raise
        self.record = changed
        self.arrival.drop()
        self.log("update %d is here; on trial for %d samples and %d s" % (head.counter, head.trial, changed["seconds"]))

    def _install_model(self, file: "BinaryIO", changed: "dict[str, Any]") -> "dict[str, Any]":
        """Copy a package into the slot that is not in force, which `changed` then names; return its part MORE."""
        slot = changed["slot"] = 2 if self.record["slot"] == 1 else 1
        changed["counter"] = changed["tried"]
        self.slots.clear(slot)
        content = self.slots.install(slot, file, self.arrival.id)
        changed["slots"] = list(changed["slots"])
        changed["slots"][slot - 1] = [self.slots.checksum(slot), changed["tried_id"]]
        return content

    def _install_firmware(self, file: "BinaryIO", changed: "dict[str, Any]") -> "dict[str, Any]":
        """Write a package into the spare partition, which `changed` then names and the next start chooses."""
        from . import partition
        from .runtime import set_state_aside

        label, content = partition.install(file)
        set_state_aside(self._state())
        changed["runtime_before"] = [partition.running()] + changed["runtime"][1:]
        changed["runtime"] = [label, changed["tried"], changed["tried_id"]]
        return content

    def _install_runtime(self, file: "BinaryIO", changed: "dict[str, Any]") -> "dict[str, Any]":
        """Unpack a package into the folder not in force, which `changed` and the mark then name; return its part MORE."""
        from . import runtime

        before = self.record["runtime"][0]
        folder = runtime.spare(before)
        content = runtime.install(file, folder)
        runtime.set_state_aside(self._state())
        runtime.select(before, folder, STARTS)
        changed["runtime"] = [folder, changed["tried"], changed["tried_id"]]
        return content

    def _save(self) -> str:
        """Write the record; return why that failed, "" if it did not. It is then in force in this process alone."""
        try:
            self.store.save(json.dumps(self.record).encode())
            UNSAVED.pop(self.base, None)
            return ""
        except OSError as error:
            if self.base not in UNSAVED:
                self.log("the record of updates cannot be written: %s" % error)
            UNSAVED[self.base] = self.record
            return str(error)

    def _is_written(self) -> bool:
        """Return whether the next start reads this record: a write may fail at its very end."""
        try:
            return self.store.load() == json.dumps(self.record).encode()
        except OSError:
            return False


class Counts:
    """What a trial is judged by: counters of a node and its TrialStats, of this start and of those in TrialStats.past."""

    def __init__(self, running: "Service", stats: "TrialStats"):
        node = running.node
        self.samples, self.paid, self.seconds = node.samples, node.paid, stats.watch.seconds()
        self.scores, self.answered, self.local_cost = node.scores, node.answered, node.local_cost
        self.offloads, self.missed = stats.offloads, stats.missed
        self.sense_errors, self.exceptions = running.sensing.errors, running.errors
        self.act_errors = node.complain.counts.get("act", 0)
        for name, before in stats.past.items():
            now = getattr(self, name)
            setattr(self, name, [a + b for a, b in zip(now, before)] if type(now) is list else now + before)


class TrialStats:
    """Statistics of the node since its start, by which a trial is compared with the model before. Call look() once a turn.

    Offloads while no worker is reachable do not count for `offloads` and `missed`, as they say nothing about a model. A policy
    that has yet to learn offloads more often than one that has learned, so the share without an answer relates to offloads.

    Attributes:
        past: Counts of the earlier starts of a trial that had an orderly end, by name.
        offloads, missed: Offloads, and those without an answer.
        sample_at: Seconds, at the last sample.
        gap: Longest time between two samples, seconds.
        opening: Errors of the sensor during the first OPENING_S.
    """

    def __init__(self, past: "dict[str, Any]"):
        self.past = past
        self.watch = Stopwatch()
        self.last_samples = self.last_offloads = self.last_fallbacks = 0  # of the node, at the last look
        self.offloads = self.missed = self.sample_at = self.gap = self.opening = 0

    def look(self, running: "Service") -> None:
        """Update the statistics."""
        node = running.node
        if running.standing == UP:
            self.offloads += node.offloads - self.last_offloads
            self.missed += node.fallbacks - self.last_fallbacks
        self.last_offloads = node.offloads
        self.last_fallbacks = node.fallbacks
        seconds = self.watch.seconds()
        if seconds <= OPENING_S:
            self.opening = running.sensing.errors
        self.gap = max(self.gap, seconds - self.sample_at)
        if node.samples != self.last_samples:
            self.last_samples = node.samples
            self.sample_at = seconds

    def figures(self, running: "Service") -> "dict[str, Any]":
        """Return model_figures(), and: `seconds` since the start, `answers`, `asked` (offloads) and `missed`, the longest `gap`
        between two samples, and errors of sense() and act() in thousandths of the tries, with those of the `opening` apart."""
        counts = Counts(running, self)
        errors = counts.sense_errors
        figures = model_figures(counts)
        figures.update(
            seconds=counts.seconds,
            answers=sum(counts.answered),
            asked=counts.offloads,
            missed=counts.missed,
            gap=max(self.gap, period_s(running.sensing) + 1),
            opening=self.opening,
            sense=errors * 1000 // max(1, counts.samples + errors),
            act=counts.act_errors * 1000 // max(1, counts.samples),
        )
        return figures

    def failure(self, running: "Service", counts: Counts, record: "dict[str, Any]") -> str:
        """Return why a trial need not continue, "" for no reason.

        record: `old`, figures() of the model before, or None; `trial` and `seconds`, the length of the trial.
        """
        old = record["old"] or {}
        errors = counts.sense_errors
        tries = counts.samples + errors
        if errors > old.get("opening", 0) + _allowed(tries, old.get("sense", 0)):
            return "sense() failed %d times in %d tries, %d of 1000 before" % (errors, tries, old.get("sense", 0))
        errors = counts.act_errors
        if errors > _allowed(counts.samples, old.get("act", 0)):
            return "act() failed %d times in %d, %d of 1000 before" % (errors, counts.samples, old.get("act", 0))
        silent = self.watch.seconds() - self.sample_at
        if silent > patience(record, period_s(running.sensing)):
            return "no sample for %d s, after %d" % (silent, counts.samples)
        longest = record["seconds"]
        for name, count in (("samples", record["trial"]), ("answers", MIN_ANSWERS)):
            if old.get(name):
                longest = max(longest, count * old.get("seconds", 0) // old[name])
        if counts.seconds > max(LATE_S, PATIENCE * longest):
            answers = sum(counts.answered)
            return "%d samples and %d answers in %d s: too few to judge by" % (counts.samples, answers, counts.seconds)
        return ""

    def complete(self, running: "Service", counts: Counts, record: "dict[str, Any]") -> bool:
        """Return whether a trial has had its samples, its time, and, if the model before had them, MIN_ANSWERS.

        It ends with a sample, so that a sensor that has just died is noticed. record: as for failure().
        """
        if counts.samples < record["trial"] or running.sensing.retry_ms:
            return False
        if counts.seconds < record["seconds"] or self.watch.seconds() > self.sample_at:
            return False
        return not record["old"] or record["old"]["cost"] < 0 or sum(counts.answered) >= MIN_ANSWERS


def period_s(sensing: "Sensing") -> int:
    """Return the whole seconds between two samples of a Sensing; 0: no schedule, or a short one."""
    return (sensing.every_ms + sensing.every_us // 1000) // 1000


def patience(record: "dict[str, Any]", period_s: int) -> int:
    """Return the seconds without a sample that a trial bears. period_s: as period_s() returns it."""
    old = record["old"] or {}
    usual = PATIENCE * old["gap"] if old.get("seconds", 0) >= QUIET_S else UNKNOWN_S
    return max(QUIET_S, usual, PATIENCE * period_s)


def _allowed(tries: int, before: int) -> int:
    """Return how many errors of so many tries are not more than before (thousandths)."""
    return EXTRA_ERRORS + tries * (before + EXTRA_SHARE) // 1000


def model_figures(node: "Any") -> "dict[str, Any]":
    """Return `samples`, `cost` and `variance` (thousandths a sample, and millionths; cost -1: too few answers) of the model."""
    samples = sum(node.scores)
    answers = sum(node.answered)
    figures = {"samples": samples, "cost": -1, "variance": 0}
    if answers < MIN_ANSWERS:
        return figures
    mean = sum(node.local_cost) // answers
    cost = node.paid * 1000 >> 15
    variance = 0
    for n, answered, local in zip(node.scores, node.answered, node.local_cost):
        each = (4 * local + mean) // (4 * answered + 1)  # a bin with few answers leans on the mean of all
        cost += (n - answered) * each
        variance += n * n * each * max(0, 1000 - each) // (answered + 1)
    figures["cost"] = cost // samples
    figures["variance"] = variance // samples // samples
    return figures


def compare(figures: "dict[str, Any]", scores: "Sequence[int]", record: "dict[str, Any]") -> str:
    """Return why a model is not to be kept after its trial, "" for no reason.

    figures: As of TrialStats. scores: Of the node's account.
    """
    old = record["old"]
    if old and min(figures["asked"], old.get("asked", 0)) >= MIN_ANSWERS:
        missed = figures["missed"] * 1000 // figures["asked"]
        before = old["missed"] * 1000 // old["asked"]
        if missed > before + MISSED_LIMIT:
            return "%d of 1000 offloads have no answer, %d before" % (missed, before)
    if record["scores"]:
        distance = variation(scores, record["scores"])
        if distance > DRIFT_LIMIT:
            return "its scores drift: %d of 1000 lie elsewhere than where it was signed" % distance
    if old and old["cost"] >= 0 and figures["cost"] >= 0:
        extra = figures["cost"] - old["cost"] - COST_LIMIT
        if extra > 0 and extra * extra > 4 * (figures["variance"] + old["variance"]):
            return "a sample costs %s, %s before" % (_decimal(figures["cost"]), _decimal(old["cost"]))
    return ""


def variation(a: "Sequence[int]", b: "Sequence[int]") -> int:
    """Return the total variation of two histograms (half the sum of the differences), in thousandths; 0 if they do not fit."""
    if len(a) != len(b) or not sum(a) or not sum(b):
        return 0
    n = sum(a)
    m = sum(b)
    return sum([abs(x * 1000 // n - y * 1000 // m) for x, y in zip(a, b)]) // 2


def summary(figures: "dict[str, Any]") -> str:
    """Return figures in words, for the log."""
    cost = "" if figures["cost"] < 0 else ", which cost %s each" % _decimal(figures["cost"])
    return "%d samples%s" % (figures["samples"], cost)


def _decimal(thousandths: int) -> str:
    return "%d.%03d" % (thousandths // 1000, thousandths % 1000)
