"""The commands about kept samples: samples, retrain."""

import time
from pathlib import Path
from typing import Any

from ..common.errors import UserError
from ..common.fields import Bits, Device, ModelNumber, Share, file, option
from ..common.policies import DEFAULTS
from ..common.report import Table
from .options import Reporting, Tabular
from .output import show, show_next, working


class Samples(Reporting):
    """It counts how many came from which device, and how often the remote model agrees with the local one. Each sample
    counts as many as it stands for.
    """

    examples = (
        "h2t2 samples kept --figure kept.png",
        "h2t2 samples kept --device kitchen --export kitchen.npz",
        "h2t2 samples kept --delete kitchen   # delete the samples of a device",
    )
    folder: str = option(..., "the folder", positional=True, metavar="DIR")
    device: Device | None = option(None, "only samples of this device", unset="all")
    model_id: ModelNumber | None = option(None, "only requests for this model", unset="all", metavar="N")
    bits: Bits = option(4, "score bits of the devices", metavar="B")
    export: str | None = option(
        None, "write them to FILE.npz, FILE.csv, or a folder of pictures, one for each class", metavar="PATH"
    )
    delete: Device | None = option(None, "delete the samples of this device", metavar="DEVICE")
    figure: str | None = file(None, "draw accuracy over time, and the reliability diagram")

    def run(self) -> None:
        from ..fleet.samples import sample_store

        with sample_store.readable(Path(self.folder)) as base:
            if self.delete:
                count = sample_store.delete_device(base, self.delete)
                if self.report({"deleted": self.delete, "samples": count}):
                    print(f"{count:,} samples of {self.delete} are deleted")
                return
            summary = self._summary(base)
        if self.report(summary):
            show([_table(summary), f"{summary['bytes'] / 1e6:.1f} MB"])
            if self.export:
                print(f"{summary['exported']:,} samples in {self.export}")
            if self.figure:
                print(self.figure)

    def _summary(self, base: Any) -> dict[str, Any]:
        """Report the samples, and export and draw them if options ask for it."""
        import numpy as np

        from ..fleet.database import used_bytes
        from ..fleet.samples import agreement, sample_store

        def rows() -> Any:
            return sample_store.read(base, self.device, self.model_id)

        devices = agreement.by_device(rows())
        if not devices:
            raise UserError(f"{self.folder}: no samples" + (f" of {self.device}" if self.device else ""))
        samples = np.concatenate(list(devices.values()))
        summary: dict[str, Any] = {
            "devices": {name: agreement.to_json(own, self.bits) for name, own in devices.items()},
            "bytes": used_bytes(base),
            "time": agreement.over_time(samples, self.bits),
            "reliability": agreement.reliability(samples, self.bits),
        }
        if self.export:
            from ..fleet.samples.sample_files import export

            summary["exported"] = export(rows(), Path(self.export))
        if self.figure:
            from ..common import plots

            plots.sample_agreement(Path(self.figure), summary["time"], summary["reliability"], f"{len(samples):,} samples")
        return summary


def _table(summary: dict[str, Any]) -> Table:
    sides = dict.fromkeys(("device", "from", "to", "labels"), "left")
    names = ("device", "samples", "explored", "from", "to", "labels", "accuracy")
    rows = []
    for name, device in summary["devices"].items():
        accuracy = "-" if device["accuracy"] is None else f"{device['accuracy']:.3f} ± {device['error']:.3f}"
        labels = ", ".join(f"{label}: {count:,}" for label, count in device["labels"].items())
        days = [time.strftime("%Y-%m-%d %H:%M", time.gmtime(device[name])) for name in ("first", "last")]
        rows.append([name, f"{device['samples']:,}", f"{device['explored']:,}", *days, labels, accuracy])
    title = "kept samples; accuracy: how often the local model agrees with the remote one"
    return Table(title, {name: sides.get(name, "right") for name in names}, rows, ("from", "explored", "to", "labels"))


class Retrain(Tabular, Reporting):
    """It writes a new pair if that is better. The recipe is a Python file with training_data() -> (x, y), or the
    path of a .csv or .npz of both, and local_model(x, y, weight) -> a model of Keras or scikit-learn.
    """

    examples = (
        "h2t2 retrain mypair --samples kept --out mypair-2",
        "h2t2 retrain digits --samples kept   # its recipe needs the extra train",
    )
    pair: str = option(..., "shipped pair or folder of one", positional=True)
    samples: str = option(..., "folder of samples that `h2t2 rdl --keep` keeps", metavar="DIR")
    recipe: str | None = file(None, "the recipe", unset="train.py in the pair's folder")
    out: str | None = option(None, "the new pair's folder", unset="PAIR-again", metavar="DIR")
    device: Device | None = option(None, "use only samples of this device", unset="all")
    held_out: Share = option(0.25, "share of the kept samples, the latest, that evaluates the models", metavar="S")

    def run(self) -> None:
        from ..common import event, pairs
        from ..model.retrain.retrain import recipe_of, retrain

        pair = pairs.load(self.pair)
        recipe = Path(self.recipe) if self.recipe else recipe_of(pair)
        out = Path(self.out or f"{pair.folder.name}-again")
        with working("training again") as bar:
            report = retrain(
                pair, recipe, Path(self.samples), out, device=self.device, held_out=self.held_out, selection=self.selection,
                progress=bar.describe,
            )  # fmt: skip
        if self.report(report):
            if pair.info.classes == 2:
                print(event.in_words(pair.info.event_name, DEFAULTS["delta_fp"], DEFAULTS["delta_fn"]))
            numbers = ("accuracy", "brier", "cost", "sd")
            columns = {"local model": "left", **dict.fromkeys(numbers, "right")}
            rows = [[name, *(f"{report[name][key]:.4f}" for key in numbers)] for name in ("old", "new")]
            show([Table(f"on {report['judging']:,} kept samples held out", columns, rows)])
            print(f"{out}: of {report['training']:,} training samples and {report['taught']:,} kept ones")
            show_next({"try it": ["h2t2", "node", "--pair", str(out)]})
