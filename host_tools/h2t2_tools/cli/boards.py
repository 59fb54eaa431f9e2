"""The commands about boards: emulators, emulate, boards, new, flash, gateway."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..boards.kinds import KINDS, Contents
from ..common.errors import Failure, UserError
from ..common.report import Table
from .options import (
    add_endpoint_options,
    begin_log,
    command,
    endpoint_of,
    json_option,
    log_options,
    positive,
    progress,
    show,
    write_json,
)


def _emulators(args: argparse.Namespace) -> None:
    from ..boards.emulators import built, catalogue

    chosen = [board for board in catalogue.ALL if not args.board or board.name in args.board]
    if args.needs:
        lacking = [board.packages() for board in chosen if isinstance(board, built.Built) and not board.firmware().exists()]
        print(" ".join(dict.fromkeys(package for packages in lacking for package in packages)))
        return
    trouble: dict[str, str] = {}
    if args.install:
        with progress() as bar:
            task = bar.add_task("looking", total=len(catalogue.FETCHED) + built.STEPS)
            trouble = catalogue.install(chosen, lambda what: bar.update(task, description=what, advance=1))
    rows: list[dict[str, Any]] = []
    for board in chosen:
        missing = board.missing()
        rows.append({"name": board.name, "about": board.about, "missing": missing and trouble.get(board.name, missing)})
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(f"{row['name']:12} {row['about']}: {row['missing'] or 'ready'}")
    absent = [row["name"] for row in rows if row["missing"]]
    if args.install and absent:
        raise Failure(f"not there after --install: {', '.join(absent)}; each says why above")


def _add_emulators(commands: Any) -> None:
    p = command(
        commands,
        "emulators",
        _emulators,
        "The MicroPython builds this machine can run in place of a board, and why one cannot.",
        "h2t2 emulators",
        "h2t2 emulators --install   # fetch or build what is missing, into ~/.cache/h2t2; no root needed",
        "h2t2 emulators unix arm32 --install",
    )
    p.add_argument("board", nargs="*", metavar="NAME", help="these alone (all)")
    p.add_argument("--install", action="store_true", help="fetch what is missing, and build what no package has")
    p.add_argument(
        "--needs", action="store_true", help="print the Debian packages that building them still needs, and nothing else"
    )
    json_option(p)


def _emulate(args: argparse.Namespace) -> None:
    from ..boards.emulators import session

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = session.Out(
        lambda text: print(f"h2t2 emulate: {text}", file=sys.stderr, flush=True),
        lambda told: print(json.dumps(told), flush=True),
    )
    flash = Path(args.flash) if args.flash else None
    link = Path(args.link) if args.link else None
    session.run(flash, link, [session.analogue(text) for text in args.adc], args.watch, sys.stdin, out)


def _add_emulate(commands: Any) -> None:
    p = command(
        commands,
        "emulate",
        _emulate,
        "Run an emulated Raspberry Pi Pico, a device on a serial port of this machine; prints a JSON line an event.",
        "h2t2 emulate pico --link ./pico --flash pico.flash",
        "h2t2 emulate pico --link ./pico --adc 26=light.csv --watch 15   # then: pin 14 1, reset, cut 3 middle, power on, time",
        "h2t2 flash mine --board pico --port ./pico   # meanwhile",
    )
    p.add_argument("board", choices=["pico"], help="which one")
    p.add_argument("--flash", metavar="FILE", help="its flash chip's content, kept there (one that is gone at the end)")
    p.add_argument("--link", metavar="PATH", help="a symbolic link to its port, so that it has the same name each time")
    p.add_argument(
        "--adc", action="append", default=[], metavar="PIN=FILE", help="what pins 26 to 29 measure: 0 to 4095, one a line"
    )
    p.add_argument(
        "--watch", action="append", type=int, default=[], metavar="PIN", help="tell when this pin changes (repeatable)"
    )


def _boards(args: argparse.Namespace) -> None:
    from ..boards import flash

    rows = flash.ports()
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(f"{row['port']}  {row['usb'] or '-'}  {row['about']}")
        if not rows:
            print("no board is plugged in; emulated ones: h2t2 emulators")


def _mip(args: argparse.Namespace) -> None:
    from ..boards import packages

    names = packages.write_index(Path(args.folder))
    write_json(args.json, {"folder": args.folder, "packages": names})
    if args.json != "-":
        print(f"{args.folder}: {', '.join(names)}")
        print(
            f'serve the folder; then on a board: import mip; mip.install("{names[1]}", index="http://YOUR-SERVER", target="/")'
        )


def _add_mip(commands: Any) -> None:
    p = command(
        commands,
        "mip",
        _mip,
        "Write the runtime as packages that boards install by themselves, from any web server, with MicroPython's mip.",
        "h2t2 mip packages && python3 -m http.server --directory packages 8000",
    )
    p.add_argument("folder", help="a new or empty one, to be served as it is")
    json_option(p)


def _add_boards(commands: Any) -> None:
    p = command(commands, "boards", _boards, "List the boards that are plugged in.", "h2t2 boards --json -")
    json_option(p)


def _contents(args: argparse.Namespace) -> Contents:
    """What is to go onto the board: a project, or the parts named one by one."""
    from ..boards import project
    from ..fleet import config as board_config

    if args.project:
        if args.config or args.model or args.app or args.records:
            raise UserError("a project has its own configuration, model and app: leave --config, --model, --app, --records out")
        return replace(project.load(Path(args.project)).contents, mpy=not args.source)
    if not args.config or not args.model:
        raise UserError("name a project (h2t2 new makes one), or give --model and --config")
    config = board_config.load(Path(args.config))
    if args.app:
        config = config.model_copy(update={"app": str(Path(args.app).resolve())})
    model = Path(args.model)
    if not model.is_file():
        raise UserError(f"{model}: no such file; make one: h2t2 bundle MODEL.tflite")
    return Contents(model, config, Path(args.records) if args.records else None, mpy=not args.source)


def _flash(args: argparse.Namespace) -> None:
    from ..boards import flash
    from ..model.footprint import in_words, on_a_board

    kind = KINDS[args.board]
    contents = _contents(args)
    with progress() as bar:
        task = bar.add_task("checking", total=None)
        report = flash.flash(
            kind, args.port, contents, args.dry_run,
            lambda path, n, total: bar.update(task, description=path, completed=n, total=total), replace_app=args.replace_app,
        )  # fmt: skip
    report["model"] = on_a_board(bytes(contents.ldl.blob))
    write_json(args.json, report)
    if args.json == "-":
        return
    verb = "would copy" if args.dry_run else "copied"
    show(
        [
            Table(
                f"{kind.name}: {verb} {report['copied']} of {len(report['files'])} files, {report['bytes']:,} bytes",
                {"file": "left", "bytes": "right", "changed": "left"},
                [[row["path"], f"{row['bytes']:,}", "yes" if row["changed"] else "no"] for row in report["files"]],
            )
        ]
    )
    print(f"flash: {report['flash_bytes']:,} bytes in all; the model: {in_words(report['model'])}")
    if report["heap_bytes"] is not None:
        print(
            f"heap: {flash.in_parts(report['heap_parts'])}, measured on emulated 32-bit ARM; a {kind.name} usually has "
            f"{report['usual_heap']:,} free"
        )
    if "hello" in report:
        print(f"{report['hello']} is up")


def _add_flash(commands: Any) -> None:
    p = command(
        commands,
        "flash",
        _flash,
        "Put runtime, model and configuration onto a board: checks it first, copies what changed, reads it back, restarts it.",
        "h2t2 flash mine --board pico_w --port auto   # a project, of h2t2 new",
        "h2t2 flash --board pico_w --port auto --model ldl.h2m --config config.toml --records samples.bin",
        "h2t2 flash mine --board esp32 --dry-run   # no board needed",
        "h2t2 flash --board unix --port ./device --model ldl.h2m --config config.toml --records samples.bin",
        "h2t2 flash --board unix --port ./device --model mypair/ldl.h2m --config mypair/unix.toml --app app.py",
    )
    p.add_argument("project", nargs="?", help="folder of app, configuration, model (h2t2 new); or give --model and --config")
    p.add_argument("--board", required=True, choices=[*KINDS], help="its kind")
    p.add_argument(
        "--port", default="auto", metavar="P", help="serial port, pty, socket://host:port, or the unix port's folder (auto)"
    )
    p.add_argument("--model", metavar="FILE", help="the LDL's bundle (.h2m)")
    p.add_argument("--config", metavar="FILE", help="config.toml; a commented one is in firmware/boards/BOARD")
    p.add_argument("--records", metavar="FILE", help="recorded samples: LDL input and remote tensor, int8, one after the other")
    p.add_argument("--app", metavar="FILE", help="your own program: sense(), act(decision); `pair` in the configuration")
    p.add_argument("--replace-app", action="store_true", help="put it and its files over others on the board")
    p.add_argument(
        "--source", action="store_true", help="copy the runtime as .py: the board compiles it, and needs more memory"
    )
    p.add_argument("--dry-run", action="store_true", help="say what would be copied and what it takes, and change nothing")
    json_option(p)


def _new(args: argparse.Namespace) -> None:
    from ..boards import project
    from ..common import pairs
    from ..model import bundle

    pair = pairs.load(args.pair)
    folder = Path(args.folder)
    files = project.new(folder, pair, args.board, bundle.from_tflite(pair.ldl))
    write_json(args.json, {"folder": str(folder), "files": files, "pair": str(pair.folder), "board": args.board})
    if args.json != "-":
        print(f"{folder}: {', '.join(files)}")
        if pair.info.remote.dtype == "raw":
            print(project.unsent(pair))
        print(f"next: h2t2 run {folder}" + ("" if KINDS[args.board].app else f" --board {args.board}"))


def _add_new(commands: Any) -> None:
    p = command(
        commands,
        "new",
        _new,
        "A project to begin with: app, configuration, model and data of a pair, which runs as it is.",
        "h2t2 new mine --from mypair",
        "h2t2 new porch --from mypair --board pico_w",
    )
    p.add_argument("folder", help="where; its name becomes the device's")
    p.add_argument("--from", dest="pair", default="breast_cancer", metavar="PAIR", help="a pair's folder or name (%(default)s)")
    p.add_argument("--board", choices=[*KINDS], default="unix", help="whose configuration (%(default)s)")
    json_option(p)


def _gateway(args: argparse.Namespace) -> None:
    from ..boards import gateway

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin_log("gateway", args)
    told = lambda line: print(json.dumps(line), flush=True)  # noqa: E731  a decision, or how a node ended
    out = gateway.Out(logging.getLogger(gateway.__name__).info, told, told)
    how = gateway.How(args.baud, not args.fast, args.restart)
    counters = gateway.relay(args.port, endpoint_of(args), how, args.seconds, out)
    for device, counts in counters.items():
        out.log(f"{device}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    write_json(args.json, counters)


def _add_gateway(commands: Any) -> None:
    p = command(
        commands,
        "gateway",
        _gateway,
        "Relay between boards on serial lines and an MQTT broker, many at once; prints a JSON line a decision of a board.",
        "h2t2 gateway --port /dev/ttyACM0=kitchen --port /dev/ttyACM1=hall --broker mqtt://localhost",
    )
    p.add_argument(
        "--port",
        action="append",
        required=True,
        metavar="LINE[=DEVICE]",
        help="a serial line and its device's name (repeatable)",
    )
    add_endpoint_options(p)
    p.add_argument("--baud", type=positive, default=115200, help="(115200)")
    p.add_argument("--fast", action="store_true", help="write without pauses: for lines with flow control")
    p.add_argument("--restart", action="store_true", help="restart the boards first, so that nothing they say is missed")
    log_options(p)
    p.add_argument("--seconds", type=float, help="stop after so long (never)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_emulators, _add_emulate, _add_boards, _add_new, _add_flash, _add_mip, _add_gateway):
        declare(commands)
