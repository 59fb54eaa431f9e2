"""Every command by group, as commands.json lists them. Light, since `h2t2 --help` reads it.

A command's `model` is module:class, where it is declared. Its `summary` says what it does: the first sentence fits one line of
an overview; `h2t2 COMMAND --help` shows the whole summary and the `examples`, command lines that docs/commands-*.md show, too.
"""

import json
from pathlib import Path
from typing import Any

BENCH = "bench"  # the first word of every benchmark, and the group that `h2t2 help bench` lists
_LISTED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))

# group -> what its commands are for
TITLES: dict[str, str] = {group: listed["title"] for group, listed in _LISTED.items()}

# group -> name -> (module:model, summary)
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    group: {name: (command["model"], command["summary"]) for name, command in listed["commands"].items()}
    for group, listed in _LISTED.items()
}

# the commands on the first page of `h2t2 --help`; `h2t2 help GROUP` lists all of a group
FIRST_PAGE = [name for listed in _LISTED.values() for name, command in listed["commands"].items() if command.get("first_page")]

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
EXAMPLES: dict[str, list[str]] = {
    name: command["examples"] for listed in _LISTED.values() for name, command in listed["commands"].items()
}
