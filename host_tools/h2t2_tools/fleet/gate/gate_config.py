"""The configuration of a gate: gate.toml, and the gate that presets write. One declaration per entry."""

from __future__ import annotations

from binascii import crc32
from functools import partial
from pathlib import Path
from struct import pack
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from h2t2.core.policies import make
from h2t2.node.keeper import MISMATCH
from h2t2.node.snapshot import ORIGIN
from h2t2.node.start import DEFAULTS as RUNTIME_DEFAULTS
from h2t2.node.start import LARGEST_SEED, seed_of

from ...common import budget_text, matrices, policies
from ...common import toml_file as toml
from ...common.errors import UserError, as_user_error
from ...common.fields import DAY_S, ClassName, Count, Device, Duration, ModelNumber, NotNegative, OneOf, Share, option
from ..broker import parse
from ..config import PolicyConfig, in_operation
from ..detections import topic_filter
from ..queue.queue_options import QueueOptions

FILE = "gate.toml"
of_messages, of_remote = (partial(option, group=group) for group in ("messages", "remote model"))
WORKER = "worker:"  # begins a remote model that is a worker of `h2t2 rdl`, by the number of its model
REQUEST_SIZE = 65536  # bytes that a budget assumes before the first picture
MAX_STREAMS = 1024
Limit = Annotated[int, Field(ge=1, le=1 << 24)]


