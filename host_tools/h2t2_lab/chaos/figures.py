"""The counters of `h2t2-lab chaos`, and the requirements that they must meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .account import FALLBACK, REMOTE

if TYPE_CHECKING:
    from .subjects import Subject

LONG = 10000  # in a shorter run some faults may not happen
# figure -> its name in Account; those in NEVER must be 0
COUNTED = {
    "labels that came late and taught": "late", "sensor errors": "sensor_errors", "lives": "lives", "ended in order": "stops",
    "snapshot recoveries": "restored", "saves that failed": "unsaved",
}  # fmt: skip
NEVER = {
    "decided twice": "twice", "labels taught twice": "taught_twice", "not the policy's class": "wrong_class",
    "not the remote model's label": "wrong_label", "lessons miscounted": "miscounted",
    "lessons lost by an orderly end": "unlearned",
    "snapshots not used": "unreadable", "requests to another model": "foreign",
}  # fmt: skip
FIGURES = (
    "samples in", "decisions out", "by the remote model", "by fallback", "labels taught", *COUNTED, "worst latency ms", *NEVER,
)  # fmt: skip


def figures(subject: Subject) -> dict[str, Any]:
    """Return the row of a node."""
    a = subject.account
    sources = list(a.decided.values())
    row = {
        "samples in": a.samples,
        "decisions out": len(a.decided),
        "by the remote model": sources.count(REMOTE),
        "by fallback": sources.count(FALLBACK),
        "labels taught": len(a.lessons),
        "worst latency ms": round(a.worst_ms, 1),
    }
    row.update({figure: getattr(a, name) for figure, name in {**COUNTED, **NEVER}.items()})
    return {"node": subject.name, **{figure: row[figure] for figure in FIGURES}}


def broken(report: dict[str, Any]) -> list[str]:
    """Return a sentence for each requirement that a report violates."""
    trouble = list(report["trouble"])
    for row in report["nodes"]:
        name = row["node"]
        if row["decisions out"] != row["samples in"]:
            trouble.append(f"{name}: {row['samples in']} samples in, {row['decisions out']} decisions out")
        trouble += [f"{name}: {row[figure]} {figure}" for figure in NEVER if row[figure]]
        if row["worst latency ms"] > report["deadline_ms"] + report["stall_ms"] + report["sync_ms"]:
            stalls = f"{report['stall_ms']} at most, of its disk {report['sync_ms']}"
            allowed = f"deadline {report['deadline_ms']}, the machine's own stalls {stalls}"
            trouble.append(f"{name}: a decision after {row['worst latency ms']} ms, {allowed}")
        for figure in (
            "saves that failed", "snapshot recoveries", "sensor errors", "ended in order", "labels that came late and taught"
        ):  # fmt: skip
            if not row[figure] and row["samples in"] >= LONG:
                trouble.append(f"{name}: no {figure}, although the run should cause some")
        if not row["labels taught"] or not row["by fallback"]:
            trouble.append(f"{name}: no label taught it, or no fault made it fall back")
    return trouble + _broken_dashboard(report.get("watch"))


def _broken_dashboard(watch: dict[str, Any] | None) -> list[str]:
    """As broken(), for the dashboard that watched; None: there was none."""
    if watch is None:
        return []
    trouble = [f"dashboard: {watch[figure]} {figure}" for figure in ("ended by itself", "tracebacks") if watch[figure]]
    if watch["full disks said"] < watch["full disks"]:
        trouble.append(f"dashboard: {watch['full disks']} full disks, {watch['full disks said']} said")
    if watch["not answered"] > watch["health checks"] / 5:  # some come while it starts on a busy machine
        trouble.append(f"dashboard: {watch['not answered']} of {watch['health checks']} health checks without an answer")
    return trouble + [f"dashboard: not {figure}" for figure in ("well at the end", "written at the end") if not watch[figure]]
