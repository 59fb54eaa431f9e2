"""Scripts for tab completion, made from the stored declarations of all commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ..common.fields import option
from .command_line import Argument, stored
from .commands import BENCH, COMMANDS, GROUPS, TITLES
from .options import Command
from .overview import first_sentence

OPENING = ["--help", "--version", "--debug"]

# Templates of str.format(). Readline completes file names where the function leaves COMPREPLY empty (-o default).
BASH, FISH = (Path(__file__).with_name(f"completion.{shell}").read_text() for shell in ("bash", "fish"))


class Completion(Command):
    shell: Literal["bash", "zsh", "fish"] = option(..., "the shell", positional=True)

    def run(self) -> None:
        if self.shell == "fish":
            print("\n".join(_fish()))
            return
        if self.shell == "zsh":
            print("autoload -U +X compinit && compinit -i\nautoload -U +X bashcompinit && bashcompinit")
        print(_bash(self.shell), end="")


def _first_words() -> list[str]:
    return [*(name for name in COMMANDS if " " not in name), BENCH, "help"]


def _flags(arguments: list[Argument]) -> list[Argument]:
    return [argument for argument in arguments if argument["name"].startswith("--")]


def _first_positional(arguments: list[Argument]) -> list[str]:
    """The values that the first positional argument accepts, where they are listed."""
    return next((argument["choices"] for argument in arguments if not argument["name"].startswith("--")), [])


def _bash(shell: str) -> str:
    options, choices = [], []
    positional = {"help": [*GROUPS], BENCH: [name.removeprefix(f"{BENCH} ") for name in GROUPS[BENCH]]}
    for name, declared in stored().items():
        flags = _flags(declared["arguments"])
        options.append(_case(name, [*(argument["name"] for argument in flags), "--help"]))
        choices += [_case(f"{name} {flag['name']}", flag["choices"]) for flag in flags if flag["choices"]]
        if values := _first_positional(declared["arguments"]):
            positional[name] = values
    return BASH.format(
        shell=shell,
        bench=BENCH,
        names=" ".join([*_first_words(), *OPENING]),
        options="\n".join(options),
        choices="\n".join(choices),
        positional="\n".join(_case(name, values) for name, values in positional.items()),
    )


def _case(pattern: str, words: list[str]) -> str:
    return f'        "{pattern}") words="{" ".join(words)}" ;;'


def _fish() -> Iterator[str]:
    yield FISH.rstrip()
    for name in _first_words():
        summary = first_sentence(COMMANDS[name][1]) if name in COMMANDS else TITLES.get(name, "List the commands of a group")
        yield _fish_word("", name, summary)
    yield from (f"complete -c h2t2 -n __h2t2_is -l {flag[2:]}" for flag in OPENING)
    yield from (_fish_word("help", group, title) for group, title in TITLES.items())
    for name in GROUPS[BENCH]:
        yield _fish_word(BENCH, name.removeprefix(f"{BENCH} "), first_sentence(COMMANDS[name][1]))
    for name, declared in stored().items():
        for argument in declared["arguments"]:
            yield f"complete -c h2t2 -n '__h2t2_begins {name}' {_fish_argument(argument)}"


def _fish_word(before: str, word: str, description: str) -> str:
    return f"complete -c h2t2 -n '__h2t2_is {before}' -a {word} -d {_quoted(description)}"


def _fish_argument(argument: Argument) -> str:
    values = f"-a {_quoted(' '.join(argument['choices']))}" if argument["choices"] else "-F"
    if not argument["name"].startswith("--"):
        return values
    description = f"-l {argument['name'][2:]} -d {_quoted(argument['settings']['help'].replace('%%', '%'))}"
    if argument["settings"].get("action") == "store_true":
        return description
    return f"{description} {'-x' if argument['choices'] else '-r'} {values}"


def _quoted(text: str) -> str:
    """A text as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
