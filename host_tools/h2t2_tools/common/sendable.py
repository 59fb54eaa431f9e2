"""The rule for files that leave this machine for a board as they are, by cable or in a package: nothing secret goes."""

import stat
from pathlib import Path

from .errors import UserError, file_errors


def sendable(path: Path) -> bytes:
    """Return the content of a file that a board gets as it is.

    Raises:
        UserError: It cannot be read, holds a private key, or only its owner may read it.
    """
    with file_errors(path):
        content, mode = path.read_bytes(), path.stat().st_mode
    if _is_private_key(content):
        raise UserError(f"{path}: a private key, which never goes onto a board: move it out of the project")
    if not stat.S_IMODE(mode) & 0o077:
        remedy = f"if it holds no secret: chmod go+r {path}"
        raise UserError(f"{path}: only its owner may read it, so that it does not go onto a board; {remedy}")
    return content


def _is_private_key(content: bytes) -> bool:
    if b"PRIVATE KEY-----" in content:  # PEM: also that of `h2t2 update keys`, and OpenSSH's
        return True
    if not _is_sequence(content):
        return False
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        load_der_private_key(content, None)
    except TypeError:  # it wants a password
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _is_sequence(content: bytes) -> bool:
    """Whether the whole file is one sequence of DER, as each key is (X.690, 8.1.3). Most files that begin with "0" are text."""
    if content[:1] != b"\x30" or len(content) < 2:
        return False
    bytes_of_length = content[1] - 0x80 if content[1] > 0x80 else 0
    length = int.from_bytes(content[2 : 2 + bytes_of_length], "big") if bytes_of_length else content[1]
    return len(content) == 2 + bytes_of_length + length
