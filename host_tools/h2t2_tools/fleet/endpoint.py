"""How a command reaches its broker: address, TLS, user; where secrets come from, and that they stay out of sight."""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2t2.link import tls

from ..common.errors import Failure, UserError
from . import broker

PASSWORD = "H2T2_PASSWORD"  # the environment variable


@dataclass(frozen=True)
class Endpoint:
    """A broker as a client reaches it. Neither `password` nor the key is in its repr()."""

    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def login(self) -> dict[str, Any]:
        """The arguments of that name that links and clients take."""
        return {"user": self.user, "password": self.password, "tls": self.tls}


@dataclass(frozen=True)
class Files:
    """What of a login lies in files: the authority's certificate, ours with its key (PEM), the password. None: none."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    password: str | None = None


def resolve(url: str, files: Files, user: str | None = None, verify: bool = True) -> Endpoint:
    """The endpoint a command's options describe. UserError, naming the option, for what cannot be used; no secret is in it."""
    host, port = broker.parse(url, tls=True)
    password = os.environ.get(PASSWORD) or None
    if files.password:
        password = secret(Path(files.password)).read_text().strip()
    if password and not user:
        raise UserError("a password without --user")
    if not url.startswith("mqtts:"):
        if files.ca or files.cert or files.key:
            raise UserError(f"--ca, --cert and --key are for TLS: give the broker as mqtts://{host}")
        return Endpoint(host, port, user, password)
    if bool(files.cert) != bool(files.key):
        raise UserError("--cert and --key: one is nothing without the other")
    for path in filter(None, (files.ca, files.cert)):
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file")
    if files.key:
        secret(Path(files.key))
    return Endpoint(host, port, user, password, tls.context(files.ca, files.cert, files.key, verify))


def unreachable(error: OSError) -> Failure:
    """A link's own words for why it could not connect, as a command's failure."""
    return Failure(f"{error} (not reachable)" if "refuses" not in str(error) else str(error))


def secret(path: Path, instead: str = "") -> Path:
    """The path of a file with a secret. UserError where it is not there, or others than its owner may read it.

    instead: what else one could do, for the message.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(f"{path}: others may read this secret; run: chmod 600 {path}{instead}")
    return path
