"""The commands about a model for a board: inspect, convert, bundle, ldl-check, bench ldl."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .cli_parts import command, json_option, positive, progress, table, write_json
from .errors import Failure, UserError


def _inspect(args: argparse.Namespace) -> None:
    from .int8.inspect import inspect

    report = inspect(Path(args.model))
    write_json(args.json, report)
    if args.json == "-":
        return
    table(
        f"{report['model']}: {report['file_bytes']:,} bytes",
        {"operator": "left", "version": "right", "count": "right"},
        [[o["name"], str(o["version"]), str(o["count"])] for o in report["operators"]],
    )
    for name in ("inputs", "outputs"):
        for end in report[name]:
            scale = f", scale {end['scale'][0]:.6g}, zero point {end['zero_point'][0]}" if len(end["scale"]) == 1 else ""
            print(f"{name[:-1]}: {end['dtype']} {end['shape']}{scale}")
    print(f"{report['parameters']:,} parameters, {report['multiply_accumulates']:,} multiply-accumulates")
    if report["board"]:
        board = report["board"]
        print(f"on a board: bundle of {board['bundle_bytes']:,} bytes (flash), arena of {board['arena_bytes']:,} bytes (RAM)")
    for problem in report["problems"]:
        print(f"not for a board: {problem}")
    for line in report["policy"]:
        print(f"feeds the policy: {line}")


def _bundle(args: argparse.Namespace) -> None:
    from .int8 import bundle, prepare, tflite_file

    out = Path(args.out or Path(args.model).with_suffix(".h2m"))
    made = prepare.plan(tflite_file.load(Path(args.model)))
    content = bundle.write(made)
    out.write_bytes(content)
    report = {"bundle": str(out), "bytes": len(content), "arena_bytes": made.arena, "steps": len(made.steps)}
    write_json(args.json, report)
    if args.json != "-":
        print(f"{out}: {len(content):,} bytes, {len(made.steps)} steps, arena of {made.arena:,} bytes")


def _convert(args: argparse.Namespace) -> None:
    from .convert.report import convert, markdown

    with progress() as bar:
        task = bar.add_task("converting", total=None)
        report = convert(
            Path(args.model), Path(args.calibration), Path(args.test) if args.test else None, Path(args.out), args.event,
            args.scale, lambda what: bar.update(task, description=what),
        )  # fmt: skip
    write_json(args.json, report)
    if args.json != "-":
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(markdown(report).partition("![")[0]))
        print("\n".join(report["files"].values()))


def _ldl_check(args: argparse.Namespace) -> None:
    from .int8 import ldl_check

    inputs = None
    if args.inputs:
        from .datasets.data import arrays

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
    if report["oracle"] != "tflite_runtime":
        print("note: this library's reference FULLY_CONNECTED rounds once where tflite-runtime 2.14 rounds twice")
    elif report["differ"]:
        raise Failure(f"the integer interpreter differs, first at {report['first'] or 'the output'}")


def _bench_ldl(args: argparse.Namespace) -> None:
    from .int8 import ldl_bench

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        rows = ldl_bench.rows(Path(args.model), args.runs, lambda what: bar.update(task, description=what))
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


SIDES = ("left", *["right"] * 6)


def add(commands: Any, bench: Any) -> None:
    """Declare them; bench: the sub-commands of `h2t2 bench`."""
    p = command(
        bench,
        "ldl",
        _bench_ldl,
        "Time one inference: TFLite's kernels, the integer interpreter on CPython and MicroPython, plain and in machine code.",
        "h2t2 bench ldl models/chest_xray/ldl.tflite",
    )
    p.add_argument("model", help="a full-int8 .tflite")
    p.add_argument("--runs", type=positive, default=3, help="inputs (3)")
    json_option(p)
    p = command(
        commands,
        "inspect",
        _inspect,
        "What a .tflite holds, the memory it would take on a board, what is not supported, whether it can feed the policy.",
        "h2t2 inspect models/phishing/ldl.tflite --json -",
    )
    p.add_argument("model", help="a .tflite")
    json_option(p)
    p = command(
        commands,
        "convert",
        _convert,
        "A trained model to a full-int8 .tflite, a bundle for boards and a report of what the int8 model does differently.",
        "h2t2 convert model.keras --calibration train.npz --test test.npz --out converted",
        "h2t2 convert classifier.joblib --calibration samples.npy --out converted   # scikit-learn; load only what you trust",
        "h2t2 convert float.tflite --calibration images/ --out converted --json -",
    )
    p.add_argument("model", help=".keras, .h5, SavedModel folder (extra train), .joblib or float .tflite (extra convert)")
    p.add_argument("--calibration", required=True, metavar="DATA", help=".npy, .npz (x, and y if known) or folder of images")
    p.add_argument("--test", metavar="DATA", help="samples to judge both models by (the calibration samples)")
    p.add_argument("--out", default="converted", metavar="DIR", help="folder for the files and the report (converted)")
    p.add_argument("--event", type=int, help="index of class 1 among the outputs (the last)")
    p.add_argument("--scale", type=float, help="divide the data by this (255 for bytes, else 1)")
    json_option(p)
    p = command(
        commands,
        "bundle",
        _bundle,
        "Prepare an int8 .tflite for a board: weights, integer multipliers, tables and memory plan in one checked file (.h2m).",
        "h2t2 bundle models/phishing/ldl.tflite --out phishing.h2m",
    )
    p.add_argument("model", help="a full-int8 .tflite")
    p.add_argument("--out", help="the bundle (the model's name with .h2m)")
    json_option(p)
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
