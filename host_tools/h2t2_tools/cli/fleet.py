"""The commands about nodes, workers and the broker: node, rdl, command, certs, broker-config."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from h2t2.units import q15

from ..common import durations, prior_file
from ..common.errors import UserError
from ..common.fields import DAY_S, Count, Device, Duration, ModelNumber, Share, file, option
from ..common.places import working_in
from ..common.untrusted import parse_integer
from ..fleet import profile
from ..fleet.config import PATHS, PI, NodeConfig, entries_of, located, project_path
from ..fleet.endpoint import Endpoint
from ..fleet.queue.backlog import QueueOptions
from .options import Connected, Daemon, Reporting, address, words
from .output import show_next
from .policy_choice import PolicyChoice

if TYPE_CHECKING:
    from ..fleet.queue.node import QueueFile

LOG = logging.getLogger(__name__)

LocalPort = Annotated[int, Field(ge=0, le=65535)]
NODE_FILES = {*PATHS, "ldl", "snapshot"}  # entries of a project that name files of a node on this machine
BESIDE = "SNAPSHOT.queue"  # the file of a bare --queue
TfliteKernels = Literal["reference", "optimised"]


class Node(PolicyChoice, NodeConfig, QueueOptions, Connected, Daemon):
    renamed = {"--window": "--in-flight", "--cost": "--offload-cost", "--costs": "--class-costs", "--config": "PROJECT"}
    renamed |= {"--deadline-ms": "--deadline", "--telemetry-s": "--telemetry"}

    project: str | None = option(
        None, "folder of a project; options override its h2t2.toml", unset="none", positional=True, metavar="PROJECT"
    )
    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    ldl: str = file("", "a local model, .tflite or .h2m bundle", unset="the pair's", group="models")
    resolver: Literal["reference", "optimised", "exact"] = option(
        "reference", "TFLite's kernels, or exact: the integer interpreter, bit for bit as on boards", group="models"
    )
    samples: Count = option(2000, "test samples of the pair to stream")
    order: str | None = file(None, "stream these test samples instead: their numbers, one per line")
    out: str = file("-", "where the JSON lines go; -: to standard output")
    hold: int = option(256, "offloads whose label, however late, still teaches", group="operation", metavar="N", ge=1, le=4096)
    snapshot: str = option(
        "", "keep what the policy has learned in PATH.0 and PATH.1", unset="nowhere", group="operation", metavar="PATH"
    )
    queue: str = file(
        "",
        f"keep offloads without an answer here and ask again when workers answer; bare: {BESIDE}, beside the snapshot",
        unset="they are lost",
        group="operation",
        const=BESIDE,
    )

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """The entries of the project, whose paths are relative to its folder; below them, the profile."""
        entries: dict[str, Any] = {}
        if "project" in words:
            path = project_path(Path(words["project"]))
            entries = entries_of(path, PI)
            for name in NODE_FILES & entries.keys():
                if isinstance(entries[name], str) and entries[name]:
                    entries[name] = located(path.parent, entries[name]) if name == "pair" else str(path.parent / entries[name])
        return {**profile.defaults({**entries, **words}), **entries}

    @property
    def url(self) -> str:
        """The broker as mqtt[s]://HOST[:PORT]."""
        return self.broker if "://" in self.broker else f"mqtt{'s' if self.ca else ''}://{self.broker}:{self.port}"

    def connection(self) -> Endpoint:
        """As Connected.connection(), with the password of the configuration."""
        endpoint = super().connection()
        return replace(endpoint, password=endpoint.password or self.password or None)

    def run(self) -> None:
        from ..common import pairs
        from ..fleet import node

        self.begin_log("node")
        pair, to = self._pair, self.connection()
        files = {name: getattr(self, name) for name in NODE_FILES if isinstance(getattr(self, name), str)}
        absolute = {name: os.path.abspath(value) for name, value in files.items() if value}
        config = self.model_copy(update={**self.corollary_rates(), **absolute, "pair": str(pair.folder.resolve())})
        samples = None
        if not self.app:
            stream = (
                node.order(Path(self.order), len(pair.x))
                if self.order
                else pairs.draw_indices(pair, self.samples, self.seed).tolist()
            )
            samples = node.Samples(pair, stream)
        ldl = os.path.abspath(self.ldl or pair.ldl)
        queue = self._queue_file()
        with node.output(self.out) as out, working_in(Path(self.project or ".")):  # an app reads files as it does on a board
            runner = node.Runner(
                config, ldl, self.resolver, samples=samples, out=out, opener=_opener(self.resolver), queue=queue
            )
            print(json.dumps({"summary": runner.stream(to)}), file=out, flush=True)

    def _queue_file(self) -> QueueFile | None:
        """Where the queue lies; None without one. UserError for a bare --queue without a snapshot."""
        from ..fleet.queue.node import QueueFile

        if self.queue == BESIDE and not self.snapshot:
            raise UserError("--queue: also give --snapshot, beside which it lies, or name a file: --queue node.queue")
        path = self.queue.replace("SNAPSHOT", self.snapshot) if self.queue == BESIDE else self.queue
        return QueueFile(Path(os.path.abspath(path)), self) if path else None


