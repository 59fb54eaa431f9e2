"""Writes the results page from the CSVs of `h2t2-lab experiment all`."""

import csv
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.common.errors import UserError

from .. import material
from .page_parts import END, between, inside, markdown_table


class Cell(str):
    """A text of a CSV, which a format takes as a number."""

    def __format__(self, form: str) -> str:
        return format(float(self), form) if form else str(self)


Row = dict[str, Cell]
Rows = list[Row]
Fields = dict[str, Any] | str  # of a section: what its text in the template leaves open, or the whole text
WORTH_BUILDING = 0.95  # largest ratio of costs at which averaged heads are worth their code
NOISE = 0.003  # smaller differences of costs are noise
ADAPTIVE, KEPT = "adaptive", "best pair of 200 samples, kept"
PAPER, SINGLE, DAGGER, STAR = "H2T2 (paper)", "HI single threshold", "offline single θ†", "offline pair θ*"

# The page: results.md with every section's fields filled in and its pictures, where they exist. A line that begins with "| {"
# comes once for each row of the field `rows`.
TEMPLATE = material.text("pages/results.md")
SECTION = re.compile(rf"(<!-- section: ([\w ]+) -->)\n(.*?)\n{END}", re.S)
PICTURE = re.compile(r"(!\[.*\])\((.*\.png)\)")
LOSSES = "<!-- losses: h2t2-lab results -->"  # in the README


def measure(
    progress: Callable[[str], None],
    csv: Path = Path("results/experiments"),
    out: Path = Path("RESULTS.md"),
    pictures: Path | None = None,
    readme: Path | None = None,
) -> dict[str, Any]:
    """Write the results page. It reads the CSVs of `h2t2-lab experiment all`.

    Args:
        csv: folder of the CSV and PNG files
        out: the page; a section whose CSV files are missing stays as it is there
        pictures: folder for copies of the pictures, which the page then shows
        readme: README whose sentences about losses are written, too

    Examples:
        h2t2-lab results --out models/RESULTS.md --pictures docs/images/results --readme README.md

    Returns:
        {"page", "lines"}.
    """
    text = page(csv, out.read_text() if out.is_file() else "", os.path.relpath(pictures, out.parent) if pictures else "")
    out.write_text(text)
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        for _, name in PICTURE.findall(TEMPLATE):
            if (csv / name).exists():
                shutil.copy(csv / name, pictures)
    if readme:
        readme.write_text(quote(readme.read_text(), csv))
    return {"page": str(out), "lines": text.count("\n")}


def report(measured: dict[str, Any]) -> list[str]:
    """Return a line about the page."""
    return [f"{measured['page']}: {measured['lines']} lines"]


def page(folder: Path, before: str = "", pictures: str = "") -> str:
    """Return the page as Markdown.

    Args:
        folder: The CSVs and pictures of the experiments.
        before: The page as it was. A section whose CSVs are missing stays as it is there.
        pictures: Folder of the pictures as the page names it; "": a section shows none.

    Raises:
        UserError: A CSV is missing, and `before` does not have its section.
    """

    def written(match: re.Match[str]) -> str:
        mark, names, text = match.groups()
        content = inside(before, mark)
        if not content or all((folder / f"{name}.csv").exists() for name in names.split()):
            content = section(names, *(_read(folder, name) for name in names.split()))
            for image in PICTURE.finditer(text) if pictures else ():
                if (folder / image[2]).exists():
                    content += f"\n\n{image[1]}({pictures}/{image[2]})"
        return f"{mark}\n{content}\n{END}"

    return SECTION.sub(written, TEMPLATE)


def section(names: str, *tables: Rows) -> str:
    """Return a section without its pictures.

    Args:
        names: Of its CSVs, as its mark in the template names them.
        tables: Their rows.
    """
    fields = WRITERS[names](*tables)
    if isinstance(fields, str):
        return fields
    lines = inside(TEMPLATE, f"<!-- section: {names} -->").partition("\n\n![")[0].splitlines()
    return "\n".join(line.format_map(row) for line in lines for row in (fields["rows"] if line.startswith("| {") else [fields]))


def quote(readme: str, folder: Path) -> str:
    """Return the text of a README with the sentence that says where the adaptive policy loses.

    Raises:
        UserError: A CSV is missing.
    """
    return between(readme, LOSSES, _losses(_read(folder, "in_order"), _read(folder, "horizon")))


