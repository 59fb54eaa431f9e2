"""`h2t2 flash`: puts a node onto a board.

It checks the board, copies the changed files, reads them back, puts them in place, restarts the board and waits for its hello.
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from serial.tools import list_ports

from h2t2.cpython.whole_frames import encode
from h2t2.link import frames
from h2t2.node.run import PATIENT_MS
from h2t2.node.runtime import MARK

from ..common.errors import Failure, UserError
from .emulators import session
from .emulators.catalogue import UNIX, Interpreter
from .kinds import Contents, Kind, modules, payload
from .microbit.microbit_program import PROGRAM
from .node_heap import Progress, in_parts, needed
from .own_main import is_ours
from .refusals import SMALLER, check, check_room, compiled, refuse
from .repl import RawRepl
from .targets import BoardInfo, Folder, Repl, Target, wait_hello

LITTLEFS = "format it as littlefs, MicroPython's default (its folder in firmware/boards says how)"
NO_SPACE = re.compile(r"ENOSPC|OSError: (\[Errno )?28\b")
BOOT_S = 60  # longest time from reset to node: a slow chip compiles the runtime and checks the model and the snapshot
LOOK_UP_S = 15  # how much a look-up at two silent name servers can prolong the wait for a connection


def ports() -> list[dict[str, Any]]:
    """Return the serial ports that may be boards: {"port", "about", "usb"}; usb is "" for a Pico that `h2t2 emulate` runs."""
    rows = [
        {"port": port.device, "about": port.description, "usb": f"{port.vid:04x}:{port.pid:04x}"}
        for port in sorted(list_ports.comports(), key=lambda port: port.device)
        if port.vid is not None
    ]
    return rows + [{"port": port, "about": "emulated Raspberry Pi Pico", "usb": ""} for port in session.ports()]


def find(kind: Kind, port: str) -> str:
    """Return the port of a board.

    Args:
        kind: Kind of the board.
        port: A port; auto: the only one that is plugged in.

    Raises:
        UserError: None or several boards are plugged in.
    """
    if port != "auto":
        return port
    if kind.name == "unix":
        raise UserError("--port: name the folder in which the unix port runs")
    plugged = [row["port"] for row in ports()]
    if len(plugged) != 1:
        raise UserError(
            f"--port auto: {len(plugged)} boards are plugged in ({', '.join(plugged) or 'none'}); name one: h2t2 boards"
        )
    return str(plugged[0])


def plan(files: dict[str, bytes], digests: dict[str, str]) -> list[dict[str, Any]]:
    """Return {"path", "bytes", "changed"} for every file, in the order in which flash() puts them in place."""
    return [
        {"path": path, "bytes": len(data), "changed": digests.get(path) != hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]


def longest_start(kind: Kind) -> float:
    """Return the longest time until a board's hello, in seconds. It says hello once it is connected or has given up waiting."""
    return BOOT_S + (PATIENT_MS / 1000 + LOOK_UP_S if "mqtt" in kind.links else 0)


def with_room(kind: Kind, contents: Contents, progress: Progress) -> tuple[Contents, dict[str, int] | None]:
    """Return what goes onto a board, and the heap that it takes, as needed().

    The policy does not read its past where the configuration leaves `ordered` out and only this gives such a board room.
    """
    if kind.name in ("microbit", "unix"):
        return contents, None
    heap = needed(kind, contents, progress)
    config = contents.config
    if heap and sum(heap.values()) > kind.heap and config.ordered is None and "ordered" in config.arguments():
        smaller = replace(contents, config=config.model_copy(update={"ordered": False}), past_left_out=True)
        less = needed(kind, smaller, progress)
        if less and sum(less.values()) <= kind.heap:
            return smaller, less
    return contents, heap


def flash(
    kind: Kind, port: str, contents: Contents, dry: bool, progress: Progress, *,
    start: bool = True, replace_app: bool = False, reset_updates: bool = False, interpreter: Interpreter = UNIX,
) -> dict[str, Any]:  # fmt: skip
    """Put a node onto a board.

    Args:
        kind: Kind of the board.
        port: Its serial port, or the folder in which the unix port runs; auto: the only board that is plugged in.
        contents: The model, the configuration and the user's files.
        dry: Only check and report.
        progress: Called with the name of the step or file, the finished steps and all steps.
        start: Wait for the hello of the restarted board; otherwise it stays at its prompt, for a gateway that restarts it.
            After a dry run, a refusal and a failure the board is restarted anyway.
        replace_app: Overwrite another app and its files on the board.
        reset_updates: Remove the board's record of updates, with its counters and the keys that came by update.
        interpreter: Build of the unix port that runs in the folder.

    Returns:
        The report: board, port, files, copied, bytes, heap and others. It contains no secrets.

    Raises:
        UserError: The board or the configuration does not fit.
        Failure: The line failed, or the board did not say hello.
    """
    refuse(kind, contents)
    contents, heap = with_room(kind, contents, progress)
    files = payload(kind, contents)
    own = set() if replace_app else {"app.py", *contents.own}  # the user's files, which flash() does not overwrite
    if dry and port == "auto":
        if heap is not None and sum(heap.values()) > kind.heap:
            raise UserError(
                f"the node takes {in_parts(heap)} of heap; {kind.with_article} usually has {kind.heap:,} free: {SMALLER}"
            )
        return _report(kind, port, plan(files, {}), heap, None, True, contents)
    port = find(kind, port)
    common: dict[str, Any] = {"files": files, "own": own, "heap": heap, "dry": dry, "progress": progress}
    common["reset_updates"] = reset_updates
    if kind.name == "unix":
        return _onto(kind, port, Folder(Path(port), interpreter), contents, **common)
    with RawRepl(port, kind.paced) as repl:
        target = Repl(repl, kind.name != "microbit")
        try:
            report = _onto(kind, port, target, contents, **common)
        except BaseException:  # whatever it holds runs on; a start completes files that are half in place
            with suppress(Failure):
                target.restart()
            raise
        if start or dry:
            target.restart()
        if start and not dry:
            mark = b"h2t2: no network" if report["access_point"] else b"h2t2: ready"
            mark = encode(frames.HELLO, contents.config.device.encode()) if kind.name == "microbit" else mark
            wait_hello(repl.read, mark, longest_start(kind))
            report["hello"] = contents.config.device
    return report


