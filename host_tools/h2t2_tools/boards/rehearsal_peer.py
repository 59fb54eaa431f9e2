"""The other end of a rehearsal's connection: the part of an MQTT broker and of a worker that one device needs."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import BinaryIO

from h2t2.cpython import worker_wire
from h2t2.link import presence, wire
from h2t2.link.mqtt import packet, text

COMMAND = b'{"snapshot": true}'  # a board loads the code of commands for it
COMMANDED = 3  # number of the answer on a connection that it comes with
CONNECT, PUBLISH, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 8, 12, 14  # MQTT 3.1.1


class Peer:
    """Answers every request of a device, and closes its first connection after `first` answers.

    Attributes:
        port: Port that it listens on.
        answered: Number of answered requests.
        connections: Number of connections.
    """

    def __init__(self, first: int) -> None:
        self.first = first

    def __enter__(self) -> Peer:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.answered = self.connections = 0
        self.before = 0  # answers on earlier connections
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)

    def beside(self, connection: socket.socket, device: bytes) -> None:
        """Do something after each answer; for subclasses. device: its part of the topics."""

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.before = self.answered
            with connection, connection.makefile("rb") as stream, suppress(OSError, struct.error, ValueError):
                while self._goes_on(connection, *_packet(stream)):
                    pass

    def _goes_on(self, connection: socket.socket, kind: int, body: bytes) -> bool:
        """Answer a packet. Return whether the connection goes on."""
        if kind == CONNECT:
            connection.sendall(packet(0x20, b"\0\0"))
        elif kind == SUBSCRIBE:
            self._subscribe(connection, body)
        elif kind == PUBLISH:
            self._publish(connection, body)
        elif kind == PINGREQ:
            connection.sendall(packet(0xD0, b""))
        return kind != DISCONNECT and (self.connections > 1 or self.answered < self.first)

    def _subscribe(self, connection: socket.socket, body: bytes) -> None:
        topics = _topics(body)
        connection.sendall(packet(0x90, body[:2] + bytes(len(topics))))
        for topic in topics:
            if topic.startswith(presence.TOPICS.encode()):  # the device looks for a worker of its model
                connection.sendall(packet(0x31, text(topic[:-1] + b"peer") + b"1"))

    def _publish(self, connection: socket.socket, body: bytes) -> None:
        """Acknowledge and answer a request. A device's other messages have QoS 0 and get no answer."""
        end = 2 + int.from_bytes(body[:2], "big")
        device, leaf, _ = body[2:end].partition(b"/request/")
        if not leaf:
            return
        connection.sendall(packet(0x40, body[end : end + 2]))
        connection.sendall(packet(0x30, text(device + b"/reply") + reply(body[end + 2 :])))
        self.answered += 1
        if self.answered == self.before + COMMANDED:
            connection.sendall(packet(0x30, text(device + b"/command") + COMMAND))
        self.beside(connection, device)


def reply(payload: bytes) -> bytes:
    """Return the reply to a request, with label 0 and 1 in turn."""
    request = worker_wire.decode_request(payload)
    return worker_wire.encode_reply(wire.OK, request.boot, request.sequence, request.sequence & 1, 20000)


def _topics(body: bytes) -> list[bytes]:
    """Return the topics of a SUBSCRIBE packet."""
    topics = []
    start = 2
    while start < len(body):
        end = start + 2 + int.from_bytes(body[start : start + 2], "big")
        topics.append(body[start + 2 : end])
        start = end + 1
    return topics


def _packet(stream: BinaryIO) -> tuple[int, bytes]:
    """Read a packet and return its kind and body. Raise ValueError at the end of the connection."""
    head = stream.read(1)
    size = shift = 0
    while head:
        digit = stream.read(1)
        if not digit:
            break
        size |= (digit[0] & 127) << shift
        shift += 7
        if digit[0] < 128:
            return head[0] >> 4, stream.read(size)
    raise ValueError("the connection has ended")
