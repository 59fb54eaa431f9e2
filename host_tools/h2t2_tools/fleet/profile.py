"""The profile: the broker, CA and user of everyday use, from the environment and from ~/.config/h2t2.toml.

Options of a command and entries of a project override it; the environment overrides the file.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from ..common import toml_file
from ..common.errors import UserError
from ..common.fields import Options, file, option

TLS = ("ca", "cert", "key")
PATHS = (*TLS, "password_file")


def _checked_url(text: str) -> str:
    """The URL as it stands. ValueError unless it is [mqtt[s]://]HOST[:PORT]."""
    if text:
        from . import broker

        try:
            broker.parse(text, tls=True)
        except UserError as error:
            raise ValueError(str(error)) from None
    return text


class Profile(Options):
    """The entries of the profile. An environment variable of the same name, such as H2T2_BROKER, overrides each."""

    broker: Annotated[str, AfterValidator(_checked_url)] = option("", "MQTT broker, [mqtt[s]://]HOST[:PORT]")
    ca: str = file("", "certificate of the authority that signed the broker's")
    cert: str = file("", "our certificate, where the broker wants one (PEM)")
    key: str = file("", "our private key (PEM), readable by its owner alone")
    user: str = option("", "user name at the broker")
    password_file: str = file("", "its password, readable by its owner alone")


VARIABLES = {name: f"H2T2_{name.upper()}" for name in Profile.model_fields}


NO_LOGIN = "H2T2_NO_LOGIN"  # where this environment variable is set, nobody's profile holds


def without_login(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that connects to a broker of ours: neither profile nor password go along."""
    from .endpoint import PASSWORD  # it loads TLS, which a help text does not need

    left_out = {*VARIABLES.values(), PASSWORD}
    return {name: value for name, value in environment.items() if name not in left_out} | {NO_LOGIN: "1"}


def path() -> Path:
    """Where the profile is: $XDG_CONFIG_HOME/h2t2.toml or ~/.config/h2t2.toml."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "h2t2.toml"


def read() -> dict[str, str]:
    """The entries of the file and of the environment. Paths in the file are relative to its folder.

    Raises:
        UserError: the file, or a variable, holds what no profile has.
    """
    if os.environ.get(NO_LOGIN):
        return {}
    entries: dict[str, str] = {}
    source = path()
    if source.is_file():
        entries = toml_file.load(source, Profile).model_dump(exclude_unset=True)
        for name in {*PATHS} & entries.keys():
            entries[name] = str(source.parent / Path(entries[name]).expanduser())
    for name, variable in VARIABLES.items():
        if value := os.environ.get(variable):
            value = os.path.abspath(value) if name in PATHS else value  # as of the same option, from the working directory
            entries |= toml_file.validate({name: value}, Path(f"${variable}"), Profile).model_dump(exclude_unset=True)
    return {name: value for name, value in entries.items() if value}


def defaults(chosen: Mapping[str, Any]) -> dict[str, str]:
    """The profile's entries that hold where `chosen`, a command's options or a project's entries, says nothing.

    Certificates are for TLS: they are left out where the broker is not mqtts://. A password is left out where `chosen`
    names the user.
    """
    entries = {name: value for name, value in read().items() if name not in chosen}
    if not str(chosen.get("broker") or entries.get("broker", "")).startswith("mqtts:"):
        entries = {name: value for name, value in entries.items() if name not in TLS}
    if "user" in chosen:
        entries.pop("password_file", None)
    return entries
