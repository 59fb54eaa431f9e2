"""The commands that show that it works: demo, run, validate, ldl-check, hil, chaos, proxy."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..boards.kinds import KINDS
from ..common.errors import Failure, UserError
from ..common.report import Table
from .options import (
    add_policy_options,
    command,
    json_option,
    policy_numbers,
    positive,
    progress,
    show,
    write_json,
)

ANY = "any"  # heap: no board's


def _demo(args: argparse.Namespace) -> None:
    from ..common import pairs, policies

    pair = pairs.load(args.model)
    if args.fleet:
        _fleet_demo(args, pair)
        return
    if args.dashboard:
        raise UserError("--dashboard: of a fleet; also give --fleet 20")
    from ..proof import demo

    numbers = policy_numbers(args, pair.info)
    policies.make(args.policy, numbers)  # refuses what is wrong before anything starts
    report = demo.demonstrate(pair, args.policy, numbers, args.samples, args.broker, args.window, Path(args.out))
    write_json(args.json, report)
    if args.json != "-":
        demo.show(report)


def _fleet_demo(args: argparse.Namespace, pair: Any) -> None:
    from ..fleet.monitoring import report as seen
    from ..proof import fleet_demo

    if pair.info.classes > 2:
        raise UserError(f"--fleet: a pair of two classes, not {pair.info.name}")

    def say(text: str) -> None:
        print(f"h2t2 demo: {text}", file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    made = fleet_demo.demonstrate(pair, args.fleet, args.broker, args.dashboard, args.seconds, say)
    write_json(args.json, made)
    if args.json != "-":
        show(seen.table(made, time.time()))


def _add_demo(commands: Any) -> None:
    p = command(
        commands,
        "demo",
        _demo,
        "Broker, RDL worker and node on this machine: classify, offload, learn, and show what it cost.",
        "h2t2 demo",
        "h2t2 demo --model digits --beta 0.1 --json -",
        "h2t2 demo --fleet 20 --dashboard   # twenty nodes, three of them in trouble, and a page to look at",
        "h2t2 demo --broker mosquitto --policy h2t2 --feedback explored --exploration epsilon   # Algorithm 1",
    )
    p.add_argument("--model", default="breast_cancer", help="shipped pair or folder of one (breast_cancer)")
    p.add_argument("--samples", type=positive, default=2000, help="how many (2000)")
    p.add_argument("--broker", default="amqtt", help="amqtt (in process), mosquitto, or mqtt://host:port (amqtt)")
    p.add_argument("--out", default="results/demo", help="folder for the CSV and the pictures (results/demo)")
    p.add_argument("--fleet", type=positive, metavar="N", help="so many nodes in place of one, until Ctrl-C (4 or more)")
    p.add_argument(
        "--dashboard",
        type=positive,
        nargs="?",
        const=8080,
        metavar="PORT",
        default=0,
        help="of a fleet: the dashboard beside it (8080)",
    )
    p.add_argument("--seconds", type=float, default=0, help="of a fleet: end after so long (Ctrl-C)")
    json_option(p)
    add_policy_options(p)


def _run(args: argparse.Namespace) -> None:
    from ..boards import project
    from ..proof import run

    def show_line(line: dict[str, Any]) -> None:
        if args.json != "-":
            print(json.dumps(line), flush=True)

    heap = 0 if args.heap == ANY else KINDS[args.heap].heap
    report = run.run(project.load(Path(args.project)), args.board, args.broker, args.fresh, show_line, heap)
    write_json(args.json, report)
    if args.json != "-":
        decided = ", ".join(f"{n} {source}" for source, n in report["decisions"].items())
        print(f"decisions: {decided}; files: {report['folder'] or 'none'}", file=sys.stderr)
        if "accuracy" in report:
            told = f"accuracy {report['accuracy']:.1%}, mean cost {report['cost']:.3f} ({report['labelled']} labelled samples)"
            print(told, file=sys.stderr)
    if report["trouble"]:
        raise Failure(f"the run was not in order: {'; '.join(report['trouble'])}; what the board said stands above")


def _add_run(commands: Any) -> None:
    p = command(
        commands,
        "run",
        _run,
        "A project on an emulated board, flashed as onto a real one, with broker and remote model; a JSON line a decision.",
        "h2t2 run mine",
        "h2t2 run mine --board arm32 --fresh --json report.json",
        "h2t2 run mine --broker mqtt://broker.lan   # a broker and a remote model of your own",
    )
    p.add_argument("project", help="folder of app, configuration and model (h2t2 new)")
    p.add_argument(
        "--board", choices=["unix", "arm32", "pico", "microbit"], default="unix", help="which emulated one (%(default)s)"
    )
    p.add_argument("--broker", default="", metavar="URL", help="one with a remote model behind it (both are started here)")
    p.add_argument("--fresh", action="store_true", help="forget what it learned and wrote in earlier runs")
    p.add_argument(
        "--heap", choices=[*(kind.name for kind in KINDS.values() if kind.chip), ANY], default="pico_w", metavar="KIND",
        help=f"give unix or arm32 the heap that such a board usually has free, {ANY}: all that it takes (%(default)s)",
    )  # fmt: skip
    json_option(p)


def _validate(args: argparse.Namespace) -> None:
    from ..proof import validate

    rows = []
    with progress() as bar:
        modes = validate.EVERY if "every" in args.mode else args.mode
        for mode in modes:
            for bits in args.bits:
                task = bar.add_task(f"b = {bits}, {mode}", total=args.rounds)
                rows.append(validate.compare(bits, args.rounds, args.seed, mode, partial(bar.advance, task)))
    write_json(args.json, rows)
    if args.json != "-":
        names = ("b", "mode", "rounds", "decisions that differ", "worst probability error", "farthest margin")
        cells = [
            [row["bits"], row["mode"], row["rounds"], row["differ"], f"{row['worst_error']:.1e}", f"{row['margin']:.1e}"]
            for row in rows
        ]
        show(
            [
                Table(
                    f"integer core against float64 reference, seed {args.seed}",
                    {name: "left" if name == "mode" else "right" for name in names},
                    [[str(cell) for cell in row[:5]] + [row[5] if row[3] else "-"] for row in cells],
                )
            ]
        )
    bad = [r for r in rows if not r["within"]]
    if bad:
        raise Failure(f"{len(bad)} of {len(rows)} rows are outside the bounds")


def _add_validate(commands: Any) -> None:
    p = command(
        commands,
        "validate",
        _validate,
        "Drive the integer core and the float64 reference with the same draws and count what differs.",
        "h2t2 validate --bits 4 6 8 --rounds 10000",
        "h2t2 validate --mode every --bits 4 6 8 10 --rounds 20000 --json validation.json",
    )
    from ..proof.validate import EVERY

    p.add_argument("--bits", type=int, nargs="+", choices=range(1, 13), default=[4, 6, 8], metavar="b", help="(4 6 8)")
    p.add_argument("--rounds", type=positive, default=10000, help="of each row (10000)")
    p.add_argument("--seed", type=int, default=1, help="of the draws and the stream (1)")
    p.add_argument("--mode", nargs="+", choices=[*EVERY, "every"], default=["paper"], help="policy options (paper)")
    json_option(p)


def _ldl_check(args: argparse.Namespace) -> None:
    from ..proof import ldl_check

    inputs = None
    if args.inputs:
        from ..lab.datasets.data import arrays

        inputs = arrays(Path(args.inputs), "x")[0]
        if inputs.dtype != np.int8:
            raise UserError(f"{args.inputs}: x is {inputs.dtype}; want the model's own int8 inputs")
    with progress() as bar:
        task = bar.add_task("comparing")
        report = ldl_check.compare(
            Path(args.model), inputs, args.samples, args.seed, args.layers,
            lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    write_json(args.json, report)
    if args.json != "-":
        what = "bytes of all layers" if args.layers else "output bytes"
        print(
            f"{report['model']}: {report['samples']} samples, {report['differ']} of {report['bytes']:,} {what} differ from "
            f"{report['oracle']}'s reference kernels; {report['bins']} policy bins (b = 4) differ from its optimised ones"
        )
    if report["differ"]:
        raise Failure(f"the integer interpreter differs, first at {report['first'] or 'the output'}")


def _add_ldl_check(commands: Any) -> None:
    p = command(
        commands,
        "ldl-check",
        _ldl_check,
        "Compare the integer interpreter with TFLite's reference kernels, byte for byte.",
        "h2t2 ldl-check models/digits/ldl.tflite --layers",
        "h2t2 ldl-check my.tflite --inputs my_int8.npz --samples 20 --json -",
    )
    p.add_argument("model", help="a full-int8 .tflite")
    p.add_argument("--samples", type=positive, default=100, help="random inputs (100)")
    p.add_argument("--inputs", help="an .npz whose x holds int8 inputs, instead of random ones")
    p.add_argument("--layers", action="store_true", help="compare every step's output, and name the first that differs")
    p.add_argument("--seed", type=int, default=1, help="of the random inputs (1)")
    json_option(p)


def _hil(args: argparse.Namespace) -> None:
    from ..proof import hil

    boards = args.board or ["emulated"]
    with progress() as bar:
        task = bar.add_task("looking", total=None)
        hil.prepare(Path(args.hil), boards, lambda what: bar.update(task, description=what))
    status, rows = hil.run_tests(Path(args.hil), boards, args.port, args.pytest, Path(args.out))
    write_json(args.json, rows)
    if args.json != "-":
        header = dict.fromkeys(("board", "firmware"), "left") | dict.fromkeys(
            ("passed", "failed", "skipped", "seconds"), "right"
        )
        body = [
            [row["board"] + (" (emulated)" if row["emulated"] else ""), *(str(row[name]) for name in list(header)[1:])]
            for row in hil.summary(rows)
        ]
        show([Table("hardware in the loop", header, body)])
        print(Path(args.out) / "hil.html")
    if status:
        raise Failure("some tests failed")


def _add_hil(commands: Any) -> None:
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


def _chaos(args: argparse.Namespace) -> None:
    from ..proof import chaos

    with progress() as bar:
        tasks: dict[str, Any] = {}

        def tell(name: str, done: int, total: int, doing: str) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, description=f"{name}: {doing}")

        report = chaos.unleash(args.node, args.samples, args.deadline, args.seed, tell, args.hours)
        report["field"] = [] if args.hours else chaos.field.go_through(lambda text: tell("field", 0, 1, text))
    write_json(args.json, report)
    if args.figure:
        from ..common import plots

        plots.soak(Path(args.figure), report["soak"])
    if args.json != "-":
        rows = [[name, *(f"{row[name]:,}" for row in report["nodes"])] for name in chaos.FIGURES]
        show([Table("chaos", {"": "left", **{row["node"]: "right" for row in report["nodes"]}}, rows)])
        if report["watch"]:
            watched = [[name, str(value)] for name, value in report["watch"].items()]
            show([Table("the dashboard that watched", {"": "left", "dashboard": "right"}, watched)])
        print("done to them: " + ", ".join(f"{n} {what}" for what, n in report["faults"].items()))
        for row in report["field"]:
            print(f"{row['node']}: {row['quiet']['seconds']:,} s with a quiet hour; an update whose sensor dies: ", end="")
            print(f"{row['update']['outcome']} {row['update']['why']}".strip())
        print(f"{report['seconds']:.0f} s on {report['machine']}")
    trouble = chaos.broken(report) + chaos.field.broken(report["field"])
    if trouble:
        raise Failure("; ".join(trouble))


def _add_chaos(commands: Any) -> None:
    p = command(
        commands,
        "chaos",
        _chaos,
        "Brokers, workers and nodes that are killed, stopped and hung, links that drop, double, delay and stall, full disks, "
        "clocks that jump, sensors that fail: counts samples in, decisions out, labels taught, against what oracles saw. Then "
        "two devices in virtual time: an hour in which their sensors see nothing, and an update whose sensor dies.",
        "h2t2 chaos",
        "h2t2 chaos --hours 1 --figure soak.png --json soak.json   # a soak: memory, descriptors, threads, latency",
    )
    p.add_argument("--node", nargs="+", choices=["pi", "unix"], default=["pi", "unix"], help="which nodes (pi unix)")
    p.add_argument("--samples", type=positive, default=10000, help="through each node (10000)")
    p.add_argument("--deadline", type=positive, default=2000, metavar="MS", help="of a decision (2000)")
    p.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    p.add_argument("--hours", type=float, default=0.0, metavar="H", help="a soak: so long, instead of so many samples")
    p.add_argument("--figure", metavar="FILE", help="draw what a soak's processes used (.png)")
    json_option(p)


def _proxy(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ..fleet import broker
    from ..proof import proxy

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


def _add_proxy(commands: Any) -> None:
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


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_demo, _add_run, _add_validate, _add_ldl_check, _add_hil, _add_chaos, _add_proxy):
        declare(commands)