def _losses(in_order: Rows, horizon: Rows) -> str:
    """Say first where the adaptive policy is dearer than another policy, then where it is cheaper than all fixed thresholds."""
    lost, won = [], []
    for (stream,) in _distinct(in_order, "stream"):
        rows: dict[str, float] = {
            row["policy"]: float(row["excess"]) for row in _where(in_order, stream=stream, way="in order")
        }
        ours, rival = rows[ADAPTIVE], min(rows, key=rows.__getitem__)
        if rows[rival] < ours:
            lost.append(f"{stream} ({rival}: {rows[rival]:+.4f}, adaptive {ours:+.4f})")
        if ours < 0:
            won.append(stream)
    streams = len(_distinct(in_order, "stream"))
    excess: dict[tuple[str, int], float] = {(row["policy"], int(row["T"])): float(row["excess"]) for row in horizon}
    early = [f"{T:,}" for policy, T in excess if policy == ADAPTIVE and excess[KEPT, T] < excess[ADAPTIVE, T]]
    where = f"on {len(lost)}: {'; '.join(lost)}" if lost else "on none"
    parts = [f"Of {streams} recorded streams in their order, another policy is cheaper than the adaptive one {where}."]
    if early:
        parts.append(
            f"On streams that do not change, thresholds from 200 free labels are cheaper at T = {' and '.join(early)}."
        )
    parts.append(
        f"The adaptive policy beats all fixed thresholds, chosen in hindsight, on {len(won)} of {streams}"
        f"{': ' if won else ''}{', '.join(won)}."
    )
    return " ".join(parts)


def _read(folder: Path, name: str) -> Rows:
    try:
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            rows = [{name: Cell(text) for name, text in row.items()} for row in csv.DictReader(file)]
    except FileNotFoundError:
        raise UserError(f"{folder}: no {name}.csv; run `h2t2-lab experiment all --out {folder}` first") from None
    if not rows:
        raise UserError(f"{folder / name}.csv: no rows")
    return rows


def _where(rows: Rows, **values: str) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def _distinct(rows: Rows, *keys: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))


def _pivot(
    rows: Rows,
    *,
    index: tuple[str, ...],
    columns: tuple[str, ...],
    cell: Callable[[Rows], str],
    header: Callable[..., str] = str,
    line: Callable[..., str] = str,
    corner: str = "policy",
) -> str:
    """Return a table with a line for each value of `index` and a column for each value of `columns`."""
    across = _distinct(rows, *columns)
    body = []
    for down in _distinct(rows, *index):
        mine = _where(rows, **dict(zip(index, down)))
        body.append([line(*down), *(cell(_where(mine, **dict(zip(columns, values)))) for values in across)])
    return markdown_table([corner, *(header(*values) for values in across)], body)


def _mean_cost(rows: Rows) -> str:
    return f"{np.mean([float(row['cost']) for row in rows]):.4f}"


def _in_order(rows: Rows) -> Fields:
    lengths = ", ".join(f"{name}: {int(_where(rows, stream=name)[0]['samples']):,}" for (name,) in _distinct(rows, "stream"))
    tables = {
        way: _pivot(
            _where(rows, way=way),
            index=("policy",),
            columns=("stream",),
            cell=lambda cells: "{excess:+.4f} ({worst:+.3f})".format_map(cells[0]),
        )
        for (way,) in _distinct(rows, "way")
    }
    table = "\n\n".join(f"{way.capitalize()}:\n\n{text}" for way, text in tables.items())
    return {"lengths": lengths, "table": table}


def _drift(rows: Rows) -> Fields:
    policies = [name for name in rows[0] if name not in ("drift", "over")]
    body = [[name, *(f"{row[name]:+.4f}" for row in rows)] for name in policies]
    return {"table": markdown_table(["policy", *(f"{row['drift']}, over {row['over']}" for row in rows)], body)}


def _hostile(rows: Rows) -> Fields:
    policies = [name for name in rows[0] if name != "stream" and not name.endswith("_sd")]
    body = [[row["stream"], *(f"{row[name]:+.4f}" for name in policies)] for row in rows]
    return {"table": markdown_table(["stream", *policies], body)}


def _horizon(rows: Rows) -> Fields:
    table = _pivot(
        rows,
        index=("policy",),
        columns=("T",),
        cell=lambda cells: "{excess:.4f} ({worst:.3f})".format_map(cells[0]),
        header=lambda horizon: f"T = {int(horizon):,}",
    )
    return {"table": table}


def _models(rows: Rows) -> Fields:
    better = {True: "better than the paper's", False: ""}
    verdicts = [{**row, "verdict": better[float(row["accuracy"]) > float(row["paper_accuracy"]) + 0.02]} for row in rows]
    return {"rows": verdicts}


