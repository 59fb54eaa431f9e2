"""`h2t2 broker-config`: configures a Mosquitto for a fleet: two listeners, passwords or certificates, access lists, limits."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
import secrets
import shutil
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from h2t2.cpython import device_names
from h2t2.link import presence, wire

from ..common import pairs, places
from ..common.errors import UserError, as_user_error
from ..common.untrusted import parse_integer
from . import home_assistant
from .certs import revocation_list, write_file
from .detections import LARGEST, OWN, topic_filter
from .rdl import telemetry

ROUNDS = 20000  # of PBKDF2-HMAC-SHA512, Mosquitto 2's own scheme ($7$)
OPERATOR = "operator"
# bytes of the broker's heap: for queues; for a connection and what it retains; for pictures that wait for a gate
MEMORY, MEMORY_OF_DEVICE, MEMORY_OF_GATE = 256 << 20, 1 << 17, 1 << 26


@dataclass(frozen=True)
class Plan:
    """The users of a broker, and how they connect.

    Args:
        devices, workers, operators: user names. Each user connects once: its client id is its name.
        certs: folder with ca.crt, server.crt, server.key; None: no TLS.
        client_certs: clients show a certificate, whose common name is the user, in place of a password. `certs` is then the
            folder of `h2t2 certs`; certificates of others and revoked ones are refused.
        device_port, worker_port: 0 for 8883 and 8884, without TLS 1883 and 1884.
        bind: address to listen on.
        models: the numbers of the models that devices ask; (): those of the shipped pairs. Without a list a device could retain
            a request for each of 65,536.
        gates: gates, which are devices too, each with the topics of the scores that it decides.
        detectors: users of other programs, each with its topics.
    """

    devices: list[str]
    workers: list[str]
    certs: Path | None = None
    client_certs: bool = False
    device_port: int = 0
    _: KW_ONLY
    worker_port: int = 0
    bind: str
    operators: tuple[str, ...] = (OPERATOR,)
    models: tuple[int, ...] = ()
    gates: dict[str, list[str]] = field(default_factory=dict)
    detectors: dict[str, list[str]] = field(default_factory=dict)

    @property
    def groups(self) -> dict[str, list[str]]:
        """Listener -> its users."""
        return {"devices": [*self.devices, *self.gates, *self.detectors], "workers": [*self.workers, *self.operators]}

    def checked(self) -> Plan:
        """This plan. UserError for a name or file that cannot be used."""
        names = [name for users in self.groups.values() for name in users]
        if not (self.devices or self.gates):
            raise UserError("name at least one --device or --gate")
        for name in names:
            if not device_names.is_device(name) or set(name) & set(":% \t\n\r") or names.count(name) > 1:
                rule = f"want it once, 1 to {device_names.MAX_DEVICE} bytes, without / + # : % or blanks"
                raise UserError(f"name {name!r}: {rule}")
        for topic in chain(*self.gates.values(), *self.detectors.values()):
            check_topic(topic)
        if self.client_certs and not self.certs:
            raise UserError("--client-certs needs --certs: certificates are TLS's")
        for name in ("ca.crt", "server.crt", "server.key") if self.certs else ():
            if not (self.certs and (self.certs / name).is_file()):
                raise UserError(f"{self.certs}: no {name}; make them: h2t2 certs --out {self.certs} --host YOUR-BROKER")
        return self

    @property
    def asked_models(self) -> list[int]:
        """The numbers of the models that devices may ask."""
        return sorted({*(self.models or (pairs.load_info(name).model_id for name in pairs.shipped_names()))})

    @property
    def ports(self) -> tuple[int, int]:
        first = 8883 if self.certs else 1883
        return self.device_port or first, self.worker_port or first + 1


def write(out: Path, plan: Plan, user: str | None = None) -> dict[str, Any]:
    """Write mosquitto.conf, access lists, password hashes and secrets/NAME. Existing passwords in secrets/ stay.

    Args:
        user: the user that Mosquitto runs as, who gets the files when root writes them; None: mosquitto, if there is one.

    Returns:
        A report that names every file, and no password.
    """
    plan.checked()
    out.mkdir(parents=True, exist_ok=True)
    out = out.resolve()
    rules = {"devices": device_acl(plan), "workers": worker_acl(plan)}
    files = [write_file(out / f"{group}.acl", text.encode()) for group, text in rules.items()]
    secret_paths: list[Path] = []
    if not plan.client_certs:
        (out / "secrets").mkdir(mode=0o700, exist_ok=True)
        for group, names in plan.groups.items():
            lines = []
            for name in names:
                path = out / "secrets" / name
                if not path.is_file():
                    write_file(path, secrets.token_urlsafe(24).encode() + b"\n", secret=True)
                secret_paths.append(path)
                lines.append(f"{name}:{hashed(path.read_text().strip())}\n")
            files.append(write_file(out / f"{group}.passwd", "".join(lines).encode(), secret=True))
    if plan.certs:
        for name in ("ca.crt", "server.crt", "server.key"):
            files.append(write_file(out / name, (plan.certs / name).read_bytes(), secret=name.endswith(".key")))
    if plan.certs and plan.client_certs:
        for group, names in plan.groups.items():
            files.append(write_file(out / f"{group}.crl", revocation_list(plan.certs, names)))
    files.append(write_file(out / "mosquitto.conf", configuration(out, plan).encode()))
    owner = user or _mosquitto()
    if owner and os.getuid() == 0:
        for path in files:
            shutil.chown(path, owner)
    report: dict[str, Any] = {"config": str(out / "mosquitto.conf"), "files": list(map(str, files))}
    report |= {"secrets": list(map(str, secret_paths)), "models": plan.asked_models}
    report["ports"] = dict(zip(("devices", "workers"), plan.ports))
    return {**report, "tls": plan.certs is not None, "client_certs": plan.client_certs}


def _mosquitto() -> str | None:
    """The user that Mosquitto becomes when root starts it; None where there is none."""
    try:
        return pwd.getpwnam("mosquitto").pw_name
    except KeyError:
        return None


def hashed(password: str) -> str:
    """The hash of a password for Mosquitto 2: $7$rounds$salt$hash (PBKDF2-HMAC-SHA512)."""
    salt = os.urandom(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS)
    return f"$7${ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


ANY_WORKER = presence.worker_topic("+", "+")


def check_topic(topic: str) -> None:
    """UserError for a text that is no topic filter, or may match a topic of the broker, of h2t2 or of Home Assistant."""
    with as_user_error(f"topic {topic!r}"):
        first, *_ = topic_filter(topic).split("/")
    reserved = [own.split("/")[0] for own in (wire.topic("+", ""), ANY_WORKER, telemetry.ANY_STATE, home_assistant.PREFIX)]
    if first in ("+", "#", *reserved) or first.startswith("$") or not topic.isprintable():
        raise UserError(f"topic {topic!r}: want its first level by name, and none of {', '.join(sorted({*reserved}))}")


def decisions(topic: str) -> str:
    """The filter of a gate's decisions about a topic's scores. A topic that ends with # covers them itself."""
    return topic if topic.endswith("#") else topic + OWN


