"""A node's configuration: config.toml in people's numbers, checked, and the integers that the runtime starts from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from h2t2.link import wire
from h2t2.node.keeper import MISMATCH
from h2t2.node.sleep import LEAST_MS

from ..common import budget, durations, pairs, policies, prior_file
from ..common import toml_file as toml
from ..common.cost_table import CostTable
from ..common.errors import UserError
from . import app
from .endpoint import PASSWORD, secret

SECRETS = ("password", "wifi_password")
ENVIRONMENT = {"password": PASSWORD, "wifi_password": "H2T2_WIFI_PASSWORD"}


@dataclass(frozen=True)
class OneOf:
    """A check that an entry is one of these names."""

    names: tuple[str, ...]

    def __call__(self, value: str) -> str:
        if value not in self.names:
            raise ValueError(f"want one of {', '.join(self.names)}")
        return value


Share = Annotated[float, Field(ge=0, le=1)]


class NodeConfig(BaseModel):
    """Every entry a config.toml may have, with its default; firmware/boards/*/config.toml says what they mean."""

    model_config = ConfigDict(extra="forbid")

    device: Annotated[str, AfterValidator(wire.checked_device)] = "node"
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
    wifi_power_save: Literal["none", "performance", "powersave"] = "none"
    ldl: str = "ldl.h2m"
    stream: bool = False
    event: int = Field(1, ge=0, le=255)
    remote_shape: list[int] = Field(min_length=1, max_length=6)
    remote_dtype: Annotated[str, AfterValidator(OneOf(wire.DTYPES))] = wire.DTYPES[0]
    remote_media: str = Field("", max_length=wire.MAX_MEDIA)
    remote_limit: int = Field(wire.MAX_DATA, ge=1, le=wire.MAX_DATA)
    model_id: int = Field(ge=0, le=65535)
    policy: Annotated[str, AfterValidator(OneOf(policies.NAMES))] = policies.NAMES[0]
    bits: int = Field(policies.DEFAULTS["bits"], ge=1, le=8)
    beta: float = Field(policies.DEFAULTS["beta"], ge=0, le=1)
    delta_fp: float = Field(policies.DEFAULTS["delta_fp"], ge=0, le=1)
    delta_fn: float = Field(policies.DEFAULTS["delta_fn"], ge=0, le=1)
    eta: float = Field(policies.DEFAULTS["eta"], gt=0, le=5.5)
    epsilon: float = Field(policies.DEFAULTS["epsilon"], gt=0, le=1)
    feedback: Annotated[str, AfterValidator(OneOf(policies.FEEDBACK))] = policies.DEFAULTS["feedback"]
    exploration: Annotated[str, AfterValidator(OneOf(policies.EXPLORATION))] = policies.DEFAULTS["exploration"]
    half_life: int = Field(policies.DEFAULTS["half_life"], ge=0)
    rdl_fp: float = Field(policies.DEFAULTS["rdl_fp"], ge=0, le=1)
    rdl_fn: float = Field(policies.DEFAULTS["rdl_fn"], ge=0, le=1)
    miss_rate: float = Field(policies.DEFAULTS["miss_rate"], ge=0, le=1)
    prior: str | list[Share] | None = Field(None, max_length=256)
    class_costs: list[list[Share]] | None = Field(None, min_length=3, max_length=16)
    rdl_confusion: list[list[Share]] | None = Field(None, min_length=3, max_length=16)
    seed: int = Field(policies.DEFAULTS["seed"], ge=0, lt=2**28)
    in_flight: int = Field(1, ge=1, le=8)
    hold: int = Field(32, ge=1, le=4096)
    deadline_ms: int = Field(2000, ge=10, le=3600000)
    every: Annotated[str, AfterValidator(durations.check_duration)] = ""
    sleep: Literal["none", "light", "deep"] = "none"
    when_down: Literal["ask", "raise", "pause"] = "ask"
    offload_cost: CostTable | None = None
    budget: str = ""
    snapshot: str = "h2t2.state"
    snapshot_every: int = Field(250, ge=1)
    snapshot_ldl: bool = False
    snapshot_mismatch: Annotated[str, AfterValidator(OneOf(MISMATCH))] = MISMATCH[0]
    telemetry_s: int = Field(10, ge=0, le=86400)
    report_decisions: bool = False
    update_key: str = ""
    update_most: int = Field(262144, ge=1, le=1 << 24)
    update_app: bool = False
    ntp: str = "pool.ntp.org"
    watchdog_ms: int = Field(0, ge=0, le=60000)
    log: str = "h2t2.log"
    records: str = "samples.bin"
    app: str = ""
    pair: str = ""
    folder: Path = Field(Path("."), exclude=True)  # what ca, cert and key are relative to: where the file is

    @model_validator(mode="before")
    @classmethod
    def _without_home_assistant(cls, entries: Any) -> Any:
        if isinstance(entries, dict) and "home_assistant" in entries:
            raise ValueError(
                "home_assistant: a host announces devices now; delete this entry, set report_decisions = true, and run: "
                f"h2t2 home-assistant '{entries.get('device', 'node')}={entries['home_assistant']}'"
            )
        return entries

    @model_validator(mode="after")
    def _sendable(self) -> NodeConfig:
        wire.checked_shape(tuple(self.remote_shape), wire.DTYPES.index(self.remote_dtype))
        return self

    def arguments(self) -> dict[str, Any]:
        """The policy's integer arguments."""
        numbers = {name: getattr(self, name) for name in policies.DEFAULTS if name in type(self).model_fields}
        numbers.update(
            prior=self.prior, costs=self.class_costs, rdl_confusion=self.rdl_confusion, window=max(self.hold, self.in_flight)
        )
        if self.class_costs is not None and (self.prior is not None or self.miss_rate):
            raise UserError("class_costs: of more classes than two, where there is neither prior nor miss_rate")
        if self.prior is not None and "prior" not in policies.option_names(self.policy):
            raise UserError(f"prior: policy = {self.policy!r} takes no table; adaptive does")
        if self.miss_rate and "miss_rate" not in policies.option_names(self.policy):
            raise UserError(f"miss_rate: policy = {self.policy!r} keeps no such limit; adaptive does")
        if self.prior is not None and len(self.prior) != 2**self.bits:
            raise UserError(f"prior: {len(self.prior)} numbers; bits = {self.bits} wants {2**self.bits}")
        made = policies.policy_arguments(self.policy, numbers)
        if self.class_costs is not None:
            policies.core.make(self.policy, made)  # refuses a matrix that is none
        return made

    def content(self) -> dict[str, Any]:
        """What the runtime starts from (h2t2.node.start); on a board it is config.json."""
        names = (
            "device", "broker", "port", "user", "password", "keep_alive", "wifi_name", "wifi_password", "event",
            "remote_shape", "model_id", "ldl", "policy", "in_flight", "deadline_ms", "when_down", "snapshot", "snapshot_every",
            "snapshot_mismatch", "telemetry_s", "ntp", "watchdog_ms", "log", "records",
        )  # fmt: skip
        made = {**{name: getattr(self, name) for name in names}, "arguments": self.arguments()}
        made.update({name: f"{name}.der" for name in ("ca", "cert", "key") if getattr(self, name)})
        if self.wifi_power_save != "none":
            made["wifi_power_save"] = self.wifi_power_save
        if self.stream:
            made["stream"] = True
        if self.snapshot_ldl:
            made["snapshot_ldl"] = True
        if self.report_decisions:
            made["report_decisions"] = True
        if self.update_key:
            from .update import keys

            if not self.snapshot:
                raise UserError("update_key: also give `snapshot`, the file beside which updates are kept")
            key = keys.modulus(self.folder / self.update_key)
            made["update"] = {"key": key, "most": self.update_most, "app": self.update_app}
        if self.every:
            made["every_us"] = durations.parse_microseconds(self.every)
        if self.offload_cost:
            made["offload_cost"] = self.offload_cost.arguments()
        if self.sleep != "none":
            if not self.every:
                raise UserError(f'sleep = {self.sleep!r}: also say when a sample is due: every = "10s"')
            self._check_sleep(durations.parse_microseconds(self.every) // 1000)
            power = (
                self.offload_cost.power_arguments(self.request_size)
                if self.offload_cost and self.offload_cost.awake_mw
                else None
            )
            made["sleep"] = {"kind": self.sleep, "power": power}
        if self.app:
            if not self.pair:
                raise UserError("app: also give `pair`, the pair's folder: it says how what is measured becomes int8")
            made["app"] = "app"
            made["measured"] = app.measured(pairs.load(str(self.folder / self.pair)))
        if self.budget:
            made["budget"] = budget.budget_arguments(self.budget, self.request_size, self.deadline_ms, self.offload_cost)
        if self.remote_dtype != wire.DTYPES[0]:
            made.update(remote_dtype=wire.DTYPES.index(self.remote_dtype), remote_media=self.remote_media)
        if self.remote_limit < wire.MAX_DATA:
            made["remote_limit"] = self.remote_limit
        return made

    def _check_sleep(self, every_ms: int) -> None:
        """UserError for a sleep that would never come, or from which nothing is remembered."""
        if every_ms < LEAST_MS[self.sleep]:
            raise UserError(
                f'sleep = {self.sleep!r}: it is of use from {LEAST_MS[self.sleep]} ms on, and every = "{self.every}"'
            )
        if self.sleep == "deep" and not self.snapshot:
            raise UserError('sleep = "deep": also give `snapshot`: without that file each waking begins with nothing learned')

    @property
    def request_size(self) -> int:
        """Bytes of a request; of raw bytes, of the largest one."""
        dtype = wire.DTYPES.index(self.remote_dtype)
        shape = [self.remote_limit] if dtype == wire.RAW else self.remote_shape
        return wire.request_size(shape, dtype, self.remote_media)

    def program(self) -> bytes:
        """The app's source. UserError where it is not there, or no app."""
        return app.source(self.folder / self.app, self.remote_dtype == "raw")

    def certificates(self) -> dict[str, bytes]:
        """The files beside config.json that a TLS link reads."""
        names = [name for name in ("ca", "cert", "key") if getattr(self, name)]
        return {f"{name}.der": certificate(self.folder / getattr(self, name), name == "key") for name in names}


def load(path: Path) -> NodeConfig:
    """The configuration in a .toml file. UserError naming the entry that is wrong; a secret's value is never in it."""
    config = toml.load(path, NodeConfig, SECRETS)
    if any(getattr(config, name) for name in SECRETS):
        secret(path, f"; or leave it out of there and set {' or '.join(ENVIRONMENT.values())}")
    given = {name: os.environ[variable] for name, variable in ENVIRONMENT.items() if os.environ.get(variable)}
    config = config.model_copy(update=given)
    if isinstance(config.prior, str):  # a file beside this one
        config = config.model_copy(update={"prior": prior_file.read(path.parent / config.prior, config.bits)})
    try:
        config = config.model_copy(update={"folder": path.parent})
        config.content()
        for name in ("ca", "cert", "key"):
            if getattr(config, name):
                certificate(path.parent / getattr(config, name), name == "key")
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return config


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