def _opener(resolver: str) -> Callable[..., Any]:
    """The function that opens a node's local model."""
    from h2t2.ldl.open import open_ldl

    def open_integer(model: str, event: int, bits: int, *options: Any) -> Any:
        from ..model.exact import open_exact

        return open_exact(Path(model), event, bits) if model.endswith(".tflite") else open_ldl(model, event, bits, *options)

    return open_integer if resolver == "exact" else open_ldl


def _output(text: str) -> str:
    """A check that a text is an output of a model, or all of them."""
    if text != "all" and parse_integer(text, 65535) is None:
        raise ValueError("want a number from 0, or all")
    return text


class Rdl(Connected, Reporting, Daemon):
    renamed = {"--model": "--remote", "--model-secret": "--remote-secret", "--wait-ms": "--batch-wait"}

    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    resolver: TfliteKernels = option("reference", "TFLite's kernels")
    remote: str | None = option(
        None,
        "the remote model: .tflite, .onnx, FILE.py:FUNCTION, a URL, http://HOST/v2/models/NAME (KServe, Triton, MLServer), "
        ".toml (a language model that sees pictures), or human: somebody at this terminal",
        unset="the pair's",
        metavar="MODEL",
    )
    classes: list[str] | None = option(None, "names of the classes, for --remote human", unset="0, 1, ...", metavar="NAME")
    remote_secret: str = file("", "token of the remote model's server", unset="$H2T2_REMOTE_TOKEN")
    then: str | None = option(None, "a second model, asked where the first one is unsure", metavar="MODEL")
    then_beta: Share = option(0.2, "cost of asking the second model, as beta", metavar="B")
    then_secret: str = file("", "token of the second model's server", unset="$H2T2_THEN_TOKEN")
    event: Annotated[str, AfterValidator(_output)] | None = option(
        None, "which output is class 1, or all: each output is a class", unset="the pair's", metavar="N"
    )
    model_id: ModelNumber | None = option(None, "number of the requests that it answers", unset="the pair's", metavar="N")
    workers: Annotated[int, Field(ge=1, le=1024)] = option(1, "processes on this machine", metavar="N")
    batch: Annotated[int, Field(ge=1, le=65536)] = option(16, "largest number of requests in a micro-batch", metavar="N")
    batch_wait: Annotated[Duration, Field(ge=0, le=60)] = option(0.0, "how long a batch waits for more requests")
    queue: Count = option(256, "largest number of waiting requests; more get status busy", metavar="N")
    hang_after: Annotated[Duration, Field(gt=0, le=DAY_S)] = option(
        10.0, "a worker is replaced when its model takes so much longer than expected"
    )
    keep_refused: str = option(
        "h2t2-refused", "where the data of a request go that hung the model twice and is then refused", metavar="DIR"
    )
    keep: str | None = option(
        None, "keep the answered samples and their labels, for `h2t2 samples`", unset="nothing is kept", metavar="DIR"
    )
    keep_mb: Count = option(1000, "room for them in MB; then the oldest are thinned out", metavar="MB")
    metrics: str | None = option(
        None, "serve Prometheus and a health check; the default host is 127.0.0.1", metavar="[HOST:]PORT"
    )
    no_watch: bool = option(False, "reload the model on SIGHUP only, not when its file changes")

    def run(self) -> None:
        from ..fleet.rdl import pool, watchdog

        metrics = address(self.metrics, "--metrics") if self.metrics else None
        self.begin_log("rdl")
        if self.remote == "human":
            counts = self._ask_person(metrics)
        elif watchdog.NOTE_DESCRIPTOR in os.environ:
            counts = self._serve(metrics)
        else:
            counts = pool.supervise(self._workers(metrics), Path(self.keep_refused))
            LOG.info("answered: %s", ", ".join(f"{n} {status}" for status, n in counts.items()) or "nothing")
        self.report(counts)

    def _workers(self, metrics: tuple[str, int] | None) -> list[list[str]]:
        """The command line of each worker. A password comes by file or environment, never by command line."""
        if self.workers > 1 and self.user and "{}" not in self.user:
            LOG.warning("a broker of h2t2 broker-config lets a user connect once: give --user NAME-{}")
        shared = words(self, "workers", "metrics", "json_file", "keep_refused", "log")
        commands = []
        for n in range(self.workers):
            own = [f"--metrics={metrics[0]}:{metrics[1] + n}"] if metrics else []
            commands.append([word.replace("{}", str(n + 1)) for word in shared] + own)
        return commands

    def _ask_person(self, metrics: tuple[str, int] | None) -> dict[str, int]:
        """Somebody at this terminal answers; the counts of the answers."""
        from ..common import pairs
        from ..fleet.rdl import person
        from ..fleet.rdl.server import Options
        from .person import ask

        pair = pairs.load(self.pair)
        names = person.classes(pair, self.classes)
        model_id = pair.info.model_id if self.model_id is None else self.model_id
        options = Options(metrics=metrics, watch=False, keep=Path(self.keep) if self.keep else None, keep_mb=self.keep_mb)
        with person.by_a_person(pair, model_id, self.connection(), options) as (server, desk):
            LOG.info("ready: you are model %d", model_id)
            ask(pair, desk, names, LOG.info)
        return dict(server.worker.counts)

    def _serve(self, metrics: tuple[str, int] | None) -> dict[str, int]:
        """One worker, a child of pool.supervise(); the counts of its answers."""
        from ..common import pairs
        from ..fleet.rdl import models, server

        pair = pairs.load(self.pair)
        second = models.SecondModel(self.then, self.then_beta, self.then_secret) if self.then else None
        source = models.of_pair(pair, self.remote, self.event, self.resolver, secret=self.remote_secret, second=second)
        model_id = pair.info.model_id if self.model_id is None else self.model_id
        keep = Path(self.keep) if self.keep else None
        options = server.Options(
            self.batch,
            self.batch_wait * 1000,
            self.queue,
            metrics=metrics,
            watch=not self.no_watch,
            hang_s=self.hang_after,
            keep=keep,
            keep_mb=self.keep_mb,
        )
        return server.serve(source, model_id, self.connection(), options, LOG.info)