def device_acl(plan: Plan) -> str:
    """A device writes its own requests, status, state and answers, reads its own reply, command and status, and who serves.

    Mosquitto can forbid retained messages only for all clients, and devices retain their state. What a device can retain is
    therefore bounded by the topics that it may write: one for each model, and three.
    """
    rules = []
    for name in (*plan.devices, *plan.gates):
        rules.append(f"user {name}")
        leaves = (*map(presence.request_leaf, plan.asked_models), "status", "state", "answer")
        rules += [f"topic write {wire.topic(name, leaf)}" for leaf in leaves]
        rules += [f"topic read {wire.topic(name, leaf)}" for leaf in ("reply", "command", "status")]
        rules.append(f"topic read {ANY_WORKER}")
        for topic in plan.gates.get(name, ()):
            rules += [f"topic read {topic}", f"topic write {decisions(topic)}"]
    for name, topics in plan.detectors.items():
        rules += [f"user {name}", *(f"topic readwrite {topic}" for topic in topics)]
    return "\n".join(rules) + "\n"


def worker_acl(plan: Plan) -> str:
    """Workers read requests, write replies and that they serve; operators command devices, read what they say, remove
    them and announce them to Home Assistant, which is an operator itself."""
    rules = []
    for name in plan.workers:
        rules += [f"user {name}", f"topic read {wire.topic('+', presence.request_leaf('+'))}"]
        rules += [f"topic write {wire.topic('+', 'reply')}", f"topic readwrite {ANY_WORKER}"]
        rules.append(f"topic write {telemetry.ANY_STATE}")
    for name in plan.operators:
        rules += [f"user {name}", f"topic readwrite {wire.topic('+', 'command')}"]
        rules += [f"topic read {ANY_WORKER}", f"topic read {telemetry.ANY_STATE}"]
        rules += [f"topic readwrite {wire.topic('+', leaf)}" for leaf in ("status", "state")]  # it may take them back
        rules += [f"topic read {wire.topic('+', 'answer')}", f"topic readwrite {home_assistant.PREFIX}/#"]
        rules += [f"topic read {decisions(topic)}" for topic in chain(*plan.gates.values())]
    return "\n".join(rules) + "\n"


