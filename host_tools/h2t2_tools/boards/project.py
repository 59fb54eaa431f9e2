"""A project: the folder of a user's own program with its configuration, model and data, which `h2t2 run` and `flash` take."""

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
LABELS = "labels.csv"  # a line a sample; it stays here
LARGEST = 1 << 20  # bytes of a file that goes onto a board beside the program
SAMPLES = 500  # of the pair's test part, at most, in DATA; in RECORDS as many as a micro:bit has room for


@dataclass(frozen=True)
class Project:
    """contents: what goes onto a board: the app and what it brings along, or the recorded samples. labels: the true class of
    each sample, in their order, for whoever judges a run; None where nobody knows them."""

    folder: Path
    contents: Contents
    labels: list[int] | None = None


def load(folder: Path) -> Project:
    """UserError, saying what is missing and how it is made, for a folder that is no project."""
    for name in (CONFIG, MODEL):
        if not (folder / name).is_file():
            raise UserError(f"{folder}: no {name} in it: not a project; h2t2 new makes one")
    config = node_config.load(folder / CONFIG)
    if not config.app:
        return Project(folder, Contents(folder / MODEL, config, folder / config.records), _labels(folder))
    skipped = {CONFIG, MODEL, README, LABELS, config.app}
    own = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name not in skipped:
            if path.stat().st_size > LARGEST:
                raise UserError(f"{path}: more than {LARGEST:,} bytes, too large to go along onto a board: move it elsewhere")
            own[path.name] = path.read_bytes()
    return Project(folder, Contents(folder / MODEL, config, own=own), _labels(folder))


def _labels(folder: Path) -> list[int] | None:
    path = folder / LABELS
    if not path.is_file():
        return None
    labels = []
    for n, line in enumerate(path.read_text().split(), 1):
        if not line.isascii() or not line.isdigit() or len(line) > 5:
            raise UserError(f"{path}, line {n}: {line[:20]!r} is no class: want a number from 0 on, a line a sample")
        labels.append(int(line))
    return labels


def new(folder: Path, pair: pairs.Pair, board: str, bundle: bytes) -> list[str]:
    """Write a project that runs as it is: an app that reads the pair's test samples from a file. Its files' names.

    bundle: the pair's local model. A board without room for an app gets recorded samples. UserError where there is something
    already: nothing is overwritten.
    """
    if pair.info.classes > 2 and not KINDS[board].app:
        raise UserError(f"pair {pair.info.name} has {pair.info.classes} classes: the {board} has room for two")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: there is something in it; name a new folder")
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
    if not pair.info.window:  # of windows, a measurement a line is no sample
        count = files[DATA].count(b"\n") if DATA in files else recorded
        files[LABELS] = "".join(f"{label}\n" for label in pair.y[:count].tolist()).encode()
    files[CONFIG] = template.render(KINDS[board].folder.name, pair.info, entries).encode()
    files[MODEL] = bundle
    files[README] = _readme(folder, pair, board).encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return list(files)


def unsent(pair: pairs.Pair) -> str:
    """What is still to be written in a project whose offloads are bytes that only its author knows to make."""
    kind = pair.info.remote.media or "bytes"
    return f"Offloads send {kind}: write `remote(measured)` in `{APP}`, which returns them as {pair.info.remote.encode} does."


def _csv(pair: pairs.Pair) -> str:
    """The pair's test samples as they were measured, a line each, fewer of large ones; of windows, a line a measurement."""
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
            f"`{APP}` measures and acts; `{CONFIG}` says the rest. As it stands it reads `{DATA}`, samples of the pair's test\n"
            "part as they were measured, and writes what was decided to `decisions.csv`: put your sensor and your actuator\n"
            "there. Whatever else lies here goes along onto the board."
        )
        if pair.info.remote.dtype == "raw":
            about += f"\n\n{unsent(pair)}"
        second = f"h2t2 node --pair {pair.folder} --app {folder}/{APP} --broker mqtt://BROKER   # or on this machine, a Pi\n"
    else:
        port, second = "auto", "h2t2 gateway --port auto --broker mqtt://BROKER   # between its line and the broker\n"
        about = f"`{RECORDS}` holds samples of the pair's test part for the board to decide about; `{CONFIG}` says the rest."
    return f"""# {folder.resolve().name}

{about}

```sh
h2t2 run {folder}{"" if KINDS[board].app else " --board microbit"}   # on an emulated board, with a broker and the remote model
h2t2 rdl --pair {pair.folder} --broker mqtt://BROKER   # the remote model, where the broker is
h2t2 flash {folder} --board {board} --port {port}   # on a board
{second}```
"""
