"""`h2t2 demo`: a broker, an RDL worker and a node on this machine, real samples through them, and what it all cost."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from h2t2.core import defaults

from ..common import pairs, policies
from ..common.corollary import optimal_rates
from ..common.errors import Failure
from ..fleet import broker
from ..fleet.rdl import models
from ..lab.simulation.policies import offline_pair, offline_single
from ..lab.simulation.policies.full_offload import FullOffload
from ..lab.simulation.policies.no_offload import NoOffload
from ..lab.simulation.stream import Costs, Stream, charged, outcome
from ..model.exact import open_local
from .children import child, serving

# a policy's line in tables and pictures, and that of the policy replayed beside it
LINES = {"adaptive": ("adaptive", "h2t2", "Algorithm 1, replayed"), "h2t2": ("H2T2", "adaptive", "adaptive, replayed")}
COLUMNS = ["n", "sample", "bin", "score", "decision", "source", "rdl_label", "true_label", "cost", "ms"]


def demonstrate(
    pair: pairs.Pair, policy: str, numbers: dict[str, Any], samples: int, kind: str, window: int, out: Path
) -> dict[str, Any]:
    """Run the demo with the policy of that name; writes decisions.csv and two pictures into `out`; returns the report.

    numbers: people's policy numbers, as units.policy takes them.
    """
    started = time.perf_counter()
    remote = labels(pair)
    with ExitStack() as stack:
        url = stack.enter_context(broker.running(kind))
        host, port = broker.parse(url)
        if not broker.wait_for_port(host, port, 3):
            raise Failure(f"broker {url} is not reachable; is it running, and is the port right?")
        chosen = ["--pair", str(pair.folder), "--broker", url]
        stack.enter_context(serving(chosen))
        options = _options(pair, policy, numbers, out)
        command = ["node", *chosen, f"--policy={policy}", f"--samples={samples}", f"--in-flight={window}", *options]
        command += ["--device", f"demo-{os.getpid()}", "--out", "-"]
        node = stack.enter_context(child(command, stdout=subprocess.PIPE))
        lines, summary = _follow(node, remote, samples, numbers)
    return _report(pair, policy, numbers, remote, lines, summary, out, time.perf_counter() - started)


def _options(pair: pairs.Pair, policy: str, numbers: dict[str, Any], out: Path) -> list[str]:
    """The node's options that say the policy's numbers; tables go through files in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    accepted = policies.option_names(policy, pair.info.classes > 2)
    options = []
    for name, value in numbers.items():
        if name not in accepted or value is None:
            continue
        if name == "prior":
            (out / "prior.json").write_text(json.dumps({"prior": value}))
            value = out / "prior.json"
        elif name in ("costs", "rdl_confusion"):
            path = out / f"{name}.csv"
            path.write_text("".join(",".join(map(str, row)) + "\n" for row in value))
            value = path
        options.append(f"--{'class-costs' if name == 'costs' else name.replace('_', '-')}={value}")
    return options


