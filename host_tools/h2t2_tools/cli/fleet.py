"""The commands about devices and the broker: command, head, certs, broker-config."""

import math
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2t2.units import q15

from ..common import durations, prior_file
from ..common.errors import UserError
from ..common.fields import DAY_S, Device, Duration, LocalPort, Share, file, option
from .options import Connected, Reporting
from .output import show_next

ANSWER_S = 10.0  # for which an operator waits for a device's answer


def class_cost(true: str, decision: str, cost: str) -> list[int]:
    """A cell of the cost matrix, as a command to a device carries it."""
    try:
        return [int(true), -1 if decision == "any" else int(decision), q15(float(cost), "cost")]
    except ValueError as error:
        raise UserError(f"--class-cost {true} {decision} {cost}: {error}; want a class, a class or any, and a cost") from None


class Tell(Connected, Reporting):
    """Commands set costs, save a snapshot, reset and pause. A device accepts four at once, then one every 15 s."""

    examples = (
        "h2t2 command kitchen --beta 0.25",
        "h2t2 command sorter --class-cost 8 any 1 --class-cost 8 3 0.5   # many classes: a missed 8, and one taken for a 3",
        "h2t2 command kitchen --pause 10min --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )

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
    wait: Annotated[Duration, Field(gt=0, le=DAY_S)] = option(ANSWER_S, "time to wait for the answer; then the command expires")

    def run(self) -> None:
        from ..fleet import command as remote_command

        content = self._content()
        note = remote_command.send(self.connection(), self.device, content, self.wait)
        if self.report({"device": self.device, "command": content, "note": note}):
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
    """It writes a file with which their heads begin. All devices must have the same local model."""

    examples = (
        "h2t2 head kitchen.state hall.state attic.state",
        "h2t2 head fleet/*/h2t2.state.* --out porch/head.h2h   # then name this file in porch/h2t2.toml",
    )
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
        if self.report({"head": self.out, "devices": len(paths), **start.to_json(), "bytes": len(content)}):
            of = f"{start.features} features" + (f" and {start.classes} classes" if start.classes > 2 else "")
            print(f"{self.out}: the mean of the heads of {len(paths)} devices, of {of}, {len(content):,} bytes")
            print(f'head = "{self.out}"   # for an h2t2.toml')


class Certs(Reporting):
    """It makes a development certificate authority, the broker's certificate, and one for each device or worker (EC
    P-256).
    """

    examples = (
        "h2t2 certs --out certs --host localhost 127.0.0.1 --name kitchen hall rdl operator",
        "h2t2 certs --out certs --revoke kitchen   # then broker-config again, and restart the broker",
    )
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
            if self.report({"revoked": self.revoke, "certificates": count}):
                print(f"{count} certificates revoked; the broker learns it from: h2t2 broker-config, and a restart")
            return
        paths = [str(path) for path in certs.make(out, self.host, self.name, self.days)]
        if self.report({"files": paths}):
            print("\n".join(paths))


class BrokerConfig(Reporting):
    """A device reaches only its own topics, and only workers may reply."""

    examples = (
        "h2t2 broker-config --out broker --device kitchen hall --certs certs",
        "h2t2 broker-config --out broker --device kitchen hall --certs certs --client-certs --bind 0.0.0.0",
        "h2t2 broker-config --out broker --device kitchen --worker rdl:4   # for: h2t2 rdl --workers 4 --user rdl-{}",
    )
    out: str = option("broker", "folder", metavar="DIR")
    device: list[str] = option([], "the devices' names, which are their user names")
    gate: list[list[str]] = option(
        [], "a gate's name, and the topics of its scores; may be given again", repeat=True, metavar="NAME|TOPIC"
    )
    detector: list[list[str]] = option(
        [],
        "user name of another program, and the topics that it may read and write; may be given again",
        repeat=True,
        metavar="NAME|TOPIC",
    )
    worker: list[str] = option(["rdl"], "user names of RDL workers, a process each; NAME:4 means NAME-1 to NAME-4")
    operator: list[str] = option(["operator"], "user names of those who send commands")
    model: list[str] = option(
        [], "models that devices ask: numbers, or pairs", unset="those of the shipped pairs", metavar="N|PAIR"
    )
    certs: str | None = option(None, "folder of `h2t2 certs`: TLS", metavar="DIR")
    client_certs: bool = option(False, "certificates in place of passwords")
    port: LocalPort = option(0, "port for devices", unset="8883; without TLS 1883")
    worker_port: LocalPort = option(0, "port for workers and the operator", unset="8884; without TLS 1884")
    bind: str = option("127.0.0.1", "address to listen on; 0.0.0.0: the network")
    owner: str | None = option(None, "when root writes the files: their owner", unset="mosquitto", metavar="USER")

    def run(self) -> None:
        from ..fleet import broker_config

        certs = Path(self.certs) if self.certs else None
        plan = broker_config.Plan(
            self.device, broker_config.numbered(self.worker), certs, self.client_certs, self.port,
            worker_port=self.worker_port, bind=self.bind, operators=tuple(self.operator),
            models=tuple(map(broker_config.model_number, self.model)),
            gates=broker_config.topics_by_user("--gate", self.gate),
            detectors=broker_config.topics_by_user("--detector", self.detector),
        )  # fmt: skip
        report = broker_config.write(Path(self.out), plan, self.owner)
        if not self.report(report):
            return
        print(f"devices: port {report['ports']['devices']}; workers and operator: port {report['ports']['workers']}")
        print(f"devices may ask models {', '.join(map(str, report['models']))}; --model names others")
        if report["secrets"]:
            print(f"passwords, a file each: {Path(report['secrets'][0]).parent}/")
        if not report["tls"]:
            print("without TLS names, passwords and samples can be read on the way: h2t2 certs, then --certs", file=sys.stderr)
        show_next({"start the broker": ["mosquitto", "-c", report["config"]]})
