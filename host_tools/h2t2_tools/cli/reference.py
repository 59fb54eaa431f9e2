"""Reference pages, from the models of the commands and of a node's configuration: `make pages` writes them."""

import json
import sys
from functools import partial

from pydantic.fields import FieldInfo

from ..common import places
from ..common.cost_table import CostTable
from ..common.fields import about, help_text
from ..fleet.config import NodeConfig
from .command_line import Argument
from .commands import COMMANDS, EXAMPLES, GROUPS, TITLES
from .execute import command
from .options import declaration, flag, metavar, visible

INTRODUCTION = places.text("cli/pages/commands.md")
CONFIGURATION = places.text("cli/pages/configuration.md")


def page() -> str:
    """docs/commands.md: the groups of commands, with a link to each command."""
    rows = []
    for group, names in GROUPS.items():
        links = ", ".join(f"[{name}]({group_file(group)}#h2t2-{name.replace(' ', '-')})" for name in names)
        rows.append(f"| [{TITLES[group]}]({group_file(group)}) | {links} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


def group_file(group: str) -> str:
    """Return the file name of a group's page."""
    return f"commands-{group}.md"


def group_page(group: str) -> str:
    """Return the page of a group: every command with its options and examples."""
    title = f"# Commands: {group}"
    lines = [title, "", f"{TITLES[group]}. `make pages` writes this page. [All commands](commands.md)."]
    for name in GROUPS[group]:
        lines += _section(name)
    return "\n".join(lines) + "\n"


def _section(name: str) -> list[str]:
    """A command with its options and examples."""
    model, summary = command(name), COMMANDS[name][1]
    fields = visible(model)
    positional = [_positional(argument) for argument in declaration(name, model)["arguments"] if argument["name"][:2] != "--"]
    lines = ["", f"## h2t2 {name}", "", summary, "", f"`{' '.join(['h2t2', name, *positional, '[options]'])}`", ""]
    lines += [f"- `{_synopsis(key, field)}`: {_text(field)}" for key, field in fields.items()]
    return [*lines, "", "```sh", *EXAMPLES[name], "```"]


def _positional(argument: Argument) -> str:
    """A positional argument as `--help` shows it: [NAME] may be left out, NAME ... takes several."""
    text = {"?": "[{}]", "*": "[{} ...]", "+": "{} ..."}.get(argument["settings"].get("nargs", ""), "{}")
    return text.format(argument["settings"]["metavar"])


def declared() -> str:
    """cli/declared.json: the declaration of every command, an option in a line."""
    commands = []
    for name in COMMANDS:
        content = declaration(name, command(name))
        arguments = ",\n  ".join(json.dumps(argument) for argument in content["arguments"])
        others = ", ".join(f'"{key}": {json.dumps(content[key])}' for key in ("renamed", "examples"))
        commands.append(f'{json.dumps(name)}: {{"arguments": [\n  {arguments}],\n {others}}}')
    return "{\n" + ",\n".join(commands) + "\n}\n"


def configuration() -> str:
    """docs/configuration.md: every entry of an h2t2.toml."""
    lines = CONFIGURATION.splitlines()
    for title in ("network", "models", "policy", "operation"):
        lines += ["", f"## {title.capitalize()}", "", "| entry | option | meaning |", "|---|---|---|"]
        entries = {name: field for name, field in NodeConfig.model_fields.items() if about(field, "group") == title}
        for name, field in entries.items():
            option = "" if about(field, "hidden") else f"`{flag(name, field)}`"
            lines.append(f"| `{name}` | {option} | {help_text(field, choices=True)} |")
    lines += ["", "## Table [offload_cost]", "", "| entry | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_text(field)} |" for name, field in CostTable.model_fields.items()]
    return "\n".join(lines) + "\n"


def _synopsis(name: str, field: FieldInfo) -> str:
    names = metavar(name, field)
    if about(field, "positional"):
        return str(names)
    values = names if isinstance(names, tuple) else (names,) if field.annotation is not bool else ()
    return " ".join([flag(name, field), *values])


def _text(field: FieldInfo) -> str:
    needed = field.is_required() and not about(field, "unset") and not about(field, "positional")
    return help_text(field) + (" (required)" if needed else "")


PAGES = {"commands": page, "configuration": configuration, "declared": declared} | {
    group: partial(group_page, group) for group in GROUPS
}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
