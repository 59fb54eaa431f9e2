"""The rule for files that leave this machine for a board as they are, by cable or in a package: nothing secret goes."""

import stat
from pathlib import Path

from .errors import UserError, file_errors

# in text: of `h2t2 update keys` and other PEM, of OpenSSH; of PGP; of PuTTY; of age
MARKS = (b"PRIVATE KEY-----", b"PRIVATE KEY BLOCK-----", b"PuTTY-User-Key-File-", b"AGE-SECRET-KEY-1")
PKCS_12 = b"\x02\x01\x03"  # its version, the first number of the sequence (RFC 7292)


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
    """Whether a file holds a private key: PEM, OpenSSH, PGP, PuTTY, age, PKCS#12 or DER. Nobody can tell a raw one."""
    text = content.replace(b"\0", b"")  # of UTF-16
    if any(mark in text for mark in MARKS):
        return True
    key = _sequence(content)
    if key is None:
        return False
    if key[1] > 0x80 and key[2 + key[1] - 0x80 :].startswith(PKCS_12):
        return True
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        load_der_private_key(key, None)
    except TypeError:  # it wants a password
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _sequence(content: bytes) -> bytes | None:
    """The file without blanks at its end, if it is one sequence of DER, as each key is (X.690, 8.1.3); None of any other file.

    Most files that begin with "0" are text.
    """
    if content[:1] != b"\x30" or len(content) < 2:
        return None
    bytes_of_length = content[1] - 0x80 if content[1] > 0x80 else 0
    length = int.from_bytes(content[2 : 2 + bytes_of_length], "big") if bytes_of_length else content[1]
    end = 2 + bytes_of_length + length
    return content[:end] if len(content) >= end and not content[end:].strip() else None
