"""The commands about updates in the field: keys, sign, update."""

import math
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2t2.units import q15

from ..common.errors import Failure, UserError
from ..common.fields import DAY_S, Count, Duration, Seconds, Share, file, option
from ..common.report import Table
from ..common.untrusted import printable
from .options import Connected, Reporting
from .output import show, show_next, working


class Keys(Reporting):
    out: str = option("update", "write NAME.key and NAME.pub", metavar="NAME")

    def run(self) -> None:
        from ..fleet.update import keys

        private, public = keys.make(Path(self.out))
        self.report({"private": str(private), "public": str(public)})
        if not self.quiet:
            print(f"{private}: signs packages; keep it, and a copy of it, where nobody else can read it")
            entry = f'update_key = "{public.name}" in h2t2.toml, --update-key of h2t2 node'
            print(f"{public}: devices verify packages with it: {entry}")


class Sign(Reporting):
    pair: str = option(..., "shipped pair or folder of one", positional=True)
    key: str = file(..., "the private key, of `h2t2 keys`")
    out: str | None = file(None, "the package", unset="PAIR.h2u")
    counter: Annotated[int, Field(ge=1, lt=2**32)] | None = option(
        None, "devices accept only packages with a higher counter than the last", unset="the time", metavar="N"
    )
    trial: Annotated[int, Field(ge=1, lt=2**20)] = option(
        500, "samples after which a device keeps the update, or not", metavar="N"
    )
    trial_time: Annotated[Duration, Field(ge=0, le=7 * DAY_S)] = option(600.0, "time that the trial lasts at least")
    tests: Count = option(4, "inputs of the self-test", metavar="N")
    samples: str | None = option(None, "kept samples: they show how scores are spread in the field", metavar="DIR")
    app: str | None = file(None, "a new app.py, for devices that allow it")
    no_prior: bool = option(False, "leave the pair's prior table out")
    beta: Share | None = option(None, "cost of an offload from now on", unset="the devices'")
    delta_fp: Share | None = option(None, "cost of a false alarm", unset="the devices'")
    delta_fn: Share | None = option(None, "cost of a missed event", unset="the devices'")

    def run(self) -> None:
        from ..common import pairs
        from ..fleet.update import package
        from ..model import bundle

        pair = pairs.load(self.pair)
        values = {name: getattr(self, name) for name in ("beta", "delta_fp", "delta_fn")}
        costs = {name: q15(value, name) for name, value in values.items() if value is not None}
        if costs and pair.info.costs:
            raise UserError(f"--{next(iter(costs)).replace('_', '-')}: {pair.info.name} has {pair.info.classes} classes")
        out = Path(self.out or f"{pair.folder.name}.h2u")
        options = package.Options(
            self.counter or int(time.time()),
            self.trial,
            math.ceil(self.trial_time),
            self.tests,
            costs,
            Path(self.app) if self.app else None,
            self._shares(pair),
        )
        signed = package.build(pair, bundle.from_tflite(pair.ldl), Path(self.key), options, not self.no_prior)
        out.write_bytes(signed.content)
        self.report({"package": str(out), **signed.to_json()})
        if not self.quiet:
            head = signed.head
            print(f"{out}: package {head.counter} of {len(signed.content):,} bytes, for model {head.model}")
            show_next({"try one device": ["h2t2", "update", "DEVICE", str(out)]})

    def _shares(self, pair: Any) -> Any:
        """The share of kept samples in each score bin; None without samples."""
        if not self.samples:
            return None
        from ..fleet.update import package
        from ..model.retrain import evaluate, field_samples

        held = field_samples.load(pair, Path(self.samples), None)
        return package.shares(evaluate.scores(pair, held.x), held.weight)


class Update(Connected, Reporting):
    devices: list[str] = option(..., "names, or patterns such as 'sensor-*'", positional=True, metavar="DEVICE")
    package: str = option(..., "a package of `h2t2 sign`", positional=True, metavar="PACKAGE")
    at_once: bool = option(False, "to all of them, without the steps before")
    patience: Seconds = option(60.0, "time to wait for a device that is away or silent")
    wait: Seconds = option(86400.0, "time to wait for a device's trial")
    soak: Seconds = option(300.0, "time that updated devices are watched after each step")

    def run(self) -> None:
        from ..fleet.update import package, rollout

        signed = package.read(Path(self.package))
        plan = rollout.Plan((1.0,) if self.at_once else rollout.Plan.steps, self.patience, self.wait, self.soak)
        with working("update") as bar:

            def say(text: str) -> None:
                text = printable(text)  # it may quote a device
                bar.describe(text)
                print(f"h2t2 update: {text}", file=sys.stderr, flush=True)

            report = rollout.roll_out(self.connection(), self.devices, signed, plan, say, bar.count)
        self.report(report)
        if not self.quiet:
            columns = {"device": "left", "outcome": "left", "why": "left", "alarms": "left"}
            rows = [[row["device"], row["outcome"], row["why"], "; ".join(row["alarms"])] for row in report["devices"]]
            show([Table(f"package {signed.head.counter}", columns, rows)])
        if report["stopped"]:
            unchanged = f"; {len(report['left'])} devices were left as they are" if report["left"] else ""
            alarms = any(row["alarms"] for row in report["devices"])
            raise Failure(f"not every device has kept the package{' without an alarm' if alarms else ''}{unchanged}")
