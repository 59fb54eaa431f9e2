"""The commands about a model for a board: inspect, convert, pair."""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from h2t2.link import wire
from h2t2.node.window import FEATURES

from ..common.errors import Failure, UserError, as_user_error, first_few
from ..common.feature_limits import MODEL_FEATURES
from ..common.fields import Count, ModelNumber, OneOf, Share, file, option
from ..common.policies import DEFAULTS
from ..common.quality_limits import MAX_LOSS
from ..common.report import Table
from ..common.untrusted import parse_integer
from .options import Reporting, Tabular
from .output import show, show_markdown, show_next, working

Divisor = Annotated[float, Field(gt=0, le=10**9)]
Points = Annotated[float, Field(ge=0, le=100)]
MISSING_VALUE = "local model of XGBoost, .json or .ubj: the number that was XGBClassifier(missing=...), which no file holds"
Event = Annotated[int, Field(ge=0, le=65535)]


def _number(word: str) -> str:
    """A number, as --missing-value takes it. ValueError for anything else."""
    try:
        if isfinite(float(word)):
            return word
    except ValueError:
        pass
    raise ValueError("want a number, such as 0 or -999")


def _float(word: str | None) -> float | None:
    return None if word is None else float(word)


class Inspect(Reporting):
    """It shows operators, the memory that they take on a board, what is not supported, and whether the output can feed the
    policy. --bundle prepares it for a board: weights, integer multipliers, tables and memory plan go into one checked file.
    --pick keeps one input and one output of a model with several: the sample goes to the input, and the output decides.
    """

    examples = (
        "h2t2 inspect models/phishing/ldl.tflite --bundle phishing.h2m",
        "h2t2 inspect models/chest_xray/ldl.tflite --board pico_w   # milliseconds and millijoules of each operator",
        "h2t2 inspect detector.tflite --output scores --pick ldl.tflite",
        "h2t2 inspect fused.tflite --input audio --fix temperature=21.5 --output 0 --pick audio.tflite",
    )
    model: str = option(..., "a .tflite, or a pair's folder", positional=True)
    board: str | None = option(
        None, "predict milliseconds and millijoules there, such as pico_w (docs/energy.md)", unset="no prediction"
    )
    native: bool = option(False, "predict with the native module; only where the board's processor has one")
    bundle: str | None = file(None, "write what a board reads (.h2m), of a full-int8 .tflite", unset="nothing is written")
    pick: str | None = file(None, "write the part from --input to --output (.tflite), and inspect that", unset="the whole")
    input: str | None = option(
        None, "--pick: the input for the sample, by name or number", unset="the only one", metavar="NAME"
    )
    output: str | None = option(
        None, "--pick: the output that decides, by name or number", unset="the only one", metavar="NAME"
    )
    fix: list[str] = option(
        [], "--pick: fix another input at a number; may be given again", unset="0", repeat=True, metavar="NAME=NUMBER"
    )
    logits: bool = option(False, "--pick: the output has logits: end the model with a sigmoid")

    def run(self) -> None:
        from ..model.bundle import from_tflite
        from ..model.footprint import in_words
        from ..model.inspect import inspect

        if self.native and not self.board:
            raise UserError("--native goes with --board NAME, for which it predicts")
        predict = self._prediction() if self.board else None
        picked = self._picked()
        if self.bundle:
            Path(self.bundle).write_bytes(from_tflite(self._file))
        report = {**inspect(self._file), "picked": picked, "bundle": self.bundle}
        if predict:
            report["energy"] = predict(report)
        if not self.report(report):
            return
        if picked:
            print(f"{self.pick}: from input {picked['input']} to output {picked['output']}", end="")
            print(f", {picked['operators_left_out']} operators left out")
            for name, value in picked["fixed"].items():
                print(f"input {name} is {value:g} for good")
        title = f"{report['model']}: {report['file_bytes']:,} bytes"
        rows = [[o["name"], str(o["version"]), str(o["count"])] for o in report["operators"]]
        show([Table(title, {"operator": "left", "version": "right", "count": "right"}, rows)])
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
        if report["features"]:
            print(f"feeds a head: {report['features']} features")
        if report.get("energy"):
            self._show_energy(report["energy"])

    @property
    def _file(self) -> Path:
        """The .tflite that is described."""
        from ..common.pairs import local_model

        return Path(self.pick) if self.pick else local_model(Path(self.model))[0]

    def _picked(self) -> dict[str, Any] | None:
        """Write the part of the model that --pick asks for. Return what was picked; None without --pick."""
        if not self.pick:
            if self.input or self.output or self.fix or self.logits:
                raise UserError("--input, --output, --fix and --logits go with --pick FILE, which gets that part of the model")
            return None
        from ..model.pick import pick

        content, picked = pick(Path(self.model), self.input, self.output, dict(map(_fixed, self.fix)), logits=self.logits)
        Path(self.pick).write_bytes(content)
        return picked

    def _prediction(self) -> Callable[[dict[str, Any]], dict[str, Any] | None]:
        """Return what predicts from a report of inspect(). UserError names the boards that it can predict for."""
        from h2t2.ldl.bundle import Int8Model

        from ..boards.kinds import KINDS
        from ..boards.native import ARCHITECTURES
        from ..model.bundle import from_tflite
        from ..model.cycles import table
        from ..model.energy import board_power, inference

        board, way = str(self.board), "native" if self.native else "viper"
        board_power(board)
        if self.native and not table()["native"]:
            raise UserError("--native: this release's table has no cycles of the native module; see h2t2-lab bench operators")
        if self.native and KINDS[board].arch not in ARCHITECTURES:
            raise UserError(f"--native: there is no native module for {board}'s processor, {KINDS[board].arch}")

        def predict(report: dict[str, Any]) -> dict[str, Any] | None:
            return inference(Int8Model(from_tflite(self._file), 0), board, way) if report["board"] else None

        return predict

    def _show_energy(self, energy: dict[str, Any]) -> None:
        """Print milliseconds and millijoules of each operator and of all."""
        columns = {"operator": "left", "products": "right", "cycles": "right", "ms": "right", "mJ": "right"}
        rows = []
        for row in energy["operators"]:
            figures = (
                ["-"] * 3 if row["cycles"] is None else [f"{row['cycles']:,.0f}", f"{row['ms']:,.3f}", f"{row['mj']:,.4f}"]
            )
            rows.append([row["operator"], f"{row['products']:,}" if row["products"] else "-", *figures])
        chip = "measured on the emulated chip" if energy["cycles_are"] == "measured" else "derived from the RP2040's"
        show([Table(f"{energy['board']}, {energy['clock_mhz']} MHz, {energy['way']}: cycles {chip}", columns, rows)])
        if energy["not_measured"]:
            print(f"one inference on {energy['board']}: no sum, since nobody has measured {', '.join(energy['not_measured'])}")
        else:
            time, work = f"{energy['ms']:,.2f} ms", f"{energy['mj']:,.3f} mJ"
            print(f"one inference on {energy['board']}: {time}, {work} at {energy['milliwatts']:g} mW")


