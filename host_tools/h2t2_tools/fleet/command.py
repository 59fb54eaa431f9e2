"""`h2t2 command`: sends one command to one device and waits for the answer."""

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from h2t2.link import wire
from h2t2.node import commands

from ..common.errors import Failure
from ..common.untrusted import parse_json, printable
from .connection import connect
from .endpoint import Endpoint

MEET_S = 2.0  # the broker delivers a device's retained status by then
Result = TypeVar("Result")


def send(to: Endpoint, device: str, content: dict[str, Any], wait: float) -> str:
    """Publish a command at QoS 1 and wait for the device's answer. The command expires when the wait ends.

    Args:
        content: the command without id and expiry, as h2t2.node.commands.parse reads it.
        wait: seconds.

    Returns:
        What the device notes besides "done"; usually "".

    Raises:
        ValueError: the device would refuse the command.
        Failure: the broker or the device cannot be reached, or the device refuses or does not answer.
    """
    number = secrets.token_hex(6)
    payload = json.dumps({**content, "id": number, "until": round(time.time() + wait)}, separators=(",", ":")).encode()
    commands.parse(payload)
    messages: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    status, answers = wire.topic(device, "status"), wire.topic(device, "answer")

    session = connect(to, [status, answers], lambda message: messages.put((message.topic, bytes(message.payload))))
    try:
        word = _first(messages, lambda topic, payload: payload if topic == status else None, MEET_S)
        if word is None or not word.startswith(b"online"):
            raise Failure(f"{device}: {'it is offline' if word else 'no such device has ever been on this broker'}")
        session.publish(wire.topic(device, "command"), payload)
        answer = _first(messages, lambda topic, payload: parse_answer(payload, number) if topic == answers else None, wait)
        if answer is None:
            raise Failure(f"{device}: no answer within {wait:g} s; it will not carry the command out later")
        if not answer["ok"]:
            raise Failure(f"{device} refuses: {printable(str(answer['why']))}")
        return printable(str(answer["why"]))
    finally:
        session.close()


def _first(
    messages: SimpleQueue[tuple[str, bytes]], read: Callable[[str, bytes], Result | None], seconds: float
) -> Result | None:
    """What `read` gives of the first message, within so many seconds, of which it gives anything; None without one."""
    end = time.monotonic() + seconds
    while True:
        try:
            topic, payload = messages.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            return None
        if (content := read(topic, payload)) is not None:
            return content


def parse_answer(payload: bytes, id: str) -> dict[str, Any] | None:
    """A device's answer to a command or a chunk of a package with this id; it has `ok` and `why`. None for anything else."""
    with suppress(ValueError):
        answer = parse_json(payload)
        if isinstance(answer, dict) and answer.get("id") == id and isinstance(answer.get("ok"), bool) and "why" in answer:
            return answer
    return None
