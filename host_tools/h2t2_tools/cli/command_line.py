"""Command lines from declarations: parsing, help, and hints for misspelt names. Light, since every `--help` needs it.

`options.declaration()` makes a command's declaration from its model. `make pages` stores all of them in declared.json, from
which `h2t2 COMMAND --help` and `h2t2 completion` read them: they import no model of a command.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from ..common.errors import UserError
from .commands import BENCH, COMMANDS, GROUPS

STORED = Path(__file__).with_name("declared.json")
SECTIONS = {
    "log": "one line per record on standard error: time, level, command, text",
    "security": "mqtts:// means TLS; the broker's certificate is verified",
}


class Argument(TypedDict):
    """An option or a positional argument.

    Attributes:
        name: the flag, or the name of a positional argument.
        section: heading under which `--help` lists it; "" for none.
        choices: the values that it accepts, where they are listed.
        settings: keyword arguments of argparse's add_argument().
    """

    name: str
    section: str
    choices: list[str]
    settings: dict[str, Any]


class Declaration(TypedDict):
    """The options of a command.

    Attributes:
        arguments: in the order of `--help`.
        renamed: former flag -> present flag.
        examples: command lines.
    """

    arguments: list[Argument]
    renamed: dict[str, str]
    examples: list[str]


def stored() -> dict[str, Declaration]:
    """Read the declarations that `make pages` stored: name of a command -> declaration."""
    content: dict[str, Declaration] = json.loads(STORED.read_text())
    return content


class _Parser(argparse.ArgumentParser):
    """argparse, whose errors are UserErrors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help shows more")


class _Renamed(argparse.Action):
    """Refuses a former name of an option."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> NoReturn:
        raise UserError(f"{option_string}: this option is called {self.const} now")


def asks_help(line: list[str]) -> bool:
    """Whether the words after a command's name ask for its help."""
    return any(word in ("-h", "--help") for word in before_separator(line))


def before_separator(line: list[str]) -> list[str]:
    """The words before `--`, after which nothing is an option."""
    return line[: line.index("--")] if "--" in line else line


def parse(name: str, declared: Declaration, line: list[str]) -> dict[str, Any]:
    """Read the words after a command's name.

    Returns:
        Name of an option -> its text, or a list of texts.

    Raises:
        UserError: the command has no such option, or misses one.
        SystemExit: after `--help`.
    """
    flags = [argument["name"] for argument in declared["arguments"] if argument["name"].startswith("--")]
    flags += [*declared["renamed"], "--help", "--debug"]
    for word in before_separator(line):
        flag = word.partition("=")[0]
        if flag.startswith("--") and " " not in flag and not any(known.startswith(flag) for known in flags):
            raise UserError(f"{flag}: h2t2 {name} has no such option{hint(flag, flags)}; h2t2 {name} --help shows its options")
    return vars(_parser(name, declared).parse_args(line))


def _parser(name: str, declared: Declaration) -> _Parser:
    examples = "examples:\n" + "\n".join("  " + line for line in declared["examples"])
    parser = _Parser(
        f"h2t2 {name}",
        description=COMMANDS[name][1],
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)  # execute() reads it
    sections: dict[str, Any] = {"": parser}
    for argument in declared["arguments"]:
        title, settings = argument["section"], dict(argument["settings"])
        if title not in sections:
            sections[title] = parser.add_argument_group(title, SECTIONS.get(title))
        if isinstance(settings.get("metavar"), list):
            settings["metavar"] = tuple(settings["metavar"])
        sections[title].add_argument(argument["name"], **settings)
    for old, new in declared["renamed"].items():
        parser.add_argument(old, nargs="*", action=_Renamed, const=new, help=argparse.SUPPRESS)
    return parser


def hint(word: str, names: list[str]) -> str:
    """Suggest the name that a misspelt word resembles; "" if it resembles none."""
    from difflib import get_close_matches

    matches = get_close_matches(word, names, 1)
    return f"; did you mean {matches[0]}?" if matches else ""


def unknown(line: list[str]) -> UserError:
    """The error for a command line whose first words name no command."""
    if line == [BENCH]:
        return UserError(f"{BENCH}: name a benchmark; h2t2 help {BENCH} lists them")
    if line[0] == BENCH:
        names = [name.removeprefix(f"{BENCH} ") for name in GROUPS[BENCH]]
        return UserError(f"{line[1]}: no such benchmark{hint(line[1], names)}; h2t2 help {BENCH} lists them")
    if line[0] == "help":
        text = " ".join(line[1:])
        if text in COMMANDS:
            return UserError(f"{text}: a command, not a group of commands; h2t2 {text} --help shows its options")
        return UserError(f"{text}: no such group of commands{hint(text, [*GROUPS])}; there are {', '.join(GROUPS)}")
    names = [*COMMANDS, BENCH, "help", "--help", "--version", "--debug"]
    return UserError(f"{line[0]}: no such COMMAND{hint(line[0], names)}; h2t2 --help lists the commands")
