"""What a wrong command line is told: one line, with a hint for a misspelt name."""

import argparse
from typing import NoReturn

from ..common.errors import UserError
from .commands import COMMANDS, EVERYWHERE, GROUPS, MOVED


class Parser(argparse.ArgumentParser):
    """argparse, whose errors are UserErrors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help shows more")


def before_separator(line: list[str]) -> list[str]:
    """The words before `--`, after which nothing is an option."""
    return line[: line.index("--")] if "--" in line else line


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
