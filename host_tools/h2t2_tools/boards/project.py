"""A project: a folder with a user's program, its h2t2.toml, pair and data, for `h2t2 run`, `node` and `flash`.

`write()` makes a project, `add_board()` adds the section of a board, `load()` reads what goes onto a board. A project contains
everything that it needs, and its paths are relative, so it can be moved.
"""

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2t2.ldl.bundle import Int8Model

from ..common import pairs, places
from ..common.dense_models import dense_only
from ..common.errors import UserError
from ..fleet import config as node_config
from ..fleet import template
from ..fleet.config import FILE, PI, NodeConfig, ProjectFile
from . import app_files
from .emulators.catalogue import ARM32
from .kinds import KINDS, SECTIONS, Contents
from .microbit import microbit_program

PAIR, MODEL, APP, README, DATA, RECORDS = "pair", "ldl.h2m", "app.py", "README.md", "samples.csv", "samples.bin"
DECISIONS = "decisions.csv"  # the app writes it
LABELS = "labels.csv"  # a label a line; flash() does not copy it
SAMPLES = 500  # at most so many test samples in DATA; RECORDS holds as many as a micro:bit has room for


@dataclass(frozen=True)
class Project:
    """A project for one board.

    Attributes:
        folder: Its folder.
        board: The kind of board.
        contents: What goes onto the board: the app and its files, or the recorded samples.
        labels: True classes of the samples in order, to evaluate a run; None if unknown.
        unsent: Names of files that lie beside the app and do not go onto the board, as nothing names them.
    """

    folder: Path
    board: str
    contents: Contents
    labels: list[int] | None = None
    unsent: list[str] = field(default_factory=list)


def load(folder: Path, board: str = "", *, stands_in: bool = False, usual_broker: bool = True) -> Project:
    """Load a project for one board.

    Args:
        folder: Folder of the project.
        board: A name of KINDS; "": the only board that has a section.
        stands_in: An emulated board without a section stands in for the first board that has one.
        usual_broker: As of ProjectFile.config().

    Raises:
        UserError: The folder is not a project, or not one for this board; the message says what is missing and how to make it.
    """
    path = node_config.project_path(folder)
    file = ProjectFile(path)
    boards = [name for name in board_sections(file) if name != PI]
    if not board:
        board = _only(boards, path)
    section = board
    kind = KINDS["unix" if stands_in and board == ARM32.name else board]
    if boards and board not in boards:
        if not stands_in or not kind.app:
            raise UserError(f"{path}: no section [boards.{board}]; this adds one: h2t2 new {folder} --board {board}")
        section = boards[0]
    config = file.config(section, network="mqtt" in kind.links, usual_broker=usual_broker)
    model = (pairs.folder_of(node_config.located(folder, config.pair)) if config.pair else folder) / MODEL
    if not model.is_file():
        raise UserError(f"{model}: no such file; this makes it: h2t2 inspect {model.with_name('ldl.tflite')} --bundle {model}")
    if not config.app:
        records = folder / config.records
        return Project(folder, board, Contents(model, config, records if records.is_file() else None), _labels(folder))
    config.program()  # refuses what is no app
    own = app_files.of_app(folder, config.app, config.files)
    return Project(folder, board, Contents(model, config, own=own), _labels(folder), _unsent(file, config, own))


def board_sections(file: ProjectFile) -> list[str]:
    """Return the boards that have a section. Raise UserError for a section of an unknown board."""
    unknown = [name for name in file.tables if name not in SECTIONS]
    if unknown:
        raise UserError(f"{file.path}: [boards.{unknown[0]}]: this board does not exist; want one of {', '.join(SECTIONS)}")
    return [*file.tables]


def _only(boards: list[str], path: Path) -> str:
    """Return the only board of a project. Raise UserError if it has none, or several."""
    if len(boards) == 1:
        return boards[0]
    if boards:
        raise UserError(f"{path}: it has sections for {', '.join(boards)}: name one with --board")
    raise UserError(f"{path}: no board has a section: name one with --board, or add one: h2t2 new {path.parent} --board KIND")


def _unsent(project: ProjectFile, config: NodeConfig, own: dict[str, bytes]) -> list[str]:
    """Return the names of a project's files that no tool reads and no board gets, because nothing names them."""
    read = {file.resolve() for file in project.files()}
    names = {FILE, MODEL, README, LABELS, RECORDS, DECISIONS, config.app, *own}
    prefixes = (".", f"{config.snapshot}.", config.log_file or ".")  # the last two: files that a node wrote here
    files = [file for file in sorted(project.path.parent.iterdir()) if file.is_file() and file.resolve() not in read]
    return [file.name for file in files if file.name not in names and not file.name.startswith(prefixes)]


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


