"""A project: a folder with a user's program, its configuration, model and data, for `h2t2 run` and `h2t2 flash`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from h2t2.ldl.bundle import Int8Model

from ..common import pairs, places
from ..common.errors import UserError
from ..fleet import config as node_config
from ..fleet import template
from .kinds import KINDS, Contents
from .microbit import program

CONFIG, MODEL, APP, README, DATA, RECORDS = "config.toml", "ldl.h2m", "app.py", "README.md", "samples.csv", "samples.bin"
LABELS = "labels.csv"  # a label a line; flash() does not copy it
LARGEST = 1 << 20  # bytes of the largest file that goes onto a board beside the program
SAMPLES = 500  # at most so many test samples in DATA; RECORDS holds as many as a micro:bit has room for


@dataclass(frozen=True)
class Project:
    """A loaded project.

    Attributes:
        folder: Its folder.
        contents: What goes onto a board: the app and its files, or the recorded samples.
        labels: True classes of the samples in order, to evaluate a run; None if unknown.
    """

    folder: Path
    contents: Contents
    labels: list[int] | None = None


def load(folder: Path) -> Project:
    """Load a project.

    Raises:
        UserError: The folder is not a project, or a file is too large or invalid.
    """
    for name in (CONFIG, MODEL):
        if not (folder / name).is_file():
            raise UserError(f"{folder}: no {name} in it, so it is not a project; h2t2 new makes one")
    config = node_config.load(folder / CONFIG)
    if not config.app:
        return Project(folder, Contents(folder / MODEL, config, folder / config.records), _labels(folder))
    skipped = {CONFIG, MODEL, README, LABELS, config.app}
    own = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name not in skipped:
            if path.stat().st_size > LARGEST:
                raise UserError(f"{path}: more than {LARGEST:,} bytes, too large for a board: move it out of the project")
            own[path.name] = path.read_bytes()
    return Project(folder, Contents(folder / MODEL, config, own=own), _labels(folder))


def _labels(folder: Path) -> list[int] | None:
    path = folder / LABELS
    if not path.is_file():
        return None
    labels = []
    for n, line in enumerate(path.read_text().split(), 1):
        if not line.isascii() or not line.isdigit() or len(line) > 5:
            raise UserError(f"{path}, line {n}: {line[:20]!r} is not a class; each line must be a number from 0 on")
        labels.append(int(line))
    return labels


def new(folder: Path, pair: pairs.Pair, board: str, bundle: bytes) -> list[str]:
    """Write a project that runs unchanged: its app reads the pair's test samples from a file.

    A board without room for an app gets recorded samples.

    Args:
        folder: New or empty folder.
        pair: The pair of models.
        board: Name of a kind.
        bundle: The pair's local model.

    Returns:
        The names of the files.

    Raises:
        UserError: The folder is not empty, or the board does not support the pair.
    """
    if pair.info.classes > 2 and not KINDS[board].app:
        raise UserError(f"pair {pair.info.name} has {pair.info.classes} classes, but the {board} supports two")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: the folder is not empty; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    device = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name) or "device"
    entries = {"device": device, "pair": _from(folder, pair.folder)}
    if (pair.folder / "prior.json").is_file():
        entries["prior"] = _from(folder, pair.folder / "prior.json")
    files = {}
    if KINDS[board].app:
        entries["app"] = APP
        files[APP] = (places.examples() / "app_csv" / APP).read_bytes()
        files[DATA] = _csv(pair).encode()
    else:
        ldl = Int8Model(bundle, pair.info.event_output("ldl"))
        scale, zero_point = ldl.input_quantisation()
        record = len(pairs.board_samples(pair, scale, zero_point, 1))
        recorded = max(1, (program.MAX_BYTES - program.RESERVED) // record)
        files[RECORDS] = pairs.board_samples(pair, scale, zero_point, recorded)
    if not pair.info.window:  # a window spans several lines, so lines and labels would not match
        count = files[DATA].count(b"\n") if DATA in files else recorded
        files[LABELS] = "".join(f"{label}\n" for label in pair.y[:count].tolist()).encode()
    files[CONFIG] = template.render(KINDS[board].folder.name, pair.info, entries).encode()
    files[MODEL] = bundle
    files[README] = _readme(folder, pair, board).encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return list(files)


def unsent(pair: pairs.Pair) -> str:
    """Return what the user must still write if only the user can encode the offloaded bytes."""
    kind = pair.info.remote.media or "bytes"
    return f"Offloads send {kind}: write `remote(measured)` in `{APP}`, which returns them as {pair.info.remote.encode} does."


def _csv(pair: pairs.Pair) -> str:
    """Return the pair's test samples as measured, one a line, fewer of large ones; of windows one measurement a line."""
    x = pair.x if pair.raw is None else pair.raw
    limit = max(1, min(SAMPLES, LARGEST // 4 // x[0].size))
    if pair.info.window:
        x, limit = x.reshape(-1, x.shape[-1]), limit * x.shape[1]
    lines = [",".join(f"{v:.7g}" for v in row.ravel().tolist()) for row in x[:limit]]
    return "\n".join(lines) + "\n"


def _from(folder: Path, path: Path) -> str:
    return os.path.relpath(path.resolve(), folder.resolve())


def _readme(folder: Path, pair: pairs.Pair, board: str) -> str:
    if KINDS[board].app:
        port = "./device" if board == "unix" else "auto"
        about = (
            f"`{APP}` measures and acts; `{CONFIG}` holds the settings. At first the app reads `{DATA}`, samples of the\n"
            "pair's test part as measured, and writes its decisions to `decisions.csv`. Replace both by your sensor and\n"
            "your actuator. "
            "`h2t2 flash` copies every other file in this folder onto the board, too."
        )
        if pair.info.remote.dtype == "raw":
            about += f"\n\n{unsent(pair)}"
        second = f"h2t2 node --pair {pair.folder} --app {folder}/{APP} --broker mqtt://BROKER   # or on this machine, a Pi\n"
    else:
        port, second = "auto", "h2t2 gateway --port auto --broker mqtt://BROKER   # between its line and the broker\n"
        about = f"`{RECORDS}` holds test samples of the pair, which the board decides about; `{CONFIG}` holds the settings."
    return f"""# {folder.resolve().name}

{about}

```sh
h2t2 run {folder}{"" if KINDS[board].app else " --board microbit"}   # on an emulated board, with a broker and the remote model
h2t2 rdl --pair {pair.folder} --broker mqtt://BROKER   # the remote model, where the broker is
h2t2 flash {folder} --board {board} --port {port}   # on a board
{second}```
"""
