"""How a command reaches its broker: address, TLS, user. No message shows a secret."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import Failure, UserError, file_errors

if TYPE_CHECKING:
    import ssl

PASSWORD = "H2T2_PASSWORD"  # the environment variable


@dataclass(frozen=True)
class Endpoint:
    """A broker as a client reaches it. Its repr() shows neither password nor key."""

    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def login(self) -> dict[str, Any]:
        """The arguments of that name that links and clients take."""
        return {"user": self.user, "password": self.password, "tls": self.tls}


def resolve(
    url: str, *, ca: str = "", cert: str = "", key: str = "", password_file: str = "", user: str = "", verify: bool = True
) -> Endpoint:
    """The endpoint that a command's options of these names describe. UserError, which names no secret, for bad ones."""
    from . import broker

    host, port = broker.parse(url, tls=True)
    password = os.environ.get(PASSWORD) or None
    if password_file:
        password = secret(Path(password_file)).read_text().strip()
    if password and not user:
        raise UserError("a password without --user")
    if not url.startswith("mqtts:"):
        if ca or cert or key:
            raise UserError(f"--ca, --cert and --key are for TLS: give the broker as mqtts://{host}")
        return Endpoint(host, port, user or None, password)
    if bool(cert) != bool(key):
        raise UserError("--cert and --key: give both")
    for path in filter(None, (ca, cert)):
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file")
    if key:
        secret(Path(key))
    from h2t2.link import tls

    return Endpoint(host, port, user or None, password, tls.context(ca or None, cert or None, key or None, verify))


def unreachable(error: OSError) -> Failure:
    """The Failure of a command whose link could not connect."""
    return Failure(f"{error} (not reachable)" if "refuses" not in str(error) else str(error))


def secret(path: Path, instead: str = "") -> Path:
    """The path of a file with a secret. UserError where there is no file, or others than its owner may read it.

    Args:
        instead: another remedy, for the message.
    """
    with file_errors(path):
        mode = path.stat().st_mode
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(f"{path}: others may read this secret; run: chmod 600 {path}{instead}")
    return path
