"""`h2t2-lab bench presets`: what a gate saves on a simulated day of each preset, and what appears in Home Assistant."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2t2_tools.cli.gate import PresetName
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report

from ..gate_day import DAYS, play, preset_pages
from ..gate_day.day_costs import TOTAL, measured, table
from . import Progress, with_goals

TITLE = "The gate's presets"
Hours = Annotated[int, Field(ge=1, le=24)]


def measure(
    progress: Progress, only: tuple[PresetName, ...] = (), hours: Hours = 24, per_hour: Count = 60, pages: Path | None = None
) -> dict[str, Any]:
    """Play a simulated day of each preset of `h2t2 gate`. It shows what the gate saves, and writes the measured parts of the
    presets' pages. `h2t2 home-assistant` runs beside it, at a Mosquitto of our own.

    Args:
        only: play these presets alone; default: all
        hours: hours of the day, from midnight
        per_hour: messages of each stream in an hour
        pages: folder of the presets' pages, whose measured parts are written anew; default: no page

    Examples:
        h2t2-lab bench presets --only frigate --per-hour 20
        h2t2-lab bench presets --pages docs

    Returns:
        Preset to what `gate_day.day_costs.measured` returns.
    """
    content = {}
    for preset in only or DAYS:
        day = DAYS[preset]()
        played = play(day, range(hours), per_hour, lambda hour, preset=preset: progress(f"{preset}: {hour}:00"))  # type: ignore[misc]
        content[preset] = measured(day, played)
    if pages:
        preset_pages.write(pages, content)
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
