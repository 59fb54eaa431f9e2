"""The commands about boards: gateway, flash, boards, hil."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from . import endpoint
from .cli_parts import command, json_option, positive, progress, table, write_json
from .errors import Failure, UserError


def _gateway(args: argparse.Namespace) -> None:
    from . import gateway

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = gateway.Out(
        lambda text: print(f"h2t2 gateway: {text}", file=sys.stderr, flush=True),
        lambda line: print(json.dumps(line), flush=True),
    )
    counters = gateway.run(args.port, endpoint.from_options(args), args.baud, not args.fast, args.restart, args.seconds, out)
    for device, counts in counters.items():
        out.log(f"{device}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    write_json(args.json, counters)


def _flash(args: argparse.Namespace) -> None:
    from . import board_config
    from .boards import flash
    from .boards.kinds import KINDS

    kind = KINDS[args.board]
    config = board_config.load(Path(args.config))
    model = Path(args.model)
    if not model.is_file():
        raise UserError(f"{model}: no such file; make one: h2t2 bundle MODEL.tflite")
    records = Path(args.records) if args.records else None
    with progress() as bar:
        task = bar.add_task("checking", total=None)
        report = flash.flash(
            kind, args.port, model, config, records, args.mpy, args.dry_run,
            lambda path, n, total: bar.update(task, description=path, completed=n, total=total),
        )  # fmt: skip
    write_json(args.json, report)
    if args.json == "-":
        return
    verb = "would copy" if args.dry_run else "copied"
    table(
        f"{kind.name}: {verb} {report['copied']} of {len(report['files'])} files, {report['bytes']:,} bytes",
        {"file": "left", "bytes": "right", "changed": "left"},
        [[row["path"], f"{row['bytes']:,}", "yes" if row["changed"] else "no"] for row in report["files"]],
    )
    print(f"flash: {report['flash_bytes']:,} bytes in all")
    if report["heap_bytes"] is not None:
        print(
            f"heap: {report['heap_bytes']:,} bytes, measured on emulated 32-bit ARM; a {kind.name} usually has "
            f"{report['usual_heap']:,} free"
        )
    if "hello" in report:
        print(f"{report['hello']} is up")


def _proxy(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from . import broker, proxy

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    delay = (args.delay[0], args.delay[1])
    faults = proxy.Faults(args.drop, args.double, args.corrupt, delay, args.late, up=args.both, seed=args.seed)
    running = proxy.Proxy(*broker.parse(args.broker), faults, args.listen)
    print(f"h2t2 proxy: mqtt://127.0.0.1:{running.port} leads to {args.broker}", file=sys.stderr, flush=True)
    try:
        threading.Event().wait(args.seconds)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        running.stop()
    write_json(args.json, asdict(faults))


def _boards(args: argparse.Namespace) -> None:
    from .boards import flash

    rows = flash.ports()
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(f"{row['port']}  {row['usb']}  {row['about']}")
        if not rows:
            print("no board is plugged in; emulated ones: h2t2 emulators")


def _hil(args: argparse.Namespace) -> None:
    from . import hil_report

    status, rows = hil_report.run(Path(args.hil), args.board or ["emulated"], args.port, args.pytest, Path(args.out))
    write_json(args.json, rows)
    if args.json != "-":
        header = dict.fromkeys(("board", "firmware"), "left") | dict.fromkeys(
            ("passed", "failed", "skipped", "seconds"), "right"
        )
        body = [
            [row["board"] + (" (emulated)" if row["emulated"] else ""), *(str(row[name]) for name in list(header)[1:])]
            for row in hil_report.summary(rows)
        ]
        table("hardware in the loop", header, body)
        print(Path(args.out) / "hil.html")
    if status:
        raise Failure("some tests failed")


def add(commands: Any) -> None:
    """Declare them."""
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
    endpoint.add_options(p)
    p.add_argument("--baud", type=positive, default=115200, help="(115200)")
    p.add_argument("--fast", action="store_true", help="write without pauses: for lines with flow control")
    p.add_argument("--restart", action="store_true", help="restart the boards first, so that nothing they say is missed")
    p.add_argument("--seconds", type=float, help="stop after so long (never)")
    json_option(p)

    p = command(
        commands,
        "flash",
        _flash,
        "Put runtime, model and configuration onto a board: checks it first, copies what changed, reads it back, restarts it.",
        "h2t2 flash --board pico_w --port auto --model ldl.h2m --config config.toml",
        "h2t2 flash --board esp32 --model ldl.h2m --config firmware/boards/esp32/config.toml --dry-run   # no board needed",
        "h2t2 flash --board unix --port ./device --model ldl.h2m --config config.toml --records samples.bin",
    )
    p.add_argument("--board", required=True, choices=["unix", "esp32", "pico_w", "microbit"], help="its kind")
    p.add_argument(
        "--port", default="auto", metavar="P", help="serial port, pty, socket://host:port, or the unix port's folder (auto)"
    )
    p.add_argument("--model", required=True, metavar="FILE", help="the LDL's bundle (.h2m)")
    p.add_argument("--config", required=True, metavar="FILE", help="config.toml; a commented one is in firmware/boards/BOARD")
    p.add_argument("--records", metavar="FILE", help="recorded samples: LDL input and remote tensor, int8, one after the other")
    p.add_argument("--mpy", action="store_true", help="compile the runtime to .mpy first: less memory and time to start")
    p.add_argument("--dry-run", action="store_true", help="say what would be copied and what it takes, and change nothing")
    json_option(p)
    p = command(
        commands,
        "proxy",
        _proxy,
        "Stand between MQTT clients and a broker and make the link bad, for tests with emulated and real boards.",
        "h2t2 proxy --listen 1884 --broker mqtt://localhost:1883 --drop 0.05 --double 0.05 --delay 0 300",
    )
    p.add_argument("--listen", type=int, default=0, metavar="PORT", help="local port (any free one)")
    p.add_argument("--broker", default="mqtt://localhost:1883", help="mqtt://host:port (mqtt://localhost:1883)")
    p.add_argument("--drop", type=float, default=0.0, help="chance that a message to a client is lost (0)")
    p.add_argument("--double", type=float, default=0.0, help="chance that one comes twice (0)")
    p.add_argument("--corrupt", type=float, default=0.0, help="chance that a bit of one is turned (0)")
    p.add_argument("--delay", type=int, nargs=2, default=[0, 0], metavar="MS", help="least and most delay of each (0 0)")
    p.add_argument("--late", type=float, default=0.0, help="chance of up to 30 s more (0)")
    p.add_argument("--both", action="store_true", help="messages to the broker as well")
    p.add_argument("--seed", type=int, default=1, help="of the chances (1)")
    p.add_argument("--seconds", type=float, help="stop after so long (never)")
    json_option(p)
    p = command(commands, "boards", _boards, "List the boards that are plugged in.", "h2t2 boards --json -")
    json_option(p)

    p = command(
        commands,
        "hil",
        _hil,
        "Run the hardware-in-the-loop tests on emulated or real boards; prints a table and writes an HTML report.",
        "h2t2 hil",
        "h2t2 hil --board unix -- -k broker",
        "h2t2 hil --board pico-desk --port /dev/ttyACM0",
    )
    p.add_argument("--board", action="append", help="ID of boards.toml, emulated or all (emulated); repeatable")
    p.add_argument("--port", help="serial line of a real board")
    p.add_argument("--hil", default="hil", metavar="DIR", help="folder of the tests (hil)")
    p.add_argument("--out", default="results/hil", metavar="DIR", help="folder for hil.jsonl and hil.html (results/hil)")
    p.add_argument("pytest", nargs="*", help="after --: more options for pytest")
    json_option(p)
