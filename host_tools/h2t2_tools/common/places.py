"""Locates the runtime, the shipped models, boards and examples, and the cache, in a source tree and in an installed wheel."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import h2t2

PACKAGE = Path(__file__).parents[1]
SOURCE_TREE = PACKAGE.parents[1]  # the repository; an installed wheel has none
RUNTIME = Path(h2t2.__file__).parent


def text(path: str) -> str:
    """A data file of this package, such as "cli/completion.bash", as text."""
    return (PACKAGE / path).read_text(encoding="utf-8")


def models() -> Path:
    """The folder of the shipped pairs and traces: inside the installed wheel, or models/ of the source tree."""
    inside = PACKAGE / "_models"
    return inside if inside.is_dir() else SOURCE_TREE / "models"


def boards() -> Path:
    """The folder of the board folders: inside the installed wheel, or firmware/boards of the source tree."""
    inside = PACKAGE / "_boards"
    return inside if inside.is_dir() else SOURCE_TREE / "firmware/boards"


def examples() -> Path:
    """The folder of the example programs: inside the installed wheel, or firmware/examples of the source tree."""
    inside = PACKAGE / "_examples"
    return inside if inside.is_dir() else SOURCE_TREE / "firmware/examples"


def cache() -> Path:
    """The folder of emulators and of compiled code, numba's and boards': $XDG_CACHE_HOME/h2t2 or ~/.cache/h2t2."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "h2t2"


def state() -> Path:
    """The folder of what this user's commands remember: $XDG_STATE_HOME/h2t2 or ~/.local/state/h2t2."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "h2t2"


def temporary_folder(purpose: str) -> TemporaryDirectory[str]:
    """Make a temporary folder. Its name holds the purpose (letters) and this process: `h2t2 doctor clean` finds it by them."""
    return TemporaryDirectory(prefix=f"h2t2-{purpose}-{os.getpid()}-")


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Give the path to write a file at, which gets its name at the end: nobody finds a part of it under its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    yield partial
    partial.replace(target)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Make a folder the current one, to which relative names of files refer."""
    former = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(former)
