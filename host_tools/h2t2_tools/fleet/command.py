"""`h2t2 command`: one instruction to one device."""

from __future__ import annotations

import json
import threading
from typing import Any

from h2t2.link import wire
from h2t2.link.paho import Session, make_client
from h2t2.node import commands

from ..common.errors import Failure
from .endpoint import Endpoint, unreachable


def send(to: Endpoint, device: str, content: dict[str, Any]) -> None:
    """Publish a command at QoS 1. ValueError for one the device would refuse, Failure where the broker cannot be had."""
    payload = json.dumps(content).encode()
    commands.parse(payload)
    done = threading.Event()
    session = Session(to.host, to.port, lambda: make_client("", **to.login), [wire.topic(device, "status")])
    try:
        session.open()
        client = session.client
        assert client
        client.on_publish = lambda *_: done.set()
        client.publish(wire.topic(device, "command"), payload, qos=1)
        if not done.wait(10):
            raise Failure(f"broker {to.host}:{to.port}: the command was not acknowledged")
    except OSError as error:
        raise unreachable(error) from None
    finally:
        session.close()
