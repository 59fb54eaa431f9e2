"""`h2t2 bench presets`: what a gate saves on a simulated day of each preset, and what appears in Home Assistant."""

from collections.abc import Sequence
from typing import Any

from ...common.report import Report
from ..gate_day import DAYS, play
from ..gate_day.saving import TOTAL, measured, table
from . import Progress, with_goals

TITLE = "The gate's presets"


def measure(progress: Progress, only: Sequence[str] = (), hours: int = 24, per_hour: int = 60) -> dict[str, Any]:
    """Play a day of each preset through a Mosquitto of our own into `h2t2 gate`, with `h2t2 home-assistant` beside it.

    Args:
        progress: Called with the current preset and hour.
        only: Presets; none: all.
        hours: Hours of the day that are played, from midnight.
        per_hour: Messages of each stream in an hour.

    Returns:
        Preset to what `gate_day.saving.measured` returns.
    """
    content = {}
    for preset in only or DAYS:
        day = DAYS[preset]()
        played = play(day, range(hours), per_hour, lambda hour, preset=preset: progress(f"{preset}: {hour}:00"))  # type: ignore[misc]
        content[preset] = measured(day, played)
    return content


def broken(content: dict[str, Any]) -> list[str]:
    """Return the missed goals: every message is decided once, and the gate costs less than a rule without a policy."""
    missed = []
    for preset, day in content.items():
        if day["twice"] or day["undecided"]:
            missed.append(f"{preset}: {day['twice']} messages decided twice, {day['undecided']} not at all")
        total = next(row for row in day["rows"] if row["stream"] == TOTAL)
        for rule in ("always", "never", "threshold"):
            if total[rule] is not None and total["gate"] >= total[rule]:
                missed.append(
                    f"{preset}: the gate costs {total['gate']:.3f} a message; the rule '{rule}' costs {total[rule]:.3f}"
                )
    return missed


def report(content: dict[str, Any]) -> Report:
    """Return a table for each preset."""
    return with_goals([table(preset, day) for preset, day in content.items()], broken(content))
