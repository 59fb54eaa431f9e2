"""The commands that need no device: replay, score, prior, recommend, experiment, results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.units import told

from ..common import matrices, prior_file
from ..common.errors import UserError
from ..common.policies import DEFAULTS
from ..common.report import Table
from ..lab.experiments.names import NAMES as EXPERIMENTS
from ..lab.simulation.names import NAMES as POLICIES
from .options import (
    command,
    json_option,
    positive,
    progress,
    share,
    show,
    write_json,
)


def _betas(text: str) -> list[float]:
    """A number, or first:last:step with both ends."""
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number, or first:last:step") from None
    if len(parts) == 3 and parts[2] > 0 and parts[0] <= parts[1]:
        count = int(np.floor((parts[1] - parts[0]) / parts[2] + 1e-9)) + 1
        parts = [round(parts[0] + n * parts[2], 9) for n in range(count)]
    elif len(parts) != 1:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number, or first:last:step with first <= last and step > 0")
    if not all(0 <= beta <= 1 for beta in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: a cost is between 0 and 1")
    return parts


def _replay(args: argparse.Namespace) -> None:
    from ..lab import replay
    from ..lab.simulation.stream import WIDEST, Making

    out = Path(args.out)
    source = replay.trace(args.trace)
    options = {"rdl_fp": args.rdl_fp, "rdl_fn": args.rdl_fn, "eta": args.eta, "miss_rate": args.miss_rate}
    if args.rdl_confusion:
        if source.classes == 2:
            raise UserError("--rdl-confusion is for more than two classes; of two, --rdl-fp and --rdl-fn say the same")
        confusion = matrices.read_confusion(Path(args.rdl_confusion), source.classes)
        try:  # here: a process that plays a run could not say whose mistake it is
            told([[int(i != j) for j in range(source.classes)] for i in range(source.classes)], confusion)
        except ValueError as error:
            raise UserError(f"{args.rdl_confusion}: {error}") from None
        options["confusion"] = tuple(map(tuple, confusion))
    if args.prior:
        if len(set(args.bits)) > 1:
            raise UserError("--prior: a table is of one number of --bits")
        options["prior"] = tuple(prior_file.read(Path(args.prior), args.bits[0]))
    if args.delay < 0 or not 0 <= args.lost <= 1:
        raise UserError("--delay is 0 or more, --lost a share of 0 to 1")
    if args.delay:
        options["window"] = WIDEST
    with progress() as bar:
        task = bar.add_task("replaying")
        plan = replay.Plan(
            [beta for part in args.beta for beta in part], args.delta_fp, args.delta_fn, tuple(args.bits), tuple(args.policy),
            args.half_life, args.runs, args.samples, args.seed, Making(args.ordered, args.delay, args.lost), options,
        )  # fmt: skip
        report = replay.replay(source, plan, out, lambda done, total: bar.update(task, completed=done, total=total))
    write_json(args.json, report)
    if args.json != "-":
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
        title = f"{report['trace']}: {report['samples']} samples, mean of {args.runs} runs (regret: a sample, against θ*)"
        show([Table(title, header, rows)])
        print(f"figures: {report['figure']}, {report['over_time']}, {report['csv']}")


def _add_replay(commands: Any) -> None:
    p = command(
        commands,
        "replay",
        _replay,
        "What every policy would have cost on a score trace: cost, errors, offloads and regret for each cost of an offload.",
        "h2t2 replay phishing",
        "h2t2 replay my.csv --ordered --beta 0.2 --policy adaptive h2t2   # as it came, with a picture over time",
        "h2t2 replay my.csv --bits 3 4 6 --policy adaptive",
        "h2t2 replay my.csv --beta 0.05:0.6:0.05 --delta-fp .7 --delta-fn 1 --bits 4 --policy all --runs 25 --json r.json",
    )
    p.add_argument("trace", help="a .csv or .npz of score (or score0, score1, ..), label[, beta]; or a shipped trace's name")
    p.add_argument("--beta", type=_betas, nargs="+", default=[_betas("0.05:0.6:0.05")], help="first:last:step (0.05:0.6:0.05)")
    p.add_argument("--ordered", action="store_true", help="the samples as they came, in place of drawing them at random")
    p.add_argument("--delay", type=int, default=0, metavar="N", help="labels come 0 to N rounds late (0)")
    p.add_argument("--lost", type=float, default=0.0, metavar="S", help="a share of the labels never comes (0)")
    p.add_argument("--rdl-fp", type=float, default=0.0, help="what policies know of a remote model that says 1 for 0 (0)")
    p.add_argument("--rdl-fn", type=float, default=0.0, help="or 0 for 1 (0)")
    p.add_argument(
        "--rdl-confusion", metavar="FILE",
        help="of more classes than two: a .csv, a line a class, of how often it says each (counts or shares)",
    )  # fmt: skip
    p.add_argument(
        "--miss-rate",
        type=float,
        default=DEFAULTS["miss_rate"],
        metavar="M",
        help="`adaptive`: most of the events missed (any)",
    )
    p.add_argument("--prior", metavar="FILE", help="the table that `adaptive` starts from, of `h2t2 prior`")
    p.add_argument("--eta", type=float, default=DEFAULTS["eta"], help="learning rate of `h2t2` and the like (%(default)s)")
    p.add_argument("--delta-fp", type=float, default=DEFAULTS["delta_fp"], help="cost of a false alarm, 0..1 (%(default)s)")
    p.add_argument("--delta-fn", type=float, default=DEFAULTS["delta_fn"], help="cost of a missed event, 0..1 (%(default)s)")
    p.add_argument(
        "--bits", type=int, nargs="+", choices=range(1, 13), default=[DEFAULTS["bits"]], metavar="b",
        help=f"score bits, 1..12; several: each policy with each ({DEFAULTS['bits']})",
    )  # fmt: skip
    p.add_argument("--policy", nargs="+", choices=["all", *POLICIES], default=["all"], metavar="P", help=" ".join(POLICIES))
    p.add_argument("--half-life", type=int, default=0, help="of the learners that forget, in rounds (0: never)")
    p.add_argument("--runs", type=positive, default=25, help="(25)")
    p.add_argument("--samples", type=positive, default=10000, help="a run, drawn uniformly from the trace (10000)")
    p.add_argument("--seed", type=int, default=0, help="of the first run (0)")
    p.add_argument("--out", default="results/replay", help="folder for the picture and the CSV (results/replay)")
    json_option(p)


def _score(args: argparse.Namespace) -> None:
    from ..lab import scoring, traces
    from ..model.exact import open_local

    with progress() as bar:
        task = bar.add_task("scoring")
        made = scoring.score(
            open_local(Path(args.model)),
            Path(args.model),
            args.dataset,
            args.data and Path(args.data),
            args.event,
            args.columns,
            args.scale,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    out = Path(args.out or f"{Path(args.model).stem}-{Path(args.dataset).stem}.npz")
    if out.suffix not in (".npz", ".csv"):
        raise UserError(f"--out {out}: want a name that ends in .npz or .csv")
    traces.save(out, made)
    report = {"trace": str(out), **scoring.summary(made)}
    write_json(args.json, report)
    if args.json != "-":
        rates = ", ".join(f"{name} {report[name]:.1%}" for name in ("accuracy", "fp", "fn") if name in report)
        print(f"{out}: {report['samples']} samples, {report['classes']} classes, {rates}")


def _add_score(commands: Any) -> None:
    p = command(
        commands,
        "score",
        _score,
        "Make a trace: an int8 .tflite's scores of a data set's test part, and the labels.",
        "h2t2 score models/phishing/ldl.tflite phishing --data ~/data --out phishing.csv",
        "h2t2 score my.tflite my_test.npz --scale 255   # an .npz of x and y",
    )
    p.add_argument("model", help="a full-int8 .tflite classifier")
    p.add_argument("dataset", help="a data set's name (h2t2 score x list says which), or an .npz of x and y")
    p.add_argument("--data", help="folder of the data set as published (looked for when not given)")
    p.add_argument("--event", type=int, help="output index of class 1 (of two outputs the last; more: all are kept)")
    p.add_argument("--columns", type=int, nargs="+", help="features the model reads (all)")
    p.add_argument("--scale", type=float, help="divide the inputs by this (images 255, else 1)")
    p.add_argument("--out", help="the trace to write, .npz or .csv (MODEL-DATA.npz)")
    json_option(p)


def _prior(args: argparse.Namespace) -> None:
    from ..lab import prior, replay

    trace = replay.trace(args.trace)
    if trace.score.ndim > 1:
        raise UserError(f"{args.trace}: {trace.classes} classes; a table is made for two")
    table = prior.table(trace.score, trace.label, args.bits)
    report = prior_file.write(Path(args.out), trace.name, len(trace.label), table)
    write_json(args.json, report)
    if args.json != "-":
        print(f"{args.out}: how often each of {len(table)} bins holds an event, from {len(trace.label):,} labelled samples")
        print(f"prior = {report['prior']}   # for a board's or a node's config.toml")


def _add_prior(commands: Any) -> None:
    p = command(
        commands,
        "prior",
        _prior,
        "Write the table that the adaptive policy starts from: how often each score bin holds an event, from labelled samples.",
        "h2t2 prior validation.csv --out prior.json && h2t2 node --prior prior.json",
        "h2t2 score ldl.tflite validation.npz --out trace.npz && h2t2 prior trace.npz",
    )
    p.add_argument("trace", help="a .csv or .npz of score and label; or a shipped trace's name. 200 samples do")
    p.add_argument(
        "--bits", type=int, choices=range(1, 9), default=DEFAULTS["bits"], metavar="b", help="score bits, 1..8 (%(default)s)"
    )
    p.add_argument("--out", default="prior.json", help="the table (prior.json)")
    json_option(p)


def _recommend(args: argparse.Namespace) -> None:
    from ..lab import recommend, replay

    with progress() as bar:
        task = bar.add_task("trying")
        report = recommend.recommend(
            replay.trace(args.trace), args.beta, (args.delta_fp, args.delta_fn), args.horizon, args.ordered, tuple(args.bits),
            args.runs, Path(args.out), lambda done, total: bar.update(task, completed=done, total=total),
            {name: getattr(args, name) for name in ("rdl_fp", "rdl_fn", "miss_rate") if getattr(args, name)},
        )  # fmt: skip
    write_json(args.json, report)
    if args.json != "-":
        header = {"": "left", "shuffled": "right", "in order": "right"}
        rows = [[row["what"], f"{row['shuffled']:.4f}", f"{row['in order']:.4f}"] for row in report["rows"]]
        show([Table(f"{report['trace']}: cost a sample, beta {report['beta']:g}, {report['horizon']:,} samples", header, rows)])
        print(f"{report['chosen']}: {report['why']}")
        for warning in report["warnings"]:
            print(f"beware: {warning}")
        print(f"picture: {report['figure']}\n\n# for a board's or a node's config.toml\n{recommend.lines(report['config'])}")


def _add_recommend(commands: Any) -> None:
    p = command(
        commands,
        "recommend",
        _recommend,
        "What to choose for a trace: policy, bits, a table or none; and what that costs beside asking always or never.",
        "h2t2 recommend phishing --beta 0.2",
        "h2t2 recommend my.csv --ordered --beta 0.3 --delta-fp .5 --horizon 5000 --json choice.json",
    )
    p.add_argument("trace", help="a .csv or .npz of score and label; or a shipped trace's name")
    p.add_argument("--beta", type=share, default=DEFAULTS["beta"], help="cost of an offload, 0..1 (%(default)s)")
    p.add_argument("--delta-fp", type=share, default=DEFAULTS["delta_fp"], help="cost of a false alarm, 0..1 (%(default)s)")
    p.add_argument("--delta-fn", type=share, default=DEFAULTS["delta_fn"], help="cost of a missed event, 0..1 (%(default)s)")
    p.add_argument("--rdl-fp", type=share, default=0.0, help="how often the remote model says 1 for 0 (0)")
    p.add_argument("--rdl-fn", type=share, default=0.0, help="how often it says 0 for 1 (0)")
    p.add_argument(
        "--miss-rate", type=share, default=DEFAULTS["miss_rate"], metavar="M", help="most of the events missed, 0..1 (any)"
    )
    p.add_argument("--horizon", type=positive, default=0, metavar="N", help="samples the device will see (those of the trace)")
    p.add_argument("--ordered", action="store_true", help="the trace's order is the device's: it decides (shuffled samples do)")
    p.add_argument(
        "--bits", type=int, nargs="+", choices=range(1, 9), default=[3, 4, 5, 6, 8], metavar="b",
        help="score bits to try, 1..8 (3 4 5 6 8)",
    )  # fmt: skip
    p.add_argument("--runs", type=positive, default=10, help="(10)")
    p.add_argument("--out", default="results/recommend", help="folder for the picture (results/recommend)")
    json_option(p)


def _experiment(args: argparse.Namespace) -> None:
    from ..lab import experiments

    names = list(experiments.ALL) if args.name == "all" else [args.name]
    out = Path(args.out)
    with progress() as bar:
        task = bar.add_task("experiments", total=len(names))
        rows = []
        for name in names:
            bar.update(task, description=name)
            rows.append({"name": name, **experiments.perform(name, out, args.quick, args.data and Path(args.data))})
            bar.advance(task)
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(f"{row['name']}: {row['seconds']:.1f} s, {', '.join(row['files'])}")


def _add_experiment(commands: Any) -> None:
    p = command(
        commands,
        "experiment",
        _experiment,
        "The paper's figures and those beyond it: a picture and a CSV each.",
        "h2t2 experiment all --quick --out results/experiments",
        "h2t2 experiment cost",
    )
    p.add_argument("name", choices=["all", *EXPERIMENTS], help=", ".join(["all", *EXPERIMENTS]), metavar="NAME")
    p.add_argument("--out", default="results/experiments", help="folder for the PNG and CSV files (results/experiments)")
    p.add_argument("--quick", action="store_true", help="fewer runs and points: a look in under a minute")
    p.add_argument("--data", help="folder with traces to use in place of the shipped ones")
    json_option(p)


def _results(args: argparse.Namespace) -> None:
    from ..lab import results_page as results

    text = results.page(Path(args.csv))
    Path(args.out).write_text(text)
    write_json(args.json, {"page": args.out, "lines": text.count("\n")})
    if args.json != "-":
        print(f"{args.out}: {text.count(chr(10))} lines")


def _add_results(commands: Any) -> None:
    p = command(
        commands,
        "results",
        _results,
        "Write the results page from the CSVs of `h2t2 experiment all`.",
        "h2t2 results --csv results/experiments --out models/RESULTS.md",
    )
    p.add_argument("--csv", default="results/experiments", help="folder of the CSV files (results/experiments)")
    p.add_argument("--out", default="RESULTS.md", help="the page (RESULTS.md)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_replay, _add_score, _add_prior, _add_recommend, _add_experiment, _add_results):
        declare(commands)