def _costs(rows: Rows) -> str:
    tenths = [row for row in rows if round(float(row["beta"]) * 20) % 2 == 0] or rows
    parts = []
    for (trace,) in _distinct(tenths, "trace"):
        table = _pivot(
            _where(tenths, trace=trace),
            index=("policy",),
            columns=("beta",),
            cell=lambda cells: "{cost:.4f} ± {cost_sd:.4f}".format_map(cells[0]),
            header=lambda beta: f"β = {float(beta):g}",
        )
        parts += [f"### {trace}", table]
    return "\n\n".join(parts)


def _claims(costs: Rows, bits: Rows, etas: Rows, models: Rows) -> str:
    last = f"{float(_distinct(costs, 'beta')[-1][0]):g}"
    body = [
        ["H2T2 beats single-threshold HI, by up to 55 %", _claim_single(costs)],
        ["in two data sets H2T2 beats the offline θ†", _claim_offline(costs)],
        [f"out of distribution costs little more (0.08, 0.01 at β = {last})", _claim_distribution(costs)],
        ["b = 4 suffices", "b = 4 costs " + _claim_setting(_where(bits, policy=PAPER), "bits", 4, "b")],
        ["η = 1 is a good choice (β = .4)", "it costs " + _claim_setting(etas, "eta", 1, "η")],
        [f"H2T2 cuts FN at β = {last} (BreakHis 18 % to 9.5 %, FP 10 % to 14 %)", _claim_errors(costs, models)],
    ]
    return markdown_table(["claim", "measured here"], body)


def _by_cell(costs: Rows, policy: str) -> dict[tuple[str, ...], float]:
    """Return the cost of a policy for each (trace, beta)."""
    return {(row["trace"], row["beta"]): float(row["cost"]) for row in _where(costs, policy=policy)}


def _claim_single(costs: Rows) -> str:
    paper, single = _by_cell(costs, PAPER), _by_cell(costs, SINGLE)
    saved = {cell: 1 - paper[cell] / max(1e-9, single[cell]) for cell in paper}
    (best_trace, best_beta), (worst_trace, worst_beta) = max(saved, key=saved.__getitem__), min(saved, key=saved.__getitem__)
    return (
        f"in {sum(value > 0 for value in saved.values())} of {len(saved)} cells (data set, β); "
        f"at best {max(saved.values()):.0%} ({best_trace}, β = {float(best_beta):g}), "
        f"at worst {min(saved.values()):.0%} ({worst_trace}, β = {float(worst_beta):g})"
    )


def _claim_offline(costs: Rows) -> str:
    paper, dagger = _by_cell(costs, PAPER), _by_cell(costs, DAGGER)
    betas = len(_distinct(costs, "beta"))
    wins = {
        trace: sum(paper[cell] < dagger[cell] for cell in paper if cell[0] == trace) for (trace,) in _distinct(costs, "trace")
    }
    return ", ".join(f"{trace} (at {n} of {betas} β)" for trace, n in wins.items() if n) or "none"


def _claim_distribution(costs: Rows) -> str:
    beta = _distinct(costs, "beta")[-1][0]
    full_names = {trace.split(" (")[0]: trace for (trace,) in reversed(_distinct(costs, "trace"))}
    gaps = []
    for shifted, source in (("BreaCh", "BreakHis"), ("X-RaCT", "Chest")):
        cells = (full_names[shifted], beta), (full_names[source], beta)
        paper, single = (policy[cells[0]] - policy[cells[1]] for policy in (_by_cell(costs, PAPER), _by_cell(costs, SINGLE)))
        gaps.append(f"{shifted} over {source}: {paper:+.3f} (single threshold {single:+.3f})")
    return "; ".join(gaps)


def _claim_setting(rows: Rows, key: str, value: float, symbol: str) -> str:
    """Return how much the paper's value of a setting costs above the best tried value, at worst and on average."""
    extra = []
    for (trace,) in _distinct(rows, "trace"):
        by_value = {float(row[key]): float(row["cost"]) for row in _where(rows, trace=trace)}
        best = min(by_value, key=by_value.__getitem__)
        extra.append((by_value[value] - by_value[best], trace, best))
    worst, trace, best = max(extra)
    mean = np.mean([cost for cost, _, _ in extra])
    return f"at most {worst:.4f} more than the best {symbol} tried ({trace}, best {symbol} = {best:g}); mean {mean:.4f}"


def _claim_errors(costs: Rows, models: Rows) -> str:
    last = _where(costs, policy=PAPER, beta=_distinct(costs, "beta")[-1][0])
    cuts = []
    for row in models:
        if row["trace"].split(" (")[0] in ("BreakHis", "BreaCh", "X-RaCT"):
            after = _where(last, trace=row["trace"])[0]
            fn, fp = (f"{float(row[error]):.1%} to {float(after[error]):.1%}" for error in ("fn", "fp"))
            cuts.append(f"{row['trace']}: FN {fn}, FP {fp}")
    return "; ".join(cuts)


