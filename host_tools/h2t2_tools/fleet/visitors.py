"""Who may visit a web server of ours: names of this machine, and the token of everybody else."""

from pathlib import Path
from urllib.parse import urlsplit

from ..common.errors import UserError
from .endpoint import secret

LOCAL = "127.0.0.1", "localhost", "::1"
SHORTEST = 16  # the shortest token has so many characters


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read. UserError for another file or a short token."""
    token = secret(path).read_text().strip()
    if len(token) < SHORTEST:
        short = f"a token of {len(token)} characters, which can be guessed" if token else "it is empty"
        raise UserError(f"{path}: {short}; want {SHORTEST} or more: openssl rand -hex 16 > {path}")
    return token


def host_of(address: str) -> str:
    """The host in an address, such as //localhost:8080; "" without one."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
