"""Asks before a program runs, or a server gets samples, of a pair or a model that this user has not made.

What the user has made, or trusts, is remembered by its content in $XDG_STATE_HOME/h2t2/trusted: a change is asked about again.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from . import places
from .errors import UserError

OPTION = "--trust"  # of every command: trust, this time, whatever it would ask about
GIVEN = "H2T2_TRUST"  # the environment variable that carries it to child processes


def demand(origin: str, dangers: list[str], content: Iterable[bytes]) -> None:
    """Return if this user trusts what `content` holds. At a terminal it asks.

    Args:
        origin: where it comes from, for the question.
        dangers: sentences about what it does; [] for nothing.
        content: the programs and addresses that do it.

    Raises:
        UserError: the user does not trust it, or nobody can be asked.
    """
    if not dangers:
        return
    mark = _mark(content)
    if mark.is_file():
        return
    text = f"{origin}: {'; '.join(dangers)}"
    if GIVEN in os.environ:
        _log(f"h2t2: {text}; trusted ({OPTION})")
    elif sys.stdin.isatty() and sys.stderr.isatty() and answers_yes(f"{text}. Do you trust who made it?"):
        _write(mark)
    else:
        raise UserError(f"{text}; if you trust who made it, add {OPTION}")


def remember(content: Iterable[bytes]) -> None:
    """Trust what this user has made."""
    _write(_mark(content))


def remember_models(folder: Path) -> None:
    """Trust the .joblib files in a folder, as a user who has trained them does."""
    for path in folder.glob("*.joblib"):
        remember([path.read_bytes()])


@cache
def _log(line: str) -> None:
    """Print a line once: a command may read a file several times."""
    print(line, file=sys.stderr)


def answers_yes(question: str) -> bool:
    """Ask a question on the terminal; return whether the answer is yes."""
    print(f"h2t2: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _mark(content: Iterable[bytes]) -> Path:
    parts = sorted(sha256(text).digest() for text in content)
    return places.state() / "trusted" / sha256(b"".join(parts)).hexdigest()


def _write(mark: Path) -> None:
    with suppress(OSError):  # a read-only home: the next start asks again
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
