"""The commands about updates in the field: keys, sign, update."""

import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2t2.units import q15

from ..common.errors import Failure, UserError
from ..common.fields import Share, file, option
from ..common.report import Table
from ..common.untrusted import printable
from ..fleet.update.rollout_options import PackageOptions, RolloutOptions
from .options import Connected, Reporting
from .output import show, show_next, working


class Keys(Reporting):
    """Devices know its public part."""

    examples = ("h2t2 update keys --out fleet   # fleet.key, for you alone, and fleet.pub",)
    out: str = option("update", "write NAME.key and NAME.pub", metavar="NAME")
    replaces: str | None = file(None, "the private key that devices trust: also write NAME.h2u, which brings them the new one")
    counter: Annotated[int, Field(ge=1, lt=2**32)] | None = option(
        None, "with --replaces: devices accept only a higher one than that of their key", unset="the time", metavar="N"
    )
    ahead: bool = option(False, "with --replaces: sign it although the counter is more than a day ahead of the key's file")

    def run(self) -> None:
        from ..fleet.update import counters, keys, signed_package

        out, counter = Path(self.out), 0
        if self.replaces:
            keys.sign(Path(self.replaces), b"")  # refuses what is no such key, before anything is written
            counter = counters.checked(self.counter, [Path(self.replaces)], self.ahead)
        private, public = keys.make(out)
        rotation = out.with_name(out.name + ".h2u") if self.replaces else None
        if self.replaces and rotation:
            rotation.write_bytes(signed_package.rotation(public, Path(self.replaces), counter).content)
        if self.report({"private": str(private), "public": str(public), "package": str(rotation) if rotation else None}):
            print(f"{private}: signs packages; keep it, and a copy of it, where nobody else can read it")
            entry = f'update_key = "{public.name}" in h2t2.toml, --update-key of h2t2 node'
            print(f"{public}: devices verify packages with it: {entry}")
            if rotation:
                show_next({"replace the key on devices": ["h2t2", "update", "DEVICE", str(rotation)]})


OF_MODELS = {"samples", "no_prior", "beta", "delta_fp", "delta_fn", "app", "tests"}  # options of `sign` that a runtime lacks


class Sign(PackageOptions, Reporting):
    """It holds the model, its test and its prior table, for devices in the field."""

    examples = (
        "h2t2 update sign digits-again --key fleet.key",
        "h2t2 update sign digits-again --key fleet.key --samples kept --trial 1000 --out digits-7.h2u",
        "h2t2 update sign pico_w --runtime --key fleet.key",
        "h2t2 update sign micropython.bin --runtime --key fleet.key   # an ESP32's firmware, of `h2t2 firmware`",
    )
    pair: str = option(
        ...,
        "shipped pair or folder of one; with --runtime a kind of board, or the .bin of an ESP32's firmware",
        positional=True,
    )
    runtime: bool = option(False, "this installation's runtime for a kind of board, in place of a pair's model")
    key: str = file(..., "the private key, of `h2t2 update keys`")
    out: str | None = file(None, "the package", unset="PAIR.h2u")
    samples: str | None = option(None, "kept samples: they show how scores are spread in the field", metavar="DIR")
    no_prior: bool = option(False, "leave the pair's prior table out")
    beta: Share | None = option(None, "cost of an offload from now on", unset="the devices'")
    delta_fp: Share | None = option(None, "cost of a false alarm", unset="the devices'")
    delta_fn: Share | None = option(None, "cost of a missed event", unset="the devices'")

    def run(self) -> None:
        strange = sorted(OF_MODELS & self.model_fields_set) if self.runtime else []
        if strange:
            raise UserError(f"--{strange[0].replace('_', '-')}: it is about a model, not about a runtime")
        from ..fleet.update import counters

        made_of = [Path(name) for name in (self.key, self.pair, self.samples, self.app) if name]
        options = self.model_copy(update={"counter": counters.checked(self.counter, made_of, self.ahead)})
        signed, name = _runtime(self.pair, self.key, options) if self.runtime else options._model()
        out = Path(self.out or f"{name}.h2u")
        out.write_bytes(signed.content)
        if self.report({"package": str(out), **signed.to_json()}):
            content = "a runtime" if signed.head.runtime else f"for model {signed.head.model}"
            print(f"{out}: package {signed.head.counter} of {len(signed.content):,} bytes, {content}")
            show_next({"try one device": ["h2t2", "update", "DEVICE", str(out)]})

    def _model(self) -> Any:
        """The package of a pair's model, and its name."""
        from ..common import pairs
        from ..fleet.update import signed_package
        from ..model import bundle

        pair = pairs.load(self.pair)
        values = {name: getattr(self, name) for name in ("beta", "delta_fp", "delta_fn")}
        costs = {name: q15(value, name) for name, value in values.items() if value is not None}
        if costs and pair.info.costs:
            raise UserError(f"--{next(iter(costs)).replace('_', '-')}: {pair.info.name} has {pair.info.classes} classes")
        blob, shares = bundle.from_tflite(pair.ldl), self._shares(pair)
        signed = signed_package.build(
            pair, blob, Path(self.key), self, costs=costs, shares=shares, with_prior=not self.no_prior
        )
        return signed, pair.folder.name

    def _shares(self, pair: Any) -> Any:
        """The share of kept samples in each score bin; None without samples."""
        if not self.samples:
            return None
        from ..fleet.update import signed_package
        from ..model.retrain import evaluate, field_samples

        held = field_samples.load(pair, Path(self.samples), None)
        return signed_package.shares(evaluate.scores(pair, held.x), held.weight)