def topics_by_user(option: str, groups: list[list[str]]) -> dict[str, list[str]]:
    """The topics of each user, from the words of an option that is given once for each. UserError for one without topics."""
    users: dict[str, list[str]] = {}
    for name, *topics in groups:
        if not topics or name in users:
            raise UserError(f"{option} {name}: want a name, once, and its topics")
        users[name] = topics
    return users


def model_number(text: str) -> int:
    """The number of a model, from a number or a pair. UserError for another text."""
    number = parse_integer(text, 65535)
    return pairs.load_info(text).model_id if number is None else number


def numbered(names: list[str]) -> list[str]:
    """The users NAME-1 to NAME-COUNT of NAME:COUNT, or NAME alone. UserError for a bad count."""
    users = []
    for name in names:
        stem, colon, count = name.rpartition(":")
        if not colon:
            users.append(name)
        elif parse_integer(count, 256):
            users += [f"{stem}-{n}" for n in range(1, int(count) + 1)]
        else:
            raise UserError(f"--worker {name}: want NAME or NAME:COUNT, 1 to 256 of them")
    return users


def configuration(out: Path, plan: Plan) -> str:
    """mosquitto.conf. Devices and workers have a listener each, so that a device cannot act as a worker."""
    largest = LARGEST if plan.gates else wire.MAX_REQUEST
    memory = MEMORY + len(plan.groups["devices"]) * MEMORY_OF_DEVICE + len(plan.gates) * MEMORY_OF_GATE
    text = places.text("fleet/mosquitto.conf").format(folder=out, largest=largest + 256, memory=memory)
    for group, port, connections in zip(plan.groups, plan.ports, (10000, 256)):
        listener = places.text("fleet/mosquitto_listener.conf")
        text += listener.format(group=group, port=port, bind=plan.bind, folder=out, connections=connections)
        lines = []
        if plan.certs:
            lines += [f"cafile {out / 'ca.crt'}", f"certfile {out / 'server.crt'}", f"keyfile {out / 'server.key'}"]
            lines.append("tls_version tlsv1.2")
        if plan.client_certs:
            lines += ["require_certificate true", "use_identity_as_username true", f"crlfile {out / (group + '.crl')}"]
        else:
            lines.append(f"password_file {out / (group + '.passwd')}")
        text += "\n".join(lines) + "\n"
    return text
