"""Writes the measured parts of a preset's page: a message, a decision, the saving, the entities in Home Assistant."""

import json
import re
from pathlib import Path
from typing import Any

from h2t2_tools.common.report import Table
from h2t2_tools.fleet.gate.presets import PRESETS

from ..pages import page_parts
from .day_costs import table

COMMAND = "make presets"
SECTIONS = ("configuration", "message", "decision", "saving", "entities")
SOURCES = ("local", "remote")  # of the decisions that a page shows
WIDTH = 140  # characters of a line of JSON
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")  # of the simulated detector


def mark(section: str) -> str:
    """The mark before a section of a page."""
    return f"<!-- {section}: {COMMAND} -->"


def page(folder: Path, preset: str) -> Path:
    """The page of a preset."""
    return folder / f"gate-{preset}.md"


def renew(text: str, preset: str, measured: dict[str, Any]) -> str:
    """A page with the measured sections of its preset.

    Args:
        text: of the page, with the marks.
        preset: its name.
        measured: of one preset, as saving.measured() returns it.
    """
    contents = {
        "configuration": _fenced("toml", _entries(preset, measured["configuration"])),
        "message": _fenced("json", _folded(measured["message"])),
        "decision": _fenced("json", *(_folded(measured["decisions"][source]) for source in SOURCES)),
        "saving": _table(table(preset, measured)),
        "entities": _table(entity_table(measured)),
    }
    for section in SECTIONS:
        text = page_parts.between(text, mark(section), f"\n{contents[section]}\n")
    return text


def entity_table(measured: dict[str, Any]) -> Table:
    """The entities as a table."""
    keys = ("name", "kind", "entity", "state", "unit")
    rows = [[f"`{row[key]}`" if key == "entity" else row[key] for key in keys] for row in measured["entities"]]
    return Table("", dict.fromkeys(keys, "left"), rows)


def _entries(preset: str, configuration: str) -> str:
    """The lines of a configuration that the preset chose, with the detector's usual address."""
    head, _, _ = configuration.partition("\n\n# Defaults")
    lines = [line for line in head.splitlines() if line and not line.startswith(("#", "remote ", "broker "))]
    return ADDRESS.sub(PRESETS[preset].web, "\n".join(line.partition("  ")[0].rstrip() for line in lines))


def _fenced(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _folded(content: Any) -> str:
    """JSON in lines of at most WIDTH characters; an object that does not fit has a line for each group of entries."""
    text = json.dumps(content)
    if len(text) <= WIDTH or not isinstance(content, dict):
        return text if len(text) <= WIDTH else text[: WIDTH // 2] + ' ..."'
    lines, line = [], "{"
    for key, value in content.items():
        entry = f"{json.dumps(key)}: {_folded(value)}"
        if len(line) + len(entry) + 2 > WIDTH and line != "{":
            lines.append(line)
            line = " "
        line += f"{'' if line in ('{', ' ') else ' '}{entry},"
    return "\n".join([*lines, line.rstrip(",") + "}"])


def _table(content: Table) -> str:
    """A table in Markdown without its title."""
    return page_parts.markdown([content]).partition("\n\n")[2]


def write(folder: Path, measured: dict[str, Any]) -> list[Path]:
    """Renew the pages of all measured presets in a folder. Returns their paths."""
    paths = []
    for preset, content in measured.items():
        path = page(folder, preset)
        path.write_text(renew(path.read_text(encoding="utf-8"), preset, content), encoding="utf-8")
        paths.append(path)
    return paths