def _onto(
    kind: Kind, port: str, target: Target, contents: Contents, *, files: dict[str, bytes], own: set[str],
    heap: dict[str, int] | None, dry: bool, progress: Progress, reset_updates: bool,
) -> dict[str, Any]:  # fmt: skip
    target.begin()
    info = target.info()
    mpy = compiled(kind, contents)
    if mpy and info.mpy and info.arch != kind.arch:  # some kinds come with several processors; the board reports its own
        files = payload(replace(kind, arch=info.arch), contents)
    digests = target.digests(list(files))
    rows = plan(files, digests)
    check(kind, info, port, rows, heap, contents)
    changed = [row["path"] for row in rows if row["changed"]]
    replaced = own & {*changed} & {*digests}
    if own and _is_strange(target, files, digests):
        replaced.add("main.py")
    if replaced:
        raise UserError(f"{port}: the board holds another {' and '.join(sorted(replaced))}; save it, or give --replace-app")
    direct = kind.name == "microbit"  # it cannot rename files; main.py, written last, switches to the new program
    missing = changed if direct else _unlike(target, changed, files)  # an interrupted run has copied the others
    if not direct:
        folders = {str(above) for path in digests for above in PurePosixPath(path).parents}
        check_room(info, port, {path: len(files[path]) for path in missing}, folders)
    if not dry:
        if target.loses_files():
            raise UserError(f"{port}: its file system is FAT, which a power cut can damage; {LITTLEFS}")
        try:
            for n, path in enumerate(missing):
                progress(path, n, len(missing))
                target.write(path if direct else path + ".new", files[path])
            wrong = [] if direct else _unlike(target, changed, files)
            if wrong:
                raise Failure(f"{port}: {', '.join(wrong)} read back differently")
            if contents.frozen:
                target.uncover()
            if changed and not direct:
                target.replace(changed)
            _clear(kind, target, files, mpy)
            if reset_updates:
                target.remove(list(target.digests([f"{contents.config.snapshot}.update.{slot}" for slot in (0, 1)])))
        except Failure as error:
            if NO_SPACE.search(str(error)):  # nothing else would remove them, and they would be in the way next time
                target.remove([path + ".new" for path in changed])
                raise Failure(f"{error}; its file system is full. The board still has its previous program") from None
            raise Failure(
                f"{error}; the board still has its previous program. Plug it in again and repeat the same command: it "
                "continues where it stopped"
            ) from None
    return _report(kind, port, rows, heap, info, dry, contents)


def _is_strange(target: Target, files: dict[str, bytes], digests: dict[str, str]) -> bool:
    """Return whether the board starts a program of the user's own, main.py, which a flash would end."""
    found = digests.get("main.py") or target.digests(["main.py"]).get("main.py")
    if not found or found == hashlib.sha256(files.get("main.py", b"")).hexdigest():
        return False
    return not is_ours(target.read("main.py"))


def _unlike(target: Target, paths: list[str], files: dict[str, bytes]) -> list[str]:
    digests = target.digests([path + ".new" for path in paths])
    return [path for path in paths if digests.get(path + ".new") != hashlib.sha256(files[path]).hexdigest()]


def _clear(kind: Kind, target: Target, files: dict[str, bytes], mpy: bool) -> None:
    """Remove files that would shadow the new ones, machine code that is no longer wanted, or a micro:bit's older programs."""
    if kind.name == "microbit":
        assert isinstance(target, Repl)
        target.remove([name for name in target.repl.files() if PROGRAM.fullmatch(name) and name not in files])
        return
    opposite = {True: (".mpy", ".py"), False: (".py", ".mpy")}[mpy]
    old = [path.removesuffix(opposite[0]) + opposite[1] for path in files if path.startswith("h2t2/")]
    machine_code = [path.removesuffix(".py") for path in modules(kind) if path.endswith("_viper.py")]
    old += [path + form for path in machine_code for form in opposite if path + form not in {*files, *old}]
    digests = target.digests([*old, MARK])  # without the mark, the runtime that is flashed now is in force
    if digests:
        target.remove(list(digests))


def _report(
    kind: Kind,
    port: str,
    rows: list[dict[str, Any]],
    heap: dict[str, int] | None,
    info: BoardInfo | None,
    dry: bool,
    contents: Contents,
) -> dict[str, Any]:
    config = contents.config
    copied = [row for row in rows if row["changed"]]
    return {
        "board": kind.name,
        "port": port,
        "dry_run": dry,
        "files": rows,
        "copied": len(copied),
        "bytes": sum(row["bytes"] for row in copied),
        "flash_bytes": sum(row["bytes"] for row in rows),
        "heap_bytes": None if heap is None else sum(heap.values()),
        "heap_parts": heap,
        "usual_heap": kind.heap,
        "past_left_out": contents.past_left_out,
        "access_point": f"h2t2-{config.device}"[:32] if config.provision and not config.wifi_name else "",
        "found": None if info is None else info.report(),
    }