def _modes(rows: Rows) -> Fields:
    names = [name for name in rows[0] if name != "trace" and not name.endswith("/ paper")]
    body = [[row["trace"], *(f"{row[name]:.4f}" for name in names)] for row in rows]
    ratios = [f"{rows[-1][f'{name} / paper']:.2f}" for name in names[1:]]
    return {"table": markdown_table(["data set", *names], [*body, ["mean, of the paper's", "1", *ratios]])}


def _regret(rows: Rows) -> Fields:
    return {"rows": [_where(rows, policy=policy)[-1] for (policy,) in _distinct(rows, "policy")]}


def _multiclass(rows: Rows, in_time: Rows) -> Fields:
    classes = ("3", "4", "10")
    body = [[row["stream"], row["policy"], *(f"{row[key]:.4f}" for key in classes)] for row in in_time]
    digits = _pivot(rows, index=("policy",), columns=("trace",), cell=_mean_cost)
    return {"digits": digits, "table": markdown_table(["stream", "policy", *(f"{key} classes" for key in classes)], body)}


def _budget(rows: Rows) -> Fields:
    return {"rows": [row for row in rows if float(row["share"]) < 1]}


def _late(rows: Rows) -> Fields:
    table = _pivot(
        rows,
        index=("kind", "value"),
        columns=("policy",),
        cell=_mean_cost,
        line=lambda kind, value: f"0 to {value} rounds late" if kind == "delay" else f"{float(value):.0%} lost",
        corner="labels",
    )
    return {"table": table}


def _flywheel(rows: Rows) -> Fields:
    gaps = [float(row["before"]) - float(row["everything"]) for row in rows]
    gains = [float(row["before"]) - float(row["after"]) for row in rows]
    closed = [{**row, "gap": f"{row['closed']:.0%}" if gap > NOISE else "no gap"} for row, gap in zip(rows, gaps)]
    return {**rows[0], "closed": sum(gains) / sum(gaps), "rows": closed}


def _over_time(rows: Rows) -> Fields:
    """The mean costs of devices that run through the weather in four ways."""
    if rows[0]["missing"]:
        return f"Not measured here: {rows[0]['missing']}."
    means: dict[str, Row] = {row["policy"]: row for row in rows}
    best = float(means[STAR]["mean"])
    return {**rows[0], "rows": [{**row, "more": float(row["mean"]) / best - 1} for row in means.values()]}


def _measured(rows: Rows) -> Fields:
    """Show the rows that were measured, and a sentence for each of the others."""
    missing = "".join(f"\nNot measured here: {row['stream']}, {row['missing']}." for row in rows if row.get("missing"))
    measured = [row for row in rows if not row.get("missing")]
    return {**measured[0], "rows": measured, "missing": missing} if measured else missing.strip()


def _head(rows: Rows) -> Fields:
    """The mean costs of devices without and with a head."""
    fields = _measured(rows)
    if isinstance(fields, str):
        return fields
    measured = fields["rows"]
    return {**fields, "met": sum(float(row["with"]) <= float(row["goal"]) for row in measured), "of": len(measured)}


def _averaged_head(rows: Rows) -> Fields:
    """What a new device gains from the mean of a fleet's heads."""
    fields = _measured(rows)
    if isinstance(fields, str):
        return fields
    measured = fields["rows"]
    won = [
        row["stream"] for row in measured if min(float(row["ratio"]), float(row["ratio, with step sizes"])) <= WORTH_BUILDING
    ]
    ratio = np.mean([float(row["ratio, with step sizes"]) for row in measured])
    names = f"{len(won)} of {len(measured)} streams{': ' if won else ''}{', '.join(won)}"
    return {**fields, "won": names, "mean": ratio}


def _past(rows: Rows) -> Fields:
    """The costs without and with a past: the recorded streams, those against a memory, and the means of all groups."""
    groups = ("recorded", "against a memory")
    return {"rows": [row for row in rows if row["streams"] in groups or row["stream"].startswith("mean")]}


# the CSVs of a section -> what writes it from their rows
WRITERS: dict[str, Callable[..., Fields]] = {
    "in_order horizon": _losses, "in_order": _in_order, "shift_mean": _drift, "adversary": _hostile, "reacting": _hostile,
    "horizon": _horizon, "models": _models, "cost": _costs, "cost bits eta models": _claims,
    "modes_mean": _modes, "regret": _regret, "multiclass classes": _multiclass, "budget": _budget, "misses": _measured,
    "guarantee": _measured, "late": _late, "flywheel": _flywheel, "over_time": _over_time, "head": _head,
    "averaged_head": _averaged_head, "past": _past,
}  # fmt: skip