class Convert(Tabular, Reporting):
    """Boards run the bundle; a report says how the int8 model differs."""

    examples = (
        "h2t2 convert model.keras --calibration train.npz --test test.npz --out converted",
        "h2t2 convert classifier.joblib --calibration samples.npy --out converted   # scikit-learn; load only what you trust",
        "h2t2 convert float.tflite --calibration images/ --out converted --json -",
    )
    model: str = option(
        ...,
        ".keras, .h5, SavedModel folder (extra train), .joblib, .json or .txt (trees), or float .tflite (extra convert)",
        positional=True,
    )
    calibration: str = option(..., ".npy, .npz (x, and y if known), .csv with a header, or folder of images", metavar="DATA")
    test: str | None = option(None, "samples that evaluate both models", unset="the calibration samples", metavar="DATA")
    out: str = option("converted", "folder for the files and the report", metavar="DIR")
    event: Event | None = option(None, "index of class 1 among the outputs", unset="the last")
    scale: Divisor | None = option(None, "divide the data by this", unset="255 for bytes, else 1")
    max_loss: Points = option(MAX_LOSS, "percentage points of accuracy that int8 may lose; a larger loss is an error")
    logits: bool = option(False, "the model gives logits: make scores of them, by a sigmoid of one and a softmax of several")
    distil: bool = option(False, "convert trees that are trained on the scores of a model that itself has no int8 form")
    missing_value: Annotated[str, AfterValidator(_number)] | None = option(
        None, MISSING_VALUE, unset="no number", metavar="NUMBER"
    )
    no_bundle: bool = option(False, "for a Pi alone: make no bundle; without this, a model without one ends in exit status 1")

    def run(self) -> None:
        from ..model.convert.conversion_report import markdown
        from ..model.convert.convert import convert
        from ..model.convert.trained_model import DISTIL

        with working("converting") as bar:
            report = convert(
                Path(self.model), Path(self.calibration), Path(self.out), test=Path(self.test) if self.test else None,
                event=self.event, scale=self.scale, with_bundle=not self.no_bundle, max_loss=self.max_loss,
                logits=self.logits, distil=self.distil, missing_value=_float(self.missing_value), selection=self.selection,
                progress=bar.describe,
            )  # fmt: skip
        if self.report(report):
            show_markdown(markdown(report).partition("![")[0])
            print("\n".join(report["files"].values()))
        if not self.no_bundle and "bundle" not in report["files"]:
            raise Failure(
                f"{self.model}: no bundle, since no board can run it: {first_few(report['not_for_a_board'])}. The int8 "
                f"model and its report are in {self.out}: a Pi runs it; --no-bundle asks for no bundle; {DISTIL}"
            )


