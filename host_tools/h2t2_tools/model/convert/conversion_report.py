"""The report of a conversion as a page and a picture."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots


def write(out: Path, report: dict[str, Any], name: str, exact: np.ndarray, rounded: np.ndarray) -> None:
    """Write report.md, .json and .png to `out`. exact, rounded: (n,) scores of the float and of the int8 model."""
    figure = out / "report.png"
    plots.conversion(figure, exact, rounded, report.get("reliability"), name)
    report["files"] |= {"picture": str(figure), "report": str(out / "report.md")}
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "report.md").write_text(markdown(report))


def markdown(report: dict[str, Any]) -> str:
    """The report as a page."""
    size, policy, test = report["bytes"], report["policy"], report["test"]
    lines = [
        f"# {report['model']}: int8",
        "",
        f"{report['kind']}, {report['classes']} output(s), event: output {report['event']}.",
        "",
    ]
    lines += ["| | bytes |", "|---|---|", f"| source | {size['source']:,} |", f"| int8 .tflite | {size['tflite']:,} |"]
    if "bundle_bytes" in size:
        lines += [f"| bundle (flash of a board) | {size['bundle_bytes']:,} |", f"| RAM of a board | {size['ram_bytes']:,} |"]
    lines += ["", f"{report['parameters']:,} parameters, {report['multiply_accumulates']:,} multiply-accumulates.", ""]
    if "input" in report:
        lines += ["A scaler stays outside: the int8 model takes x * factor + offset (`input` in report.json).", ""]
    if "encoding" in report:
        rule = "each input takes a column of the sample, NaN and categories as numbers"
        lines += [f"Before that {rule} (`encoding` in report.json; `h2t2 pair` does it).", ""]
    lines += [f"**Beware:** {warning}.\n" for warning in report["warnings"]]
    lines += [f"No bundle for a board: {problem}." for problem in report["not_for_a_board"]]
    data = f"{test['samples']} samples of {test['path']}" + (" (the calibration data itself)" if test["is_calibration"] else "")
    if "float" in report:
        lines += [f"On {data}:", "", "| | accuracy | false alarms | misses | ECE |", "|---|---|---|---|---|"]
        for kind in ("float", "int8"):
            m = report[kind]
            lines.append(f"| {kind} | {m['accuracy']:.2%} | {m['fp']:.2%} | {m['fn']:.2%} | {m['ece']:.4f} |")
        lines += ["", "False alarms and misses are shares of all samples, decision at score 0.5; ECE over ten bins.", ""]
    else:
        lines += [f"On {data}, which has no labels: accuracy and calibration are not known.", ""]
    lines += [
        f"Scores differ by {report['worst_score_difference']:.4f} at most; {policy['bins_differ']} of {policy['samples']} "
        "samples fall into another policy bin (b = 4).",
        f"H2T2 (all + anytime, β = .3) on the same draws: {policy['decisions_differ']} of {policy['rounds']} decisions differ "
        f"(offloads {policy['offloads'][0]:.1%} float, {policy['offloads'][1]:.1%} int8).",
        "",
        "![float against int8](report.png)",
        "",
    ]
    return "\n".join(lines)
