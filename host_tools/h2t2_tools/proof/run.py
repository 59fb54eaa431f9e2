"""`h2t2 run`: a project on an emulated board, flashed as onto a real one, against a real broker and remote model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..boards import flash, gateway
from ..boards.emulators import built, catalogue, drive
from ..boards.emulators.microbit import Microbit
from ..boards.emulators.pico import Pico
from ..boards.kinds import KINDS, NETWORK, Contents
from ..boards.project import Project
from ..common import pairs
from ..common.errors import Failure, UserError
from ..fleet import broker
from ..fleet.endpoint import Endpoint
from .children import serving
from .verdict import AGAIN, Verdict

PROGRAMS = {"unix": catalogue.UNIX, "arm32": catalogue.ARM32}
EMULATED: dict[str, Any] = {**PROGRAMS, "pico": built.PICO, "microbit": catalogue.MICROBIT}
FLASH = "flash.bin"  # the content of an emulated Pico's flash
SILENT_S = 120  # a board at a gateway's line that says nothing for so long has ended
RESTARTS = 3  # of a board without a decision: so many are enough to see
HOPELESS = 4  # a board says the 1st, 2nd, 4th and 8th failure of its sensor, some 25 s in all
Show = Callable[[dict[str, Any]], None]
Hear = Callable[[str], None]


def run(project: Project, board: str, url: str, fresh: bool, show: Show, heap: int = KINDS["pico_w"].heap) -> dict[str, Any]:
    """Run it to the end of its samples (Ctrl-C ends it); the report, with `trouble`, what went wrong on the board, in words.

    board: of EMULATED. url: a broker with a remote model behind it, "": both are started. fresh: forget earlier runs, which a
    board otherwise remembers. heap: bytes that are free on the board when its program begins, 0: as many as it takes; of unix
    and arm32, the others have their own. show: called with every decision, as the board says it. UserError where the emulator
    is missing, saying how to get it.
    """
    config = project.contents.config
    if board == "microbit" and project.contents.records is None:
        raise UserError("the micro:bit has no room for an app: h2t2 new --board microbit makes a project with recorded samples")
    reason = EMULATED[board].missing()
    if reason:
        raise UserError(f"{board}: {reason}")
    verdict = Verdict(config, project.labels)

    def decided(line: dict[str, Any]) -> None:
        verdict.take(line)
        show(line)

    device = project.folder / f"run-{board}"  # the file system of a board that is a program here
    if fresh:
        shutil.rmtree(device, ignore_errors=True)
    with ExitStack() as stack:
        if not url:
            if not config.pair:
                raise UserError(f"{project.folder}: its configuration names no `pair` to serve the remote model of: --broker")
            pair = pairs.load(str(config.folder / config.pair))
            url = stack.enter_context(broker.running("mosquitto" if broker.mosquitto() else "amqtt"))
            stack.enter_context(serving(["--pair", str(pair.folder), "--broker", url]))
        host, port = broker.parse(url)
        near = {"broker": host, "port": port, "ca": "", "cert": "", "key": "", "wifi_name": "", "ldl": "ldl.h2m"}
        near_config = config.model_copy(update=near)
        contents = replace(project.contents, config=near_config)
        if board == "microbit":
            summary = _microbit(contents, Endpoint(host, port), decided)
        elif board == "pico":
            explicit = config.model_dump(exclude_unset=True, exclude={*NETWORK})
            serial = type(config)(**explicit, folder=config.folder)
            summary = _pico(replace(contents, config=serial), Endpoint(host, port), device / FLASH, decided, verdict.hear)
        else:
            summary = _unix(contents, board, device, decided, verdict, heap)
    return {
        "project": str(project.folder),
        "board": board,
        "folder": str(device) if device.exists() else None,
        "summary": summary,
        **verdict.report(),
        "trouble": verdict.trouble(summary),
    }


def _unix(contents: Contents, board: str, device: Path, show: Show, verdict: Verdict, heap: int) -> dict[str, Any]:
    device.mkdir(exist_ok=True)
    emulator = PROGRAMS[board]
    flash.flash(KINDS["unix"], str(device), contents, False, lambda *_: None, replace_app=True, interpreter=emulator)
    summary: dict[str, Any] = {}
    failed = 0  # times in a row that the board said its sensor had
    reason = ""  # what the board said before it started again
    command, environment = _command(emulator, Path("main.py"), heap), emulator.environment(device)
    process = subprocess.Popen(command, cwd=device, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for text in process.stdout:
            line = _row(text)
            if "bin" in line:
                failed = 0
                show(line)
            elif "summary" in line:
                summary = line["summary"]
            else:
                print(text, end="", file=sys.stderr, flush=True)
                verdict.hear(text)
                failed += " sensor: " in text
                reason = reason if AGAIN in text else text.strip()
            if verdict.fruitless == RESTARTS:
                raise Failure(f"the board starts again and again: {reason}; all that it said stands above")
            if failed == HOPELESS:
                raise Failure(f"sense() gives nothing that can be decided about: {text.partition('sensor: ')[2].strip()}")
    finally:
        process.terminate()
    status = process.wait()
    if not summary:
        raise Failure(f"the program ended with status {status} and no summary; what it said stands above and in {device}")
    return summary


def _pico(contents: Contents, to: Endpoint, flash_file: Path, show: Show, hear: Hear) -> dict[str, Any]:
    """On the emulated Pico, its flash in a file, to the end that its program comes to."""
    summaries: list[dict[str, Any]] = []
    last = time.monotonic()

    def on_decision(line: dict[str, Any]) -> None:
        nonlocal last
        last = time.monotonic()
        show(line)

    flash_file.parent.mkdir(exist_ok=True)
    if not flash_file.exists():
        drive.runtime_on_a_pico(flash_file)
    with Pico(flash_file) as emulated:
        flash.flash(KINDS["pico"], emulated.port, contents, False, lambda *_: None, start=False, replace_app=True)

        def say(text: str) -> None:
            print(f"gateway: {text}", file=sys.stderr, flush=True)
            hear(text)

        out = gateway.Out(say, on_decision, lambda line: summaries.append(line["summary"]))
        line = gateway.Line(emulated.port, contents.config.device, to, gateway.How(pace=False, restart=True), out)
        try:
            while not summaries:
                if time.monotonic() - last > SILENT_S:
                    raise Failure(f"the Pico has said nothing for {SILENT_S} s; its last words may stand above")
                time.sleep(0.05)
        finally:
            line.stop()
    return summaries[0]


def _command(emulator: catalogue.Emulator, script: Path, heap: int) -> list[str]:
    return emulator.node(script, heap) if heap else emulator.command(script, [])


def _row(text: str) -> dict[str, Any]:
    """A JSON line of a node's; {} for whatever else a program prints."""
    try:
        row = json.loads(text)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _microbit(contents: Contents, to: Endpoint, show: Show) -> dict[str, Any]:
    assert contents.records is not None
    remaining = contents.records.stat().st_size // contents.record_size
    last = time.monotonic()

    def on_decision(line: dict[str, Any]) -> None:
        nonlocal last, remaining
        last, remaining = time.monotonic(), remaining - 1 - line["missed"]
        show(line)

    with Microbit() as emulated:
        emulated.close()
        flash.flash(KINDS["microbit"], emulated.port, contents, False, lambda *_: None, start=False)
        out = gateway.Out(lambda text: print(f"gateway: {text}", file=sys.stderr, flush=True), on_decision)
        line = gateway.Line(emulated.port, contents.config.device, to, gateway.How(restart=True), out)
        try:
            while remaining > 0:
                if time.monotonic() - last > SILENT_S:
                    raise Failure(f"the micro:bit has said nothing for {SILENT_S} s, {remaining} samples before the end")
                time.sleep(0.05)
        finally:
            counters = vars(line.stop())
    return dict(counters)
