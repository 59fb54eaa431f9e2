"""The nodes of `h2t2-lab chaos`: real processes that are killed and restarted, and an account of their decisions."""

import json
import os
import resource
import signal
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any

from h2t2.cpython.interpreter import python
from h2t2.cpython.tflite import TFLiteModel
from h2t2_tools.boards import kinds
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.targets import Folder
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle

from .. import material
from .account import Account

RATE = 140  # samples a second; nodes are faster, and each outage meets many samples but not all
PERIOD = f"{1000 / RATE:.3f}ms"
EVERY = 50  # lessons between two snapshots
STOP_S = 20.0  # longest orderly end
NO_ROOM = 64  # largest file, in bytes, while the "disk" is full
EPSILON = 0.3  # three of ten samples are offloaded in any case, to test the link
JUMPING = material.text("programs/chaos_pi.py.txt").format(rate=RATE)


class Subject:
    """A node that streams `order` (numbers of test samples) and is done when each has a decision.

    If a kill interrupts a sample, the next life gets it, and its time counts from there.
    """

    name = ""

    stop_signal = signal.SIGTERM

    def __init__(self, folder: Path, order: list[int], labels: list[int], broker: tuple[str, int], deadline_ms: int) -> None:
        """Prepare a node. labels: the remote model's, for each test sample."""
        self.folder, self.order, self.broker, self.deadline_ms = folder, order, broker, deadline_ms
        self.account = Account(samples=len(order), labels=[labels[n] for n in order])
        self.log_lines: deque[str] = deque(maxlen=200)
        self.ended = False
        self._todo: list[int] = []
        self.process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._begun = threading.Event()  # its life has said what it starts with
        self._saved: int | None = 0  # lessons that the next life must know; None: unknown
        self._last_taught = 0  # lessons at the last orderly end
        self._disk_full = False

    def command(self, todo: list[int]) -> tuple[list[str], dict[str, str]]:
        """Return the command line and environment of a life that streams these positions of `order`."""
        raise NotImplementedError

    def progress(self) -> float:
        return len(self.account.decided) / len(self.order)

    def start(self) -> None:
        """Start a life for the samples that have no decision yet."""
        self._todo = [n for n in range(len(self.order)) if n not in self.account.decided]
        self._begun.clear()
        command, environment = self.command(self._todo)
        # without restore_signals SIGXFSZ stays ignored, as CPython sets it: a full disk is an error, not the end
        self.process = process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            restore_signals=False, start_new_session=True,
        )  # fmt: skip
        self.disk_full(self._disk_full)
        self.account.lives += 1
        self._readers = [threading.Thread(target=target, args=(process,), daemon=True) for target in (self._read, self._listen)]
        for reader in self._readers:
            reader.start()

    def kill(self) -> None:
        """Kill it as a power cut does."""
        self._saved = None
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """Stop it as systemctl does: it decides the current sample, saves, and prints its summary.

        A life that has not begun is waited for, because a signal that it does not handle yet would end it without a summary.
        """
        if self._disk_full:
            return self.kill()
        self._begun.wait(STOP_S)
        before = self.account.stops
        self._saved = None
        try:
            self._end(lambda process: (process.send_signal(self.stop_signal), process.wait(STOP_S)))
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name}: it still runs {STOP_S:g} s after it was told to stop") from None
        if self.account.stops == before and not self.ended:
            raise Failure(f"{self.name}: it stopped without a summary: {' / '.join(list(self.log_lines)[-3:])}")
        self._saved = self._last_taught

    def conclude(self) -> None:
        """End it in order when the time is over. Samples that it has not received do not count."""
        self.disk_full(False)
        self.stop()
        self.account.samples = len(self.account.decided)

    def finish(self, seconds: float) -> None:
        """Wait for the end of a life that has decided everything."""
        try:
            self._end(lambda process: process.wait(seconds))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.name}: it has decided all samples but does not end") from None

    def _end(self, wait: Any) -> None:
        process = self.process
        if process is None:
            return
        wait(process)
        process.wait()
        for reader in self._readers:
            reader.join(10)
        self.process = None

    def alive(self) -> bool:
        """Return whether it runs, or has printed lines that are not read yet."""
        if self.process is None:
            return False
        return self.process.poll() is None or any(reader.is_alive() for reader in self._readers)

    def disk_full(self, full: bool) -> None:
        """Limit every file of the node to NO_ROOM bytes, which truncates a snapshot."""
        self._disk_full = full
        if self.process and self.process.poll() is None:
            hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (NO_ROOM if full else hard, hard))

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Read the lines of a life. A line that a kill truncated is not a decision."""
        assert process.stdout
        for text in process.stdout:
            try:
                row = json.loads(text)
            except ValueError:
                self._note(text)
                continue
            if not isinstance(row, dict) or not text.endswith("\n"):
                self._note(text)
            elif "start" in row:
                self.account.begin(row["start"], self._saved)
                self._life = row["start"]["taught"], len(self.account.lessons)
                self._begun.set()
            elif "late" in row:
                self.account.lesson(self._todo[row["late"]] if row["late"] >= 0 else -1, row["label"])
            elif "seen" in row:
                self.account.record_decision(self._todo[row["seen"]], row)
            elif "summary" in row:
                self._summary(row["summary"])

    def _summary(self, row: dict[str, Any]) -> None:
        """Check the summary of an orderly end: its count of lessons must equal the oracle's."""
        account = self.account
        account.stops += 1
        self._last_taught = row["taught"]
        account.sensor_errors += row["sensor_errors"]
        account.miscounted += row["taught"] - self._life[0] != len(account.lessons) - self._life[1]
        account.unsaved += row["unsaved"]
        self.ended = len(account.decided) == account.samples

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        for text in process.stderr:
            self._note(text)

    def _note(self, text: str) -> None:
        self.log_lines.append(text.strip())
        self.account.unsaved += "snapshot not saved" in text
        self.account.unreadable += "beginning anew" in text or "nothing is left" in text
        self.account.foreign += "not served here" in text


