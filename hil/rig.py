"""What HIL tests do with a board: put a node on it, run it and collect its decisions; and the host's replay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.core import policies
from h2t2.core.budget import Budget
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire
from h2t2_lab.boards.microbit import Microbit
from h2t2_lab.emulators import built, install, lwip
from h2t2_lab.processes import remaining_output
from h2t2_tools.boards import flash, gateway
from h2t2_tools.boards.emulators import catalogue, flash_image
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS, Contents
from h2t2_tools.boards.microbit import page
from h2t2_tools.common import pairs
from h2t2_tools.fleet.config import NETWORK_ENTRIES, NodeConfig
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.model import bundle

ROOT = Path(__file__).parents[1]
PAIR = "breast_cancer"
FIRST_S = 120  # longest wait for the first decision of a board that boots on a busy machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENTRIES = tomllib.loads((Path(__file__).parent / "boards.toml").read_text())["board"]


@dataclass
class Material:
    """A pair for boards: its bundle, the records of `samples` test samples, and the remote model's label of each."""

    folder: Path
    samples: int
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pair = self.pair = pairs.load(PAIR)
        self.blob = bundle.from_tflite(pair.ldl)
        self.model = self.folder / "ldl.h2m"
        self.model.write_bytes(self.blob)
        ldl = TFLiteModel(str(pair.ldl), event=pair.info.event_output("ldl"))
        rdl = TFLiteModel(str(pair.rdl), event=pair.info.event_output("rdl"))
        order = pairs.draw_indices(pair, self.samples, 5).tolist()
        self.local = [ldl.quantise(pair.model_input(pair.x[n], "ldl")).ravel() for n in order]
        remote = [rdl.quantise(pair.x[n]) for n in order]
        self.labels = [int(rdl.score(rdl.run(x.reshape(rdl.input_shape))) >= 0.5) for x in remote]
        self.records = self.folder / "samples.bin"
        self.records.write_bytes(b"".join(a.tobytes() + b.tobytes() for a, b in zip(self.local, remote)))
        shape = list(rdl.input_shape[1:])
        entries = {"remote_shape": shape, "model_id": pair.info.model_id, "event": 1, "beta": 0.2, "bits": 4}
        self.board_config = NodeConfig(**{**entries, **self.config})

    def contents(self) -> Contents:
        """Return the contents of a board with a network."""
        return Contents(self.model, self.board_config, self.records)

    def contents_serial(self) -> Contents:
        """Return the contents of a board on a gateway's line, without entries about the broker."""
        entries = self.board_config.model_dump(exclude_unset=True, exclude=set(NETWORK_ENTRIES))
        return Contents(self.model, NodeConfig(**entries), self.records)

    def replay_page(self, policy: Any = None) -> list[tuple[int, int, str]]:
        """As replay(), with H2T2 on one page. policy: its policy; None: made from the configuration."""
        ldl = Int8Model(self.blob, self.board_config.event)
        if policy is None:
            policy = page.load().H2T2(**page.arguments(self.board_config.model_dump()))
        lines = []
        for x, label in zip(self.local, self.labels):
            k = ldl.level(ldl.run(x)) >> 4
            action = policy.decide(k)
            lines.append((k, label, "remote") if action == OFFLOAD else (k, action, "local"))
            if action == OFFLOAD:
                policy.learn(policy.ticket, label)
        return lines

    def replay(self) -> list[tuple[int, int, str]]:
        """Return (bin, decision, source) of every sample as this host decides it, with labels that arrive at once."""
        ldl = Int8Model(self.blob, self.board_config.event)
        policy = policies.make(self.board_config.policy, self.board_config.arguments())
        size = wire.request_size(self.board_config.remote_shape)
        budget = Budget(**self.board_config.content()["budget"]) if self.board_config.budget else None
        lines = []
        for x, label in zip(self.local, self.labels):
            k = ldl.level(ldl.run(memoryview(np.ascontiguousarray(x).data))) >> 8 - policy.bits
            if budget:
                budget.earn(0, -1)
                if not budget.affords(size):
                    lines.append((k, policy.likely(k), "fallback"))
                    continue
                policy.set_charge(min(ONE, policy.beta + budget.price()))
            action = policy.decide(k)
            if action == OFFLOAD:
                if budget:
                    budget.spend(size)
                policy.learn(policy.ticket, label)
                lines.append((k, label, "remote"))
            else:
                lines.append((k, action, "local"))
        return lines


