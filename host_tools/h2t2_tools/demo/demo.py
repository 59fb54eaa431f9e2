"""`h2t2 demo`: a broker, an RDL worker and a node on this machine decide real samples. The report shows the costs."""

import csv
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..common import event, pairs, policies
from ..common.corollary import optimal_rates
from ..common.errors import Failure
from ..common.report import Report, Table
from ..fleet import broker
from ..fleet.children import child, serving
from ..fleet.rdl import models
from ..model.exact import open_local
from ..replay.simulation.policies import baselines
from ..replay.simulation.policies.baselines import FullOffload, NoOffload
from ..replay.simulation.stream import Costs, Stream, charged
from . import head_stream

Progress = Callable[[int, str], None]

# policy -> its name in tables and pictures, the policy that is replayed on its samples, and the name of that policy
LINES = {"adaptive": ("adaptive", "h2t2", "Algorithm 1, replayed"), "h2t2": ("H2T2", "adaptive", "adaptive, replayed")}
PICTURES = {  # file -> what it shows
    "running_cost.png": "the average cost of a sample so far",
    "intervals.png": "the share of events at each score, as the answers tell; in the band asking is cheapest",
    "weights.png": "the probability of each choice of thresholds; the ring marks the best in hindsight",
    "cells.png": "the cheapest answer where the local model says a class and how surely; black: asking is cheaper",
}
COLUMNS = ["n", "sample", "bin", "score", "decision", "source", "rdl_label", "true_label", "cost", "ms"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A node's decisions on test samples, in order, and the data that evaluate them.

    Attributes:
        pair: The pair of models.
        policy: Name of the policy.
        numbers: Options of the policy, as units.policy takes them.
        lines: Output of the node, a row for each decision.
        summary: The node's last line.
        truth: (T,) true labels.
        stream: The samples for the simulator, with the labels of the RDL.
        costs: Costs of offloads and errors.
    """

    pair: pairs.Pair
    policy: str
    numbers: dict[str, Any]
    lines: list[dict[str, Any]]
    summary: dict[str, Any]
    truth: np.ndarray
    stream: Stream
    costs: Costs

    @property
    def many_classes(self) -> bool:
        return self.pair.info.classes > 2


def demonstrate(
    pair: pairs.Pair,
    policy: str,
    numbers: dict[str, Any],
    *,
    samples: int,
    broker_kind: str,
    in_flight: int,
    out: Path,
    progress: Progress = lambda completed, text: None,
) -> dict[str, Any]:
    """Run the demo; write decisions.csv and two pictures into a folder.

    Args:
        pair: The pair; the node decides its test samples.
        policy: Name of the policy.
        numbers: Options of the policy, as units.policy takes them.
        samples: Number of samples.
        broker_kind: amqtt, mosquitto, or the URL of a running broker.
        in_flight: Most offloads that wait for their labels.
        out: The folder.
        progress: Called with the number of decided samples and the text of their cost so far.

    Returns:
        The report that docs/json.md describes.
    """
    started = time.perf_counter()
    remote = labels(pair)
    with ExitStack() as stack:
        url = stack.enter_context(broker.running(broker_kind))
        host, port = broker.parse(url)
        if not broker.wait_for_broker(host, port, 3):
            raise Failure(f"broker {url} is not reachable; is it running, and is the port right?")
        address = ["--pair", str(pair.folder), "--broker", url]
        threading.Thread(target=_import_plots).start()  # on a fresh machine it takes two seconds, as long as the worker's start
        stack.enter_context(serving(address))
        options = _options(pair, policy, numbers, out)
        command = ["node", *address, f"--policy={policy}", f"--samples={samples}", f"--in-flight={in_flight}", *options]
        command += ["--device", f"demo-{os.getpid()}", "--out", "-"]
        node = stack.enter_context(child(command, stdout=subprocess.PIPE))
        lines, summary = _follow(node, remote, samples, numbers, progress)
    run = _judged(pair, policy, numbers, sorted(lines, key=lambda line: int(line["n"])), summary, remote)
    return {**_report(run, out), "seconds": time.perf_counter() - started, "out": str(out)}


def _import_plots() -> None:
    from ..common import plots  # noqa: F401


def _options(pair: pairs.Pair, policy: str, numbers: dict[str, Any], out: Path) -> list[str]:
    """Return the node's options for the numbers of its policy. Tables go through files in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    accepted = policies.option_names(policy, pair.info.classes > 2)
    options = []
    for name, value in numbers.items():
        if name not in accepted or value is None or value is False:
            continue
        if name == "prior":
            (out / "prior.json").write_text(json.dumps({"prior": value}))
            value = out / "prior.json"
        elif name in ("costs", "rdl_confusion"):
            path = out / f"{name}.csv"
            path.write_text("".join(",".join(map(str, row)) + "\n" for row in value))
            value = path
        option = f"--{'class-costs' if name == 'costs' else name.replace('_', '-')}"
        options.append(option if value is True else f"{option}={value}")
    return options


def _follow(
    node: subprocess.Popen[str], remote: np.ndarray, samples: int, numbers: dict[str, Any], progress: Progress
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Read the node's decisions as they come and show progress. Return the decisions and the summary."""
    lines: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    cost, offloaded, thresholds = 0.0, 0, ""
    costs = costs_of(numbers)
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
        progress(n, f"sample {n} of {samples}  offload {offloaded / n:.0%}  cost {cost / n:.4f}  {thresholds}")
    if node.wait() or not summary:
        raise Failure(f"the node ended after {len(lines)} of {samples} samples (exit status {node.returncode})")
    return lines, summary


def labels(pair: pairs.Pair) -> np.ndarray:
    """Return the RDL's label of every test sample, (n,). Costs are measured against these labels."""
    return models.labels(models.answers(pair))


def costs_of(numbers: dict[str, Any]) -> Costs:
    """Return the costs of offloads and errors, for two classes or many."""
    if numbers.get("costs"):
        return Costs.of(numbers["beta"], numbers["costs"])
    return Costs.binary(numbers["beta"], numbers["delta_fp"], numbers["delta_fn"])


def price(line: dict[str, Any], remote: int, costs: Costs) -> float:
    """Return the cost of a decision: beta for an offload, answered or not, and the cost of a wrong local or fallback class."""
    cost = costs.beta if line["source"] != "local" else 0.0
    return cost if line["source"] == "remote" else cost + costs.matrix[remote][line["decision"]]


def replayed(policy: str, numbers: dict[str, Any], stream: Stream) -> np.ndarray:
    """Return a policy's actions on the same samples, (T,), -1 for an offload. Labels arrive at once. H2T2 is the paper's."""
    epsilon = optimal_rates(numbers["bits"], len(stream), max(1e-3, numbers["beta"]))[0]
    learner = policies.make(policy, {**numbers, **policies.PAPER, "epsilon": epsilon})
    return head_stream.replayed(learner, stream.bins(numbers["bits"]).tolist(), stream.label)


def _judged(
    pair: pairs.Pair,
    policy: str,
    numbers: dict[str, Any],
    lines: list[dict[str, Any]],
    summary: dict[str, Any],
    remote: np.ndarray,
) -> Run:
    """Return the run of a node. It computes the local model's scores again. remote: as labels() returns it."""
    index = np.array([line["sample"] for line in lines])
    ldl = open_local(pair.ldl, pair.info.event_output("ldl"))
    outputs = np.array([ldl.scores(ldl.quantise(pair.model_input(x, "ldl"))) for x in pair.x])[index]
    scores = outputs if pair.info.classes > 2 else outputs[:, ldl.event]
    stream = Stream(scores, remote[index], np.full(len(lines), numbers["beta"]))
    return Run(
        pair=pair, policy=policy, numbers=numbers, lines=lines, summary=summary, truth=pair.y[index], stream=stream,
        costs=costs_of(numbers),
    )  # fmt: skip


def _compared_actions(run: Run) -> dict[str, np.ndarray]:
    """Return the actions of each policy, (T,) each, with -1 for an offload. The node's come first."""
    own = np.array([-1 if line["source"] == "remote" else line["decision"] for line in run.lines])
    label, other_policy, other_label = LINES[run.policy]
    stream, costs = run.stream, run.costs
    actions = {label: own} if run.many_classes else {label: own, other_label: replayed(other_policy, run.numbers, stream)}
    actions |= {
        "no offload": NoOffload().act(stream, costs, 0),
        "full offload": FullOffload().act(stream, costs, 0),
        "best single threshold (offline)": baselines.OfflineSingle().act(stream, costs, 0),
    }
    if run.many_classes:
        return actions | {"calibrated rule": baselines.Calibrated().act(stream, costs, 0)}
    return actions | {"best thresholds (offline)": baselines.OfflinePair(run.numbers["bits"]).act(stream, costs, 0)}


def _report(run: Run, out: Path) -> dict[str, Any]:
    """Compare the policies, write the files, and return the report."""
    label, lines, summary = LINES[run.policy][0], run.lines, run.summary
    rows, per_sample = {}, {}
    for name, actions in _compared_actions(run).items():
        per_sample[name] = charged(actions, run.stream, run.costs)[0]
        rows[name] = head_stream.averages(actions, run.stream, run.costs, run.truth)
    own = per_sample[label] = np.array([line["cost"] for line in lines])  # counts the offloads that fell back, too
    rows[label].update(cost=float(own.mean()), offload=float(np.mean([line["source"] != "local" for line in lines])))
    best = None if run.many_classes else baselines.thresholds(run.stream, run.costs, run.numbers["bits"])
    out.mkdir(parents=True, exist_ok=True)
    _write_csv(out / "decisions.csv", run)
    head = None if run.many_classes or label != LINES["adaptive"][0] else head_stream.play(run.pair, run.numbers, len(lines))
    pictures = _draw(run, out, per_sample, best, head)
    wrong = sum(line["source"] == "remote" and line["decision"] != r for line, r in zip(lines, run.stream.label))
    return {
        "pair": run.pair.info.name,
        "policy": label,
        "classes": run.pair.info.classes,
        "event": run.pair.info.event_name if run.pair.info.classes == 2 else None,
        "samples": len(lines),
        "decided_once": len({line["n"] for line in lines}) == len(lines),
        "offloads": summary["offloads"],
        "answered": summary["replies"],
        "fallbacks": summary["fallbacks"],
        "replies_unlike_the_rdl": int(wrong),
        "numbers": run.numbers,
        "thresholds": summary["thresholds"],
        "best_pair": None if best is None else list(best),
        "best_single": baselines.threshold(run.stream, run.costs),
        "policies": rows,
        "head": head and head.report(),
        "pictures": pictures,
    }


def _draw(
    run: Run, out: Path, per_sample: dict[str, np.ndarray], best: tuple[int, int] | None, head: head_stream.HeadStream | None
) -> list[str]:
    """Draw the running cost of every policy, of `head` in a second panel, and what was learned. Return the files."""
    from ..common import plots

    name, label, summary, count = run.pair.info.name, LINES[run.policy][0], run.summary, len(run.lines)
    replayed_costs = {policy: costs for policy, costs in per_sample.items() if policy != label}
    title = f"{name}: beta = {run.numbers['beta']:g}"
    panels = [plots.CostCurves(label, per_sample[label], replayed_costs, title)]
    if head:
        costs = head.running()
        title = f"{head.pair}, replayed: a head on {head.features} features"
        panels.append(plots.CostCurves(head_stream.WITH, costs.pop(head_stream.WITH), costs, title))
    plots.running_costs(out / "running_cost.png", panels)
    if best is None:
        title = f"{name}: what is said where, and what it costs, after {count} samples"
        learned = "cells.png"
        plots.class_cells(out / learned, summary["cells"], run.costs.beta, title)
    elif "a" in summary:
        title = f"{name}: expert weights after {count} samples"
        learned = "weights.png"
        plots.expert_weights(out / learned, np.array(summary["a"]), np.array(summary["b"]), best, title)
    else:
        title = f"{name}: what each score bin holds, after {count} samples"
        learned = "intervals.png"
        plots.intervals(out / learned, np.array(summary["intervals"]), summary["region"], summary["switch"], title)
    return ["running_cost.png", learned]


def _write_csv(path: Path, run: Run) -> None:
    scores = run.stream.score.max(1) if run.many_classes else run.stream.score
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for line, score, label, true in zip(run.lines, scores, run.stream.label, run.truth):
            row = {**line, "score": f"{score:.6f}", "rdl_label": label, "true_label": true, "cost": f"{line['cost']:g}"}
            writer.writerow([row[name] for name in COLUMNS])


def tables(report: dict[str, Any]) -> Report:
    """Return the report as tables and lines for people."""
    numbers = report["numbers"]
    many_classes = report["classes"] > 2
    shares = {"fp": "wrong"} if many_classes else {"fp": "false alarms", "fn": "misses"}
    shares |= {"offload": "offloaded", "true_error": "wrong (true labels)" if many_classes else "wrong"}
    title = f"{report['pair']}: {report['samples']} samples, beta {numbers['beta']:g}"
    title += f", {report['classes']} classes" if many_classes else ""
    which = "Cost and wrong" if many_classes else "Cost, false alarms and misses"
    lines: Report = [verdict(report)]
    lines += [] if many_classes else [event.in_words(report["event"], numbers["delta_fp"], numbers["delta_fn"])]
    lines += [
        _policy_table(title, report["policies"], shares),
        f"{which} are against the RDL's answer, as in the paper; the last column against the true labels.",
        f"Every sample decided once: {'yes' if report['decided_once'] else 'NO'}. Offloads: {report['offloads']}, "
        f"answered: {report['answered']}, fell back: {report['fallbacks']}. {report['seconds']:.1f} s.",
    ]
    if numbers.get("ordered"):
        lines.append("The samples are in the order of time, and the adaptive policy reads its past.")
    if head := report["head"]:
        title = f"{head['pair']}: {head['samples']} samples, replayed; a head learns from {head['features']} features"
        without, having = (head["policies"][name]["cost"] for name in (head_stream.WITHOUT, head_stream.WITH))
        lines += [
            _policy_table(title, head["policies"], shares),
            f"The head changes the cost by {having / without - 1:+.0%}: {without:.4f} without, {having:.4f} with it. "
            f"The device itself estimates that it saved {head['saved']:.4f} a sample.",
        ]
    return [
        *lines,
        *(f"{report['out']}/{name}: {PICTURES[name]}" for name in report["pictures"]),
        f"{report['out']}/decisions.csv",
    ]


def verdict(report: dict[str, Any]) -> str:
    """Say whether the policy was cheaper than the best simple choice, which is to ask always or never."""
    rows, policy = report["policies"], report["policy"]
    own = rows[policy]["cost"]
    simple = {"always": rows["full offload"]["cost"], "never": rows["no offload"]["cost"]}
    best = min(simple, key=simple.__getitem__)
    if own < simple[best]:
        others = " and ".join(f"{1 - own / cost:.0%} less than with asking {name}" for name, cost in simple.items())
        return f"{policy} pays here: a sample costs {own:.4f}, {others}."
    hindsight = min(row["cost"] for name, row in rows.items() if name.endswith("(offline)"))
    outlook = f"the best thresholds in hindsight cost {hindsight:.4f}, so more samples may teach it"
    reason = outlook if hindsight < simple[best] else "no thresholds would have cost less"
    return f"Asking {best} is cheaper here: a sample costs {simple[best]:.4f}, with {policy} {own:.4f}; {reason}."


def _policy_table(title: str, rows: dict[str, dict[str, float]], shares: dict[str, str]) -> Table:
    """Return a row for each policy: its cost, and the shares by their headings."""
    columns = {"policy": "left", **dict.fromkeys(("average cost", *shares.values()), "right")}
    cells = [[name, f"{row['cost']:.4f}", *(f"{row[key]:.1%}" for key in shares)] for name, row in rows.items()]
    return Table(title, columns, cells, ("misses", "false alarms"))
