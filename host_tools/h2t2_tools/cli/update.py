"""The commands about updates in the field: keys, sign, update."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from h2t2.units import q15

from ..common.errors import Failure, UserError
from ..common.untrusted import printable
from .options import add_endpoint_options, command, endpoint_of, json_option, positive, progress, show, write_json


def _keys(args: argparse.Namespace) -> None:
    from ..fleet.update import keys

    private, public = keys.make(Path(args.out))
    write_json(args.json, {"private": str(private), "public": str(public)})
    if args.json != "-":
        print(f"{private}: signs packages; keep it, and a copy of it, where nobody else can read it")
        print(
            f'{public}: what devices verify them with: update_key = "{public.name}" in config.toml, --update-key of h2t2 node'
        )


def _sign(args: argparse.Namespace) -> None:
    from ..common import pairs
    from ..fleet.update import package
    from ..model import bundle

    pair = pairs.load(args.pair)
    given = {name: getattr(args, name) for name in ("beta", "delta_fp", "delta_fn")}
    costs = {name: q15(value, name) for name, value in given.items() if value is not None}
    if costs and pair.info.costs:
        raise UserError(f"--{next(iter(costs)).replace('_', '-')}: {pair.info.name} has {pair.info.classes} classes")
    out = Path(args.out or f"{pair.folder.name}.h2u")
    shares = None
    if args.samples:
        from ..model.retrain import judge, kept

        held = kept.load(pair, Path(args.samples), None)
        shares = package.shares(judge.scores(pair, held.x), held.weight)
    options = package.Options(
        args.counter or int(time.time()),
        args.trial,
        args.trial_time,
        args.tests,
        costs,
        Path(args.app) if args.app else None,
        shares,
    )
    made = package.build(pair, bundle.from_tflite(pair.ldl), Path(args.key), options, not args.no_prior)
    out.write_bytes(made.content)
    write_json(args.json, {"package": str(out), **made.told()})
    if args.json != "-":
        print(
            f"{out}: package {made.head.counter} of {len(made.content):,} bytes, for model {made.head.model}; try one device:"
        )
        print(f"  h2t2 update DEVICE {out}")


def _update(args: argparse.Namespace) -> None:
    from ..common.report import Table
    from ..fleet.update import package, rollout

    made = package.read(Path(args.package))
    plan = rollout.Plan((1.0,) if args.at_once else rollout.Plan.steps, args.patience, args.wait, args.soak)
    with progress() as bar:
        task = bar.add_task("update", total=None)

        def say(text: str) -> None:
            text = printable(text)  # it may hold a device's own words
            bar.update(task, description=text)
            print(f"h2t2 update: {text}", file=sys.stderr, flush=True)

        report = rollout.roll_out(
            endpoint_of(args), args.devices, made, plan, say, lambda done, total: bar.update(task, completed=done, total=total)
        )
    write_json(args.json, report)
    if args.json != "-":
        columns = {"device": "left", "outcome": "left", "why": "left", "alarms": "left"}
        rows = [[*(row[name] for name in list(columns)[:-1]), "; ".join(row["alarms"])] for row in report["devices"]]
        show([Table(f"package {made.head.counter}", columns, rows)])
    if report["stopped"]:
        left = f"; {len(report['left'])} devices were left as they are" if report["left"] else ""
        alarms = any(row["alarms"] for row in report["devices"])
        raise Failure(f"not every device has kept the package{' without an alarm' if alarms else ''}{left}")


def add(commands: Any) -> None:
    p = command(
        commands,
        "keys",
        _keys,
        "A key that update packages are signed with, and its public part, which devices know.",
        "h2t2 keys --out fleet   # fleet.key, for you alone, and fleet.pub",
    )
    p.add_argument("--out", default="update", metavar="NAME", help="writes NAME.key and NAME.pub (update)")
    json_option(p)
    _add_sign(commands)
    _add_update(commands)


def _add_sign(commands: Any) -> None:
    p = command(
        commands,
        "sign",
        _sign,
        "A pair's local model, its test and its prior table as a signed package for devices in the field.",
        "h2t2 sign digits-again --key fleet.key",
        "h2t2 sign digits-again --key fleet.key --samples kept --trial 1000 --out digits-7.h2u",
    )
    p.add_argument("pair", help="shipped pair or folder of one")
    p.add_argument("--key", required=True, metavar="FILE", help="the private key, of h2t2 keys")
    p.add_argument("--out", metavar="FILE", help="the package (PAIR.h2u)")
    p.add_argument("--counter", type=positive, metavar="N", help="devices take higher ones than they know only (the time)")
    p.add_argument(
        "--trial", type=positive, default=500, metavar="N", help="samples after which a device keeps it, or not (500)"
    )
    p.add_argument("--trial-time", type=int, default=600, metavar="S", help="and seconds that the trial lasts at least (600)")
    p.add_argument("--tests", type=positive, default=4, metavar="N", help="inputs of the self-test (4)")
    p.add_argument("--samples", metavar="DIR", help="kept samples: how the scores should be spread in the field")
    p.add_argument("--app", metavar="FILE", help="a new app.py, for devices that allow it")
    p.add_argument("--no-prior", action="store_true", help="leave the pair's prior table out")
    p.add_argument("--beta", type=float, help="cost of an offload from now on, 0..1 (the devices')")
    p.add_argument("--delta-fp", type=float, help="cost of a false alarm, 0..1 (the devices')")
    p.add_argument("--delta-fn", type=float, help="cost of a missed event, 0..1 (the devices')")
    json_option(p)


def _add_update(commands: Any) -> None:
    p = command(
        commands,
        "update",
        _update,
        "Bring a signed package to devices: to one, to a tenth of them, to all. Each tries it and keeps it, or goes back; "
        "where one does not keep it, or raises an alarm afterwards, the others are left as they are. Run it again to go on "
        "where it stopped.",
        "h2t2 update kitchen new.h2u",
        "h2t2 update 'sensor-*' new.h2u --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )
    p.add_argument("devices", nargs="+", metavar="DEVICE", help="names, or patterns such as 'sensor-*'")
    p.add_argument("package", metavar="PACKAGE", help="of h2t2 sign")
    p.add_argument("--at-once", action="store_true", help="to all of them, without the steps before")
    p.add_argument("--patience", type=float, default=60.0, metavar="S", help="for a device that is away or silent (60)")
    p.add_argument("--wait", type=float, default=86400.0, metavar="S", help="for a device's trial (86400, a day)")
    p.add_argument(
        "--soak", type=float, default=300.0, metavar="S", help="after each step: how long those that have it are watched (300)"
    )
    add_endpoint_options(p)
    json_option(p)
