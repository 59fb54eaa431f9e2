"""`h2t2 doctor clean`: what h2t2 has written outside of projects, and its deletion."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ..common import places
from ..common.fields import option
from ..common.report import Table
from ..common.trust import answers_yes
from .options import Reporting
from .output import show

CACHES = ("build-logs", "compiled", "heap", "instructions", "mip", "numba")
NOTES = "emulated"  # of the emulators that run now
TEMPORARY = re.compile(r"h2t2-[a-z]+-(\d+)-\w+")  # as places.temporary_folder() names them
KINDS = {
    "cache": "compiled code and measured heaps, which commands make again",
    "emulator": "`h2t2 boards --install`, or `h2t2-lab emulators` in a clone, installs it again",
    "left behind": "temporary folders of processes that were killed",
}


@dataclass
class Folder:
    """A folder that may be deleted.

    Attributes:
        kind: One of KINDS.
        path: Where it is.
        bytes: Size of its files.
        deleted: Whether the command has deleted it.
    """

    kind: str
    path: str
    bytes: int
    deleted: bool = False


class Clean(Reporting):
    """It lists caches, emulators and temporary folders of processes that were killed, and asks about each kind before it
    deletes. Projects, pairs and samples stay, and so do the programs that you trust.
    """

    examples = ("h2t2 doctor clean", "h2t2 doctor clean --yes")
    yes: bool = option(False, "delete all of it without asking")

    def run(self) -> None:
        found = [_measured(kind, path) for kind, path in (*_cached(), *_left_behind())]
        if not self.quiet:
            rows = [[folder.kind, f"{folder.bytes / 1e6:,.1f}", folder.path] for folder in found]
            show([Table("what h2t2 has written outside of projects", {"kind": "left", "MB": "right", "folder": "left"}, rows)])
        for kind, about in KINDS.items():
            folders = [folder for folder in found if folder.kind == kind]
            size = sum(folder.bytes for folder in folders) / 1e6
            if folders and (self.yes or self._may_ask and answers_yes(f"{kind}: {about}. Delete {size:,.1f} MB?")):
                for folder in folders:
                    shutil.rmtree(folder.path)
                    folder.deleted = True
        if self.report([asdict(folder) for folder in found]):
            deleted = [folder for folder in found if folder.deleted]
            hint = "" if deleted or not found else "; --yes deletes all of it"
            print(f"{len(deleted)} of {len(found)} folders deleted, {sum(one.bytes for one in deleted) / 1e6:,.1f} MB{hint}")

    @property
    def _may_ask(self) -> bool:
        return not self.quiet and sys.stdin.isatty() and sys.stderr.isatty()


def _measured(kind: str, path: Path) -> Folder:
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return Folder(kind, str(path), sum(file.lstat().st_size for file in files))


def _cached() -> Iterator[tuple[str, Path]]:
    """The folders of the cache."""
    for path in sorted(places.cache().glob("*")):
        if path.name != NOTES and path.is_dir() and not path.is_symlink():
            yield "cache" if path.name in CACHES else "emulator", path


def _left_behind() -> Iterator[tuple[str, Path]]:
    """This user's temporary folders whose process has ended, and which no other process names, such as a broker in it."""
    lines = b"".join(map(_command_line, Path("/proc").glob("[0-9]*")))
    for path in sorted(Path(tempfile.gettempdir()).glob("h2t2-*")):
        match = TEMPORARY.fullmatch(path.name)
        if not match or path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.getuid():
            continue
        if not Path("/proc", match[1]).exists() and os.fsencode(path) not in lines:
            yield "left behind", path


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""