def write(
    folder: Path, pair: pairs.Pair, *, bundle: bytes | None, board: str = "", entries: dict[str, Any] | None = None
) -> list[str]:
    """Write a project that runs unchanged, with an app that reads the pair's test samples from a file, and a copy of the pair.

    Args:
        folder: A new or empty folder, or one that contains only the pair itself, in `pair`.
        pair: The pair.
        bundle: Its local model for boards (.h2m); None: only a Pi can run it.
        board: A name of SECTIONS, which gets a section in h2t2.toml; "": none.
        entries: Further entries of NodeConfig for h2t2.toml.

    Returns:
        The names of the written files.

    Raises:
        UserError: The folder is not empty, or the pair does not fit the board. Nothing is overwritten.
    """
    place = folder / PAIR
    occupied = folder.exists() and any(path != place for path in folder.iterdir())
    if occupied or (place.exists() and place.resolve() != pair.folder.resolve()):
        raise UserError(f"{folder}: the folder is not empty; name a new one")
    _check_board(pair, bundle, board)
    folder.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        pairs.copy_pair(pair, place)
    if bundle is not None:
        (place / MODEL).write_bytes(bundle)
    device = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name) or "device"
    own = {"device": device, "pair": PAIR, "app": APP}
    if (place / "prior.json").is_file():
        own["prior"] = f"{PAIR}/prior.json"
    data = _csv(pair)
    files = {FILE: template.render(device, {**own, **(entries or {})}), APP: _app(), DATA: data, README: _readme(folder, pair)}
    if not pair.info.window:  # a window spans several lines, so lines and labels would not match
        files[LABELS] = "".join(f"{label}\n" for label in pair.y[: data.count("\n")].tolist())
    for name, text in files.items():
        (folder / name).write_text(text)
    added = add_board(folder, board, replace(pair, folder=place)) if board else []
    return [*dict.fromkeys([*files, f"{PAIR}/", *added])]


def pair_of(folder: Path) -> pairs.Pair:
    """Return the pair that a project names. UserError where there is none."""
    path = node_config.project_path(folder)
    name = ProjectFile(path).entries().get("pair")
    if not name:
        raise UserError(f'{path}: it names no pair: add the entry `pair = "FOLDER"`')
    return pairs.load(node_config.located(folder, name))


def add_board(folder: Path, board: str, pair: pairs.Pair, bundle: bytes | None = None) -> list[str]:
    """Add the section of a board to a project's h2t2.toml. Everything else stays unchanged.

    Args:
        folder: Folder of the project.
        board: A name of SECTIONS.
        pair: The project's, as of pair_of().
        bundle: The local model of its pair for boards; None: the project has it, or the board does not need it.

    Returns:
        The names of the written files.

    Raises:
        UserError: The board already has a section, or the pair does not fit it.
    """
    path = node_config.project_path(folder)
    file = ProjectFile(path)
    sections = board_sections(file)
    if board in sections:
        raise UserError(f"{path}: it already has a section [boards.{board}]")
    entries = file.entries()
    model = pair.folder / MODEL
    bundle = model.read_bytes() if model.is_file() else bundle
    _check_board(pair, bundle, board)
    written = []
    if bundle is not None and not model.is_file():
        model.write_bytes(bundle)
        written.append(os.path.relpath(model, folder))
    if board != PI and not KINDS[board].app and not (folder / RECORDS).exists():
        assert bundle is not None
        (folder / RECORDS).write_bytes(_records(pair, bundle))
        written.append(RECORDS)
    device = entries.get("device", NodeConfig.model_fields["device"].default)
    own = {"device": f"{device}-{board}"} if sections else {}  # two boards must have different names
    like = board if board == PI else KINDS[board].folder.name
    text = path.read_text()
    path.write_text(text + "\n" * (not text.endswith("\n")) + template.section(board, like, own))
    return [*written, FILE]


def _check_board(pair: pairs.Pair, bundle: bytes | None, board: str) -> None:
    """Raise UserError if a pair does not fit a board."""
    if board in ("", PI):
        return
    if bundle is None:
        raise UserError(f"{pair.folder}: no bundle of its local model, so only a Pi can run it (--board {PI})")
    if KINDS[board].app:
        return
    if pair.info.classes > 2:
        raise UserError(f"pair {pair.info.name} has {pair.info.classes} classes, but the {board} supports two")
    if not dense_only(Int8Model(bundle, 0)):
        raise UserError(f"pair {pair.info.name}: the {board} runs only dense layers, and its local model has others")
    if pair.info.remote.dtype == "raw":
        raise UserError(f"pair {pair.info.name} sends {pair.info.remote.media or 'raw bytes'}, but the {board} sends only int8")


def remote_to_write(pair: pairs.Pair) -> str:
    """Return what the user must still write if only the user can encode the offloaded bytes."""
    kind = pair.info.remote.media or "bytes"
    return f"Offloads send {kind}: write `remote(measured)` in `{APP}`, which returns them as {pair.info.remote.encode} does."


def _records(pair: pairs.Pair, bundle: bytes) -> bytes:
    """Return recorded samples of the pair, as many as a micro:bit has room for."""
    ldl = Int8Model(bundle, pair.info.event_output("ldl"))
    scale, zero_point = ldl.input_quantisation()
    record = len(pairs.board_samples(pair, scale, zero_point, 1))
    return pairs.board_samples(
        pair, scale, zero_point, max(1, (microbit_program.MAX_BYTES - microbit_program.RESERVED) // record)
    )


def _app() -> str:
    return (places.examples() / "app_csv" / APP).read_text()


def _csv(pair: pairs.Pair) -> str:
    """Return the pair's test samples as measured, one a line, fewer of large ones; of windows one measurement a line."""
    x = pair.x if pair.raw is None else pair.raw
    limit = max(1, min(SAMPLES, app_files.LARGEST // 4 // x[0].size))
    if pair.info.window:
        x, limit = x.reshape(-1, x.shape[-1]), limit * x.shape[1]
    lines = [",".join(f"{v:.7g}" for v in row.ravel().tolist()) for row in x[:limit]]
    return "\n".join(lines) + "\n"


def _readme(folder: Path, pair: pairs.Pair) -> str:
    name = folder.resolve().name
    raw = f"\n{remote_to_write(pair)}\n" if pair.info.remote.dtype == "raw" else ""
    return places.text("boards/project.md").format(name=name, raw=raw)