@dataclass
class Outcome:
    """The output of a node.

    Attributes:
        decisions: Its JSON lines.
        summary: Its last line.
        log: All other lines.
    """

    decisions: list[dict[str, Any]]
    summary: dict[str, Any]
    log: str

    def lines(self) -> list[tuple[int, int, str]]:
        return [(row["bin"], row["decision"], row["source"]) for row in self.decisions]


class Board:
    """One entry of boards.toml. port: serial line of a real board; None for an emulated one."""

    def __init__(self, entry: dict[str, Any], port: str | None, flashing: bool):
        self.id, self.kind, self.features = entry["id"], entry["kind"], set(entry["features"])
        self.emulator = next((e for e in install.EMULATORS if e.name == entry.get("emulator")), None)
        self.relayed = KINDS[self.kind].links in ((), ("serial",)) if self.kind in KINDS else False  # by a gateway
        self.port, self.flashing = port, flashing
        self.firmware = ""
        self.serial_log: list[str] = []

    def absent(self) -> str | None:
        """Return why this board cannot be used now, or None."""
        if self.emulator is built.PICO_FROZEN and built.PICO_FROZEN.is_quick():
            built.PICO_FROZEN.build(lambda step: None)  # the runtime of this checkout
        if self.emulator:
            return self.emulator.missing()
        return None if self.port else f"{self.id} is a real board: name its line with --port"

    def broker(self, address: str) -> str:
        """Return the address under which the board reaches a broker on this machine."""
        return lwip.HOST if self.emulator is lwip.LWIP and address == "127.0.0.1" else address

    def prepare(self, material: Material) -> None:
        """Flash the material into a unix port's folder. Other boards are flashed when they run."""
        if self.kind == "unix":
            assert isinstance(self.emulator, catalogue.Interpreter)
            report = flash.flash(
                KINDS["unix"], str(material.folder), material.contents(), not self.flashing, lambda *_: None,
                interpreter=self.emulator,
            )  # fmt: skip
            self._as_built(report)
            self.firmware = "MicroPython " + ".".join(map(str, report["found"]["version"]))

    def _as_built(self, report: dict[str, Any]) -> None:
        """With --no-flash check that the board holds the files of this checkout."""
        changed = [row["path"] for row in report["files"] if row["changed"]]
        assert self.flashing or not changed, f"{self.id}: not the firmware of this checkout: {', '.join(changed)} differ"

    def start(self, material: Material, script: str = "main.py") -> subprocess.Popen[str]:
        """Start a node of the unix port in the material's folder."""
        assert isinstance(self.emulator, catalogue.Interpreter)
        command = self.emulator.node(material.folder / script)
        env = self.emulator.environment(material.folder)
        return subprocess.Popen(
            command, cwd=material.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait_for(self, process: subprocess.Popen[str], word: str) -> str:
        """Wait until a node prints a line with that word, however long it takes to start. Return its output so far."""
        output = ""
        assert process.stdout
        for line in process.stdout:
            output += line
            if word in line:
                return output
        raise AssertionError(f"it ended without printing {word}: {output[-800:]}")

    def finish(self, process: subprocess.Popen[str], seconds: float, output: str = "") -> Outcome:
        """Wait for a node to end by itself, at most `seconds`. output: what wait_for() has already read."""
        out = output + remaining_output(process, seconds)[0]
        self.serial_log += out.splitlines()
        assert process.returncode == 0, out[-800:]
        return parse(out)

    def run(self, material: Material, seconds: float = 120) -> Outcome:
        """Run a node from the first sample to the last, against the broker of the material's configuration."""
        if self.kind == "unix":
            self.prepare(material)
            return self.finish(self.start(material), seconds)
        if self.kind == "pi":
            return self._pi(material, seconds)
        if self.kind == "microbit" and self.emulator:
            with Microbit() as board:
                return self.serial(board.port, material, seconds, board)
        if self.kind == "pico" and self.emulator:
            assert isinstance(self.emulator, catalogue.Rp2040)
            if self.emulator is not built.PICO_FROZEN:
                flash_image.runtime_on_a_pico(material.folder / "flash.bin", self.emulator)
            with Pico(material.folder / "flash.bin", board=self.emulator) as pico:
                return self.serial(pico.port, material, seconds)
        return self._real(material, seconds)

    def contents_serial(self, material: Material) -> Contents:
        """Return the contents of this board on a gateway's line."""
        return replace(material.contents_serial(), frozen=self.emulator is built.PICO_FROZEN)

    def _pi(self, material: Material, seconds: float) -> Outcome:
        c = material.board_config
        run = node_command(c, material.samples)
        assert isinstance(self.emulator, catalogue.Interpreter)
        command = [*self.emulator.command(Path("-m"), []), "h2t2_tools", *run]
        env = self.emulator.environment(ROOT / "firmware", ROOT / "host_tools")
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=material.folder
        )
        out, trouble = process.communicate(timeout=seconds)
        self.serial_log += trouble.splitlines()
        assert process.returncode == 0, trouble[-800:]
        self.firmware = "CPython 3.11, aarch64"
        return parse(out)

    def serial(
        self, port: str, material: Material, seconds: float, repl: Microbit | None = None, line: str | None = None
    ) -> Outcome:
        """Flash a board without a network. Relay for it until it has decided every sample or is silent for `seconds`.

        line: Line of the gateway if it differs from `port`.
        """
        c = material.board_config
        if repl:
            repl.close()
        dry = not self.flashing
        kind = KINDS[self.kind]
        contents = material.contents() if kind.paced else self.contents_serial(material)
        report = flash.flash(kind, port, contents, dry, lambda *_: None, start=False)
        self._as_built(report)
        self.firmware = "MicroPython " + ".".join(map(str, report["found"]["version"]))
        decisions: list[dict[str, Any]] = []
        out = gateway.Out(self.serial_log.append, decisions.append)
        options = gateway.LineOptions(pace=kind.paced, restart=True)
        relay = gateway.Line(line or port, {gateway.ON_LINE: c.device}, Endpoint(c.broker, c.port), options, out)
        count, last = 0, time.monotonic()  # a busy machine may be slow, but not silent for so long
        try:
            while not decisions or decisions[-1]["n"] < material.samples - 1:
                if len(decisions) > count:
                    count, last = len(decisions), time.monotonic()
                elif time.monotonic() - last > (seconds if decisions else FIRST_S):
                    self.serial_log.append(f"silent after {len(decisions)} decisions")
                    break  # noise may have hit the last ones
                time.sleep(0.05)
        finally:
            counters = vars(relay.stop()[c.device])
        return Outcome(decisions, dict(counters), "\n".join(self.serial_log))

    def _real(self, material: Material, seconds: float) -> Outcome:
        """Flash a real board and read its own lines, or relay for it if it has no network."""
        assert self.port
        if self.relayed:
            return self.serial(self.port, material, seconds)
        from h2t2_tools.boards.repl import RawRepl

        flash.flash(KINDS[self.kind], self.port, material.contents(), False, lambda *_: None)
        with RawRepl(self.port) as line:
            line.reset()
            out, end = b"", time.monotonic() + seconds
            while b'"summary"' not in out and time.monotonic() < end:
                out += line.read()
        return parse(out.decode(errors="replace"))


def node_command(config: NodeConfig, samples: int) -> list[str]:
    """Return the command `h2t2 node` with a board configuration's numbers."""
    c = config
    return [
        "node", "--pair", PAIR, "--broker", f"mqtt://{c.broker}:{c.port}", "--device", c.device, "--samples", str(samples),
        "--bits", str(c.bits), "--beta", str(c.beta), "--seed", "5", "--deadline", f"{c.deadline_ms}ms",
        "--resolver", "exact",
    ]  # fmt: skip


def host_node(config: NodeConfig, samples: int, seconds: float = 120) -> Outcome:
    """Run the same `h2t2 node` on this machine."""
    command = [sys.executable, "-m", "h2t2_tools", *node_command(config, samples)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=dict(os.environ))
    assert process.returncode == 0, process.stderr[-800:]
    return parse(process.stdout)


def parse(out: str) -> Outcome:
    decisions, summary, log = [], {}, []
    for line in out.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            log.append(line)
            continue
        if "summary" in row:
            summary = row["summary"]
        elif "bin" in row:
            decisions.append(row)
    return Outcome(decisions, summary, "\n".join(log))
