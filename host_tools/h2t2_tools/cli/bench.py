"""`h2t2 bench`: one command a claim, both of its sides measured in one run."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..common.errors import Failure
from .options import command, json_option, positive, progress, show, write_json

# name: what it does, and an example
SIMPLE = {
    "policy": "Time a step of the dense matrix, the O(2^b) form and the tree core, here and on MicroPython.",
    "simulate": "Steps a second of the compiled simulator, the device core on CPython and the dense NumPy matrix.",
    "memory": "Flash and heap that runtime and a small local model take on each kind of board; heap of each policy alone.",
    "fidelity": "Decisions of the integer core that differ from float64, every mode, b from 4 to 10.",
    "kernels": "What LiteRT's kernels on a Pi change in scores and decisions, against the integer interpreter of boards.",
    "tls": "A TLS handshake on an emulated Pico, with EC and with RSA keys: chip time, its longest step, heap.",
    "install": "Size of the base install, library by library, and on each Python of this machine.",
    "saving": "What the policy saves on the demo's streams, against never asking, always asking and hindsight.",
}


def _measure(name: str, args: argparse.Namespace, given: dict[str, Any], told: dict[str, Any] | None = None) -> None:
    """Run a benchmark of proof/bench and report it. given: arguments of its measure(); told: of its report()."""
    bench = import_module(f"..proof.bench.{name}", __package__)
    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        measured = bench.measure(lambda what: bar.update(task, description=what), **given)
    write_json(args.json, measured)
    if args.json != "-":
        show(bench.report(measured, **(told or {})))
    trouble = bench.broken(measured) if hasattr(bench, "broken") else None
    if trouble:
        raise Failure("; ".join(trouble))


def _add_simple(commands: Any) -> None:
    for name, summary in SIMPLE.items():
        json_option(command(commands, name, partial(_simple, name), summary, f"h2t2 bench {name} --json {name}.json"))


def _simple(name: str, args: argparse.Namespace) -> None:
    _measure(name, args, {})


def _add_device(commands: Any) -> None:
    p = command(
        commands,
        "device",
        lambda args: _measure("device", args, {"rounds": args.rounds}),
        "Count on emulated boards: the core on a micro:bit; cycles of a Pico, instructions of a Cortex-M3 and a RISC-V.",
        "h2t2 bench device --rounds 200",
    )
    p.add_argument("--rounds", type=positive, default=100, help="steps to count (100)")
    json_option(p)


def _ldl(args: argparse.Namespace) -> None:
    from ..proof.bench.ldl import model_file

    with model_file(args.model) as path:
        _measure("ldl", args, {"path": path, "runs": args.runs}, {"name": args.model, "runs": args.runs})


def _add_ldl(commands: Any) -> None:
    p = command(
        commands,
        "ldl",
        _ldl,
        "Time one inference: TFLite's kernels, the integer interpreter on CPython and MicroPython, plain and in machine code.",
        "h2t2 bench ldl models/chest_xray/ldl.tflite",
        "h2t2 bench ldl resnet_8   # a known network with random weights",
    )
    p.add_argument("model", help="a full-int8 .tflite; or (extra convert) mobilenet_v1, resnet_8, ds_cnn, autoencoder")
    p.add_argument("--runs", type=positive, default=3, help="inputs (3)")
    json_option(p)


BROKERED = {
    "offload": (4, 50, "Round trips a second against one Mosquitto: raw paho echo, our link with window 1 and 8, 50 devices."),
    "overload": (
        8,
        50,
        "More requests than a remote model can answer: how many are in time, and whether one starves others.",
    ),
    "dashboard": (60, 500, "Devices with a state a second each and a page open: CPU, memory, and how late a state is seen."),
}


def _add_brokered(commands: Any) -> None:
    for name, (seconds, devices, summary) in BROKERED.items():

        def run(args: argparse.Namespace, name: str = name) -> None:
            _measure(name, args, {"seconds": args.seconds, "devices": args.devices})

        p = command(commands, name, run, summary, f"h2t2 bench {name} --json {name}.json")
        p.add_argument("--seconds", type=float, default=seconds, help=f"of each measurement ({seconds})")
        p.add_argument("--devices", type=positive, default=devices, help=f"simulated devices ({devices})")
        json_option(p)


def _fleet(args: argparse.Namespace) -> None:
    given = {"nodes": tuple(sorted({*args.nodes})), "workers": tuple(sorted({*args.workers}))}
    _measure("fleet", args, {"seconds": args.seconds, **given})


def _add_fleet(commands: Any) -> None:
    from ..proof.bench import fleet

    p = command(
        commands,
        "fleet",
        _fleet,
        "More and more nodes, more and more workers, one Mosquitto: answers a second, latency, CPU a request, memory.",
        "h2t2 bench fleet",
        "h2t2 bench fleet --nodes 10 2000 --workers 1 8 --seconds 10 --json fleet.json",
    )
    p.add_argument("--seconds", type=float, default=6, help="of each measurement (6)")
    for option, default, what in (
        ("--nodes", fleet.NODES, "simulated nodes"),
        ("--workers", fleet.WORKERS, "worker processes"),
    ):
        shown = " ".join(map(str, default))
        p.add_argument(option, type=positive, nargs="+", default=default, metavar="N", help=f"{what} ({shown})")
    json_option(p)


def _add_cuts(commands: Any) -> None:
    p = command(
        commands,
        "cuts",
        lambda args: _measure("cuts", args, {"rounds": args.rounds, "cuts": args.cuts, "full": args.full}),
        "Cut the power while a snapshot, the log or `h2t2 flash` writes: what is left, in memory and on an emulated Pico.",
        "h2t2 bench cuts",
        "h2t2 bench cuts --full   # every operation on the Pico: half an hour",
    )
    p.add_argument("--rounds", type=positive, default=30, help="writes of each kind in memory, all operations of each cut (30)")
    p.add_argument("--cuts", type=positive, default=4, help="cuts of each kind on the Pico (4)")
    p.add_argument("--full", action="store_true", help="on the Pico, too, cut before and in the middle of every operation")
    json_option(p)


def _all(args: argparse.Namespace) -> None:
    from ..proof.bench import all as every

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        measured = every.measure(lambda what: bar.update(task, description=what))
    write_json(args.json, measured)
    page = every.page(measured)
    if args.readme:
        Path(args.readme).write_text(every.quote(Path(args.readme).read_text(), measured))
    if args.out:
        Path(args.out).write_text(page)
    elif args.json != "-":
        print(page, end="")


def _add_all(commands: Any) -> None:
    p = command(
        commands,
        "all",
        _all,
        "Every benchmark in one run, as a page: what docs/benchmarks.md is written by. Some ten minutes.",
        "h2t2 bench all --out docs/benchmarks.md --readme README.md",
    )
    p.add_argument("--readme", metavar="FILE", help="a README whose table of figures is written anew")
    p.add_argument("--out", metavar="FILE", help="the page (standard output)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them, under `h2t2 bench`."""
    commands = commands.add_parser("bench", help="Measure both sides of a claim in one run.").add_subparsers(
        metavar="WHAT", required=True
    )
    for declare in (_add_simple, _add_device, _add_ldl, _add_cuts, _add_brokered, _add_fleet, _add_all):
        declare(commands)
