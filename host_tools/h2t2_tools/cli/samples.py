"""The commands about kept samples: samples, retrain."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..common.errors import UserError
from .options import command, device_name, json_option, model_number, progress, share, show, write_json


def _samples(args: argparse.Namespace) -> None:
    from ..fleet.database import used_bytes
    from ..fleet.samples import account, store

    with store.readable(Path(args.folder)) as base:
        if args.delete:
            made: dict[str, Any] = {"deleted": args.delete, "samples": store.delete_device(base, args.delete)}
            write_json(args.json, made)
            if args.json != "-":
                print(f"{made['samples']:,} samples of {args.delete} are deleted")
            return

        def chosen() -> Any:
            return store.read(base, args.device, args.model_id)

        devices = account.by_device(chosen(), args.bits)
        if not devices:
            raise UserError(f"{args.folder}: no samples" + (f" of {args.device}" if args.device else ""))
        made = {"devices": {name: one.told() for name, one in sorted(devices.items())}, "bytes": used_bytes(base)}
        first, last = min(one.first for one in devices.values()), max(one.last for one in devices.values())
        made["time"] = account.over_time(chosen(), args.bits, first, last)
        made["reliability"] = account.reliability(chosen(), args.bits)
        if args.export:
            from ..fleet.samples.export import export

            made["exported"] = export(chosen(), Path(args.export))
        if args.figure:
            from ..common import plots

            count = sum(one.whole.samples for one in devices.values())
            plots.sample_agreement(Path(args.figure), made["time"], made["reliability"], f"{count:,} samples")
    write_json(args.json, made)
    if args.json != "-":
        show([_table(made), f"{made['bytes'] / 1e6:.1f} MB"])
        for key, path in (("exported", args.export), ("figure", args.figure)):
            if path:
                print(f"{made[key]:,} samples in {path}" if key == "exported" else path)


def _table(made: dict[str, Any]) -> Any:
    from ..common.report import Table

    words = dict.fromkeys(("device", "from", "to", "labels"), "left")
    columns = {name: words.get(name, "right") for name in ("device", "samples", "explored", "from", "to", "labels", "accuracy")}
    rows = []
    for name, one in made["devices"].items():
        agreed = "-" if one["accuracy"] is None else f"{one['accuracy']:.3f} ± {one['error']:.3f}"
        labels = ", ".join(f"{label}: {count:,}" for label, count in one["labels"].items())
        rows.append(
            [name, f"{one['samples']:,}", f"{one['explored']:,}", _day(one["first"]), _day(one["last"]), labels, agreed]
        )
    return Table("kept samples; accuracy: of the local model, by the remote one", columns, rows)


def _retrain(args: argparse.Namespace) -> None:
    from ..common import pairs
    from ..model.retrain.retrain import RECIPE, retrain

    pair = pairs.load(args.pair)
    recipe = Path(args.recipe) if args.recipe else pair.folder / RECIPE
    out = Path(args.out or f"{pair.folder.name}-again")
    with progress() as bar:
        task = bar.add_task("training again", total=None)
        made = retrain(
            pair, recipe, Path(args.samples), out, args.device, args.held_out, lambda what: bar.update(task, description=what)
        )
    write_json(args.json, made)
    if args.json != "-":
        from ..common.report import Table

        numbers = ("accuracy", "brier", "cost", "sd")
        columns = {"local model": "left", **dict.fromkeys(numbers, "right")}
        rows = [[name, *(f"{made[name][key]:.4f}" for key in numbers)] for name in ("old", "new")]
        show([Table(f"on {made['judging']:,} kept samples held out", columns, rows)])
        print(f"{out}: of {made['training']:,} training samples and {made['taught']:,} kept ones; try: h2t2 node --pair {out}")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, tz=timezone.utc).strftime("%Y-%m-%d %H:%M")


def _add_retrain(commands: Any) -> None:
    p = command(
        commands,
        "retrain",
        _retrain,
        "Train a pair's local model again, with what was kept of the field, and write a new pair where it is better. "
        "The recipe: a Python file with training_data() -> (x, y) and local_model(x, y, weight) -> a model of Keras or "
        "scikit-learn.",
        "h2t2 retrain mypair --samples kept --out mypair-2",
        "h2t2 retrain digits --samples kept   # its recipe needs the extra train",
    )
    p.add_argument("pair", help="shipped pair or folder of one")
    p.add_argument("--samples", required=True, metavar="DIR", help="what h2t2 rdl --keep has kept")
    p.add_argument("--recipe", metavar="FILE", help="the recipe (train.py in the pair's folder)")
    p.add_argument("--out", metavar="DIR", help="the new pair's folder (PAIR-again)")
    p.add_argument("--device", type=device_name, help="with what this one sent only")
    p.add_argument(
        "--held-out", type=share, default=0.25, metavar="S", help="share of the kept samples, the latest, that judge (0.25)"
    )
    json_option(p)


def add(commands: Any) -> None:
    _add_samples(commands)
    _add_retrain(commands)


def _add_samples(commands: Any) -> None:
    p = command(
        commands,
        "samples",
        _samples,
        "What `h2t2 rdl --keep DIR` has kept: how many of whom, how often the remote model agrees with the local one. "
        "Each sample counts as many as it stands for.",
        "h2t2 samples kept --figure kept.png",
        "h2t2 samples kept --device kitchen --export kitchen.npz",
        "h2t2 samples kept --delete kitchen   # delete the samples of a device",
    )
    p.add_argument("folder", metavar="DIR", help="the folder")
    p.add_argument("--device", type=device_name, help="of this one only")
    p.add_argument("--model-id", type=model_number, metavar="N", help="of requests for this model only")
    p.add_argument("--bits", type=int, default=4, choices=range(1, 9), metavar="B", help="of the devices' bins (4)")
    p.add_argument("--export", metavar="PATH", help="write them to FILE.npz, FILE.csv, or a folder of pictures, one a class")
    p.add_argument("--delete", type=device_name, metavar="DEVICE", help="delete the samples of this device")
    p.add_argument("--figure", metavar="FILE", help="accuracy over time, and the reliability diagram")
    json_option(p)