class PiNode(Subject):
    """`h2t2 node` as on a Pi: CPython, the TFLite interpreter, paho. It runs on this machine's processor."""

    name = "pi"

    def command(self, todo: list[int]) -> tuple[list[str], dict[str, str]]:
        path = self.folder / "order"
        path.write_text("\n".join(str(self.order[n]) for n in todo))
        host, port = self.broker
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # a full disk would cut off the bytecode of modules
        return python(
            "-c", JUMPING, "node", "--broker", f"mqtt://{host}:{port}", "--device", "chaos-pi",
            "--in-flight", "8",
            "--policy", "h2t2", "--exploration", "epsilon", "--epsilon", str(EPSILON), "--order", str(path),
            "--every", PERIOD,
            "--deadline", f"{self.deadline_ms}ms", "--hold", "256",
            "--snapshot", str(self.folder / "state"), "--snapshot-every", str(EVERY),
        ), environment  # fmt: skip


class UnixNode(Subject):
    """A board's own files on MicroPython's unix port, with the integer LDL and the board's MQTT link."""

    name = "unix"

    stop_signal = signal.SIGINT  # MicroPython handles no other signal

    def __init__(self, folder: Path, order: list[int], labels: list[int], broker: tuple[str, int], deadline_ms: int) -> None:
        super().__init__(folder, order, labels, broker, deadline_ms)
        missing = catalogue.UNIX.missing()
        if missing:
            raise Failure(f"unix: {missing}")
        pair = pairs.load("breast_cancer")
        ldl = TFLiteModel(str(pair.ldl), event=pair.info.event_output("ldl"))
        rdl = TFLiteModel(str(pair.rdl), event=pair.info.event_output("rdl"))
        local = [ldl.quantise(pair.model_input(x, "ldl")).tobytes() for x in pair.x]
        self._records = [mine + rdl.quantise(x).tobytes() for mine, x in zip(local, pair.x)]
        model = folder / "ldl.h2m"
        model.write_bytes(bundle.from_tflite(pair.ldl))
        config = NodeConfig(
            device="chaos-unix", broker=broker[0], port=broker[1], event=1, remote_shape=list(rdl.input_shape[1:]),
            model_id=pair.info.model_id, policy="h2t2", exploration="epsilon", epsilon=EPSILON, in_flight=8,
            deadline=deadline_ms / 1000, snapshot_every=EVERY, every=PERIOD, telemetry=1,
        )  # fmt: skip
        target = Folder(folder)
        for path, content in kinds.payload(kinds.KINDS["unix"], kinds.Contents(model, config)).items():
            target.write(path, content)
        for name in ("chaos_clock.py", "chaos_oracle.py", "chaos_node.py"):
            target.write(name, (material.ON_DEVICE / name).read_bytes())

    def command(self, todo: list[int]) -> tuple[list[str], dict[str, str]]:
        (self.folder / "samples.bin").write_bytes(b"".join(self._records[self.order[n]] for n in todo))
        script = self.folder / "chaos_node.py"
        return [*catalogue.UNIX.node(script), str(RATE)], catalogue.UNIX.environment(self.folder)


KINDS: dict[str, type[Subject]] = {"pi": PiNode, "unix": UnixNode}
