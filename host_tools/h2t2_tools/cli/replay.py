"""The commands about traces and policies: replay, score, prior, recommend."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ..common import matrices, prior_file
from ..common.errors import UserError, as_user_error
from ..common.fields import Bits, Count, NotNegative, Share, file, option
from ..common.policies import DEFAULTS
from ..common.report import Table
from ..replay.replay_options import ReplayOptions
from .options import Reporting, Tabular
from .output import show, working

TRACE = "a .csv, .parquet or .npz of score and label; or a shipped trace's name"
DASK = "address of a Dask scheduler, whose workers then play the runs; they need this version of h2t2"


class Traced(Tabular):
    """A command that reads a trace."""

    event: str | None = option(
        None, "the class whose miss costs most, where labels are words", unset="asked for; of 0 and 1 it is 1", metavar="CLASS"
    )


def say_event(report: dict[str, Any], delta_fp: float, delta_fn: float) -> None:
    """Print which class of a report is the event, where one is."""
    from ..common import event

    if report["event"]:
        print(event.in_words(report["event"], delta_fp, delta_fn))


def limit_of(miss_rate: float, normal: str | None, trace: Any) -> dict[str, Any]:
    """The limit for misses as options of a policy. UserError where it does not fit the classes of a trace."""
    from ..common import labels, policies

    limit: dict[str, Any] = {"miss_rate": miss_rate} if miss_rate else {}
    if normal is not None:
        limit["normal"] = labels.class_of("--normal", normal, trace.names)
    with as_user_error():
        policies.make("adaptive", {**limit, "costs": matrices.equal_costs(trace.classes) if trace.classes > 2 else None})
    return limit


class Replay(ReplayOptions, Traced, Reporting):
    """It reports cost, errors, offloads and regret for each cost of an offload."""

    examples = (
        "h2t2 replay phishing",
        "h2t2 replay my.csv --ordered --beta 0.2 --policy adaptive h2t2   # as it came, with a picture over time",
        "h2t2 replay my.csv --bits 3 4 6 --policy adaptive",
        "h2t2 replay my.csv --beta 0.05:0.6:0.05 --delta-fp .7 --delta-fn 1 --bits 4 --policy all --runs 25 --json r.json",
    )
    out: str = option("results/replay", "folder for the picture and the CSV")
    dask: str | None = option(None, DASK, unset="this machine plays them", metavar="ADDRESS")

    def run(self) -> None:
        from ..replay import replay
        from ..replay.simulation.cluster import cluster

        source = replay.trace(self.trace, self.selection, self.event)
        with cluster(self.dask), working("replaying") as bar:
            report = replay.replay(source, self, self._policy_options(source), Path(self.out), bar.count)
        if self.report(report):
            self._show(report)

    def _policy_options(self, source: Any) -> dict[str, Any]:
        """The options for every policy that has them. UserError if a table does not fit the trace."""
        from ..common import policies
        from ..replay.simulation.stream import WIDEST

        options: dict[str, Any] = {name: getattr(self, name) for name in ("rdl_fp", "rdl_fn", "eta")}
        options |= limit_of(self.miss_rate, self.normal, source)
        if self.rdl_confusion:
            if source.classes == 2:
                raise UserError("--rdl-confusion is for more than two classes; of two, --rdl-fp and --rdl-fn say the same")
            confusion = matrices.read_confusion(Path(self.rdl_confusion), source.classes)
            with as_user_error(self.rdl_confusion):  # a worker process could not name the option
                policies.make("adaptive", {"costs": matrices.equal_costs(source.classes), "rdl_confusion": confusion})
            options["confusion"] = tuple(map(tuple, confusion))
        if self.prior:
            if len(set(self.bits)) > 1:
                raise UserError("--prior: a table is of one number of --bits")
            options["prior"] = tuple(prior_file.read(Path(self.prior), self.bits[0]))
        if self.delay:
            options["window"] = WIDEST
        return options

    def _show(self, report: dict[str, Any]) -> None:
        header = {"policy": "left", **dict.fromkeys(("beta", "cost", "false alarms", "misses", "offloads", "regret"), "right")}
        rows = []
        for row in report["rows"]:
            cost = f"{row['cost']:.4f} ± {row['cost_sd']:.4f}"
            shares = [f"{row[name]:.1%}" for name in ("fp", "fn", "offload")]
            regret = "-" if row["regret"] is None else f"{row['regret']:+.4f}"
            rows.append([row["policy"], f"{row['beta']:g}", cost, *shares, regret])
        title = f"{report['trace']}: {report['samples']} samples, mean of {self.runs} runs (regret: per sample, against θ*)"
        say_event(report, self.delta_fp, self.delta_fn)
        show([Table(title, header, rows, ("misses", "false alarms", "regret"))])
        print(f"figures: {report['figure']}, {report['over_time']}, {report['csv']}")


class Score(Tabular, Reporting):
    """It scores the test part of a data set."""

    examples = ("h2t2 score my.tflite my_test.npz --scale 255   # an .npz of x and y",)
    model: str = option(..., "a full-int8 .tflite classifier, or a pair's folder", positional=True)
    dataset: str = option(..., "a .csv with a header, a .parquet, or an .npz of x and y", positional=True, metavar="DATA")
    event: str | None = option(
        None,
        "the class whose miss costs most, by name or by the number of its output",
        unset="of 0 and 1 it is 1, of a pair the pair's; of three outputs or more none: all are kept",
        metavar="CLASS",
    )
    columns: list[str] | None = option(
        None,
        "columns that the model reads, by name or from 0",
        unset="all, of a pair's model those in pair.json",
        metavar="COLUMN",
    )
    scale: Annotated[float, Field(gt=0, le=10**9)] | None = option(
        None, "divide the inputs by this", unset="images 255, else 1"
    )
    out: str | None = file(None, "the trace to write, .npz or .csv", unset="MODEL-DATA.npz")

    def run(self) -> None:
        from ..common import pairs
        from ..model.exact import open_local
        from ..replay import scoring, traces

        model, pair = pairs.local_model(Path(self.model))
        if self.columns is not None:
            pair = None
        with working("scoring") as bar:
            trace = scoring.score(
                open_local(model), model, self.dataset, event=self.event, columns=self.columns, scale=self.scale, pair=pair,
                selection=self.selection, progress=bar.count,
            )  # fmt: skip
        out = Path(self.out or f"{model.stem}-{Path(self.dataset).stem}.npz")
        if out.suffix not in (".npz", ".csv"):
            raise UserError(f"--out {out}: want a name that ends in .npz or .csv")
        traces.save(out, trace)
        binary = {"event": trace.event if trace.classes == 2 else None}
        report = {"trace": str(out), **binary, **scoring.summary(trace)}
        if self.report(report):
            say_event(report, DEFAULTS["delta_fp"], DEFAULTS["delta_fn"])
            rates = ", ".join(f"{name} {report[name]:.1%}" for name in ("accuracy", "fp", "fn") if name in report)
            print(f"{out}: {report['samples']} samples, {report['classes']} classes, {rates}")


class Prior(Traced, Reporting):
    """It says how often each score bin holds an event, from labelled samples."""

    examples = (
        "h2t2 prior validation.csv --out prior.json && h2t2 node --prior prior.json",
        "h2t2 score ldl.tflite validation.npz --out trace.npz && h2t2 prior trace.npz",
    )
    trace: str = option(..., TRACE + ". 200 samples are enough", positional=True)
    bits: Bits = option(DEFAULTS["bits"], "score bits", metavar="b")
    out: str = file("prior.json", "the table")

    def run(self) -> None:
        from ..replay import prior, replay

        trace = replay.trace(self.trace, self.selection, self.event)
        if trace.score.ndim > 1:
            raise UserError(f"{self.trace}: {trace.classes} classes; a table is made for two")
        table = prior.table(trace.score, trace.label, self.bits)
        report = prior_file.write(Path(self.out), trace.name, len(trace.label), table)
        if self.report(report):
            print(f"{self.out}: how often each of {len(table)} bins holds an event, from {len(trace.label):,} labelled samples")
            print(f"prior = {report['prior']}   # for an h2t2.toml")


class Recommend(Traced, Reporting):
    """It shows the cost beside always asking and never asking."""

    examples = (
        "h2t2 recommend phishing --beta 0.2",
        "h2t2 recommend my.csv --ordered --beta 0.3 --delta-fp .5 --horizon 5000 --json choice.json",
    )
    trace: str = option(..., TRACE, positional=True)
    beta: Share = option(DEFAULTS["beta"], "cost of an offload")
    delta_fp: Share = option(DEFAULTS["delta_fp"], "cost of a false alarm")
    delta_fn: Share = option(DEFAULTS["delta_fn"], "cost of a missed event")
    rdl_fp: Share = option(0.0, "how often the remote model says 1 for 0")
    rdl_fn: Share = option(0.0, "how often the remote model says 0 for 1")
    miss_rate: Share = option(DEFAULTS["miss_rate"], "largest share of events that may be missed; 0: no limit", metavar="M")
    normal: str | None = option(
        None, "miss_rate of three classes or more: the class that is no event, by its name or number", metavar="CLASS"
    )
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
        from ..replay import recommend, replay
        from ..replay.simulation.cluster import cluster

        trace = replay.trace(self.trace, self.selection, self.event)
        rates = {name: getattr(self, name) for name in ("rdl_fp", "rdl_fn") if getattr(self, name)}
        rates |= limit_of(self.miss_rate, self.normal, trace)
        if trace.classes == 2 and self.class_costs:
            raise UserError("--class-costs is for more than two classes; of two, --delta-fp and --delta-fn say it")
        with cluster(self.dask), working("trying") as bar:
            scenario = recommend.Scenario(
                trace=trace, beta=self.beta, delta_fp=self.delta_fp, delta_fn=self.delta_fn, horizon=self.horizon,
                in_order=self.ordered, bits=tuple(self.bits), runs=self.runs, options=rates,
                class_costs=matrices.costs_of(self.class_costs, trace.classes) if trace.classes > 2 else None,
            )  # fmt: skip
            report = recommend.recommend(scenario, Path(self.out), bar.count)
        if not self.report(report):
            return
        header = {"": "left", "shuffled": "right", "in order": "right"}
        rows = [[row["what"], f"{row['shuffled']:.4f}", f"{row['in order']:.4f}"] for row in report["rows"]]
        title = f"{report['trace']}: cost per sample, beta {report['beta']:g}, {report['horizon']:,} samples"
        say_event(report, self.delta_fp, self.delta_fn)
        show([Table(title, header, rows)])
        print(f"{report['chosen']}: {report['why']}")
        for warning in report["warnings"]:
            print(f"beware: {warning}")
        print(f"picture: {report['figure']}")
        if report["config"]:
            print(f"\n# for an h2t2.toml\n{recommend.lines(report['config'])}")
