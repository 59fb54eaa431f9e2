"""The commands about kept samples: samples."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..common.errors import UserError
from .options import command, device_name, json_option, model_number, show, write_json


def _samples(args: argparse.Namespace) -> None:
    from ..fleet.samples import account, store

    base = store.opened(Path(args.folder))
    try:
        if args.forget:
            made: dict[str, Any] = {"forgotten": args.forget, "samples": store.forget(base, args.forget)}
            write_json(args.json, made)
            if args.json != "-":
                print(f"{made['samples']:,} samples of {args.forget} are deleted")
            return

        def chosen() -> Any:
            return store.read(base, args.device, args.model_id)

        devices = account.by_device(chosen(), args.bits)
        if not devices:
            raise UserError(f"{args.folder}: no samples" + (f" of {args.device}" if args.device else ""))
        made = {"devices": {name: one.told() for name, one in sorted(devices.items())}, "bytes": store.used(base)}
        first, last = min(one.first for one in devices.values()), max(one.last for one in devices.values())
        made["time"] = account.over_time(chosen(), args.bits, first, last)
        made["reliability"] = account.reliability(chosen(), args.bits)
        if args.export:
            from ..fleet.samples.export import export

            made["exported"] = export(chosen(), Path(args.export))
        if args.figure:
            from ..common import plots

            count = sum(one.whole.samples for one in devices.values())
            plots.kept(Path(args.figure), made["time"], made["reliability"], f"{count:,} samples")
    finally:
        base.close()
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


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, tz=timezone.utc).strftime("%Y-%m-%d %H:%M")


def add(commands: Any) -> None:
    p = command(
        commands,
        "samples",
        _samples,
        "What `h2t2 rdl --keep DIR` has kept: how many of whom, how often the remote model agrees with the local one. "
        "Each sample counts as many as it stands for.",
        "h2t2 samples kept --figure kept.png",
        "h2t2 samples kept --device kitchen --export kitchen.npz",
        "h2t2 samples kept --forget kitchen   # what it sent is nobody's any more",
    )
    p.add_argument("folder", metavar="DIR", help="the folder")
    p.add_argument("--device", type=device_name, help="of this one only")
    p.add_argument("--model-id", type=model_number, metavar="N", help="of requests for this model only")
    p.add_argument("--bits", type=int, default=4, choices=range(1, 9), metavar="B", help="of the devices' bins (4)")
    p.add_argument("--export", metavar="PATH", help="write them to FILE.npz, FILE.csv, or a folder of pictures, one a class")
    p.add_argument("--forget", type=device_name, metavar="DEVICE", help="delete what this device has sent")
    p.add_argument("--figure", metavar="FILE", help="accuracy over time, and the reliability diagram")
    json_option(p)
