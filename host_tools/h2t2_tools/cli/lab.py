"""The commands about traces and policies: replay, score, prior, recommend, experiment, results."""

import math
import os
import shutil
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from ..common import matrices, prior_file
from ..common.errors import UserError
from ..common.fields import Bits, Count, NotNegative, OneOf, Share, file, option
from ..common.policies import DEFAULTS
from ..common.report import Table
from ..lab.experiments.names import NAMES as EXPERIMENTS
from ..lab.simulation.names import NAMES as POLICIES
from .options import Reporting
from .output import progress, show, working

TRACE = "a .csv or .npz of score and label; or a shipped trace's name"
DASK = "address of a Dask scheduler, whose workers then play the runs; they need this version of h2t2"
FineBits = Annotated[int, Field(ge=1, le=12)]


def _betas(words: Any) -> Any:
    """Read costs of an offload: numbers, or ranges first:last:step that include both ends."""
    return [beta for word in words for beta in (_range(word) if isinstance(word, str) else [word])]


def _range(text: str) -> list[float]:
    try:
        numbers = [float(number) for number in text.split(":")]
    except ValueError:
        raise ValueError("want a number, or first:last:step") from None
    if len(numbers) == 1:
        return numbers
    first, last, step = numbers if len(numbers) == 3 else (1.0, 0.0, 0.0)
    if not (0 <= first <= last <= 1 and step >= 1e-6):
        raise ValueError("want a number, or first:last:step with 0 <= first <= last <= 1 and step > 0")
    return [round(first + n * step, 9) for n in range(math.floor((last - first) / step + 1e-9) + 1)]


class Replay(Reporting):
    trace: str = option(
        ..., "a .csv or .npz of score (or score0, score1, ..), label[, beta]; or a shipped trace's name", positional=True
    )
    beta: Annotated[list[Share], BeforeValidator(_betas)] = option(
        _range("0.05:0.6:0.05"), "costs of an offload: numbers, or first:last:step", unset="0.05:0.6:0.05"
    )
    ordered: bool = option(False, "take the samples in their order, in place of drawing them at random")
    delay: NotNegative = option(0, "labels come up to N rounds late", metavar="N")
    lost: Share = option(0.0, "share of the labels that never come", metavar="S")
    rdl_fp: Share = option(0.0, "what policies know of a remote model that says 1 for 0")
    rdl_fn: Share = option(0.0, "what policies know of a remote model that says 0 for 1")
    rdl_confusion: str | None = file(
        None, "three classes or more: a .csv, a line for each class, of how often it says each (counts or shares)"
    )
    miss_rate: Share = option(
        DEFAULTS["miss_rate"], "adaptive: largest share of events that may be missed; 0: no limit", metavar="M"
    )
    prior: str | None = file(None, "the table that `adaptive` starts from, of `h2t2 prior`")
    eta: Annotated[float, Field(gt=0, le=5.5)] = option(DEFAULTS["eta"], "learning rate of `h2t2` and similar policies")
    delta_fp: Share = option(DEFAULTS["delta_fp"], "cost of a false alarm")
    delta_fn: Share = option(DEFAULTS["delta_fn"], "cost of a missed event")
    bits: list[FineBits] = option([DEFAULTS["bits"]], "score bits; several: each policy with each", metavar="b")
    policy: list[Annotated[str, AfterValidator(OneOf(("all", *POLICIES)))]] = option(["all"], "policies to replay", metavar="P")
    half_life: NotNegative = option(0, "rounds after which losses count half, of the policies that forget; 0: always in full")
    runs: Count = option(25, "runs of each policy")
    samples: Count = option(10000, "samples of a run, drawn uniformly from the trace")
    seed: NotNegative = option(0, "seed of the first run")
    out: str = option("results/replay", "folder for the picture and the CSV")
    dask: str | None = option(None, DASK, unset="this machine plays them", metavar="ADDRESS")

    def run(self) -> None:
        from ..lab import replay
        from ..lab.simulation.cluster import cluster
        from ..lab.simulation.stream import Making

        source = replay.trace(self.trace)
        plan = replay.Plan(
            betas=self.beta,
            delta_fp=self.delta_fp,
            delta_fn=self.delta_fn,
            bits=tuple(self.bits),
            policy_names=tuple(self.policy),
            half_life=self.half_life,
            runs=self.runs,
            samples=self.samples,
            seed=self.seed,
            making=Making(self.ordered, self.delay, self.lost),
            options=self._policy_options(source),
        )
        with cluster(self.dask), working("replaying") as bar:
            report = replay.replay(source, plan, Path(self.out), bar.count)
        self.report(report)
        if not self.quiet:
            self._show(report)

    def _policy_options(self, source: Any) -> dict[str, Any]:
        """The options for every policy that has them. UserError if a table does not fit the trace."""
        from h2t2.units import label_costs

        from ..lab.simulation.stream import WIDEST

        options: dict[str, Any] = {name: getattr(self, name) for name in ("rdl_fp", "rdl_fn", "eta", "miss_rate")}
        if self.rdl_confusion:
            if source.classes == 2:
                raise UserError("--rdl-confusion is for more than two classes; of two, --rdl-fp and --rdl-fn say the same")
            confusion = matrices.read_confusion(Path(self.rdl_confusion), source.classes)
            try:  # a worker process could not name the option
                label_costs(matrices.equal_costs(source.classes), confusion)
            except ValueError as error:
                raise UserError(f"{self.rdl_confusion}: {error}") from None
            options["confusion"] = tuple(map(tuple, confusion))
        if self.prior:
            if len(set(self.bits)) > 1:
                raise UserError("--prior: a table is of one number of --bits")
            options["prior"] = tuple(prior_file.read(Path(self.prior), self.bits[0]))
        if self.delay:
            options["window"] = WIDEST
        return options

    def _show(self, report: dict[str, Any]) -> None:
        header = {"policy": "left", **dict.fromkeys(("beta", "cost", "FP", "FN", "offloads", "regret"), "right")}
        rows = [
            [
                row["policy"],
                f"{row['beta']:g}",
                f"{row['cost']:.4f} ± {row['cost_sd']:.4f}",
                f"{row['fp']:.1%}",
                f"{row['fn']:.1%}",
                f"{row['offload']:.1%}",
                "-" if row["regret"] is None else f"{row['regret']:+.4f}",
            ]
            for row in report["rows"]
        ]
        title = f"{report['trace']}: {report['samples']} samples, mean of {self.runs} runs (regret: per sample, against θ*)"
        show([Table(title, header, rows, ("FN", "FP", "regret"))])
        print(f"figures: {report['figure']}, {report['over_time']}, {report['csv']}")