def class_cost(true: str, decision: str, cost: str) -> list[int]:
    """A cell of the cost matrix, as a command to a device carries it."""
    try:
        return [int(true), -1 if decision == "any" else int(decision), q15(float(cost), "cost")]
    except ValueError as error:
        raise UserError(f"--class-cost {true} {decision} {cost}: {error}; want a class, a class or any, and a cost") from None


class Tell(Connected, Reporting):
    renamed = {"--cost": "--class-cost"}

    device: Device = option(..., "its name", positional=True)
    beta: Share | None = option(None, "cost of an offload from now on")
    delta_fp: Share | None = option(None, "cost of a false alarm")
    delta_fn: Share | None = option(None, "cost of a missed event")
    class_cost: list[tuple[str, str, str]] = option(
        [],
        "three classes or more: what the decision SAID (any: every other one) costs when the class is TRUE, 0 to 1; may be "
        "given again",
        repeat=True,
        metavar="TRUE SAID C",
    )
    prior: str | None = file(None, "a table of `h2t2 prior --bits 4`, until the device starts again")
    pause: Annotated[Duration, Field(ge=0, le=DAY_S)] | None = option(None, "time without offloads; 0 ends it")
    snapshot: bool = option(False, "save now what the policy has learned")
    reset: bool = option(False, "reset what the policy has learned")
    wait: Annotated[Duration, Field(gt=0, le=DAY_S)] = option(10.0, "time to wait for the answer; then the command expires")

    def run(self) -> None:
        from ..fleet import command as remote_command

        content = self._content()
        note = remote_command.send(self.connection(), self.device, content, self.wait)
        self.report({"device": self.device, "command": content, "note": note})
        if not self.quiet:
            print(f"done by {self.device}: {self._in_words()}{note and f'; it says: {note}'}")

    def _new_costs(self) -> dict[str, float]:
        """The costs that the command sets."""
        costs = {"beta": self.beta, "delta_fp": self.delta_fp, "delta_fn": self.delta_fn}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def _in_words(self) -> str:
        """The command as people write it."""
        parts = [f"{name} {value:g}" for name, value in self._new_costs().items()]
        parts += [f"class cost {' '.join(cell)}" for cell in self.class_cost]
        parts += [f"prior {self.prior}"] if self.prior else []
        parts += [f"pause {durations.text(self.pause)}"] if self.pause is not None else []
        return ", ".join([*parts, *(name for name in ("snapshot", "reset") if getattr(self, name))])

    def _content(self) -> dict[str, Any]:
        """The command as a device reads it. UserError unless it is exactly one."""
        content: dict[str, Any] = {}
        costs: dict[str, Any] = {name: q15(value, name) for name, value in self._new_costs().items()}
        if self.class_cost:
            costs["costs"] = [class_cost(*cell) for cell in self.class_cost]
        if costs:
            content["set"] = costs
        if self.pause is not None:
            content["pause"] = math.ceil(self.pause)
        content.update({name: True for name in ("snapshot", "reset") if getattr(self, name)})
        if self.prior:
            content["prior"] = [q15(p, "prior") for p in prior_file.read(Path(self.prior))]
        if len(content) != 1:
            costs_are = "costs (--beta, --delta-fp, --delta-fn, --class-cost)"
            raise UserError(f"command: want one of {costs_are}, --prior, --pause, --snapshot, --reset")
        return content


