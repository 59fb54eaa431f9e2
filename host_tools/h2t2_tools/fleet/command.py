"""`h2t2 command`: one instruction to one device, and its answer."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from h2t2.cpython.paho import Session, make_client
from h2t2.link import wire
from h2t2.node import commands

from ..common.errors import Failure
from ..common.untrusted import parse_json, printable
from .endpoint import Endpoint, unreachable

MEET_S = 2.0  # a broker that is there tells a device's status by then


def send(to: Endpoint, device: str, content: dict[str, Any], wait: float = 10.0) -> str:
    """Publish a command at QoS 1 and wait for the device's answer, so many seconds: what it says beside "done", "" as a rule.

    The command bears a number of its own and expires when the wait ends. ValueError for one that the device would refuse.
    Failure, saying why, where the broker cannot be had, the device is not there, refuses, or does not answer.
    """
    number = secrets.token_hex(6)
    payload = json.dumps({**content, "id": number, "until": round(time.time() + wait)}, separators=(",", ":")).encode()
    commands.parse(payload)
    heard: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    status, answers = wire.topic(device, "status"), wire.topic(device, "answer")

    def client() -> Any:
        made = make_client("", **to.login)
        made.on_message = lambda _client, _data, message: heard.put((message.topic, bytes(message.payload)))
        return made

    session = Session(to.host, to.port, client, [status, answers]).start()
    try:
        try:
            session.open()
        except OSError as error:
            raise unreachable(error) from None
        said = _next(heard, lambda topic, _: topic == status, MEET_S)
        if said is None or not said.startswith(b"online"):
            raise Failure(f"{device}: {'it is offline' if said else 'no such device has ever been on this broker'}")
        session.publish(wire.topic(device, "command"), payload)
        answer = _next(heard, lambda topic, payload: topic == answers and _answers(payload, number), wait)
        if answer is None:
            raise Failure(f"{device}: no answer within {wait:g} s; it will not carry the command out later")
        told = parse_json(answer)
        if not told["ok"]:
            raise Failure(f"{device} refuses: {printable(str(told['why']))}")
        return printable(str(told["why"]))
    finally:
        session.close()


def _next(heard: SimpleQueue[tuple[str, bytes]], wanted: Callable[[str, bytes], bool], seconds: float) -> bytes | None:
    """The first message that is wanted, within so many seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            topic, payload = heard.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            return None
        if wanted(topic, payload):
            return payload


def _answers(payload: bytes, number: str) -> bool:
    """Whether a payload is the answer to the command of that number."""
    try:
        told = parse_json(payload)
        return isinstance(told, dict) and told["id"] == number and isinstance(told["ok"], bool) and "why" in told
    except (ValueError, KeyError):
        return False
