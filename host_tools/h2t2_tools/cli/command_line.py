"""Command lines from declarations: parsing, help, and hints for misspelt names."""

import argparse
from typing import Any, NoReturn, TypedDict

from ..common.errors import UserError
from .commands import COMMANDS, EVERYWHERE, GROUPS, MOVED

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
        program: its name with that of the program, such as "h2t2 node".
        summary: what it does.
        arguments: in the order of `--help`.
        examples: command lines.
    """

    program: str
    summary: str
    arguments: list[Argument]
    examples: list[str]


class _Parser(argparse.ArgumentParser):
    """argparse, whose errors are UserErrors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help shows more")


def asks_help(line: list[str]) -> bool:
    """Whether the words after a command's name ask for its help."""
    return any(word in ("-h", "--help") for word in before_separator(line))


def before_separator(line: list[str]) -> list[str]:
    """The words before `--`, after which nothing is an option."""
    return line[: line.index("--")] if "--" in line else line


def parse(declared: Declaration, line: list[str]) -> dict[str, Any]:
    """Read the words after a command's name.

    Returns:
        Name of an option -> its text, or a list of texts.

    Raises:
        UserError: the command has no such option, or misses one.
        SystemExit: after `--help`.
    """
    flags = [argument["name"] for argument in declared["arguments"] if argument["name"].startswith("--")]
    flags += ["--help", *EVERYWHERE]
    for word in before_separator(line):
        flag = word.partition("=")[0]
        if flag.startswith("--") and " " not in flag and not any(accepted.startswith(flag) for accepted in flags):
            program = declared["program"]
            raise UserError(f"{flag}: {program} has no such option{hint(flag, flags)}; {program} --help shows its options")
    options = vars(_parser(declared).parse_args(line))
    return {name: text for name, text in options.items() if f"--{name}" not in EVERYWHERE}


def _parser(declared: Declaration) -> _Parser:
    examples = "examples:\n" + "\n".join("  " + line for line in declared["examples"])
    parser = _Parser(
        declared["program"],
        description=declared["summary"],
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    for option in EVERYWHERE:
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    sections: dict[str, Any] = {"": parser}
    for argument in declared["arguments"]:
        title, settings = argument["section"], dict(argument["settings"])
        if title not in sections:
            sections[title] = parser.add_argument_group(title, SECTIONS.get(title))
        sections[title].add_argument(argument["name"], **settings)
    return parser


def hint(word: str, names: list[str]) -> str:
    """Suggest the name that a misspelt word resembles; "" if it resembles none."""
    from difflib import get_close_matches

    matches = get_close_matches(word, names, 1)
    return f"; did you mean {matches[0]}?" if matches else ""


def unknown(line: list[str]) -> UserError:
    """The error for a command line whose first words name no command."""
    if line[0] in MOVED:
        return UserError(f"{line[0]}: this command is called {MOVED[line[0]]} now")
    if line[0] == "help":
        text = " ".join(line[1:])
        if text in COMMANDS:
            return UserError(f"{text}: a command, not a group of commands; h2t2 {text} --help shows its options")
        return UserError(f"{text}: no such group of commands{hint(text, [*GROUPS])}; there are {', '.join(GROUPS)}")
    names = [*COMMANDS, "help", "--help", "--version", *EVERYWHERE]
    return UserError(f"{line[0]}: no such COMMAND{hint(line[0], names)}; h2t2 --help lists the commands")
