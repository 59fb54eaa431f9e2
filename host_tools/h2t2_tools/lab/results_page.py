"""`h2t2 results`: the results page, from the CSVs that `h2t2 experiment all` left, and from nothing else."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..common.errors import UserError

Row = dict[str, str]
GAP = 0.003  # cost a sample that is told apart from noise
PAPER, SINGLE, DAGGER, STAR = "H2T2 (paper)", "HI single threshold", "offline single θ†", "offline pair θ*"


def _read(folder: Path, name: str) -> list[Row]:
    try:
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise UserError(f"{folder}: no {name}.csv; run `h2t2 experiment all --out {folder}` first") from None
    if not rows:
        raise UserError(f"{folder / name}.csv: no rows")
    return rows


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows]] + [""]


def _at(rows: list[Row], **wanted: str) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _cost(rows: list[Row], trace: str, policy: str, beta: str) -> float:
    return float(_at(rows, trace=trace, policy=policy, beta=beta)[0]["cost"])


def page(folder: Path) -> str:
    """The page as Markdown. UserError naming the CSV that is missing."""
    lines = [
        "# Results",
        "",
        "Written by `h2t2 results` from the CSVs of `h2t2 experiment all`; δ₁ = 0.7, δ₋₁ = 1, b = 4 unless said otherwise.",
        "Rows marked (synthetic) come from a preset with the errors of the paper's row: their images are not at hand.",
        "",
    ]
    for part in (_in_order, _drift, _hostile, _soon, _models, _costs, _claims, _beyond, _field):
        lines += part(folder)
    return "\n".join(lines).rstrip() + "\n"


def _in_order(folder: Path) -> list[str]:
    rows = _read(folder, "in_order")
    columns = list(dict.fromkeys((row["stream"], row["way"]) for row in rows))
    body = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        cells = [_at(rows, policy=policy, stream=stream, way=way)[0] for stream, way in columns]
        body.append([policy] + [f"{float(c['excess']):+.4f} ({float(c['worst']):+.3f})" for c in cells])
    lengths = ", ".join(
        f"{name}: {int(_at(rows, stream=name)[0]['samples']):,}" for name in dict.fromkeys(c[0] for c in columns)
    )
    why = "Excess cost a sample over the best fixed pair in hindsight, mean of β = .05 to .6 and in brackets the worst of them"
    note = f"(`h2t2 experiment in-order`). Samples: {lengths}. Below 0: better than any pair that stays as it is."
    header = ["policy", *(f"{stream}, {way}" for stream, way in columns)]
    return ["## Streams as they came", "", why, note, "", *_table(header, body)]


def _drift(folder: Path) -> list[str]:
    drift = _read(folder, "shift_mean")
    names = [name for name in drift[0] if name not in ("drift", "over")]
    rows = [[name] + [f"{float(row[name]):+.4f}" for row in drift] for name in names]
    why = "Excess cost a sample (`h2t2 experiment shift`): five sequences of traces, one after the other or fading over."
    note = "HI-LCB is written from the idea of arXiv 2508.08985, not from its listing, and HI-LCB-2D (unequal costs) is ours."
    header = ["policy", *(f"{row['drift']}, over {row['over']}" for row in drift)]
    return ["## Streams that change", "", why, note, "", *_table(header, rows)]


def _hostile(folder: Path) -> list[str]:
    rows = _read(folder, "adversary")
    names = [name for name in rows[0] if name != "stream"]
    body = [[row["stream"]] + [f"{float(row[name]):+.4f}" for name in names] for row in rows]
    why = "Excess cost a sample over the best fixed pair of thresholds, β = .1, .3, .5 (`h2t2 experiment adversary`)."
    return ["## Streams made to fool a policy", "", why, "", *_table(["stream", *names], body)]


def _soon(folder: Path) -> list[str]:
    rows = _read(folder, "horizon")
    horizons = list(dict.fromkeys(row["T"] for row in rows))
    body = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        cells = [_at(rows, policy=policy, T=horizon)[0] for horizon in horizons]
        body.append([policy] + [f"{float(c['excess']):.4f} ({float(c['worst']):.3f})" for c in cells])
    why = "Excess cost a sample over θ*, samples of a trace in random order: mean over traces and β = .05 to .6, in brackets"
    header = ["policy", *(f"T = {int(horizon):,}" for horizon in horizons)]
    note = "the worst of them (`h2t2 experiment horizon`). ε* is Corollary 1's, for the β in force, or for β = 1."
    kept = "Kept thresholds are those of 200 labelled samples: hard to beat where nothing changes, and see above where it does."
    return ["## How soon it pays", "", why, note, kept, "", *_table(header, body)]


def _models(folder: Path) -> list[str]:
    rows = []
    for row in _read(folder, "models"):
        better = float(row["accuracy"]) > float(row["paper_accuracy"]) + 0.02
        rows.append(
            [row["trace"], row["samples"], row["paper_samples"]]
            + [f"{float(row[kind + what]):.1%}" for what in ("accuracy", "fp", "fn") for kind in ("", "paper_")]
            + ["better than the paper's" if better else ""]
        )
    header = ["data set", "test samples", "paper", "accuracy", "paper", "FP", "paper", "FN", "paper", "our LDL is"]
    return ["## The local models", "", *_table(header, rows)]


def _costs(folder: Path) -> list[str]:
    rows = _read(folder, "cost")
    lines = ["## Average cost a sample", ""]
    betas = list(dict.fromkeys(row["beta"] for row in rows))
    shown = [beta for beta in betas if round(float(beta) * 20) % 2 == 0] or betas
    for trace in dict.fromkeys(row["trace"] for row in rows):
        lines += [f"### {trace}", ""]
        body = []
        for policy in dict.fromkeys(row["policy"] for row in rows):
            cells = [_at(rows, trace=trace, policy=policy, beta=beta)[0] for beta in shown]
            body.append([policy] + [f"{float(c['cost']):.4f} ± {float(c['cost_sd']):.4f}" for c in cells])
        lines += _table(["policy", *(f"β = {float(beta):g}" for beta in shown)], body)
    return lines


def _claims(folder: Path) -> list[str]:
    rows = _read(folder, "cost")
    traces = list(dict.fromkeys(row["trace"] for row in rows))
    betas = list(dict.fromkeys(row["beta"] for row in rows))
    last = betas[-1]
    cells = [(trace, beta) for trace in traces for beta in betas]
    saved = {at: 1 - _cost(rows, at[0], PAPER, at[1]) / max(1e-9, _cost(rows, at[0], SINGLE, at[1])) for at in cells}
    most, least = max(saved, key=lambda at: saved[at]), min(saved, key=lambda at: saved[at])
    wins = sum(value > 0 for value in saved.values())
    beaten = {t: sum(_cost(rows, t, PAPER, b) < _cost(rows, t, DAGGER, b) for b in betas) for t in traces}
    some = ", ".join(f"{trace} (at {n} of {len(betas)} β)" for trace, n in beaten.items() if n) or "none"
    gaps = []
    for ood, source in (("BreaCh", "BreakHis"), ("X-RaCT", "Chest")):
        one, other = (next(t for t in traces if t.split(" (")[0] == name) for name in (ood, source))
        mine, single = (_cost(rows, one, policy, last) - _cost(rows, other, policy, last) for policy in (PAPER, SINGLE))
        gaps.append(f"{ood} over {source}: {mine:+.3f} (single threshold {single:+.3f})")
    bits = _read(folder, "bits")
    extra = []
    for trace in dict.fromkeys(row["trace"] for row in bits):
        by_bits = {int(row["bits"]): float(row["cost"]) for row in _at(bits, trace=trace, policy=PAPER)}
        extra.append((by_bits[4] - min(by_bits.values()), trace, min(by_bits, key=lambda b: by_bits[b])))
    etas = _read(folder, "eta")
    loss = []
    for trace in dict.fromkeys(row["trace"] for row in etas):
        by_eta = {float(row["eta"]): float(row["cost"]) for row in _at(etas, trace=trace)}
        loss.append((by_eta[1.0] - min(by_eta.values()), trace, min(by_eta, key=lambda e: by_eta[e])))
    worst_eta, worst_bits = max(loss), max(extra)
    cut = []
    for row in _read(folder, "models"):
        if row["trace"].split(" (")[0] in ("BreakHis", "BreaCh", "X-RaCT"):
            there = _at(rows, trace=row["trace"], policy=PAPER, beta=last)[0]
            cut.append(
                f"{row['trace']}: FN {float(row['fn']):.1%} to {float(there['fn']):.1%}, "
                f"FP {float(row['fp']):.1%} to {float(there['fp']):.1%}"
            )
    body = [
        [
            "H2T2 beats single-threshold HI, by up to 55 %",
            f"in {wins} of {len(cells)} cells (data set, β); at best {saved[most]:.0%} ({most[0]}, β = {float(most[1]):g}), "
            f"at worst {saved[least]:.0%} ({least[0]}, β = {float(least[1]):g})",
        ],
        ["in two data sets H2T2 beats the offline θ†", some],
        [f"out of distribution costs little more (0.08, 0.01 at β = {float(last):g})", "; ".join(gaps)],
        [
            "b = 4 suffices",
            f"b = 4 costs at most {worst_bits[0]:.4f} more than the best b tried ({worst_bits[1]}, best b = {worst_bits[2]}); "
            f"mean {np.mean([e[0] for e in extra]):.4f}",
        ],
        [
            "η = 1 is a good choice (β = .4)",
            f"it costs at most {worst_eta[0]:.4f} more than the best η tried ({worst_eta[1]}, best η = {worst_eta[2]:g}); "
            f"mean {np.mean([e[0] for e in loss]):.4f}",
        ],
        [f"H2T2 cuts FN at β = {float(last):g} (BreakHis 18 % to 9.5 %, FP 10 % to 14 %)", "; ".join(cut)],
    ]
    return ["## The paper's claims", "", *_table(["claim", "measured here"], body)]


def _beyond(folder: Path) -> list[str]:
    lines = ["## Beyond the paper", "", "Mean excess cost a sample over θ* (β from .05 to .6), paper's setting and ours:", ""]
    means = _read(folder, "modes_mean")
    names = [name for name in means[0] if name != "trace" and not name.endswith("/ paper")]
    body = [[row["trace"]] + [f"{float(row[name]):.4f}" for name in names] for row in means]
    ratios = [f"{float(means[-1][f'{name} / paper']):.2f}" for name in names[1:]]
    lines += _table(["data set", *names], [*body, ["mean, of the paper's", "1", *ratios]])
    lines += ["Regret against the number of rounds T (β = .3, mean of four traces), slopes on a log-log plot:", ""]
    regret = _read(folder, "regret")
    body = []
    for policy in dict.fromkeys(row["policy"] for row in regret):
        mine = _at(regret, policy=policy)
        far = mine[-1]
        body.append(
            [
                policy,
                f"{float(far['slope']):.2f}",
                f"{float(far['slope_end']):.2f}",
                f"{float(far['regret']):,.0f}",
                f"{float(far['bound']):,.0f}",
                f"{int(far['T']):,}",
            ]
        )
    lines += _table(["policy", "fitted slope", "of the last decade", "regret", "bound of Theorem 1", "at T"], body)
    lines += ["Digits, every policy for many classes (mean cost over β):", ""]
    multi = _read(folder, "multiclass")
    traces = list(dict.fromkeys(row["trace"] for row in multi))
    body = [
        [policy] + [f"{np.mean([float(r['cost']) for r in _at(multi, trace=t, policy=policy)]):.4f}" for t in traces]
        for policy in dict.fromkeys(row["policy"] for row in multi)
    ]
    lines += _table(["policy", *traces], body)
    lines += ["The same at two horizons, and with labels that change (mean cost over β = .05 to .6):", ""]
    classes = _read(folder, "classes")
    body = [[row["stream"], row["policy"], *(f"{float(row[k]):.4f}" for k in ("3", "4", "10"))] for row in classes]
    lines += _table(["stream", "policy", *(f"{k} classes" for k in (3, 4, 10))], body)
    lines += [
        "A budget, as a share of what is offloaded without one: cost a sample above none (mean of traces and β):",
        "",
    ]
    budget = _read(folder, "budget")
    ways = [key for key in budget[0] if key not in ("share", "price / cut off")]
    body = [
        [f"{float(row['share']):.0%}", *(f"{float(row[way]):.4f}" for way in ways), f"{float(row['price / cut off']):.2f}"]
        for row in budget
        if float(row["share"]) < 1
    ]
    lines += _table(["budget", *ways, "a price / cut off"], body)
    lines += [
        "A limit for misses (`--miss-rate`), over the traces and β where the adaptive policy would miss more without one,",
        "learning included; the pair is the cheapest fixed one that keeps to the limit, known beforehand:",
        "",
    ]
    body = [
        [f"{float(row['limit']):g}", row["cells"], *(f"{float(row[k]):.3f}" for k in ("missed without", "missed", "worst"))]
        + [f"{float(row[k]):.4f}" for k in ("cost without", "cost", "cost of the pair")]
        for row in _read(folder, "misses")
    ]
    header = ["limit", "cases", "missed without", "missed", "worst case", "cost without", "cost", "the pair's"]
    lines += _table(header, body)
    lines += ["Late and lost labels (β = .2, mean of three traces), average cost a sample:", ""]
    late = _read(folder, "late")
    policies = list(dict.fromkeys(row["policy"] for row in late))
    body = []
    for kind, value in dict.fromkeys((row["kind"], row["value"]) for row in late):
        what = f"0 to {value} rounds late" if kind == "delay" else f"{float(value):.0%} lost"
        body.append([what] + [f"{float(_at(late, kind=kind, value=value, policy=p)[0]['cost']):.4f}" for p in policies])
    return lines + _table(["labels", *policies], body)


def _field(folder: Path) -> list[str]:
    rows = _read(folder, "flywheel")
    body = []
    for row in rows:
        before, everything = float(row["before"]), float(row["everything"])
        closed = f"{float(row['closed']):.0%}" if before - everything > GAP else "no gap"
        costs = [f"{float(row[key]):.4f}" for key in ("before", "after", "everything", "never", "retraining")]
        body.append([row["data"], *costs[:3], closed, *costs[3:]])
    gaps = [float(row["before"]) - float(row["everything"]) for row in rows]
    whole = sum(float(row["before"]) - float(row["after"]) for row in rows) / sum(gaps)
    samples, runs = int(rows[0]["samples"]), rows[0]["runs"]
    lines = [
        "## Models that get better in the field",
        "",
        f"A local model trained on a tenth of the data, then {samples:,} samples of the field. After each quarter it is",
        "trained again, on that tenth and on what was offloaded, weighted by 1 / probability (`h2t2 experiment flywheel`).",
        f"Cost a sample, β = .2, mean of {runs} runs: judged on samples that were in neither part, then as it was paid in the",
        f"field. Of all the gaps to a model trained on everything {whole:.0%} is closed; the goal is half.",
        "",
    ]
    header = ["data", "before", "after", "trained on everything", "gap closed", "field, never again", "field, trained again"]
    return lines + _table(header, body)
