"""The commands about a model for a board: inspect, convert, pair, bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from h2t2.link import wire
from h2t2.node.window import FEATURES

from ..common.errors import Failure, UserError
from ..common.policies import DEFAULTS
from ..common.report import Table
from ..common.untrusted import parse_integer
from .options import (
    command,
    json_option,
    model_number,
    positive,
    progress,
    show,
    write_json,
)


def _inspect(args: argparse.Namespace) -> None:
    from ..model.footprint import in_words
    from ..model.inspect import inspect

    report = inspect(Path(args.model))
    write_json(args.json, report)
    if args.json == "-":
        return
    show(
        [
            Table(
                f"{report['model']}: {report['file_bytes']:,} bytes",
                {"operator": "left", "version": "right", "count": "right"},
                [[o["name"], str(o["version"]), str(o["count"])] for o in report["operators"]],
            )
        ]
    )
    for name in ("inputs", "outputs"):
        for end in report[name]:
            scale = f", scale {end['scale'][0]:.6g}, zero point {end['zero_point'][0]}" if len(end["scale"]) == 1 else ""
            print(f"{name[:-1]}: {end['name']} {end['dtype']} {end['shape']}{scale}")
    print(f"{report['parameters']:,} parameters, {report['multiply_accumulates']:,} multiply-accumulates")
    if report["board"]:
        print(f"on a board: {in_words(report['board'])}")
    for problem in report["problems"]:
        print(f"not for a board: {problem}")
    for line in report["policy"]:
        print(f"feeds the policy: {line}")


def _add_inspect(commands: Any) -> None:
    p = command(
        commands,
        "inspect",
        _inspect,
        "What a .tflite holds, the memory it would take on a board, what is not supported, whether it can feed the policy.",
        "h2t2 inspect models/phishing/ldl.tflite --json -",
    )
    p.add_argument("model", help="a .tflite")
    json_option(p)


def _convert(args: argparse.Namespace) -> None:
    from ..model.convert.convert import Job, convert
    from ..model.convert.report import markdown

    test = Path(args.test) if args.test else None
    job = Job(Path(args.model), Path(args.calibration), Path(args.out), test, args.event, args.scale, not args.no_bundle)
    with progress() as bar:
        task = bar.add_task("converting", total=None)
        report = convert(job, lambda what: bar.update(task, description=what))
    write_json(args.json, report)
    if args.json != "-":
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(markdown(report).partition("![")[0]))
        print("\n".join(report["files"].values()))
    if job.bundle and "bundle" not in report["files"]:
        raise Failure(
            f"{job.model}: no bundle, since no board can run it: {'; '.join(report['not_for_a_board'])}. The int8 model and "
            f"its report are in {job.out}: a Pi runs it; --no-bundle asks for no bundle"
        )


def _add_convert(commands: Any) -> None:
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
    p.add_argument("--no-bundle", action="store_true", help="for a Pi alone: no bundle; without one, the exit status is 1")
    json_option(p)


def _pair(args: argparse.Namespace) -> None:
    from ..common import toml_file
    from ..model.pair.job import Card, Job
    from ..model.pair.make import make_new
    from ..model.pair.report import markdown

    columns = {"ldl": args.ldl_columns, "rdl": args.rdl_columns}
    fit = Path(args.calibration) if args.calibration else None
    card = toml_file.load(Path(args.card), Card).model_extra or {} if args.card else {}
    job = Job(
        Path(args.ldl), args.rdl, Path(args.test), Path(args.out), fit, columns,
        args.event, _costs(args), args.beta, args.title, args.scale, args.model_id, _windowed(args), _pictured(args),
        _payload(args), card,
    )  # fmt: skip
    with progress() as bar:
        task = bar.add_task("making the pair", total=None)
        report = make_new(job, args.force, lambda what: bar.update(task, description=what))
    write_json(args.json, report)
    if args.json != "-":
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(markdown(report)))
        print(f"{report['folder']}: {', '.join(report['files'])}")


def _costs(args: argparse.Namespace) -> list[list[float]] | None:
    """What --classes and --costs say, or None."""
    from ..common import matrices

    if args.classes is None:
        if args.costs:
            raise UserError("--costs FILE is of --classes K; of two classes, a node's delta_fp and delta_fn say it")
        return None
    if not 3 <= args.classes <= 16:
        raise UserError(f"--classes {args.classes}: want 3 to 16; of two, one is the event (--event)")
    return matrices.read_costs(Path(args.costs), args.classes) if args.costs else matrices.equal_costs(args.classes)


def _payload(args: argparse.Namespace) -> Any:
    """What --payload and what goes with it say."""
    from ..model.pair.job import Payload

    raw = args.payload == "raw"
    if raw != bool(args.encode) or (args.media and not raw):
        raise UserError("--payload raw, --encode FILE.py:FUNCTION and --media TYPE go together")
    if not 1 <= args.limit <= wire.MAX_DATA:
        raise UserError(f"--limit {args.limit}: want 1 to {wire.MAX_DATA} bytes")
    return Payload(args.payload, args.media, args.encode, args.limit)


def _pictured(args: argparse.Namespace) -> Any:
    """What --picture, --to, --square and --grey say, or None."""
    from ..common.pairs import PictureSpec

    if args.picture is None:
        if args.to or args.square or args.grey:
            raise UserError("--to, --square and --grey are of --picture WxHxC, what a camera gives")
        return None
    if args.window or args.scale:
        raise UserError("--picture: no --window, and no --scale: its numbers are 0 to 255; begin a Keras model with Rescaling")
    sizes = [_sizes("--picture", args.picture, 3), _sizes("--to", args.to or args.picture.rpartition("x")[0], 2)]
    names = ("width", "height", "channels", "wide", "high")
    return PictureSpec(**dict(zip(names, sizes[0] + sizes[1])), square=args.square, grey=args.grey)


def _sizes(option: str, text: str, wanted: int) -> list[int]:
    words = text.split("x")
    if len(words) != wanted or not all(parse_integer(word, 65535) for word in words):
        raise UserError(f"{option} {text}: want {'WxHxC, such as 64x48x3' if wanted == 3 else 'WxH, such as 16x16'}")
    return [int(word) for word in words]


def _windowed(args: argparse.Namespace) -> Any:
    """What --window, --hop, --channels and --features say, or None."""
    from ..common.pairs import WindowSpec

    if args.window is None:
        if args.hop or args.features:
            raise UserError("--hop and --features are of --window N, the measurements that make a sample")
        return None
    features = args.features or ["values"]
    return WindowSpec(size=args.window, hop=args.hop or args.window, channels=args.channels, features=features)


def _add_pair(commands: Any) -> None:
    p = command(
        commands,
        "pair",
        _pair,
        "A local and a remote model and labelled samples to the folder that nodes, workers and boards run from.",
        "h2t2 pair small.joblib big.joblib --test test.npz --ldl-columns 0 3 4 --out mypair   # scikit-learn, scaler and all",
        "h2t2 pair small.keras big.onnx --test test.npz --calibration train.npz --out mypair",
        "h2t2 pair small_int8.tflite mine.py:scores --test test.npz --out mypair   # float32 samples in, n scores out",
        "h2t2 pair small.keras big.keras --test pictures.npz --picture 64x48x3 --square --grey --to 16x16 --out mypair",
        "h2t2 pair small.joblib http://server:8501/v1/models/big:predict --test test.npz --payload float32 --out mypair",
        "h2t2 pair small.keras mine.py:scores --test images.npz --payload raw --encode mine.py:jpeg --media image/jpeg",
        "h2t2 pair small.keras big.keras --test digits.npz --classes 10 --beta 0.2 --out digits10",
        "h2t2 pair small.joblib big.joblib --test windows.npz --window 64 --features mean std fft --out mypair",
    )
    p.add_argument("ldl", help="local model: .keras, .h5, SavedModel folder, .joblib, .tflite (float or int8)")
    p.add_argument("rdl", help="remote model: one of those, .onnx, FILE.py:FUNCTION, or a URL (TensorFlow Serving's predict)")
    p.add_argument("--test", required=True, metavar="FILE", help=".npz of x (n, ...) and y (n,), classes from 0")
    p.add_argument("--calibration", metavar="FILE", help=".npz or .npy of x, to quantise by (the test samples)")
    p.add_argument("--out", default="pair", metavar="DIR", help="the pair's folder, new or empty (pair)")
    p.add_argument("--force", action="store_true", help="write over what the folder holds under the same names")
    p.add_argument(
        "--ldl-columns", type=int, nargs="+", metavar="N", help="which numbers of a sample the local model reads (all)"
    )
    p.add_argument("--rdl-columns", type=int, nargs="+", metavar="N", help="and the remote one (all)")
    p.add_argument("--event", type=int, metavar="CLASS", help="the class that is the event (the last)")
    p.add_argument("--classes", type=int, metavar="K", help="decide between K classes, 3 to 16, in place of one event")
    p.add_argument("--costs", metavar="FILE", help=".csv, a line each of K classes, of what saying each costs (1 a mistake)")
    p.add_argument("--title", default="the event", help="the event, or the classes, in words")
    p.add_argument("--beta", type=float, default=DEFAULTS["beta"], help="cost of an offload, 0..1 (%(default)s)")
    p.add_argument("--scale", type=float, help="divide the data by this (255 for bytes, else 1)")
    p.add_argument(
        "--window", type=positive, metavar="N", help="a sample is made of N measurements: x is (n, N) or (n, N, channels)"
    )
    p.add_argument("--hop", type=positive, metavar="N", help="measurements from one sample to the next (those of the window)")
    p.add_argument("--channels", type=positive, default=1, metavar="N", help="numbers of a measurement (1)")
    p.add_argument("--features", nargs="+", choices=FEATURES, help="what the models read of a window, in this order (values)")
    p.add_argument("--picture", metavar="WxHxC", help="a sample is a camera's picture: x is (n, H, W, C), 0 to 255")
    p.add_argument("--to", metavar="WxH", help="what it becomes on the device and for the models (as it is)")
    p.add_argument("--square", action="store_true", help="of the largest square in its middle")
    p.add_argument("--grey", action="store_true", help="three channels to one")
    p.add_argument("--payload", choices=wire.DTYPES, default=wire.DTYPES[0], help="what offloads send of a sample (int8)")
    p.add_argument("--encode", default="", metavar="FILE.py:F", help="raw: the function that makes a sample's bytes")
    p.add_argument("--media", default="", metavar="TYPE", help="raw: what the bytes are, such as image/jpeg")
    p.add_argument("--limit", type=int, default=wire.MAX_DATA, metavar="BYTES", help="data an offload may have (%(default)s)")
    p.add_argument("--card", metavar="FILE", help='.toml of what else its README says: data = "...", licence = "..."')
    p.add_argument("--model-id", type=model_number, metavar="N", help="number in requests (from the folder's name)")
    json_option(p)


def _bundle(args: argparse.Namespace) -> None:
    from ..model import bundle
    from ..model.footprint import in_words, on_a_board

    out = Path(args.out or Path(args.model).with_suffix(".h2m"))
    content = bundle.from_tflite(Path(args.model))
    out.write_bytes(content)
    needs = on_a_board(content)
    write_json(args.json, {"bundle": str(out), **needs})
    if args.json != "-":
        print(f"{out}: {needs['steps']} steps; {in_words(needs)}")


def _add_bundle(commands: Any) -> None:
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


def _pick(args: argparse.Namespace) -> None:
    from ..model.pick import pick

    fixed = {}
    for text in args.fix:
        name, _, value = text.rpartition("=")
        try:
            fixed[name] = float(value)
        except ValueError:
            raise UserError(f"--fix {text}: want NAME=NUMBER") from None
    content, report = pick(Path(args.model), args.input, args.output, fixed)
    out = Path(args.out or Path(args.model).with_suffix("").name + "_picked.tflite")
    out.write_bytes(content)
    report = {"file": str(out), "bytes": len(content), **report}
    write_json(args.json, report)
    if args.json != "-":
        print(f"{out}: {len(content):,} bytes, from input {report['input']} to output {report['output']}", end="")
        print(f", {report['operators_left_out']} operators left out")
        for name, value in report["fixed"].items():
            print(f"input {name} is {value:g} for good")


def _add_pick(commands: Any) -> None:
    p = command(
        commands,
        "pick",
        _pick,
        "Of a .tflite with several inputs or outputs, one of each: the sample goes to one, the decision is made by one.",
        "h2t2 pick detector.tflite --output scores --out ldl.tflite",
        "h2t2 pick fused.tflite --input audio --fix temperature=21.5 --output 0",
    )
    p.add_argument("model", help="a .tflite, float or int8 (h2t2 inspect names its ends)")
    p.add_argument("--input", metavar="NAME", help="what the sample goes to: a name or a number (the only one)")
    p.add_argument("--output", metavar="NAME", help="what the decision is made by: a name or a number (the only one)")
    p.add_argument("--fix", metavar="NAME=NUMBER", action="append", default=[], help="what another input is for good (0)")
    p.add_argument("--out", metavar="FILE", help="the model (the name with _picked.tflite, here)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_inspect, _add_pick, _add_convert, _add_pair, _add_bundle):
        declare(commands)
