"""The overview pages: `h2t2 --help` and `h2t2 help GROUP`. They fit 80 columns, and need no other module than the commands'."""

from pathlib import Path

from .. import __version__
from .commands import COMMANDS, FIRST_PAGE, GROUPS, TITLES

HELP = ("-h", "--help")
BARE = "h2t2: name a COMMAND, such as `h2t2 demo`; h2t2 --help lists the commands"
NAME_WIDTH = 15


def page(words: list[str]) -> str | None:
    """The overview that a command line asks for; None where it asks for something else."""
    if words[0] in HELP or words == ["help"]:
        return first_page()
    if words[0] == "--version":
        return f"h2t2 {__version__}\n"
    if words[0] == "help" and len(words) == 2 and words[1] in GROUPS:
        return group_page(words[1])
    return None


def first_page() -> str:
    """The commands that most people need, by group."""
    sections = [_section(group, [name for name in names if name in FIRST_PAGE]) for group, names in GROUPS.items()]
    template = Path(__file__).with_name("overview.txt").read_text(encoding="utf-8")
    return template.format(sections="".join(sections), groups=", ".join(GROUPS))


def group_page(group: str) -> str:
    """Every command of a group."""
    return "usage: h2t2 COMMAND [OPTIONS]\n" + _section(group, list(GROUPS[group]))


def _section(group: str, names: list[str]) -> str:
    lines = [f"  {name:{NAME_WIDTH}}  {first_sentence(COMMANDS[name][1])}\n" for name in names]
    return f"\n{group}: {TITLES[group][0].lower()}{TITLES[group][1:]}\n" + "".join(lines) if lines else ""


def first_sentence(summary: str) -> str:
    """The first sentence of a summary, without its full stop."""
    return summary.partition(". ")[0].rstrip(".")
