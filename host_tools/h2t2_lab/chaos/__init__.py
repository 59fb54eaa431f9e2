"""`h2t2-lab chaos`: injects faults of the field into real processes.

subjects: the nodes; storm: the faults; account: the decisions of a node, as an oracle in its process records them; figures: the
counters, and those that must be 0; soak: memory and latency of a long run; model: the remote model. field: a quiet hour, and an
update whose sensor dies, in the virtual time of virtual.py.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count, Duration, NotNegative
from h2t2_tools.common.report import Report, Table

from . import field, figures
from .storm import unleash

Deadline = Annotated[Duration, Field(ge=0.01, le=3600)]
Hours = Annotated[float, Field(ge=0, le=8760)]


def measure(
    progress: Callable[[str], None],
    node: tuple[Literal["pi", "unix"], ...] = ("pi", "unix"),
    samples: Count = 10000,
    deadline: Deadline = 2.0,
    seed: NotNegative = 1,
    hours: Hours = 0.0,
    figure: Path | None = None,
) -> dict[str, Any]:
    """Break brokers, workers, nodes and links, and count samples. It kills, stops and hangs processes; drops, doubles, delays
    and stalls messages; fills disks, moves clocks, breaks sensors. It compares samples, decisions and labels with independent
    counts. Then it runs two devices in virtual time: their sensors see nothing for an hour, and an update kills a sensor.

    Args:
        node: which nodes
        samples: samples through each node
        deadline: reply deadline of the nodes
        seed: seed of the faults
        hours: a soak: so long, instead of so many samples; default: no soak
        figure: draw what a soak's processes used (.png)

    Examples:
        h2t2-lab chaos
        h2t2-lab chaos --hours 1 --figure soak.png --json soak.json   # a soak: memory, descriptors, threads, latency

    Returns:
        The report of storm.unleash(), and "field", the rows of field.go_through().
    """

    def show(name: str, completed: int, total: int, doing: str) -> None:
        progress(f"{name}: {completed:,} of {total:,}, {doing}")

    measured = unleash([*node], samples, round(deadline * 1000), seed, show, hours)
    measured["field"] = []
    try:
        if not hours:
            measured["field"] = field.go_through(lambda text: progress(f"field: {text}"))
    except Failure as failure:  # the report tells what happened before
        measured["trouble"].append(str(failure))
    if figure:
        from .. import lab_plots

        lab_plots.soak(figure, measured["soak"])
    return measured


def report(measured: dict[str, Any]) -> Report:
    """Return the nodes' figures, those of the dashboard that watched, and a line for each device in virtual time."""
    rows = [[name, *(f"{row[name]:,}" for row in measured["nodes"])] for name in figures.FIGURES]
    lines: Report = [Table("chaos", {"": "left", **{row["node"]: "right" for row in measured["nodes"]}}, rows)]
    if measured["watch"]:
        watched = [[name, str(value)] for name, value in measured["watch"].items()]
        lines.append(Table("the dashboard that watched", {"": "left", "dashboard": "right"}, watched))
    lines.append("faults: " + ", ".join(f"{n} {name}" for name, n in measured["faults"].items()))
    for row in measured["field"]:
        update = f"{row['update']['outcome']} {row['update']['why']}".strip()
        lines.append(f"{row['node']}: {row['quiet']['seconds']:,} s with a quiet hour; an update whose sensor dies: {update}")
    return [*lines, f"{measured['seconds']:.0f} s on {measured['machine']}"]


def broken(measured: dict[str, Any]) -> list[str]:
    """Return a sentence for each violated requirement."""
    return figures.broken(measured) + field.broken(measured["field"])