class Head(Reporting):
    snapshots: list[str] = option(
        ..., "snapshot of each device: PATH of its files PATH.0 and PATH.1, or these", positional=True, metavar="PATH"
    )
    out: str = file("head.h2h", "the mean of their heads")

    def run(self) -> None:
        from ..common import head_file

        paths = dict.fromkeys(path[:-2] if path.endswith((".0", ".1")) else path for path in self.snapshots)
        start = head_file.averaged({path: head_file.taught(path) for path in paths})
        content = start.encode()
        Path(self.out).write_bytes(content)
        report = {"head": self.out, "devices": len(paths), **start.to_json(), "bytes": len(content)}
        self.report(report)
        if not self.quiet:
            of = f"{start.features} features" + (f" and {start.classes} classes" if start.classes > 2 else "")
            print(f"{self.out}: the mean of the heads of {len(paths)} devices, of {of}, {len(content):,} bytes")
            print(f'head = "{self.out}"   # for an h2t2.toml')


class Certs(Reporting):
    out: str = option("certs", "folder; an authority that it holds is used again", metavar="DIR")
    host: list[str] = option(["localhost", "127.0.0.1"], "the broker's names and addresses")
    name: list[str] = option([], "devices and workers")
    revoke: list[str] = option([], "revoke the certificates of these names, and make none", metavar="NAME")
    days: Annotated[float, Field(gt=0, le=36500)] = option(365.0, "days until the certificates expire")

    def run(self) -> None:
        from ..fleet import certs

        out = Path(self.out)
        if self.revoke:
            count = certs.revoke(out, self.revoke)
            self.report({"revoked": self.revoke, "certificates": count})
            if not self.quiet:
                print(f"{count} certificates revoked; the broker learns it from: h2t2 broker-config, and a restart")
            return
        paths = [str(path) for path in certs.make(out, self.host, self.name, self.days)]
        self.report({"files": paths})
        if not self.quiet:
            print("\n".join(paths))


class BrokerConfig(Reporting):
    out: str = option("broker", "folder", metavar="DIR")
    device: list[str] = option(..., "the devices' names, which are their user names")
    worker: list[str] = option(["rdl"], "user names of RDL workers, a process each; NAME:4 means NAME-1 to NAME-4")
    operator: list[str] = option(["operator"], "user names of those who send commands")
    certs: str | None = option(None, "folder of `h2t2 certs`: TLS", metavar="DIR")
    client_certs: bool = option(False, "certificates in place of passwords")
    port: LocalPort = option(0, "port for devices", unset="8883; without TLS 1883")
    worker_port: LocalPort = option(0, "port for workers and the operator", unset="8884; without TLS 1884")
    bind: str = option("127.0.0.1", "address to listen on; 0.0.0.0: the network")
    owner: str | None = option(None, "when root writes the files: their owner", unset="mosquitto", metavar="USER")

    def run(self) -> None:
        from ..fleet import broker_config

        certs = Path(self.certs) if self.certs else None
        workers = broker_config.numbered(self.worker)
        plan = broker_config.Plan(
            self.device,
            workers,
            certs,
            self.client_certs,
            self.port,
            worker_port=self.worker_port,
            bind=self.bind,
            operators=tuple(self.operator),
        )
        report = broker_config.write(Path(self.out), plan, self.owner)
        self.report(report)
        if self.quiet:
            return
        print(f"devices: port {report['ports']['devices']}; workers and operator: port {report['ports']['workers']}")
        if report["secrets"]:
            print(f"passwords, a file each: {Path(report['secrets'][0]).parent}/")
        if not report["tls"]:
            print("without TLS names, passwords and samples can be read on the way: h2t2 certs, then --certs", file=sys.stderr)
        show_next({"start the broker": ["mosquitto", "-c", report["config"]]})
