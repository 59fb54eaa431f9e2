"""Opens .npz files of strangers: what their headers ask for is checked before any memory is taken."""

from math import prod
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile

from .errors import UserError

LARGEST = 1 << 30  # bytes of all arrays together: a file of 3 MB can ask for gigabytes
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def open_npz(path: Path) -> NpzFile:
    """The arrays of an .npz file, without pickled objects.

    Raises:
        ValueError: it is no such file, or its arrays are larger than LARGEST.
    """
    try:
        with ZipFile(path) as file:
            total = sum(_size(file, name) for name in file.namelist())
    except BadZipFile as error:
        raise ValueError(f"{path}: {error}") from None
    if total > LARGEST:
        raise ValueError(f"{path}: its arrays ask for {total:,} bytes; at most {LARGEST:,} are read")
    content: NpzFile = np.load(path, allow_pickle=False)
    return content


def arrays(path: Path, *keys: str) -> list[np.ndarray]:
    """Read arrays of an .npz file by key.

    Raises:
        UserError: The file is not an .npz, or an array is missing.
    """
    try:
        with open_npz(path) as data:
            missing = [key for key in keys if key not in data.files]
            if missing:
                raise UserError(f"{path}: no array {', '.join(missing)}; it has {', '.join(data.files)}")
            return [data[key] for key in keys]
    except (OSError, ValueError, EOFError) as error:
        remedy = ": save labels as text, y.astype(str)" if "Object arrays" in str(error) else ""
        raise UserError(f"{path}: not an .npz file of arrays: {error}{remedy}") from None


def _size(file: ZipFile, name: str) -> int:
    """The bytes that an array asks for."""
    with file.open(name) as member:
        version = npy.read_magic(member)
        if version not in HEADERS:
            raise ValueError(f"{name}: an array of format {version}")
        shape, _, dtype = HEADERS[version](member)
    return prod(shape) * dtype.itemsize
