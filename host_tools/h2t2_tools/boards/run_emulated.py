"""`h2t2 run`: flash a project onto an emulated board and run it against a real broker and remote model."""

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

from ..common import pairs
from ..common.errors import Failure, UserError
from ..fleet import broker
from ..fleet.children import serving
from ..fleet.config import NETWORK_ENTRIES, located
from ..fleet.endpoint import Endpoint
from ..fleet.monitoring.savings import saved_so_far
from ..fleet.monitoring.state import State
from . import flash, gateway
from .emulators import catalogue, flash_image
from .emulators.microbit import Microbit
from .emulators.pico import Pico
from .kinds import KINDS, Contents
from .project import Project
from .verdict import AGAIN, SENSOR, Verdict

PROGRAMS = {"unix": catalogue.UNIX, "arm32": catalogue.ARM32}
EMULATED = {board.name: board for board in catalogue.EMULATORS}
FLASH = "flash.bin"  # the content of an emulated Pico's flash
SILENT_S = 120  # after this silence, a board on a gateway's line counts as ended
RESTARTS = 3  # restarts without a decision between them, after which run() gives up
HOPELESS = 4  # logged sensor failures in a row (the 1st, 2nd, 4th and 8th, some 25 s) after which run() gives up
DECISION = {"n", "bin", "decision", "source"}  # names in a node's line; an app may print JSON of its own
Show = Callable[[dict[str, Any]], None]


def run(
    project: Project, url: str, fresh: bool, show: Show, heap: int = KINDS["pico_w"].heap, samples: int = 0
) -> dict[str, Any]:
    """Run a project to the end of its samples, or to Ctrl-C.

    Args:
        project: The project, for a board of EMULATED.
        url: A broker with a remote model; "": start both.
        fresh: Delete the files of earlier runs, which a board otherwise finds.
        show: Called with every decision, as the board reports it.
        heap: Bytes that are free on unix and arm32 when the program begins; 0: no limit. Other boards have their own heap.
        samples: End after so many samples; 0: when the project's sensor ends.

    Returns:
        The report that docs/json.md describes; `trouble` has a sentence for each failure on the board.

    Raises:
        UserError: The emulator is missing; the message says how to get it.
        Failure: The board does not reach the end of its samples.
    """
    config, board = project.contents.config, project.board
    if board == "microbit" and project.contents.records is None:
        raise UserError('the micro:bit has no room for an app: set app = "" in its section, and put samples.bin beside it')
    reason = EMULATED[board].missing()
    if reason:
        raise UserError(f"{board}: {reason}")
    verdict = Verdict(config, project.labels)

    def decided(line: dict[str, Any]) -> None:
        verdict.take(line)
        show(line)

    device = project.folder / f"run-{board}"  # file system of a board that is a program here
    if fresh:
        shutil.rmtree(device, ignore_errors=True)
    with ExitStack() as stack:
        login = {} if url else {"user": "", "password": ""}  # those of another broker stay off the board
        url = url or _serve(project, stack)
        host, port = broker.parse(url)
        near = {"broker": host, "port": port, "ca": "", "cert": "", "key": "", "wifi_name": "", "ldl": "ldl.h2m", **login}
        near_config = config.model_copy(update=near)
        contents = replace(project.contents, config=near_config, samples=samples, own_link=False)
        if board == "microbit":
            summary = _microbit(contents, Endpoint(host, port), decided)
        elif board == "pico":
            explicit = config.model_dump(exclude_unset=True, exclude={*NETWORK_ENTRIES})
            serial = type(config)(**explicit, folder=config.folder)
            summary = _pico(replace(contents, config=serial), Endpoint(host, port), device / FLASH, decided, verdict)
        else:
            summary = _unix(contents, board, device, decided, verdict, heap)
    return {
        "project": str(project.folder),
        "board": board,
        "folder": str(device) if device.exists() else None,
        "summary": summary,
        # of a micro:bit the summary has its gateway's counters alone
        "saved": saved_so_far(State.model_validate_json(json.dumps(summary))) if "scores" in summary else None,
        **verdict.report(),
        "trouble": verdict.trouble(summary),
    }


def _serve(project: Project, stack: ExitStack) -> str:
    """Start a broker and the remote model of a project's pair. Return the broker's URL."""
    config = project.contents.config
    if not config.pair:
        raise UserError(f"{project.folder}: its configuration names no `pair` with a remote model: give --broker")
    pair = pairs.load(located(config.folder, config.pair))
    url = stack.enter_context(broker.running("mosquitto" if broker.mosquitto() else "amqtt"))
    stack.enter_context(serving(["--pair", str(pair.folder), "--broker", url]))
    return url


