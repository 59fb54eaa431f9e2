"""Reference pages, from the models of the commands and of a node's configuration: `make pages` writes them."""

import sys
from functools import partial

from pydantic.fields import FieldInfo

from h2t2_tools.cli.commands import GROUPS, TITLES
from h2t2_tools.cli.execute import command
from h2t2_tools.cli.options import Command, flag, metavar, summary, value_count, visible
from h2t2_tools.common.cost_table import CostTable
from h2t2_tools.common.fields import about, help_text
from h2t2_tools.fleet import template
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.gate.gate_config import GateConfig

from .. import command_line, material

INTRODUCTION = material.text("pages/commands.md")
CONFIGURATION = material.text("pages/configuration.md")


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
        lines += _section(f"h2t2 {name}", summary(name, command(name)), command(name))
    return "\n".join(lines) + "\n"


def lab_page() -> str:
    """Return docs/lab.md: the commands of the lab."""
    lines = material.text("pages/lab.md").splitlines()
    for name in command_line.COMMANDS:
        lines += _section(f"{command_line.PROGRAM} {name}", command_line.summary(name), command_line.model(name))
    return "\n".join(lines) + "\n"


def _section(program: str, text: str, model: type[Command]) -> list[str]:
    """A command with its options and examples."""
    fields = visible(model)
    positional = [_positional(name, field) for name, field in fields.items() if about(field, "positional")]
    lines = ["", f"## {program}", "", text, "", f"`{' '.join([program, *positional, '[options]'])}`", ""]
    lines += [f"- `{_synopsis(key, field)}`: {_text(field)}" for key, field in fields.items()]
    return [*lines, "", "```sh", *model.examples, "```"] if model.examples else lines


def _positional(name: str, field: FieldInfo) -> str:
    """A positional argument as `--help` shows it: [NAME] may be left out, NAME ... takes several."""
    text = {"?": "[{}]", "*": "[{} ...]", "+": "{} ..."}.get(value_count(field).get("nargs", ""), "{}")
    return text.format(metavar(name, field))


def configuration() -> str:
    """docs/configuration.md: every entry of an h2t2.toml, and those that a gate has of its own."""
    lines = CONFIGURATION.splitlines()
    for title in ("network", "models", "policy", "operation"):
        lines += ["", f"## {title.capitalize()}", "", "| entry | option | meaning |", "|---|---|---|"]
        entries = {name: field for name, field in NodeConfig.model_fields.items() if about(field, "group") == title}
        for name, field in entries.items():
            option = "" if about(field, "hidden") else f"`{flag(name, field)}`"
            lines.append(f"| `{name}` | {option} | {help_text(field, choices=True)} |")
    lines += ["", "## Table [offload_cost]", "", "| entry | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_text(field)} |" for name, field in CostTable.model_fields.items()]
    lines += ["", "## A gate", "", material.text("pages/gate_entries.md").strip(), "", "| entry | meaning |", "|---|---|"]
    for title in ("messages", "remote model", "operation"):
        entries = {name: field for name, field in GateConfig.model_fields.items() if about(field, "group") == title}
        for name, field in entries.items():
            needed = " (required)" if field.is_required() else ""
            lines.append(f"| `{name}` | {help_text(field, choices=True)}{needed} |")
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


def project_file() -> str:
    """firmware/boards/h2t2.toml: an example with a section for each kind of board."""
    shared = template.render("porch", {"device": "porch", "pair": "pair", "app": "app.py"})
    return shared + "".join(template.section(board) for board in template.SECTIONS)


PAGES = {"commands": page, "h2t2-lab": lab_page, "configuration": configuration, "h2t2.toml": project_file} | {
    group: partial(group_page, group) for group in GROUPS
}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
