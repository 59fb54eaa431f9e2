"""Scripts for tab completion, made from the declarations of all commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ..common.fields import option
from .command_line import Argument, Declaration
from .commands import COMMANDS, EVERYWHERE, GROUPS, TITLES
from .execute import command
from .options import Command, declaration
from .overview import first_sentence

FIRST_WORDS = [*COMMANDS, "help"]
OPENING = ["--help", "--version", *EVERYWHERE]

# Templates of str.format(). Readline completes file names where the function leaves COMPREPLY empty (-o default).
BASH, FISH = (Path(__file__).with_name(f"completion.{shell}").read_text() for shell in ("bash", "fish"))


class Completion(Command):
    """Bash, zsh and fish read it from the files that the examples name."""

    examples = (
        "d=~/.local/share/bash-completion/completions; mkdir -p $d && h2t2 completion bash > $d/h2t2",
        "h2t2 completion zsh > ~/.h2t2-completion && echo 'source ~/.h2t2-completion' >> ~/.zshrc",
        "mkdir -p ~/.config/fish/completions && h2t2 completion fish > ~/.config/fish/completions/h2t2.fish",
    )
    shell: Literal["bash", "zsh", "fish"] = option(..., "the shell", positional=True)

    def run(self) -> None:
        if self.shell == "fish":
            print("\n".join(_fish()))
            return
        if self.shell == "zsh":
            print("autoload -U +X compinit && compinit -i\nautoload -U +X bashcompinit && bashcompinit")
        print(_bash(self.shell), end="")


def declared() -> dict[str, Declaration]:
    """The declarations of all commands, by name."""
    return {name: declaration(name, command(name)) for name in COMMANDS}


def _bash(shell: str) -> str:
    options, choices = [], []
    positional = {"help": [*GROUPS]}
    for name, content in declared().items():
        flags = [argument for argument in content["arguments"] if argument["name"].startswith("--")]
        options.append(_case(name, [*(argument["name"] for argument in flags), "--help"]))
        choices += [_case(f"{name} {flag['name']}", flag["choices"]) for flag in flags if flag["choices"]]
        first = next((argument for argument in content["arguments"] if argument not in flags), None)
        if first and first["choices"]:
            positional[name] = first["choices"]
    return BASH.format(
        shell=shell,
        names=" ".join([*FIRST_WORDS, *OPENING]),
        options="\n".join(options),
        choices="\n".join(choices),
        positional="\n".join(_case(name, values) for name, values in positional.items()),
    )


def _case(pattern: str, words: list[str]) -> str:
    return f'        "{pattern}") words="{" ".join(words)}" ;;'


def _fish() -> Iterator[str]:
    yield FISH.rstrip()
    for name in FIRST_WORDS:
        summary = first_sentence(COMMANDS[name][1]) if name in COMMANDS else TITLES.get(name, "List the commands of a group")
        yield _fish_word("", name, summary)
    yield from (f"complete -c h2t2 -n __h2t2_is -l {flag[2:]}" for flag in OPENING)
    yield from (_fish_word("help", group, title) for group, title in TITLES.items())
    for name, content in declared().items():
        for argument in content["arguments"]:
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
