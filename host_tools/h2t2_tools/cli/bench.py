"""`h2t2 bench`: one command a claim, both of its sides measured in one run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..common.errors import Failure
from .options import (
    command,
    json_option,
    positive,
    progress,
    table,
    write_json,
)

SIDES = ("left", *["right"] * 6)


def _policy(args: argparse.Namespace) -> None:
    from ..proof.bench import policy

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        rows = policy.measure(lambda what: bar.update(task, description=what))
    lines = policy.ratios(rows)
    write_json(args.json, {"rows": rows, "ratios": lines})
    if args.json != "-":
        table(
            "one step (decide + learn)",
            {"where": "left", "what": "left", "b": "right", "microseconds": "right", "CRC of the actions": "right"},
            [[row["where"], row["kind"], str(row["bits"]), f"{row['us']:.1f}", f"{row['crc']:08x}"] for row in rows],
        )
        print("\n".join(lines))


def _add_policy(commands: Any) -> None:
    p = command(
        commands,
        "policy",
        _policy,
        "Time a step of the dense matrix, the O(2^b) form and the tree core, here and on MicroPython.",
        "h2t2 bench policy --json bench.json",
    )
    json_option(p)


def _device(args: argparse.Namespace) -> None:
    from ..proof.bench import device

    rows = device.measure(args.rounds)
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(
                f"emulated micro:bit, MicroPython 1.9.2, b = 4, {row['mode']}: decide + learn {row['instructions_mean']:,.0f} "
                f"instructions on average, {row['instructions_worst']:,.0f} at worst over {row['rounds']} rounds with the heap "
                f"locked; code and state {row['heap_bytes']:,} bytes of heap; actions "
                f"{'equal to' if row['same_as_host'] else 'DIFFERENT from'} the host's"
            )
    if not all(row["same_as_host"] for row in rows):
        raise Failure("the emulated board's actions differ from the host's")


def _add_device(commands: Any) -> None:
    p = command(
        commands,
        "device",
        _device,
        "Count instructions and heap bytes of the core on an emulated micro:bit (a Cortex-M0 with 16 KB of RAM).",
        "h2t2 bench device --rounds 200",
    )
    p.add_argument("--rounds", type=positive, default=100, help="steps to count (100)")
    json_option(p)


def _simulate(args: argparse.Namespace) -> None:
    from ..proof.bench import simulate

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        rows = simulate.measure(lambda what: bar.update(task, description=what))
    write_json(args.json, rows)
    if args.json != "-":
        table(
            "H2T2 steps a second, one core",
            {
                "b": "right",
                "compiled simulator": "right",
                "device core, CPython": "right",
                "dense NumPy": "right",
                "same": "left",
            },
            [
                [
                    str(row["bits"]),
                    f"{row['simulator']:,.0f}",
                    f"{row['device']:,.0f} (1/{row['simulator'] / row['device']:.0f})",
                    f"{row['dense']:,.0f} (1/{row['simulator'] / row['dense']:.0f})",
                    "decisions equal" if row["same"] else "DECISIONS DIFFER",
                ]
                for row in rows
            ],
        )


def _add_simulate(commands: Any) -> None:
    p = command(
        commands,
        "simulate",
        _simulate,
        "Steps a second of the compiled simulator, the device core on CPython and the dense NumPy matrix, in one run.",
        "h2t2 bench simulate --json simulate.json",
    )
    json_option(p)


def _ldl(args: argparse.Namespace) -> None:
    from ..proof.bench import ldl

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        rows = ldl.measure(Path(args.model), args.runs, lambda what: bar.update(task, description=what))
    write_json(args.json, rows)
    if args.json != "-":
        table(
            f"{args.model}: one inference, mean of {args.runs}",
            dict(zip(("what", "µs", "times ref.", "M MAC/s", "instructions", "heap", "CRC of outputs"), SIDES)),
            [
                [
                    row["what"],
                    "-" if row["us"] is None else f"{row['us']:,.0f}",
                    "-" if row["us"] is None else f"{row['us'] / rows[0]['us']:.2f}",
                    "-" if row["us"] is None else f"{row['macs_per_second'] / 1e6:,.2f}",
                    "-" if row["instructions"] is None else f"{row['instructions']:,.0f}",
                    "-" if row["heap"] is None else f"{row['heap']:,}",
                    f"{row['crc']:08x}",
                ]
                for row in rows
            ],
        )


def _add_ldl(commands: Any) -> None:
    p = command(
        commands,
        "ldl",
        _ldl,
        "Time one inference: TFLite's kernels, the integer interpreter on CPython and MicroPython, plain and in machine code.",
        "h2t2 bench ldl models/chest_xray/ldl.tflite",
    )
    p.add_argument("model", help="a full-int8 .tflite")
    p.add_argument("--runs", type=positive, default=3, help="inputs (3)")
    json_option(p)


def _offload(args: argparse.Namespace) -> None:
    from ..proof.bench import offload

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        report = offload.measure(args.seconds, args.devices, lambda what: bar.update(task, description=what))
    write_json(args.json, report)
    if args.json != "-":
        names = ["round trips/s", "p50 ms", "p99 ms", "of the echo"]
        table(
            f"one Mosquitto, {report['payload']} bytes a request",
            {"what": "left", **dict.fromkeys(names, "right")},
            [
                [
                    row["what"],
                    f"{row['rate']:,.0f}",
                    f"{row['p50']:.2f}",
                    f"{row['p99']:.2f}",
                    f"{row['ratio']:.2f}",
                ]
                for row in report["rows"]
            ],
        )


def _add_offload(commands: Any) -> None:
    p = command(
        commands,
        "offload",
        _offload,
        "Round trips a second against one Mosquitto: raw paho echo, our link with window 1 and 8, 50 devices.",
        "h2t2 bench offload --json offload.json",
    )
    p.add_argument("--seconds", type=float, default=4.0, help="of each measurement (4)")
    p.add_argument("--devices", type=positive, default=50, help="simulated devices (50)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them, under `h2t2 bench`."""
    commands = commands.add_parser("bench", help="Measure both sides of a claim in one run.").add_subparsers(
        metavar="WHAT", required=True
    )
    for declare in (_add_policy, _add_device, _add_simulate, _add_ldl, _add_offload):
        declare(commands)
