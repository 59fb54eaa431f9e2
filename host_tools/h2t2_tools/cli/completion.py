"""Scripts for tab completion, made from the declarations of all commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic.fields import FieldInfo

from ..common.fields import about, domain, help_text, option
from .commands import COMMANDS, EVERYWHERE, GROUPS, TITLES
from .execute import command
from .options import Command, flag, visible
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


def _bash(shell: str) -> str:
    options, choices = [], []
    positional = {"help": [*GROUPS]}
    for command_name in COMMANDS:
        flags = ["--help"]
        for name, field in visible(command(command_name)).items():
            accepted = [*map(str, domain(field).choices)]
            if not about(field, "positional"):
                flags.insert(-1, flag(name, field))
                choices += [_case(f"{command_name} {flag(name, field)}", accepted)] if accepted else []
            elif accepted:
                positional.setdefault(command_name, accepted)
        options.append(_case(command_name, flags))
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
    for name in COMMANDS:
        for key, field in visible(command(name)).items():
            yield f"complete -c h2t2 -n '__h2t2_begins {name}' {_fish_argument(key, field)}"


def _fish_word(before: str, word: str, description: str) -> str:
    return f"complete -c h2t2 -n '__h2t2_is {before}' -a {word} -d {_quoted(description)}"


def _fish_argument(name: str, field: FieldInfo) -> str:
    accepted = domain(field)
    values = f"-a {_quoted(' '.join(map(str, accepted.choices)))}" if accepted.choices else "-F"
    if about(field, "positional"):
        return values
    description = f"-l {flag(name, field)[2:]} -d {_quoted(help_text(field))}"
    if accepted.kind is bool:
        return description
    return f"{description} {'-x' if accepted.choices else '-r'} {values}"


def _quoted(text: str) -> str:
    """A text as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
