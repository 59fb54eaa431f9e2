"""A board's configuration: config.toml in people's numbers, checked, and the config.json of integers a board reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from . import policies
from .errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECRETS = ("password", "wifi_password")


class BoardConfig(BaseModel):
    """Every entry a config.toml may have, with its default; firmware/boards/*/config.toml says what they mean."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field("node", pattern=r"^[^/+#\x00]{1,64}$")
    broker: str = "localhost"
    port: int = Field(1883, ge=1, le=65535)
    user: str = ""
    password: str = ""
    keep_alive: int = Field(30, ge=5, le=3600)
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
    snapshot: str = "h2t2.state"
    snapshot_every: int = Field(500, ge=1)
    telemetry_every: int = Field(100, ge=0)
    records: str = "samples.bin"

    def arguments(self) -> dict[str, Any]:
        """The policy's integer arguments."""
        names = ("bits", "beta", "delta_fp", "delta_fn", "eta", "epsilon", "seed", "feedback", "exploration", "half_life")
        numbers = {name: getattr(self, name) for name in names}
        return policies.arguments(self.policy, numbers, window=1 if self.window == 1 else 8)

    def board(self) -> dict[str, Any]:
        """What config.json holds on the board."""
        names = (
            "device", "broker", "port", "user", "password", "keep_alive", "wifi_name", "wifi_password", "event", "remote_shape",
            "model_id", "policy", "window", "deadline_ms", "snapshot", "snapshot_every", "telemetry_every", "records",
        )  # fmt: skip
        return {**{name: getattr(self, name) for name in names}, "ldl": "ldl.h2m", "arguments": self.arguments()}


def load(path: Path) -> BoardConfig:
    """The configuration in a .toml file. UserError naming the entry that is wrong; a secret's value is never in it."""
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    try:
        return BoardConfig.model_validate(content)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        value = "" if wrong["type"] in ("missing", "extra_forbidden") or name in SECRETS else f" {wrong['input']!r}"
        raise UserError(f"{path}: {name}{value}: {wrong['msg'].lower()}") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