def _unix(contents: Contents, board: str, device: Path, show: Show, verdict: Verdict, heap: int) -> dict[str, Any]:
    device.mkdir(exist_ok=True)
    emulator = PROGRAMS[board]
    flash.flash(KINDS["unix"], str(device), contents, False, lambda *_: None, replace_app=True, interpreter=emulator)
    summary: dict[str, Any] = {}
    failed = 0  # sensor failures in a row
    reason = ""  # the last line before the board restarted
    script = Path("main.py")
    command = emulator.node(script, heap) if heap else emulator.command(script, [])
    process = subprocess.Popen(command, cwd=device, env=emulator.environment(device), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for text in process.stdout:
            line = _row(text)
            if line.keys() == DECISION:
                failed = 0 if line["bin"] >= 0 else failed  # without a bin, the sample had numbers that no model takes
                show(line)
            elif line.keys() == {"summary"}:
                summary = line["summary"]
            else:
                print(text, end="", file=sys.stderr, flush=True)
                verdict.hear(text)
                failed += SENSOR in text
                reason = reason if AGAIN in text else text.strip()
            if verdict.fruitless == RESTARTS:
                raise Failure(f"the board restarts again and again: {reason}; its whole output stands above")
            if failed == HOPELESS:
                raise Failure(f"sense() gives nothing that can be decided about: {text.partition(SENSOR)[2].strip()}")
    finally:
        process.terminate()
    status = process.wait()
    if not summary:
        raise Failure(f"the program ended with status {status} and no summary; its output stands above and in {device}")
    return summary


def _relay(
    port: str, device: str, to: Endpoint, options: gateway.LineOptions, out: gateway.Out, *, is_over: Callable[[], bool]
) -> dict[str, Any]:
    """Relay between a board on a line and the broker until the board is done. Return the gateway's counters.

    Raises:
        Failure: The board sent nothing for SILENT_S.
    """
    last = time.monotonic()

    def on_decision(line: dict[str, Any]) -> None:
        nonlocal last
        last = time.monotonic()
        out.decision(line)

    line = gateway.Line(port, {gateway.ON_LINE: device}, to, options, replace(out, decision=on_decision))
    try:
        while not is_over():
            if time.monotonic() - last > SILENT_S:
                raise Failure(f"the board sent nothing for {SILENT_S} s; its last output may stand above")
            time.sleep(0.05)
    finally:
        counters = vars(line.stop()[device])
    return dict(counters)


def _print_gateway(text: str) -> None:
    print(f"gateway: {text}", file=sys.stderr, flush=True)


def _pico(contents: Contents, to: Endpoint, flash_file: Path, show: Show, verdict: Verdict) -> dict[str, Any]:
    """Run an emulated Pico, with its flash in a file, until its program ends. Return its summary."""
    summaries: list[dict[str, Any]] = []
    reason = ""  # the last line before the board restarted
    flash_file.parent.mkdir(exist_ok=True)
    if not flash_file.exists():
        flash_image.runtime_on_a_pico(flash_file)

    def log(text: str) -> None:
        nonlocal reason
        _print_gateway(text)
        verdict.hear(text)
        reason = reason if AGAIN in text else text.strip()

    def is_over() -> bool:
        return bool(summaries) or verdict.fruitless >= RESTARTS

    out = gateway.Out(log, show, lambda line: summaries.append(line["summary"]))
    with Pico(flash_file) as emulated:
        flash.flash(KINDS["pico"], emulated.port, contents, False, lambda *_: None, start=False, replace_app=True)
        options = gateway.LineOptions(pace=False, restart=True)
        _relay(emulated.port, contents.config.device, to, options, out, is_over=is_over)
    if not summaries:
        raise Failure(f"the board restarts again and again: {reason}; its whole output stands above")
    return summaries[0]


def _microbit(contents: Contents, to: Endpoint, show: Show) -> dict[str, Any]:
    """Run an emulated micro:bit until it has decided its samples. Return the gateway's counters as its summary."""
    assert contents.records is not None
    recorded = contents.records.stat().st_size // contents.record_size
    remaining = min(contents.samples or recorded, recorded)

    def on_decision(line: dict[str, Any]) -> None:
        nonlocal remaining
        remaining -= 1 + line["missed"]
        show(line)

    out = gateway.Out(_print_gateway, on_decision)
    with Microbit() as emulated:
        emulated.close()
        flash.flash(KINDS["microbit"], emulated.port, contents, False, lambda *_: None, start=False)
        options = gateway.LineOptions(restart=True)
        return _relay(emulated.port, contents.config.device, to, options, out, is_over=lambda: remaining <= 0)


def _row(text: str) -> dict[str, Any]:
    """Parse a JSON line of a node. Return {} for any other line that a program prints."""
    try:
        row = json.loads(text)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
