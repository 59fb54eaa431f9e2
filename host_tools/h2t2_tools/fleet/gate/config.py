"""The configuration of a gate: gate.toml, and the gate that presets write. One declaration per entry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from h2t2.core.policies import make
from h2t2.node.keeper import MISMATCH
from h2t2.node.start import DEFAULTS as RUNTIME_DEFAULTS

from ...common import budget, matrices, policies
from ...common import toml_file as toml
from ...common.errors import UserError
from ...common.fields import DAY_S, Count, Device, Duration, ModelNumber, NotNegative, OneOf, Share, file, option
from ...common.labels import ClassName
from ..broker import parse
from ..config import OPERATION, PolicyConfig
from ..queue.backlog import QueueOptions

FILE = "gate.toml"
MESSAGES, REMOTE = "messages", "remote model"
WORKER = "worker:"  # begins a remote model that is a worker of `h2t2 rdl`, by the number of its model
REQUEST_SIZE = 65536  # bytes that a budget assumes before the first picture
MAX_STREAMS = 1024
OWN = "/decision"  # ends the topics of decisions
Limit = Annotated[int, Field(ge=1, le=1 << 24)]


def _filter(topic: str) -> str:
    """A check that a text is an MQTT topic filter."""
    levels = topic.split("/")
    if not topic or len(topic.encode()) > 1024 or "\0" in topic or "#" in "".join(levels[:-1]):
        raise ValueError("want an MQTT topic; # only at its end")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError("want + and # as whole levels")
    return topic


class GateConfig(PolicyConfig, QueueOptions):
    """The entries of a gate.toml."""

    device: Device = option("gate", "name in the topics h2t2/2/DEVICE/...", group=OPERATION)
    broker: str = option(
        "", "MQTT broker, mqtt[s]://HOST[:PORT]", unset="the option --broker, or the profile's", group=OPERATION
    )
    topic: Annotated[str, AfterValidator(_filter)] = option(
        ..., "where the scores come from; + and # as in MQTT", group=MESSAGES
    )
    score: str = option(
        "score", "path of the score, or of the list of all classes' scores; empty: the message itself", group=MESSAGES
    )
    score_max: Annotated[float, Field(gt=0, le=1e6)] = option(1.0, "the largest score: 100 for per cent", group=MESSAGES)
    key: str = option(
        "", "path of the camera, room or species; each has a policy of its own", unset="all share one", group=MESSAGES
    )
    identity: str = option(
        "", "path of the sample's identity: the gate decides each once", unset="each message counts", group=MESSAGES
    )
    label: str = option("", "path of the detector's name for it, which decisions repeat", group=MESSAGES)
    picture: str = option(
        "", "URL of the picture or clip, with {paths} in it, or path of a URL, a data URL or base64", group=MESSAGES
    )
    text: str = option("", "path of a text that the remote model reads in place of a picture", group=MESSAGES)
    tensor: str = option("", "path of a list of numbers that the remote model reads instead", group=MESSAGES)
    features: str = option("", "path of a list of numbers that a head learns from", group=MESSAGES)
    feature_count: Annotated[int, Field(ge=0, le=40)] = option(0, "how many numbers `features` has", group=MESSAGES)
    when: dict[str, list[str | int | float | bool]] = option(
        {}, "take only messages whose values are in these lists, by path", group=MESSAGES
    )
    picture_hosts: list[str] = option(
        [], "hosts or networks that pictures may come from: nvr.lan:5000, 192.168.1.0/24", unset="the host in `picture`",
        group=MESSAGES,
    )  # fmt: skip
    picture_limit: Limit = option(1 << 20, "bytes of a picture", group=MESSAGES)
    picture_timeout: Annotated[Duration, Field(gt=0, le=60)] = option(3.0, "time to fetch a picture", group=MESSAGES)
    picture_wait: Annotated[Duration, Field(ge=0, le=60)] = option(
        0.0, "time in which a picture may appear that its server does not have yet (status 404 or 503)", group=MESSAGES
    )

    remote: str = option(..., "as of h2t2 rdl --remote, or worker:N: a worker or a person, by model number", group=REMOTE)
    remote_secret: str = file("", "token of its server", unset="$H2T2_REMOTE_TOKEN", group=REMOTE)
    then: str = option("", "a second model, asked where the first one is unsure", group=REMOTE)
    then_beta: Share = option(0.2, "cost of asking the second model", group=REMOTE)
    event: Annotated[int, Field(ge=0, le=255)] = option(1, "which of its outputs is class 1", group=REMOTE)
    class_names: list[ClassName] = option([], "names of the classes, in their order", unset="numbers", group=REMOTE)

    in_flight: Annotated[int, Field(ge=1, le=1024)] = option(16, "questions at once", group=OPERATION)
    deadline: Annotated[Duration, Field(ge=0.01, le=3600)] = option(
        5.0, "time for a decision; without an answer the gate decides by itself", group=OPERATION
    )
    budget: str = option("", "largest amount that is asked: 10%, 200/day, 500kB/day", unset="any", group=OPERATION)
    state: str = option("gate-state", "folder of the learned state, the queue and the decisions", group=OPERATION)
    snapshot_every: Count = option(50, "labels between two saves, after the first 1, 2, 4, 8 ...", group=OPERATION)
    snapshot_mismatch: Annotated[str, AfterValidator(OneOf(MISMATCH))] = option(
        RUNTIME_DEFAULTS["snapshot_mismatch"],
        "a snapshot of another policy: fresh keeps it under another name, stop does not start",
        group=OPERATION,
    )
    streams: Annotated[int, Field(ge=1, le=MAX_STREAMS)] = option(
        64, "keys with a policy of their own; the others share one", group=OPERATION
    )
    remember: NotNegative = option(20000, "decisions that are remembered by identity", group=OPERATION)
    telemetry: Annotated[Duration, Field(ge=1, le=DAY_S)] = option(
        RUNTIME_DEFAULTS["telemetry_s"], "time between two reports of the state", group=OPERATION
    )
    folder: Path = option(Path("."), "what the names of files are relative to", hidden=True, exclude=True)

    @field_validator("picture_hosts")
    @classmethod
    def _are_places(cls, hosts: list[str]) -> list[str]:
        from .picture_client import Allowed

        for host in hosts:
            Allowed.parse(host)
        return hosts

    @model_validator(mode="after")
    def _fits(self) -> GateConfig:
        if isinstance(self.class_costs, str) and self.class_costs:
            self.class_costs = matrices.read_costs(self.folder / self.class_costs, 0)
        if sum(map(bool, (self.picture, self.text, self.tensor))) > 1:
            raise ValueError("picture, text, tensor: give one of them")
        if "://" in self.picture and "{" in self.picture.split("://")[1].partition("/")[0]:
            raise ValueError("picture: no {path} in the host of a URL: a message would choose the host")
        if bool(self.features) != bool(self.feature_count):
            raise ValueError("features: also give feature_count, and the other way round")
        if self.class_names and len(self.class_names) != self.classes:
            raise ValueError(f"class_names: {len(self.class_names)} names for {self.classes} classes")
        if self.worker is None and self.remote.startswith(WORKER):
            raise ValueError(f"remote: want {WORKER}N, N the number of a model from 0 to 65535")
        return self

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_costs) if isinstance(self.class_costs, list) else 2

    @property
    def worker(self) -> ModelNumber | None:
        """The number of the model that workers serve; None for another remote model."""
        number = self.remote.removeprefix(WORKER)
        valid = self.remote.startswith(WORKER) and number.isascii() and number.isdecimal() and len(number) < 6
        return int(number) if valid and int(number) < 65536 else None

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        return self.class_names or [str(k) for k in range(self.classes)]

    def arguments(self, seed: int) -> dict[str, Any]:
        """The integer arguments of a stream's policy. UserError for options that do not go together."""
        numbers = {**self.numbers(self.folder, 0), "seed": seed}
        if self.miss_rate and "miss_rate" not in policies.option_names(self.policy):
            raise UserError(f"miss_rate: policy = {self.policy!r} keeps no such limit; adaptive does")
        arguments = policies.policy_arguments(self.policy, numbers)
        if self.feature_count:
            arguments["features"] = self.feature_count
        try:
            make(self.policy, arguments)
        except (ValueError, TypeError) as error:
            raise UserError(f"{error}") from None
        return arguments

    def budget_arguments(self) -> dict[str, int] | None:
        """The arguments of h2t2.core.budget.Budget; None without a budget."""
        return budget.budget_arguments(self.budget, REQUEST_SIZE, round(self.deadline * 1000)) if self.budget else None


def load(path: Path) -> GateConfig:
    """The configuration in a file. UserError, naming the entry, for a wrong one."""
    entries = toml.read_entries(path)
    config = toml.validate({**entries, "folder": path.parent}, path, GateConfig)
    if config.broker:
        parse(config.broker, tls=True)
    try:
        config.arguments(config.seed)
        config.budget_arguments()
    except (ValueError, UserError) as error:
        raise UserError(f"{path}: {error}") from None
    return config
