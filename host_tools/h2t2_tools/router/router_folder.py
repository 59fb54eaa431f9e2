"""A router in a folder: the same snapshot as a device's, the options, and what was decided.

`h2t2.state.0` and `h2t2.state.1` are a device's (docs/formats.md), `router.json` holds the options, `decisions.npz` the log.
"""

import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from h2t2.node import store
from h2t2.node.restoring import restore
from h2t2.node.snapshot import encode
from h2t2.node.stored import Content

from ..common.npz import open_npz

SNAPSHOT, OPTIONS, DECISIONS = "h2t2.state", "router.json", "decisions.npz"


def write(folder: Path, options: dict[str, Any], policy: Any, columns: dict[str, np.ndarray]) -> None:
    """Write a router's folder, each file whole. OSError where the folder cannot be written.

    The log is first: a label that it knows never teaches twice, whatever happens before the snapshot is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / OPTIONS, lambda file: file.write(json.dumps(options, indent=1).encode()))
    arrays: dict[str, Any] = dict(columns)
    _replace(folder / DECISIONS, lambda file: np.savez(file, **arrays))
    list(store.file_store(str(folder / SNAPSHOT)).writing(*encode(policy, policy.cost_list())))


def _replace(path: Path, write_to: Callable[[BinaryIO], object]) -> None:
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        write_to(file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], bytes]:
    """(options, columns of the log, snapshot) of a router's folder; of a device's snapshot, the snapshot alone.

    Args:
        path: The folder; or PATH of a device's PATH.0 and PATH.1, or one of these.

    Raises:
        ValueError: There is no such thing, or no complete snapshot in it.
    """
    options: dict[str, Any] = {}
    columns: dict[str, np.ndarray] = {}
    snapshot = path.with_suffix("") if path.suffix in (".0", ".1") else path
    if path.is_dir():
        snapshot = path / SNAPSHOT
        options = json.loads((path / OPTIONS).read_text()) if (path / OPTIONS).is_file() else {}
        if (path / DECISIONS).is_file():
            with open_npz(path / DECISIONS) as file:
                columns = dict(file)
    content = store.file_store(str(snapshot)).load()
    if content is None:
        raise ValueError(f"{path}: no router and no snapshot; want the folder that save() wrote, or a device's h2t2.state")
    return options, columns, content


def of_policy(policy: Any) -> bytes:
    """The snapshot of a policy."""
    return b"".join(bytes(chunk) for chunk in encode(policy, policy.cost_list())[1])


def into_policy(policy: Any, snapshot: bytes) -> None:
    """Let a new policy go on where a snapshot was made. ValueError for a snapshot of another kind of policy."""
    restore(policy, Content(BytesIO(snapshot), 0, len(snapshot)), policy.cost_list())