class Score(Reporting):
    model: str = option(..., "a full-int8 .tflite classifier", positional=True)
    dataset: str = option(..., "a data set's name (a wrong one lists all), or an .npz of x and y", positional=True)
    data: str | None = option(None, "folder of the data set as published", unset="looked for")
    event: Annotated[int, Field(ge=0, le=65535)] | None = option(
        None, "output index of class 1", unset="of two outputs the last; more: all are kept"
    )
    columns: list[NotNegative] | None = option(None, "features that the model reads", unset="all")
    scale: Annotated[float, Field(gt=0, le=10**9)] | None = option(
        None, "divide the inputs by this", unset="images 255, else 1"
    )
    out: str | None = file(None, "the trace to write, .npz or .csv", unset="MODEL-DATA.npz")

    def run(self) -> None:
        from ..lab import scoring, traces
        from ..model.exact import open_local

        model, data = Path(self.model), Path(self.data) if self.data else None
        with working("scoring") as bar:
            trace = scoring.score(
                open_local(model),
                model,
                self.dataset,
                folder=data,
                event=self.event,
                columns=self.columns,
                scale=self.scale,
                progress=bar.count,
            )
        out = Path(self.out or f"{model.stem}-{Path(self.dataset).stem}.npz")
        if out.suffix not in (".npz", ".csv"):
            raise UserError(f"--out {out}: want a name that ends in .npz or .csv")
        traces.save(out, trace)
        report = {"trace": str(out), **scoring.summary(trace)}
        self.report(report)
        if not self.quiet:
            rates = ", ".join(f"{name} {report[name]:.1%}" for name in ("accuracy", "fp", "fn") if name in report)
            print(f"{out}: {report['samples']} samples, {report['classes']} classes, {rates}")


class Prior(Reporting):
    trace: str = option(..., TRACE + ". 200 samples are enough", positional=True)
    bits: Bits = option(DEFAULTS["bits"], "score bits", metavar="b")
    out: str = file("prior.json", "the table")

    def run(self) -> None:
        from ..lab import prior, replay

        trace = replay.trace(self.trace)
        if trace.score.ndim > 1:
            raise UserError(f"{self.trace}: {trace.classes} classes; a table is made for two")
        table = prior.table(trace.score, trace.label, self.bits)
        report = prior_file.write(Path(self.out), trace.name, len(trace.label), table)
        self.report(report)
        if not self.quiet:
            samples = f"{len(trace.label):,} labelled samples"
            print(f"{self.out}: how often each of {len(table)} bins holds an event, from {samples}")
            print(f"prior = {report['prior']}   # for an h2t2.toml")