class GateConfig(PolicyConfig, QueueOptions):
    """The entries of a gate.toml."""

    device: Device = in_operation("gate", "name in the topics h2t2/2/DEVICE/...")
    broker: str = in_operation("", "MQTT broker, [mqtt[s]://]HOST[:PORT]", unset="the option --broker, or the profile's")
    ordered: bool | None = in_operation(
        None,
        "samples of a stream come in the order of time, so its past helps to decide",
        unset="true for adaptive, two classes, without miss_rate and features",
        example=False,
    )
    topic: Annotated[str, AfterValidator(topic_filter)] = of_messages(..., "where the scores come from; + and # as in MQTT")
    score: str = of_messages("score", "path of the score, or of the list of all classes' scores; empty: the message itself")
    score_max: Annotated[float, Field(gt=0, le=1e6)] = of_messages(1.0, "the largest score: 100 for per cent")
    key: str = of_messages("", "path of the camera, room or species; each has a policy of its own", unset="all share one")
    identity: str = of_messages("", "path of the sample's identity: the gate decides each once", unset="each message counts")
    label: str = of_messages("", "path of the detector's name for it, which decisions repeat")
    picture: str = of_messages("", "URL of the picture or clip, with {paths} in it, or path of a URL, a data URL or base64")
    text: str = of_messages("", "path of a text that the remote model reads in place of a picture")
    tensor: str = of_messages("", "path of a list of numbers that the remote model reads instead")
    features: str = of_messages("", "path of a list of numbers that a head learns from")
    feature_count: Annotated[int, Field(ge=0, le=40)] = of_messages(0, "how many numbers `features` has")
    when: dict[str, list[str | int | float | bool]] = of_messages(
        {}, "take only messages whose values are in these lists, by path"
    )
    picture_hosts: list[str] = of_messages(
        [], "hosts or networks that pictures may come from: nvr.lan:5000, 192.168.1.0/24", unset="the host in `picture`"
    )
    picture_limit: Limit = of_messages(1 << 20, "bytes of a picture")
    picture_timeout: Annotated[Duration, Field(gt=0, le=60)] = of_messages(3.0, "time to fetch a picture")
    picture_wait: Annotated[Duration, Field(ge=0, le=60)] = of_messages(
        0.0, "time in which a picture may appear that its server does not have yet (status 404 or 503)"
    )

    remote: str = of_remote(..., "as of h2t2 rdl --remote, or worker:N: a worker or a person, by model number")
    output: str = of_remote("", "the output of an .onnx that holds the scores", unset="the one beside labels", metavar="NAME")
    remote_secret: str = of_remote("", "token of its server", unset="$H2T2_REMOTE_TOKEN", metavar="FILE")
    then: str = of_remote("", "a second model, asked where the first one is unsure")
    then_beta: Share = of_remote(0.2, "cost of asking the second model")
    hang_after: Annotated[Duration, Field(gt=0, le=DAY_S)] = of_remote(
        30.0, "time after which a function or a model in a file counts as hung; another process replaces its process"
    )
    event: Annotated[int, Field(ge=0, le=255)] = of_remote(1, "which of its outputs is class 1")
    class_names: list[ClassName] = of_remote([], "names of the classes, in their order", unset="numbers")

    in_flight: Annotated[int, Field(ge=1, le=1024)] = in_operation(16, "questions at once")
    deadline: Annotated[Duration, Field(ge=0.01, le=3600)] = in_operation(
        5.0, "time for a decision; without an answer the gate decides by itself"
    )
    budget: str = in_operation(
        "",
        "largest amount that is asked: 10%; 200/day, 500kB/day: never more in a calendar day (UTC), hour or minute",
        unset="any",
    )
    state: str = in_operation("gate-state", "folder of the learned state, the queue and the decisions")
    snapshot_every: Count = in_operation(50, "labels between two saves, after the first 1, 2, 4, 8 ...")
    snapshot_mismatch: Annotated[str, AfterValidator(OneOf(MISMATCH))] = in_operation(
        RUNTIME_DEFAULTS["snapshot_mismatch"],
        "a snapshot of another policy: fresh keeps it under another name, stop does not start",
    )
    streams: Annotated[int, Field(ge=1, le=MAX_STREAMS)] = in_operation(
        64, "keys with a policy of their own; the others share one"
    )
    remember: NotNegative = in_operation(20000, "decisions that are remembered by identity")
    telemetry: Annotated[Duration, Field(ge=1, le=DAY_S)] = in_operation(
        RUNTIME_DEFAULTS["telemetry_s"], "time between two reports of the state"
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
    def origin(self) -> bytes:
        """Of which remote model and classes its streams learn, as snapshot.ORIGIN. A server may move."""
        place, _, path = self.remote.partition("://")
        name = f"{path.partition('/')[2] if path else place} {self.output}"
        number = crc32(name.encode()) if self.worker is None else self.worker
        return pack(ORIGIN, 0, number, crc32(f"{self.event} {self.class_names}".encode()))

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        return self.class_names or [str(k) for k in range(self.classes)]

    @property
    def in_time(self) -> bool:
        """As PolicyConfig.in_time: messages do."""
        return not self.feature_count

    def stream_seed(self, key: str) -> int:
        """The seed of a stream's draws: streams draw differently, and so do gates."""
        return seed_of(self.device, key) if self.seed is None else (self.seed ^ crc32(key.encode())) & LARGEST_SEED

    def arguments(self, seed: int) -> dict[str, Any]:
        """The integer arguments of a stream's policy. UserError for options that do not go together."""
        numbers = {**self.numbers(self.folder, 0), "seed": seed}
        if self.miss_rate and "miss_rate" not in policies.option_names(self.policy):
            raise UserError(f"miss_rate: policy = {self.policy!r} keeps no such limit; adaptive does")
        with as_user_error():
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
        return budget_text.budget_arguments(self.budget, REQUEST_SIZE, round(self.deadline * 1000)) if self.budget else None


def load(path: Path) -> GateConfig:
    """The configuration in a file. UserError, naming the entry, for a wrong one."""
    entries = toml.read_entries(path)
    config = toml.validate({**entries, "folder": path.parent}, path, GateConfig)
    if config.broker:
        parse(config.broker, tls=True)
    try:
        config.arguments(config.stream_seed(""))
        config.budget_arguments()
    except (ValueError, UserError) as error:
        raise UserError(f"{path}: {error}") from None
    return config
