"""A node's configuration in people's numbers: one declaration per entry.

It generates the options of `h2t2 node`, the commented h2t2.toml of a project, docs/configuration.md and the checks. `content()`
makes the integers that the runtime starts from; on a board they are config.json. `load()` reads the h2t2.toml of a project.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from h2t2.core import policies as core_policies
from h2t2.link import wire
from h2t2.node.keeper import MISMATCH
from h2t2.node.sleep import MIN_MS
from h2t2.node.start import DEFAULTS as RUNTIME_DEFAULTS
from h2t2.node.start import seeded

from ..common import budget_text, cost_table, durations, fields, matrices, policies, prior_file
from ..common import toml_file as toml
from ..common.cost_table import CostTable
from ..common.errors import UserError, as_user_error, file_errors
from ..common.feature_limits import CONTEXT_NUMBERS, MODEL_FEATURES
from ..common.fields import Bits, ClassName, Count, Device, Duration, ModelNumber, NotNegative, OneOf, Options, Share, option
from ..common.untrusted import check_format
from . import profile
from .endpoint import PASSWORD, secret

if TYPE_CHECKING:
    from ..common import pairs

FILE = "h2t2.toml"  # of a project
HEAD = "head.h2h"  # what heads begin with, on a board
FORMAT = 1  # of an h2t2.toml, in its entry `format`; a file without this entry has format 1 too
PI = "pi"  # the section of a project that `h2t2 node` reads, on a Pi or another computer
SECRETS = ("password", "wifi_password", "provision_password")
ENVIRONMENT = {"password": PASSWORD, "wifi_password": "H2T2_WIFI_PASSWORD"}
PATHS = (*profile.TLS, "prior", "head", "class_costs", "rdl_confusion", "offload_cost", "update_key", "app", "pair")
LONGEST_US = 10**9  # a longer schedule is counted in milliseconds
DEFAULTS = policies.DEFAULTS


IPv4 = Annotated[str, AfterValidator(lambda text: str(IPv4Address(text)))]
Matrix = Annotated[list[list[Share]], Field(min_length=3, max_length=16)]
Table = Annotated[list[Share], Field(max_length=256)]
NETWORK = "network"
# an option of each group of entries
of_network, of_models, of_policy, in_operation = (
    partial(option, group=group) for group in (NETWORK, "models", "policy", "operation")
)
# entries that a board's config.json has as they are
network_entry, model_entry, policy_entry, loop_entry = (
    partial(declare, runtime=True) for declare in (of_network, of_models, of_policy, in_operation)
)
wifi_entry = partial(network_entry, hidden=True)


class PolicyConfig(Options):
    """The entries that choose and tune the policy."""

    policy: Annotated[str, AfterValidator(OneOf(policies.NAMES))] = policy_entry(policies.NAMES[0], "decision rule")
    bits: Bits = of_policy(DEFAULTS["bits"], "score bits; the policy learns in 2^bits bins", metavar="b")
    beta: Share = of_policy(DEFAULTS["beta"], "cost of an offload", unset=f"the pair's, else {DEFAULTS['beta']:g}")
    delta_fp: Share = of_policy(DEFAULTS["delta_fp"], "cost of a false alarm")
    delta_fn: Share = of_policy(DEFAULTS["delta_fn"], "cost of a missed event")
    rdl_fp: Share = of_policy(DEFAULTS["rdl_fp"], "how often the remote model says 1 for 0")
    rdl_fn: Share = of_policy(DEFAULTS["rdl_fn"], "how often the remote model says 0 for 1")
    miss_rate: Share = of_policy(
        DEFAULTS["miss_rate"], "adaptive: largest share of events that may be missed; 0: no limit", metavar="M"
    )
    confidence: Share = of_policy(
        DEFAULTS["confidence"],
        "adaptive: probability with which miss_rate holds for true events at all times at once, also where answers are lost"
        " (0.5 to 0.999); it asks about every sample at first; 0: miss_rate is an estimate",
        metavar="C",
    )
    normal: str | int | None = of_policy(
        None, "miss_rate of three classes or more: the class that is no event, by its name or number", example="ok"
    )
    ordered: bool | None = of_policy(
        None,
        "adaptive, two classes, without head: samples come in the order of time, so the past helps to decide",
        unset="true for an app's samples without miss_rate, false for recorded ones",
        example=False,
    )
    class_costs: Matrix | str | None = of_policy(
        None,
        "three classes or more: what each decision costs, a row for each true class; a matrix or a .csv",
        unset="the pair's",
        example=[[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        metavar="FILE",
    )
    rdl_confusion: Matrix | str | None = of_policy(
        None,
        "three classes or more: how often the remote model says each class, a row for each true class; a matrix or a .csv",
        unset="it is always right",
        example=[[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        metavar="FILE",
    )
    prior: Table | str | None = of_policy(
        None,
        "adaptive: the table to start from, a number for each bin or a file of `h2t2 prior`",
        example="prior.json",
        metavar="FILE",
    )
    eta: Annotated[float, Field(gt=0, le=5.5)] = of_policy(DEFAULTS["eta"], "h2t2: learning rate")
    epsilon: Annotated[float, Field(gt=0, le=1)] = of_policy(DEFAULTS["epsilon"], "h2t2: fixed exploration rate")
    feedback: Annotated[str, AfterValidator(OneOf(policies.FEEDBACK))] = of_policy(
        DEFAULTS["feedback"], "h2t2: which offloads teach; explored: those of Algorithm 1"
    )
    exploration: Annotated[str, AfterValidator(OneOf(policies.EXPLORATION))] = of_policy(
        DEFAULTS["exploration"], "h2t2: anytime falls with the rounds, epsilon is fixed"
    )
    half_life: NotNegative = of_policy(DEFAULTS["half_life"], "h2t2: rounds after which losses count half; 0: always in full")
    seed: fields.Seed | None = of_policy(
        None, "seed of the policy's draws", unset="from the names of device and model", example=1
    )
    in_flight: Bits = loop_entry(1, "offloads in flight at once", metavar="W")

    def numbers(self, folder: Path, classes: int = 0, names: list[str] | None = None) -> dict[str, Any]:
        """The policy's options in people's numbers, as units.policy takes them. Tables and matrices are read from their files.

        Args:
            folder: what file names are relative to.
            classes: of the pair; 0: as many as class_costs has.
            names: of the classes; None: those of this configuration, if it has any.
        """
        numbers = {name: getattr(self, name) for name in DEFAULTS if getattr(self, name, None) is not None}
        costs, confusion, prior = self.class_costs or None, self.rdl_confusion or None, self.prior
        prior = None if prior == "" else prior  # an empty text takes back what stands above a section
        if isinstance(costs, str):
            costs = matrices.read_costs(folder / costs, classes)
        if isinstance(confusion, str):
            confusion = matrices.read_confusion(folder / confusion, classes or len(costs or ()))
        if isinstance(prior, str):
            prior = prior_file.read(folder / prior, self.bits)
        numbers |= {"costs": costs, "rdl_confusion": confusion, "prior": prior}
        if self.normal is not None:
            from ..common.labels import class_of

            numbers["normal"] = class_of("normal", str(self.normal), names or getattr(self, "class_names", None))
        if self.ordered is None:
            numbers["ordered"] = self.in_time and policies.can_read_past(self.policy, numbers)
        return numbers

    @property
    def in_time(self) -> bool:
        """Whether samples come in the order of time as far as the entries other than `ordered` say, and no head reads them."""
        return False


class NodeConfig(PolicyConfig):
    """The entries of an h2t2.toml. Those that only a board has are hidden from the command line."""

    device: Device = network_entry("node", "name in the topics h2t2/2/DEVICE/...")
    broker: str = network_entry("localhost", "MQTT broker, [mqtt[s]://]HOST[:PORT]", metavar="URL")
    port: fields.Port = network_entry(1883, "the broker's port, where `broker` names none; with TLS usually 8883")
    user: str = network_entry("", "user name at the broker")
    password: str = network_entry(
        "", f"its password, or ${PASSWORD}; a file with a password must be its owner's alone (chmod 600)", hidden=True
    )
    keep_alive: Duration = of_network(RUNTIME_DEFAULTS["keep_alive"], "MQTT's keep-alive", hidden=True, ge=5, le=3600)
    ca: str = of_network("", "certificate of the authority that signed the broker's (PEM or DER): TLS", metavar="FILE")
    cert: str = of_network("", "this device's certificate, where the broker wants one", metavar="FILE")
    key: str = of_network("", "this device's private key, readable by its owner alone", metavar="FILE")
    wifi_name: str = wifi_entry("", "name of the wireless network")
    wifi_password: str = wifi_entry("", "its password, or $H2T2_WIFI_PASSWORD")
    wifi_power_save: Literal["none", "performance", "powersave"] = wifi_entry(
        "none", "the radio sleeps between beacons; answers take up to half a second longer"
    )
    wifi_security: Literal["none", "open", "wpa_wpa2", "wpa3", "wpa2_wpa3"] = wifi_entry(
        "none", "security of the network, which an rp2 board must know if it is not wpa_wpa2; none: the port's"
    )
    wifi_country: Annotated[str, Field(pattern="^([A-Z]{2})?$")] = wifi_entry(
        "", "country, whose channels the radio may use", unset="the port's", example="DE"
    )
    wifi_hostname: Annotated[str, Field(pattern="^([A-Za-z0-9-]{1,32})?$")] = wifi_entry(
        "", "name that it tells the router", unset="the port's", example="porch"
    )
    wifi_bssid: Annotated[str, Field(pattern="^(([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})?$")] = wifi_entry(
        "", "address of the only access point that it joins", unset="any", example="f0:9f:c2:00:00:01"
    )
    wifi_address: Annotated[list[IPv4], Field(min_length=4, max_length=4)] | None = wifi_entry(
        None,
        "fixed address, mask, gateway and name server",
        unset="of DHCP",
        example=["192.168.1.7", "255.255.255.0", "192.168.1.1", "192.168.1.1"],
    )
    provision: bool = of_network(
        False, "without wifi_name, an access point h2t2-DEVICE with a page that asks for it, ten minutes long", hidden=True
    )
    provision_password: Annotated[str, Field(pattern="^([ -~]{8,63})?$")] = of_network(
        "", "the password of this access point, 8 to 63 characters", hidden=True
    )
    ntp: str = network_entry(
        "pool.ntp.org", "time server, asked until it answers, then every six hours; TLS waits for it", hidden=True
    )

    pair: str = of_models(
        "", "folder or name of the pair: it describes the models, and how a sample becomes their input; an app needs it"
    )
    app: str = of_models("", "your own program, with sense() and act(decision)", unset="recorded samples", metavar="FILE")
    files: list[str] = of_models(
        [],
        "further files that a board gets, beside those that the app imports or opens",
        hidden=True,
        example=["table.bin"],
        metavar="FILE",
    )
    ldl: str = model_entry(
        "ldl.h2m", "the local model; /rom/ldl.h2m stays in flash, where `mpremote romfs deploy` puts it", metavar="FILE"
    )
    stream: bool = model_entry(False, "read the model's weights from its file at each inference: less RAM, slower", hidden=True)
    event: int = model_entry(
        fields.EVENT, "index of class 1 among the local model's outputs", unset="the pair's, else 1", ge=0, le=255
    )
    class_names: list[ClassName] | None = model_entry(
        None, "names of the classes, in their order", unset="the pair's", example=["cat", "dog"], metavar="NAME"
    )
    features: Annotated[int, Field(ge=0, le=MODEL_FEATURES)] = of_models(
        0, "numbers of the local model that a head learns from; 0: no head", unset="the pair's", metavar="N"
    )
    context: Annotated[int, Field(ge=0, le=CONTEXT_NUMBERS)] = of_models(
        0, "numbers that the app's context() adds to the features", metavar="N"
    )
    head: str = of_models(
        "",
        "what a head begins with that no label has taught: a file of `h2t2 head`",
        unset="nothing learned",
        example="head.h2h",
        metavar="FILE",
    )
    model_id: ModelNumber = model_entry(..., "number of the remote model in requests", unset="the pair's", metavar="N")
    remote_shape: Annotated[list[int], Field(min_length=1, max_length=6)] = model_entry(
        ..., "shape of the tensor that an offload sends, without the batch", hidden=True, unset="the pair's"
    )
    remote_dtype: Annotated[str, AfterValidator(OneOf(wire.DTYPES))] = of_models(
        wire.DTYPES[0], "type of its numbers; raw: bytes that the app's remote() makes", hidden=True
    )
    remote_media: str = model_entry("", "type of raw bytes, such as image/jpeg", hidden=True, max_length=wire.MAX_MEDIA)
    remote_limit: int = of_models(
        wire.MAX_DATA,
        "bytes of data an offload may have; the node decides larger samples itself",
        hidden=True,
        ge=1,
        le=wire.MAX_DATA,
    )
    records: str = model_entry("samples.bin", "recorded samples, for a node without an app", hidden=True)

    hold: int = in_operation(
        32,
        "offloads whose label, however late, still teaches; 24 bytes of heap each, with a head more",
        metavar="N",
        ge=1,
        le=4096,
    )
    deadline: Duration = in_operation(
        2.0, "reply deadline, from when a sample is due: the node decides by then", ge=0.01, le=3600
    )
    every: Duration = in_operation(
        0.0, "time between two samples", unset="as often as the sensor gives one", example="10s", ge=0, le=fields.DAY_S
    )
    sleep: Literal["none", "light", "deep"] = in_operation(
        "none", "between two samples: light keeps RAM, deep starts anew at each waking", hidden=True
    )
    budget: str = in_operation(
        "",
        "largest amount that is offloaded: 10% of the samples; 200/day, 500kB/day, 2000mJ/hour (with offload_cost): never more"
        " in a calendar day (UTC where the clock is set, else a day of uptime), hour or minute",
        unset="any",
        metavar="B",
    )
    when_down: Literal["ask", "raise", "pause"] = loop_entry(
        RUNTIME_DEFAULTS["when_down"],
        "while nobody answers: ask the policy as ever and fall back, raise beta to 1, or pause the policy",
    )
    snapshot: str = loop_entry(
        "h2t2.state", "keep what the policy has learned in PATH.0 and PATH.1; empty: nowhere", metavar="PATH"
    )
    snapshot_every: Count = loop_entry(
        RUNTIME_DEFAULTS["snapshot_every"], "labels between two saves, after the first 1, 2, 4, 8 ...", metavar="N"
    )
    snapshot_ldl: bool = loop_entry(False, "also keep what a streaming local model has seen (PATH.ldl.0, .1)")
    snapshot_mismatch: Annotated[str, AfterValidator(OneOf(MISMATCH))] = loop_entry(
        RUNTIME_DEFAULTS["snapshot_mismatch"],
        "a snapshot of another pair, policy or version: fresh keeps it under another name, stop does not start",
    )
    telemetry: Duration = in_operation(
        RUNTIME_DEFAULTS["telemetry_s"], "time between two reports of the state; 0: none", ge=0, le=fields.DAY_S
    )
    report_decisions: bool = loop_entry(
        False, "publish the state within a second after a changed decision, for `h2t2 home-assistant`"
    )
    update_key: str = in_operation(
        "",
        "accept update packages that are signed with it: the public key of `h2t2 update keys`",
        example="fleet.pub",
        metavar="FILE",
    )
    update_most: int = in_operation(262144, "bytes a package may have", metavar="BYTES", ge=1, le=1 << 24)
    update_app: bool = in_operation(False, "a package may bring a new app.py")
    watchdog: Duration = in_operation(
        0.0, "hardware watchdog: restarts the board when its program hangs for so long; 0: none", hidden=True, ge=0, le=60
    )
    machine_code: bool = in_operation(
        True, "run the policy as machine code: some 20 KB of heap; false: a step takes six to seven times as long", hidden=True
    )
    log_file: str = loop_entry(
        "h2t2.log", "errors, over resets: 8 KB here and 8 KB in FILE.old; empty: only printed", hidden=True
    )
    offload_cost: Annotated[CostTable | None, BeforeValidator(cost_table.of_file)] = in_operation(
        None, "measure beta instead: a table, or a .toml, of the seconds, kilobytes and millijoules that cost 1", metavar="FILE"
    )
    folder: Path = option(Path("."), "what the names of files are relative to", hidden=True, exclude=True)

    @model_validator(mode="after")
    def _check_tensor(self) -> NodeConfig:
        wire.checked_shape(tuple(self.remote_shape), wire.DTYPES.index(self.remote_dtype))
        return self

    @property
    def in_time(self) -> bool:
        """As PolicyConfig.in_time: an app's samples do."""
        return bool(self.app) and not (self.features or self.context)

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) of the broker."""
        from . import broker

        return broker.parse(self.broker, tls=True, port=0 if "://" in self.broker else self.port)

    def arguments(self) -> dict[str, Any]:
        """The policy's integer arguments. UserError for options that do not go together."""
        numbers = self.numbers(self.folder)
        prior, costs = numbers["prior"], numbers["costs"]
        classes = len(costs) if costs else 2
        if self.class_names and len(self.class_names) != classes:
            raise UserError(f"class_names: {len(self.class_names)} names for {classes} classes")
        if costs is not None and prior is not None:
            raise UserError("class_costs: three classes or more take no prior")
        if prior is not None and "prior" not in policies.option_names(self.policy):
            raise UserError(f"prior: policy = {self.policy!r} takes no table; adaptive does")
        if self.confidence and not (self.miss_rate and 0.5 <= self.confidence <= 0.999):
            raise UserError(f"confidence: {self.confidence:g}; want 0.5 to 0.999, with a miss_rate that shall hold")
        if self.miss_rate and "miss_rate" not in policies.option_names(self.policy):
            raise UserError(f"miss_rate: policy = {self.policy!r} keeps no such limit; adaptive does")
        if self.ordered and not policies.can_read_past(self.policy, {"costs": costs}):
            raise UserError("ordered: of the adaptive policy for two classes")
        if prior is not None and len(prior) != 2**self.bits:
            raise UserError(f"prior: {len(prior)} numbers; bits = {self.bits} wants {2**self.bits}")
        with as_user_error():
            arguments = policies.policy_arguments(self.policy, {**numbers, "window": max(self.hold, self.in_flight)})
        arguments = seeded({"arguments": arguments, "device": self.device, "model_id": self.model_id})
        if self.features or self.context:
            arguments |= self._head()
        with as_user_error():  # also an impossible matrix
            (core_policies.kind if costs is None else core_policies.make)(self.policy, arguments)
        return arguments

    def _head(self) -> dict[str, int]:
        """The argument of a policy with a head; none for a policy that has no head. UserError for a context without a head."""
        if self.policy == policies.NAMES[0] and not self.ordered:
            return {"features": self.features + self.context}
        if self.context:
            raise UserError("context: a head learns from it; want policy = adaptive, not ordered")
        return {}

    def content(self) -> dict[str, Any]:
        """What the runtime starts from; on a board config.json. Entries that are empty, false or the default are left out."""
        entries = {name: value for name, value in self if name in RUNTIME and value is not False and value not in ("", "none")}
        entries = {name: value for name, value in entries.items() if value != RUNTIME_DEFAULTS.get(name)}
        host, port = self.address
        entries |= {"arguments": self.arguments(), "broker": host, "port": port} | self._times()
        entries |= {name: f"{name}.der" for name in profile.TLS if getattr(self, name)}
        if self.context:
            entries["context"] = self.context
        if self.provision:
            entries["provision"] = self.provision_password
        if self.head:
            self.head_content(entries["arguments"])
            entries["head"] = HEAD
        if self.remote_dtype != wire.DTYPES[0]:
            entries["remote_dtype"] = wire.DTYPES.index(self.remote_dtype)
        if self.remote_limit < wire.MAX_DATA:
            entries["remote_limit"] = self.remote_limit
        if self.offload_cost:
            entries["offload_cost"] = self.offload_cost.arguments()
        if self.budget:
            entries["budget"] = budget_text.budget_arguments(
                self.budget, self.request_size, self.deadline_ms, self.offload_cost
            )
        return entries | self._update() | self._sleep() | self._app()

    def head_content(self, arguments: dict[str, Any]) -> bytes:
        """The file that a head begins with. UserError where it does not fit the policy of these arguments."""
        from ..common import head_file

        path = self.folder / self.head
        if "features" not in arguments:
            raise UserError(f"head: {path}: this policy has no head; want adaptive, and a pair with features")
        return head_file.read(path, len(arguments.get("costs", (0, 1))), arguments["features"])

    def _times(self) -> dict[str, int]:
        """The durations, in the runtime's units."""
        times = {"keep_alive": math.ceil(self.keep_alive), "telemetry_s": math.ceil(self.telemetry)}
        times = {name: value for name, value in times.items() if value != RUNTIME_DEFAULTS[name]}
        times |= {"deadline_ms": self.deadline_ms, "watchdog_ms": self.watchdog_ms}
        every_us = round(self.every * 1e6)
        if every_us > LONGEST_US:
            return {**times, "every_ms": every_us // 1000}
        return {**times, "every_us": every_us} if every_us else times

    @property
    def deadline_ms(self) -> int:
        """The reply deadline in milliseconds."""
        return round(self.deadline * 1000)

    @property
    def watchdog_ms(self) -> int:
        """The watchdog's time in milliseconds; 0: none."""
        return round(self.watchdog * 1000)

    def _update(self) -> dict[str, Any]:
        if not self.update_key:
            return {}
        from .update import keys

        if not self.snapshot:
            raise UserError("update_key: also give `snapshot`, the file beside which updates are kept")
        key = keys.modulus(self.folder / self.update_key)
        return {"update": {"key": key, "max_bytes": self.update_most, "app": self.update_app}}

    def _sleep(self) -> dict[str, Any]:
        """UserError for a sleep that would never come, or that would lose what was learned."""
        if self.sleep == "none":
            return {}
        if not self.every:
            raise UserError(f'sleep = {self.sleep!r}: also say when a sample is due: every = "10s"')
        shortest = MIN_MS[self.sleep]
        if self.every * 1000 < shortest:
            raise UserError(
                f'sleep = {self.sleep!r}: it is of use from {shortest} ms on, and every = "{durations.text(self.every)}"'
            )
        if self.sleep == "deep" and not self.snapshot:
            raise UserError('sleep = "deep": also give `snapshot`: without that file each waking begins with nothing learned')
        table = self.offload_cost
        power = table.power_arguments(self.request_size) if table and table.awake_mw else None
        return {"sleep": {"kind": self.sleep, "power": power}}

    def _app(self) -> dict[str, Any]:
        if not self.app:
            return {}
        if not self.pair:
            raise UserError("app: also give `pair`, the pair's folder: it says how what is measured becomes int8")
        from ..common import pairs
        from . import app

        source, name = app.source(self.folder / self.app), located(self.folder, self.pair)
        features: dict[str, Any] = {"awaitable": True} if app.is_async(source) else {}
        features |= {"link": "app"} if app.has_link(source) else {}
        return {"app": "app", "measured": app.measured(pairs.folder_of(name), pairs.load_info(name)), **features}

    @property
    def request_size(self) -> int:
        """Bytes of a request; of raw bytes, of the largest one."""
        dtype = wire.DTYPES.index(self.remote_dtype)
        shape = [self.remote_limit] if dtype == wire.RAW else self.remote_shape
        return wire.request_size(shape, dtype, self.remote_media)

    def program(self) -> bytes:
        """The app's source. UserError where the file is missing, or is no app."""
        from . import app

        return app.source(self.folder / self.app, self.remote_dtype == "raw")

    def certificates(self) -> dict[str, bytes]:
        """The files beside config.json that a TLS link reads."""
        names = [name for name in profile.TLS if getattr(self, name)]
        return {f"{name}.der": certificate(self.folder / getattr(self, name), name == "key") for name in names}


RUNTIME = {name for name, field in NodeConfig.model_fields.items() if fields.about(field, "runtime")}


def described(info: pairs.PairInfo, policy: str = policies.NAMES[0]) -> dict[str, Any]:
    """The entries that a pair describes. policy: H2T2 stays the paper's, which takes the remote model for the truth."""
    entries: dict[str, Any] = {"event": info.event_output("ldl"), "model_id": info.model_id, "beta": info.beta}
    entries |= {f"remote_{name}": getattr(info.remote, name) for name in ("shape", "dtype", "media", "limit")}
    optional = {"class_names": info.class_names, "features": info.features, "class_costs": info.costs}
    rates = info.error_rates() if policy == policies.NAMES[0] else {}
    return entries | rates | {name: value for name, value in optional.items() if value}


def located(folder: Path, pair: str) -> str:
    """A pair's path where it lies in the folder, else its name as it is."""
    return str(folder / pair) if (folder / pair).exists() else pair


NETWORK_ENTRIES = tuple(
    name for name, field in NodeConfig.model_fields.items() if fields.about(field, "group") == NETWORK and name != "device"
)


def project_path(folder: Path) -> Path:
    """The configuration of a project. UserError, with a remedy, for a folder without one."""
    path = folder / FILE
    if path.is_file():
        return path
    raise UserError(f"{folder}: no {FILE} in it: not a project; h2t2 new makes one")


class ProjectFile:
    """An h2t2.toml, which is read once.

    Attributes:
        path: the file.
        tables: the sections of boards, in their order.
    """

    def __init__(self, path: Path) -> None:
        """UserError where the file cannot be read, or has a format other than FORMAT."""
        self.path = path
        self._entries = toml.read_entries(path)
        check_format(self._entries.pop("format", 1), FORMAT, path, "the project again: h2t2 new")
        self.tables: dict[str, dict[str, Any]] = self._entries.pop("boards", {})
        if not isinstance(self.tables, dict) or not all(isinstance(table, dict) for table in self.tables.values()):
            raise UserError(f"{path}: boards: want a section for each board, such as [boards.pico_w]")

    def entries(self, board: str = "", network: bool = True) -> dict[str, Any]:
        """The entries, not yet checked, with the secrets of the environment.

        Args:
            board: the section [boards.NAME] whose entries override the others.
            network: False for a board without a network: entries about one are left out, unless they stand in its section.

        Raises:
            UserError: an entry is unknown.
        """
        entries, tables = {**self._entries}, (self._entries, *self.tables.values())
        for name in (name for table in tables for name in table):
            if name not in NodeConfig.model_fields.keys() - {"folder"}:
                raise UserError(f"{self.path}: {name}: there is no such entry")
        for table in tables:
            self._check_kinds(table)
        if any(isinstance(table.get(name), str) and table[name] for table in tables for name in SECRETS):
            secret(self.path, f"; or leave it out of there and set {' or '.join(ENVIRONMENT.values())}")
        if not network:
            entries = {name: value for name, value in entries.items() if name not in NETWORK_ENTRIES}
        entries |= self.tables.get(board, {})
        for name, variable in ENVIRONMENT.items() if network else ():
            if os.environ.get(variable) and not entries.get(name):
                entries[name] = os.environ[variable]
        if isinstance(entries.get("offload_cost"), str):
            entries["offload_cost"] = str(self.path.parent / entries["offload_cost"])
        return entries

    def _check_kinds(self, table: dict[str, Any]) -> None:
        """UserError for a text or a truth value in place of a number, which pydantic reads as one."""
        for name, value in table.items():
            accepted = fields.domain(NodeConfig.model_fields[name])
            text = isinstance(value, str) and accepted.kind in (int, float) and not accepted.duration
            if accepted.count == 1 and (text or isinstance(value, bool) != (accepted.kind is bool)):
                words = "want true or false" if accepted.kind is bool else "want text"
                wrong: Any = {"loc": (name,), "type": "int_type", "msg": words}
                raise UserError(f"{self.path}: {name} = {json.dumps(value)}: {fields.reason(wrong, NodeConfig)}")

    def files(self) -> Iterator[Path]:
        """The files that it names, for any board."""
        for table in (self._entries, *self.tables.values()):
            for name in (*PATHS, "records"):
                if isinstance(table.get(name), str) and table[name]:
                    yield self.path.parent / table[name]

    def config(self, board: str = "", network: bool = True, usual_broker: bool = True) -> NodeConfig:
        """The configuration; what it leaves out of the broker, the profile says.

        Args:
            board, network: as of entries().
            usual_broker: whether the broker may be the profile's; otherwise the profile is not read.

        Raises:
            UserError: an entry is wrong. The message names it, and never a secret's value.
        """
        entries = self.entries(board, network)
        if network and usual_broker:
            usual = profile.defaults(entries)
            password_file = usual.pop("password_file", "")
            if password_file and not entries.get("password"):
                entries["password"] = secret(Path(password_file)).read_text().strip()
            entries = {**usual, **entries}
        pair = entries.get("pair")
        if isinstance(pair, str) and pair and not {"remote_shape", "model_id"} <= entries.keys():
            from ..common import pairs

            info = pairs.load_info(located(self.path.parent, pair))
            entries = {**described(info, str(entries.get("policy", policies.NAMES[0]))), **entries}
        config = toml.validate({**entries, "folder": self.path.parent}, self.path, NodeConfig, SECRETS)
        with as_user_error(self.path):
            config.content()
            config.certificates()
        return config


def load(path: Path, board: str = "", network: bool = True) -> NodeConfig:
    """The configuration in an h2t2.toml, as ProjectFile.config()."""
    return ProjectFile(path).config(board, network)


def certificate(path: Path, key: bool) -> bytes:
    """A certificate, or a private key, of a PEM or DER file, as DER, which every MicroPython port reads. UserError if not."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as form

    with file_errors(path):
        content = (secret(path) if key else path).read_bytes()
    pem = content.lstrip().startswith(b"-----")
    try:
        if key:
            private = form.load_pem_private_key(content, None) if pem else form.load_der_private_key(content, None)
            return private.private_bytes(form.Encoding.DER, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption())
        loaded = x509.load_pem_x509_certificate(content) if pem else x509.load_der_x509_certificate(content)
        return loaded.public_bytes(form.Encoding.DER)
    except (ValueError, TypeError):
        raise UserError(f"{path}: not a {'private key' if key else 'certificate'} in PEM or DER, without a password") from None
