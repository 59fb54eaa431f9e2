"""A board's configuration: config.toml in people's numbers, checked, and the config.json of integers a board reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from . import policies, toml
from .cost_table import CostTable
from .endpoint import PASSWORD, secret
from .errors import UserError

SECRETS = ("password", "wifi_password")
ENVIRONMENT = {"password": PASSWORD, "wifi_password": "H2T2_WIFI_PASSWORD"}


class BoardConfig(BaseModel):
    """Every entry a config.toml may have, with its default; firmware/boards/*/config.toml says what they mean."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field("node", pattern=r"^[^/+#\x00]{1,64}$")
    broker: str = "localhost"
    port: int = Field(1883, ge=1, le=65535)
    user: str = ""
    password: str = ""
    keep_alive: int = Field(30, ge=5, le=3600)
    ca: str = ""
    cert: str = ""
    key: str = ""
    wifi_name: str = ""
    wifi_password: str = ""
    event: int = Field(1, ge=0, le=255)
    remote_shape: list[int] = Field(min_length=1, max_length=6)
    model_id: int = Field(ge=0, le=65535)
    policy: Literal["h2t2", "calibrating"] = "h2t2"
    bits: int = Field(4, ge=1, le=8)
    beta: float = Field(0.3, ge=0, le=1)
    delta_fp: float = Field(0.7, ge=0, le=1)
    delta_fn: float = Field(1.0, ge=0, le=1)
    eta: float = Field(1.0, gt=0, le=5.5)
    epsilon: float = Field(0.0625, gt=0, le=1)
    feedback: Literal["all", "explored"] = "all"
    exploration: Literal["anytime", "epsilon"] = "anytime"
    half_life: int = Field(0, ge=0)
    seed: int = Field(1, ge=0, lt=2**28)
    window: int = Field(1, ge=1, le=8)
    deadline_ms: int = Field(2000, ge=10, le=3600000)
    when_down: Literal["ask", "raise", "pause"] = "ask"
    cost: CostTable | None = None
    snapshot: str = "h2t2.state"
    snapshot_every: int = Field(500, ge=1)
    telemetry_every: int = Field(100, ge=0)
    records: str = "samples.bin"
    folder: Path = Field(Path("."), exclude=True)  # what ca, cert and key are relative to: where the file is

    def arguments(self) -> dict[str, Any]:
        """The policy's integer arguments."""
        names = ("bits", "beta", "delta_fp", "delta_fn", "eta", "epsilon", "seed", "feedback", "exploration", "half_life")
        numbers = {name: getattr(self, name) for name in names}
        return policies.arguments(self.policy, numbers, window=policies.tickets(self.window))

    def board(self) -> dict[str, Any]:
        """What config.json holds on the board."""
        names = (
            "device", "broker", "port", "user", "password", "keep_alive", "wifi_name", "wifi_password", "event",
            "remote_shape", "model_id", "policy", "window", "deadline_ms", "when_down", "snapshot", "snapshot_every",
            "telemetry_every", "records",
        )  # fmt: skip
        content = {**{name: getattr(self, name) for name in names}, "ldl": "ldl.h2m", "arguments": self.arguments()}
        content.update({name: f"{name}.der" for name in ("ca", "cert", "key") if getattr(self, name)})
        if self.cost:
            content["cost"] = self.cost.arguments()
        return content

    def certificates(self) -> dict[str, bytes]:
        """The files beside config.json that a TLS link reads."""
        names = [name for name in ("ca", "cert", "key") if getattr(self, name)]
        return {f"{name}.der": certificate(self.folder / getattr(self, name), name == "key") for name in names}


def load(path: Path) -> BoardConfig:
    """The configuration in a .toml file. UserError naming the entry that is wrong; a secret's value is never in it."""
    config = toml.load(path, BoardConfig, SECRETS)
    if any(getattr(config, name) for name in SECRETS):
        secret(path, f"; or leave it out of there and set {' or '.join(ENVIRONMENT.values())}")
    given = {name: os.environ[variable] for name, variable in ENVIRONMENT.items() if os.environ.get(variable)}
    config = config.model_copy(update=given)
    try:
        config.arguments()
        for name in ("ca", "cert", "key"):
            if getattr(config, name):
                certificate(path.parent / getattr(config, name), name == "key")
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return config.model_copy(update={"folder": path.parent})


def certificate(path: Path, key: bool) -> bytes:
    """A certificate, or a private key, of a PEM or DER file, as DER, which every MicroPython port reads. UserError if not."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as form

    content = (secret(path) if key else path).read_bytes() if path.is_file() else None
    if content is None:
        raise UserError(f"{path}: no such file")
    pem = content.lstrip().startswith(b"-----")
    try:
        if key:
            made = form.load_pem_private_key(content, None) if pem else form.load_der_private_key(content, None)
            return made.private_bytes(form.Encoding.DER, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption())
        found = x509.load_pem_x509_certificate(content) if pem else x509.load_der_x509_certificate(content)
        return found.public_bytes(form.Encoding.DER)
    except (ValueError, TypeError):
        raise UserError(f"{path}: not a {'private key' if key else 'certificate'} in PEM or DER, without a password") from None