def _follow(
    node: subprocess.Popen[str], remote: np.ndarray, samples: int, numbers: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Read the node's decisions as they come, showing progress; (decisions, summary). remote: as labels() gives it."""
    lines: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    cost, offloaded, thresholds = 0.0, 0, ""
    costs = costs_of(numbers)
    console = Console(stderr=True)
    columns = [
        TextColumn("samples"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    ]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=samples)
        assert node.stdout is not None
        for text in node.stdout:
            line = json.loads(text)
            if "n" not in line:
                summary = line.get("summary", summary)
                continue
            line["cost"] = price(line, int(remote[line["sample"]]), costs)
            lines.append(line)
            cost += line["cost"]
            offloaded += line["source"] != "local"
            if line.get("thresholds"):
                thresholds = "thresholds {} and {} of {}".format(*line["thresholds"], 2 ** numbers["bits"])
            n = len(lines)
            progress.update(task, advance=1, description=f"offload {offloaded / n:.0%}  cost {cost / n:.4f}  {thresholds}")
    if node.wait() or not summary:
        raise Failure(f"the node ended after {len(lines)} of {samples} samples (exit status {node.returncode})")
    return lines, summary


def labels(pair: pairs.Pair) -> np.ndarray:
    """The RDL's label of every test sample, (n,): what costs are measured against."""
    return models.labels(models.answers(pair))


def costs_of(numbers: dict[str, Any]) -> Costs:
    """What offloads and mistakes cost, of two classes or of many."""
    if numbers.get("costs"):
        return Costs.of(numbers["beta"], numbers["costs"])
    return Costs.binary(numbers["beta"], numbers["delta_fp"], numbers["delta_fn"])


def price(line: dict[str, Any], remote: int, costs: Costs) -> float:
    """What a decision cost: beta if it was offloaded (answered or not), and that of a wrong local or fallback class."""
    cost = costs.beta if line["source"] != "local" else 0.0
    return cost if line["source"] == "remote" else cost + costs.matrix[remote][line["decision"]]


def replayed(policy: str, numbers: dict[str, Any], stream: Stream) -> np.ndarray:
    """(T,) what that policy does on the same samples, each label at once, -1 for an offload. H2T2: as the paper has it."""
    epsilon = optimal_rates(numbers["bits"], len(stream), max(1e-3, numbers["beta"]))[0]
    learner = policies.make(policy, {**numbers, **policies.PAPER, "epsilon": epsilon})
    actions = np.zeros(len(stream), np.int64)
    for n, (k, label) in enumerate(zip(stream.bins(numbers["bits"]).tolist(), stream.label.tolist())):
        actions[n] = learner.decide(k)
        if actions[n] < 0:
            learner.learn(learner.ticket, label)
    return actions


def replayed_classes(numbers: dict[str, Any], stream: Stream, costs: Costs) -> dict[str, np.ndarray]:
    """(T,) actions of the lab's policies for many classes on the same samples, by name, each label at once; -1: an offload."""
    from ..lab.simulation.policies.calibrated import Calibrated
    from ..lab.simulation.policies.pairwise import Pairwise

    return {
        "pairwise H2T2, replayed": np.maximum(Pairwise(numbers["bits"]).act(stream, costs, defaults.SEED), -1),
        "calibrated rule": Calibrated().act(stream, costs, 0),
    }


def _report(
    pair: pairs.Pair,
    policy: str,
    numbers: dict[str, Any],
    remote_all: np.ndarray,
    lines: list[dict[str, Any]],
    summary: dict[str, Any],
    out: Path,
    seconds: float,
) -> dict[str, Any]:
    lines.sort(key=lambda line: line["n"])
    index = np.array([line["sample"] for line in lines])
    remote, truth = remote_all[index], pair.y[index]
    many_classes = pair.info.classes > 2
    ldl = open_local(pair.ldl, pair.info.event_output("ldl"))
    outputs = np.array([ldl.scores(ldl.quantise(pair.model_input(x, "ldl"))) for x in pair.x])[index]
    scores = outputs.max(1) if many_classes else outputs[:, ldl.event]
    stream = Stream(outputs if many_classes else scores, remote, np.full(len(lines), numbers["beta"]))
    costs = costs_of(numbers)
    mine = np.array([-1 if line["source"] == "remote" else line["decision"] for line in lines])
    label, other_policy, beside = LINES[policy]
    compared = {label: mine} if many_classes else {label: mine, beside: replayed(other_policy, numbers, stream)}
    compared |= {
        "no offload": NoOffload().act(stream, costs, 0),
        "full offload": FullOffload().act(stream, costs, 0),
        "best single threshold (offline)": offline_single.OfflineSingle().act(stream, costs, 0),
    }
    best = None if many_classes else offline_pair.thresholds(stream, costs, numbers["bits"])
    if many_classes:
        compared.update(replayed_classes(numbers, stream, costs))
    else:
        compared["best pair (offline)"] = offline_pair.OfflinePair(numbers["bits"]).act(stream, costs, 0)
    rows = {}
    per_sample = {}
    for name, actions in compared.items():
        per_sample[name], final, _ = charged(actions, stream, costs)
        rows[name] = {**vars(outcome(actions, stream, costs)), "true_error": float(np.mean(final != truth))}
    del per_sample[label]
    own = np.array([line["cost"] for line in lines])  # also counts offloads that fell back
    rows[label].update(cost=float(own.mean()), offload=float(np.mean([line["source"] != "local" for line in lines])))
    out.mkdir(parents=True, exist_ok=True)
    _write_csv(out / "decisions.csv", lines, scores, remote, truth)
    from ..common import plots

    plots.running_cost(out / "running_cost.png", label, own, per_sample, f"{pair.info.name}: beta = {numbers['beta']:g}")
    if best is None:
        title = f"{pair.info.name}: what is said where, and what it costs, after {len(lines)} samples"
        plots.class_cells(out / "cells.png", summary["cells"], costs.beta, title)
    elif "a" in summary:
        title = f"{pair.info.name}: expert weights after {len(lines)} samples"
        plots.expert_weights(out / "weights.png", np.array(summary["a"]), np.array(summary["b"]), best, title)
    else:
        title = f"{pair.info.name}: what each score bin holds, after {len(lines)} samples"
        plots.intervals(out / "intervals.png", np.array(summary["intervals"]), summary["region"], summary["switch"], title)
    wrong = sum(line["source"] == "remote" and line["decision"] != r for line, r in zip(lines, remote))
    return {
        "pair": pair.info.name,
        "policy": label,
        "classes": pair.info.classes,
        "samples": len(lines),
        "decided_once": len({line["n"] for line in lines}) == len(lines),
        "offloads": summary["offloads"],
        "answered": summary["replies"],
        "fallbacks": summary["fallbacks"],
        "replies_unlike_the_rdl": int(wrong),
        "numbers": numbers,
        "thresholds": summary["thresholds"],
        "best_pair": None if best is None else list(best),
        "best_single": offline_single.threshold(stream, costs),
        "policies": rows,
        "seconds": seconds,
        "out": str(out),
    }


def _write_csv(path: Path, lines: list[dict[str, Any]], scores: np.ndarray, remote: np.ndarray, truth: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for line, score, label, true in zip(lines, scores, remote, truth):
            row = {**line, "score": f"{score:.6f}", "rdl_label": label, "true_label": true, "cost": f"{line['cost']:g}"}
            writer.writerow([row[name] for name in COLUMNS])


def show(report: dict[str, Any]) -> None:
    """The report as a table for people."""
    console = Console()
    numbers = report["numbers"]
    many_classes = report["classes"] > 2
    costs = (
        f"{report['classes']} classes" if many_classes else f"delta_1 {numbers['delta_fp']:g}, delta_-1 {numbers['delta_fn']:g}"
    )
    table = Table(title=f"{report['pair']}: {report['samples']} samples, beta {numbers['beta']:g}, {costs}")
    shares_of = {
        "fp": "wrong" if many_classes else "FP",
        "fn": "FN",
        "offload": "offloaded",
        "true_error": "wrong (true labels)",
    }
    if many_classes:
        del shares_of["fn"]
    for name in ("policy", "average cost", *shares_of.values()):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for name, row in report["policies"].items():
        shares = [f"{row[key]:.1%}" for key in shares_of]
        table.add_row(name, f"{row['cost']:.4f}", *shares, style="bold" if name == report["policy"] else "")
    console.print(table)
    which = "Cost and wrong" if many_classes else "Cost, FP and FN"
    console.print(f"{which} are against the RDL's answer, as in the paper; the last column against the true labels.")
    console.print(
        f"Every sample decided once: {'yes' if report['decided_once'] else 'NO'}. Offloads: {report['offloads']}, "
        f"answered: {report['answered']}, fell back: {report['fallbacks']}. {report['seconds']:.1f} s."
    )
    console.print(f"Pictures and decisions.csv: {report['out']}/")
