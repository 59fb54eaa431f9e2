"""What `h2t2 chaos` counts, and what must be true of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .subjects import Subject

FIGURES = (
    "samples in", "decisions out", "decided twice", "by the remote model", "by fallback", "labels taught",
    "labels taught twice",
    "replies refused", "worst latency ms", "lives", "snapshot recoveries", "unreadable snapshots", "saves that failed",
)  # fmt: skip


def figures(subject: Subject) -> dict[str, Any]:
    """A node's row."""
    a = subject.account
    sources = list(a.decided.values())
    values = (
        a.samples, len(a.decided), a.twice, sources.count("remote"), sources.count("fallback"), a.taught, a.taught_twice,
        a.strangers, round(a.worst_ms, 1), a.lives, a.restored, a.unreadable, a.unsaved,
    )  # fmt: skip
    return {"node": subject.name, **dict(zip(FIGURES, values))}


def broken(report: dict[str, Any]) -> list[str]:
    """What in a report must not be, in words; empty when all is well."""
    trouble = []
    for row in report["nodes"]:
        name = row["node"]
        if row["decisions out"] != row["samples in"]:
            trouble.append(f"{name}: {row['samples in']} samples in, {row['decisions out']} decisions out")
        for figure in ("decided twice", "labels taught twice", "unreadable snapshots"):
            if row[figure]:
                trouble.append(f"{name}: {row[figure]} {figure}")
        if row["worst latency ms"] > report["deadline_ms"]:
            trouble.append(f"{name}: a decision after {row['worst latency ms']} ms, deadline {report['deadline_ms']}")
        if not row["saves that failed"] or not row["snapshot recoveries"]:
            trouble.append(f"{name}: no full disk or no recovery: not all that was to happen did")
        if not row["labels taught"] or not row["by fallback"]:
            trouble.append(f"{name}: nothing was taught, or nothing went wrong")
    return trouble
