"""The command reference as a page, from the parser itself: `make pages` writes docs/commands.md."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from .main import parser


def page() -> str:
    """Every command with its options and examples, in Markdown."""
    lines = [
        "# Commands",
        "",
        "Written from the parser by `make pages`. `h2t2 COMMAND --help` shows the same. Every command that reports takes",
        "`--json FILE`; `-` is standard output, and [JSON and MQTT](json.md) says what every key means.",
        "",
        "Exit status: 0, 1 for a failure, 2 for wrong use, 130 after Ctrl-C.",
    ]
    for name, command in _commands(parser(), "h2t2"):
        lines += ["", f"## {name}", "", command.description or "", "", f"`{_usage(name, command)}`", ""]
        for action in command._actions:
            if action.dest != "help":
                lines.append(f"- `{_name(action)}`: {_help(action, command)}")
        examples = (command.epilog or "").removeprefix("examples:\n")
        if examples:
            lines += ["", "```sh", *(line.strip() for line in examples.splitlines()), "```"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _commands(root: argparse.ArgumentParser, prefix: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                if any(isinstance(inner, argparse._SubParsersAction) for inner in command._actions):
                    yield from _commands(command, f"{prefix} {name}")
                else:
                    yield f"{prefix} {name}", command


def _usage(name: str, command: argparse.ArgumentParser) -> str:
    own = [a.metavar or a.dest.upper() for a in command._actions if not a.option_strings]
    return " ".join([name, *map(str, own), "[options]"])


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    values = "" if action.nargs == 0 else " " + str(action.metavar or action.dest.upper())
    return action.option_strings[-1] + values


def _help(action: argparse.Action, command: argparse.ArgumentParser) -> str:
    text = (action.help or "") % {"default": action.default, "prog": command.prog}
    chosen = list(action.choices) if isinstance(action.choices, (list, tuple)) and not action.metavar else []
    if chosen and not all(str(one) in text for one in chosen):
        text += f" — one of {', '.join(map(str, chosen))}"
    required = " (required)" if action.required and action.option_strings else ""
    return re.sub(r"\s+", " ", text) + required


if __name__ == "__main__":
    print(page(), end="")
