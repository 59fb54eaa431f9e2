"""`h2t2 rdl`: the remote model's worker. Takes requests from the broker, runs the RDL, replies."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import paho.mqtt.client as mqtt

from h2t2 import wire
from h2t2.fixed import ONE
from h2t2.ldl_tflite import TFLiteModel
from h2t2.link_paho import make_client

from .errors import Failure

SHARED = "$share/rdl/" + wire.topic("+", "request")


class Worker:
    """Serves one .tflite as model `model_id`. The callback only queues; one thread runs the model.

    counts: replies by status text, and "dropped" for payloads too short to be answered.
    """

    def __init__(self, model: TFLiteModel, model_id: int) -> None:
        self.model = model
        self.model_id = model_id
        self.counts: Counter[str] = Counter()

    def answer(self, payload: bytes) -> bytes | None:
        """The reply to a request payload; an error status for a bad one; None where nobody could be answered."""
        try:
            model, boot, sequence, shape, tensor = wire.decode_request(payload)
            if model != self.model_id:
                return self._reply(wire.WRONG_MODEL, boot, sequence)
            q = self.model.run(np.frombuffer(tensor, np.int8).reshape(shape))
        except ValueError:
            known = wire.peek_request(payload)
            if known is None:
                self.counts["dropped"] += 1
                return None
            return self._reply(wire.MALFORMED, *known)
        except RuntimeError:
            return self._reply(wire.FAILED, boot, sequence)
        score = self.model.score(q)
        return self._reply(wire.OK, boot, sequence, int(score >= 0.5), round(score * ONE))

    def _reply(self, status: int, boot: int, sequence: int, label: int = -1, score: int = 0) -> bytes:
        self.counts[wire.STATUS[status]] += 1
        return wire.encode_reply(status, boot, sequence, label, score)


def connect(host: str, port: int, inbox: queue.SimpleQueue[tuple[str, bytes]]) -> tuple[mqtt.Client, bool]:
    """A connected client whose requests go to `inbox`, and whether the subscription is shared (MQTT 5) or plain (3.1.1)."""
    for protocol, topic in ((mqtt.MQTTv5, SHARED), (mqtt.MQTTv311, wire.topic("+", "request"))):
        client = _subscribed(host, port, protocol, topic, inbox)
        if client is not None:
            return client, protocol == mqtt.MQTTv5
    raise Failure(f"broker {host}:{port} accepts connections but no subscription")


def _subscribed(
    host: str, port: int, protocol: mqtt.MQTTProtocolVersion, topic: str, inbox: queue.SimpleQueue[tuple[str, bytes]]
) -> mqtt.Client | None:
    """A client of that protocol, subscribed to the topic, now and after every reconnect; None where it is refused."""
    client = make_client("", protocol)
    outcome: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def on_connect(client: mqtt.Client, _d: object, _f: object, reason: mqtt.ReasonCode, _p: object) -> None:
        if reason.is_failure:
            outcome.put(False)
        else:
            client.subscribe(topic, qos=1)

    client.on_connect = on_connect
    client.on_message = lambda _c, _d, message: inbox.put((message.topic, bytes(message.payload)))
    client.on_subscribe = lambda *_: outcome.put(True)
    client.on_disconnect = lambda *_: outcome.put(False)
    try:
        client.connect(host, port, keepalive=30)
    except OSError as error:
        raise Failure(f"broker {host}:{port} is not reachable: {error}") from None
    client.loop_start()
    try:
        if outcome.get(timeout=10):
            return client
    except queue.Empty:
        pass
    client.disconnect()
    client.loop_stop()
    return None


def serve(path: Path, event: int, model_id: int, host: str, port: int, resolver: str) -> dict[str, int]:
    """Run until SIGTERM or SIGINT; what was asked for by then is answered. Returns the counts."""
    worker = Worker(TFLiteModel(str(path), event=event, resolver=resolver), model_id)
    inbox: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
    client, shared = connect(host, port, inbox)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    note = "" if shared else "; this broker speaks MQTT 3.1.1 only: run a single worker"
    print(f"h2t2 rdl: ready: {path} as model {model_id} on {host}:{port}{note}", file=sys.stderr, flush=True)
    while not (stop.is_set() and inbox.empty()):
        try:
            item = inbox.get(timeout=0.1)
        except queue.Empty:
            continue
        topic, payload = item
        reply = worker.answer(payload)
        if reply is not None:
            client.publish(topic.rsplit("/", 1)[0] + "/reply", reply, qos=1)
    client.disconnect()
    client.loop_stop()
    return dict(worker.counts)