def _runtime(board: str, key: str, options: PackageOptions) -> Any:
    """The package of this installation's runtime for a kind of board, or of a firmware (a .bin), and its name."""
    from ..boards.kinds import KINDS, runtime_files
    from ..boards.targets import mpy_number
    from ..fleet.update import signed_package

    path = Path(board)
    if path.suffix == ".bin":
        return signed_package.firmware(path, Path(key), options), f"firmware-{path.stem}"
    kinds = {kind.name: kind for kind in KINDS.values() if kind.arch}
    kind = kinds.get(board)
    if not kind or not kind.arch:
        raise UserError(f"--runtime: {board} is no kind of board that takes updates: {', '.join(kinds)}")
    return signed_package.runtime(runtime_files(kind), mpy_number(kind.arch), Path(key), options), f"runtime-{board}"


class Update(RolloutOptions, Connected, Reporting):
    """It goes to one device, to a tenth of them, to all. Each device tries it and keeps it, or goes back. Where one does
    not keep it, or raises an alarm afterwards, the others stay as they are. Run the command again to go on where it
    stopped.
    """

    examples = (
        "h2t2 update kitchen new.h2u",
        "h2t2 update kitchen pico_w --runtime --signing-key fleet.key",
        "h2t2 update 'sensor-*' new.h2u --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )
    devices: list[str] = option(..., "names, or patterns such as 'sensor-*'", positional=True, metavar="DEVICE")
    package: str = option(
        ...,
        "a package of `h2t2 update sign`; with --runtime what that signs: a kind of board, or the .bin of an ESP32's firmware",
        positional=True,
        metavar="PACKAGE",
    )
    runtime: bool = option(False, "sign the runtime of this installation, and send it")
    signing_key: str | None = file(None, "with --runtime: the private key, of `h2t2 update keys`")

    def run(self) -> None:
        from ..fleet.update import counters, rollout, signed_package

        if self.runtime and not self.signing_key:
            raise UserError("--runtime: --signing-key names the private key whose public part is update_key of the devices")
        if self.signing_key and not self.runtime:
            raise UserError("--signing-key: a package has its signature; only --runtime makes one")
        key = self.signing_key
        if key:
            counter = counters.checked(None, [Path(key), Path(self.package)], ahead=False)
            signed = _runtime(self.package, key, PackageOptions(counter=counter))[0]
        else:
            signed = signed_package.read(Path(self.package))
        with working("update") as bar:

            def say(text: str) -> None:
                text = printable(text)  # it may quote a device
                bar.describe(text)
                print(f"h2t2 update: {text}", file=sys.stderr, flush=True)

            report = rollout.roll_out(self.connection(), self.devices, signed, self, say, bar.count)
        if self.report(report):
            columns = {"device": "left", "outcome": "left", "why": "left", "alarms": "left"}
            rows = [[row["device"], row["outcome"], row["why"], "; ".join(row["alarms"])] for row in report["devices"]]
            brought = f"key {signed.new_key}" if signed.head.rotates else f"package {signed.head.counter}"
            show([Table(brought, columns, rows)])
        if report["trouble"]:
            raise Failure(report["trouble"])
        if report["stopped"]:
            unchanged = f"; {len(report['left'])} devices were left as they are" if report["left"] else ""
            alarms = any(row["alarms"] for row in report["devices"])
            outcome = "taken the key" if signed.head.rotates else "kept the package"
            raise Failure(f"not every device has {outcome}{' without an alarm' if alarms else ''}{unchanged}")