def _feature(word: str) -> str:
    """A feature of a window, or a number of features for a head. ValueError for anything else."""
    if word.isdecimal() and 1 <= int(word) <= MODEL_FEATURES:
        return word
    return OneOf((*FEATURES, f"a number from 1 to {MODEL_FEATURES}"))(word)


class MakePair(Tabular, Reporting):
    """Labelled samples evaluate both; nodes, workers and boards run from the folder that it writes."""

    examples = (
        "h2t2 pair small.joblib big.joblib --test test.npz --ldl-columns 0 3 4 --out mypair   # scikit-learn, scaler and all",
        "h2t2 pair small.joblib big.joblib --test log.csv --label state --drop time id --missing skip --out mypair",
        "h2t2 pair small.keras big.onnx --test test.npz --calibration train.npz --out mypair",
        "h2t2 pair small_int8.tflite mine.py:scores --test test.npz --out mypair   # float32 samples in, n scores out",
        "h2t2 pair small.keras big.keras --test pictures.npz --picture 64x48x3 --square --grey --to 16x16 --out mypair",
        "h2t2 pair small.joblib http://server:8501/v1/models/big:predict --test test.npz --payload float32 --out mypair",
        "h2t2 pair small.keras mine.py:scores --test images.npz --payload raw --encode mine.py:jpeg --media image/jpeg",
        "h2t2 pair small.keras big.keras --test digits.npz --classes 10 --beta 0.2 --out digits10",
        "h2t2 pair small.joblib big.joblib --test windows.npz --window 64 --features mean std fft --out mypair",
        "h2t2 pair small.joblib big.joblib --test test.npz --features 16 --out mypair   # the device's head learns from 16",
    )

    ldl: str = option(
        ...,
        "local model: .keras, .h5, SavedModel folder, .joblib, .json or .txt (trees), .tflite (float or int8)",
        positional=True,
    )
    rdl: str = option(
        ..., "remote model: one of those, .onnx, FILE.py:FUNCTION, or a URL (TensorFlow Serving's predict)", positional=True
    )
    test: str = file(..., ".npz of x and y, .csv with a header, or a folder of pictures for each class")
    calibration: str | None = file(None, "samples to quantise by: one of those, or an .npy", unset="the test samples")
    out: str = option("pair", "the pair's folder, new or empty", metavar="DIR")
    force: bool = option(False, "overwrite files of the same names in the folder")
    ldl_columns: list[str] | None = option(
        None, "which numbers of a sample the local model reads, by name or from 0", unset="all", metavar="COLUMN"
    )
    output: str = option("", "the output of an .onnx RDL that holds the scores", unset="the one beside labels", metavar="NAME")
    rdl_columns: list[str] | None = option(
        None, "which numbers of a sample the remote model reads, by name or from 0", unset="all", metavar="COLUMN"
    )
    event: str | None = option(
        None, "the class that is the event, whose miss costs most, by number or name", unset="1 of 0 and 1", metavar="CLASS"
    )
    classes: Annotated[int, Field(ge=3, le=16)] | None = option(
        None, "decide between K classes, in place of one event", metavar="K"
    )
    class_costs: str | None = file(
        None, ".csv of what each decision costs, a line for each true class", unset="every mistake costs 1"
    )
    title: str | None = option(None, "the event, or the classes, in words", unset="the event's name")
    beta: Share = option(DEFAULTS["beta"], "cost of an offload")
    scale: Divisor | None = option(None, "divide the data by this", unset="255 for bytes, else 1")
    window: Count | None = option(None, "a sample is made of N measurements: x is (n, N) or (n, N, channels)", metavar="N")
    hop: Count | None = option(None, "measurements from one sample to the next", unset="those of the window", metavar="N")
    channels: Count = option(1, "numbers of a measurement", metavar="N")
    features: list[Annotated[str, AfterValidator(_feature)]] | None = option(
        None,
        "with --window: the statistics of its measurements that the models read, in this order. Or a number (1 to "
        f"{MODEL_FEATURES}): so many features of the local model, from which a head learns on the device",
        unset="values",
    )
    features_from: str | None = option(
        None, "the tensor that features are made of", unset="the input of the local model's last layer", metavar="TENSOR"
    )
    picture: str | None = option(None, "a sample is a camera's picture: x is (n, H, W, C), 0 to 255", metavar="WxHxC")
    to: str | None = option(None, "size of the picture on the device and for the models", unset="as it is", metavar="WxH")
    square: bool = option(False, "keep only the largest square in the picture's middle")
    grey: bool = option(False, "make one channel of three")
    payload: Annotated[str, AfterValidator(OneOf(wire.DTYPES))] = option(wire.DTYPES[0], "what offloads send of a sample")
    encode: str = option("", "raw: the function that makes a sample's bytes", metavar="FILE.py:F")
    media: str = option("", "raw: type of the bytes, such as image/jpeg", metavar="TYPE")
    limit: Annotated[int, Field(ge=1, le=wire.MAX_DATA)] = option(
        wire.MAX_DATA, "bytes of data that an offload may have", metavar="BYTES"
    )
    card: str | None = file(None, '.toml of what else its README says: data = "...", licence = "..."')
    model_id: ModelNumber | None = option(None, "number in requests", unset="from the folder's name", metavar="N")
    max_loss: Points = option(MAX_LOSS, "percentage points of accuracy that int8 may lose; a larger loss is an error")
    ordered: bool = option(False, "the test samples are in the order of time, so the demo's policy reads its past")
    distil: bool = option(
        False, "the local model becomes trees that are trained on the scores of a model that itself has no int8 form"
    )
    missing_value: Annotated[str, AfterValidator(_number)] | None = option(
        None, MISSING_VALUE, unset="no number", metavar="NUMBER"
    )

    def run(self) -> None:
        from ..common import toml_file
        from ..model.convert.calibration import NO_TABLE
        from ..model.pair.build import build_pair
        from ..model.pair.features import Features
        from ..model.pair.labelled_samples import load_samples, table_of
        from ..model.pair.readme import Card, next_commands, text

        head, of_window = self._features()
        costs, window, picture = self._costs(), self._window(of_window), self._picture()
        with working("reading the samples") as bar:
            source = window or picture
            samples = load_samples(
                Path(self.test), Path(self.calibration) if self.calibration else None, scale=self.scale, event=self.event,
                classes=self.classes, source=source, table=NO_TABLE if source else table_of(self.ldl, self.rdl),
                selection=self.selection,
            )  # fmt: skip
            samples = replace(samples, ordered=self.ordered)
            report = build_pair(
                Path(self.ldl), self.rdl, samples, Path(self.out),
                columns={
                    "ldl": samples.numbers_of(Path(self.ldl), self.ldl_columns, "--ldl-columns"),
                    "rdl": samples.numbers_of(Path(self.rdl), self.rdl_columns, "--rdl-columns"),
                },
                payload=self._payload(), output=self.output, costs=costs, beta=self.beta,
                title=self.title, model_id=self.model_id,
                card=toml_file.load(Path(self.card), Card).model_extra if self.card else None,
                features=Features(head, self.features_from) if head else None,
                force=self.force, max_loss=self.max_loss, distil=self.distil, missing_value=_float(self.missing_value),
                progress=bar.describe,
            )  # fmt: skip
        if self.report(report):
            show_markdown(text(report))
            print(f"{report['folder']}: {', '.join(report['files'])}")
            show_next(next_commands(report))

    def _costs(self) -> list[list[float]] | None:
        """The cost matrix of three classes or more; None for two classes."""
        from ..common import matrices

        if self.classes is None:
            if self.class_costs:
                raise UserError("--class-costs FILE is of --classes K; of two classes, a node's delta_fp and delta_fn say it")
            return None
        return matrices.costs_of(self.class_costs, self.classes)

    def _payload(self) -> Any:
        """What offloads send."""
        from ..model.pair.served_model import Payload

        raw = self.payload == "raw"
        if raw != bool(self.encode) or (self.media and not raw):
            raise UserError("--payload raw, --encode FILE.py:FUNCTION and --media TYPE go together")
        return Payload(self.payload, self.media, self.encode, self.limit)

    def _picture(self) -> Any:
        """How a camera's picture becomes a sample; None for other samples."""
        from ..common.pairs import PictureSpec

        if self.picture is None:
            if self.to or self.square or self.grey:
                raise UserError("--to, --square and --grey are of --picture WxHxC, what a camera gives")
            return None
        if self.window or self.scale:
            remedy = "begin a Keras model with Rescaling"
            raise UserError(f"--picture: no --window, and no --scale: its numbers are 0 to 255; {remedy}")
        sizes = [_sizes("--picture", self.picture, 3), _sizes("--to", self.to or self.picture.rpartition("x")[0], 2)]
        names = ("width", "height", "channels", "wide", "high")
        with as_user_error("--picture"):
            return PictureSpec(**dict(zip(names, sizes[0] + sizes[1])), square=self.square, grey=self.grey)

    def _features(self) -> tuple[int, list[str]]:
        """(features for a head, what the models read of a window)."""
        numbers = [int(word) for word in self.features or [] if word.isdecimal()]
        if self.features_from and not numbers:
            raise UserError("--features-from TENSOR goes with --features N, the number of features for a head")
        if len(numbers) > 1:
            raise UserError(f"--features {' '.join(self.features or [])}: want one number, of features for a head")
        return sum(numbers), [word for word in self.features or [] if not word.isdecimal()]

    def _window(self, features: list[str]) -> Any:
        """How measurements become a sample; None if one measurement is a sample."""
        from ..common.pairs import WindowSpec

        if self.window is None:
            if self.hop or features:
                raise UserError("--hop and --features are of --window N, the measurements that make a sample")
            return None
        read = features or ["values"]
        with as_user_error("--window"):
            return WindowSpec(size=self.window, hop=self.hop or self.window, channels=self.channels, features=read)


def _sizes(name: str, text: str, count: int) -> list[int]:
    """Read numbers with an x between them. UserError names the option unless there are `count` numbers."""
    words = text.split("x")
    if len(words) != count or not all(parse_integer(word, 65535) for word in words):
        raise UserError(f"{name} {text}: want {'WxHxC, such as 64x48x3' if count == 3 else 'WxH, such as 16x16'}")
    return [int(word) for word in words]


def _fixed(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise UserError(f"--fix {text}: want NAME=NUMBER") from None
