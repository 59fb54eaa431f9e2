"""How a command reaches its broker: address, TLS, user; where secrets come from, and that they stay out of sight."""

from __future__ import annotations

import argparse
import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2t2 import secure

from . import broker
from .errors import Failure, UserError

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


def add_options(parser: argparse.ArgumentParser) -> None:
    """--broker and what goes with it."""
    parser.add_argument("--broker", default="mqtt://localhost:1883", help="mqtt[s]://host[:port] (mqtt://localhost:1883)")
    group = parser.add_argument_group("security", "mqtts:// means TLS; the broker's certificate is verified")
    group.add_argument("--ca", metavar="FILE", help="certificate of the authority that signed the broker's (the system's own)")
    group.add_argument("--cert", metavar="FILE", help="our certificate, where the broker wants one (PEM)")
    group.add_argument("--key", metavar="FILE", help="our private key (PEM); readable by its owner alone")
    group.add_argument("--no-verify", action="store_true", help="believe any broker: for a first try only")
    group.add_argument("--user", help="user name")
    group.add_argument(
        "--password-file", metavar="FILE", help=f"its password, readable by its owner alone (or the environment's {PASSWORD})"
    )


def from_options(args: argparse.Namespace) -> Endpoint:
    """What add_options() was told. UserError, naming the option, for what cannot be used; no secret is in it."""
    host, port = broker.parse(args.broker, tls=True)
    password = os.environ.get(PASSWORD) or None
    if args.password_file:
        password = secret(Path(args.password_file)).read_text().strip()
    if password and not args.user:
        raise UserError("a password without --user")
    if not args.broker.startswith("mqtts:"):
        if args.ca or args.cert or args.key:
            raise UserError(f"--ca, --cert and --key are for TLS: give the broker as mqtts://{host}")
        return Endpoint(host, port, args.user, password)
    if bool(args.cert) != bool(args.key):
        raise UserError("--cert and --key: one is nothing without the other")
    for path in filter(None, (args.ca, args.cert)):
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file")
    if args.key:
        secret(Path(args.key))
    return Endpoint(host, port, args.user, password, secure.context(args.ca, args.cert, args.key, not args.no_verify))


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