class Recommend(Reporting):
    trace: str = option(..., TRACE, positional=True)
    beta: Share = option(DEFAULTS["beta"], "cost of an offload")
    delta_fp: Share = option(DEFAULTS["delta_fp"], "cost of a false alarm")
    delta_fn: Share = option(DEFAULTS["delta_fn"], "cost of a missed event")
    rdl_fp: Share = option(0.0, "how often the remote model says 1 for 0")
    rdl_fn: Share = option(0.0, "how often the remote model says 0 for 1")
    miss_rate: Share = option(DEFAULTS["miss_rate"], "largest share of events that may be missed; 0: no limit", metavar="M")
    class_costs: str | None = file(
        None,
        "three classes or more: a .csv of what each decision costs, a line for each true class",
        unset="each mistake costs 1",
    )
    horizon: NotNegative = option(0, "samples that the device will see", unset="those of the trace", metavar="N")
    ordered: bool = option(False, "the trace's order is the device's: it decides, in place of shuffled samples")
    bits: list[Bits] = option([3, 4, 5, 6, 8], "score bits to try", metavar="b")
    runs: Count = option(10, "runs of each policy")
    out: str = option("results/recommend", "folder for the picture")
    dask: str | None = option(None, DASK, unset="this machine plays them", metavar="ADDRESS")

    def run(self) -> None:
        from ..lab import recommend, replay
        from ..lab.simulation.cluster import cluster

        rates = {name: getattr(self, name) for name in ("rdl_fp", "rdl_fn", "miss_rate") if getattr(self, name)}
        trace = replay.trace(self.trace)
        with cluster(self.dask), working("trying") as bar:
            scenario = recommend.Scenario(
                trace=trace,
                beta=self.beta,
                delta_fp=self.delta_fp,
                delta_fn=self.delta_fn,
                horizon=self.horizon,
                in_order=self.ordered,
                bits=tuple(self.bits),
                runs=self.runs,
                options=rates,
                class_costs=self._class_costs(trace.classes),
            )
            report = recommend.recommend(scenario, Path(self.out), bar.count)
        self.report(report)
        if self.quiet:
            return
        header = {"": "left", "shuffled": "right", "in order": "right"}
        rows = [[row["what"], f"{row['shuffled']:.4f}", f"{row['in order']:.4f}"] for row in report["rows"]]
        title = f"{report['trace']}: cost per sample, beta {report['beta']:g}, {report['horizon']:,} samples"
        show([Table(title, header, rows)])
        print(f"{report['chosen']}: {report['why']}")
        for warning in report["warnings"]:
            print(f"beware: {warning}")
        print(f"picture: {report['figure']}")
        if report["config"]:
            print(f"\n# for an h2t2.toml\n{recommend.lines(report['config'])}")

    def _class_costs(self, classes: int) -> list[list[float]] | None:
        """Return the cost matrix of three classes or more; None of two."""
        if classes == 2:
            if self.class_costs:
                raise UserError("--class-costs is for more than two classes; of two, --delta-fp and --delta-fn say it")
            return None
        return matrices.costs_of(self.class_costs, classes)


class Experiment(Reporting):
    name: Annotated[str, AfterValidator(OneOf(("all", *EXPERIMENTS)))] = option(
        ..., "the experiment", positional=True, metavar="NAME"
    )
    out: str = option("results/experiments", "folder for the PNG and CSV files")
    quick: bool = option(False, "fewer runs and points: a look in under a minute")
    data: str | None = option(None, "folder with traces to use in place of the shipped ones")
    dask: str | None = option(None, DASK, unset="this machine plays them", metavar="ADDRESS")

    def run(self) -> None:
        from ..lab import experiments
        from ..lab.simulation.cluster import cluster

        names = list(EXPERIMENTS) if self.name == "all" else [self.name]
        rows = []
        with cluster(self.dask), progress() as bar:
            task = bar.add_task("experiments", total=len(names))
            for name in names:
                bar.update(task, description=name)
                report = experiments.perform(name, Path(self.out), self.quick, Path(self.data) if self.data else None)
                rows.append({"name": name, **report})
                bar.advance(task)
        self.report(rows)
        if not self.quiet:
            for row in rows:
                if "rows" in row:
                    columns = {name: "right" if n else "left" for n, name in enumerate(row["rows"][0])}
                    show([Table(row["name"], columns, [list(cells.values()) for cells in row["rows"]])])
                print(f"{row['name']}: {row['seconds']:.1f} s, {', '.join(row['files'])}")


class Results(Reporting):
    csv: str = option("results/experiments", "folder of the CSV and PNG files")
    out: str = file("RESULTS.md", "the page; a section whose CSV files are missing stays as it is there")
    pictures: str | None = option(None, "folder for copies of the pictures, which the page then shows")
    readme: str | None = option(None, "README whose sentences about losses are written, too")

    def run(self) -> None:
        from ..lab import results_page

        folder, out = Path(self.csv), Path(self.out)
        pictures = os.path.relpath(self.pictures, out.parent) if self.pictures else ""
        text = results_page.page(folder, out.read_text() if out.is_file() else "", pictures)
        out.write_text(text)
        if self.pictures:
            Path(self.pictures).mkdir(parents=True, exist_ok=True)
            for _, name in results_page.PICTURE.findall(results_page.TEMPLATE):
                if (folder / name).exists():
                    shutil.copy(folder / name, self.pictures)
        if self.readme:
            readme = Path(self.readme)
            readme.write_text(results_page.quote(readme.read_text(), folder))
        lines = text.count("\n")
        self.report({"page": self.out, "lines": lines})
        if not self.quiet:
            print(f"{self.out}: {lines} lines")
