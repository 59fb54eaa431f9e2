"""How much heap a node needs on a board: it runs on emulated 32-bit ARM with less and less of it, until it fails.

It does what a board does: start, local model, connection, offloads and their labels, snapshots, a connection that ends and the
next one, its state, its end. MicroPython's own allocator does it, so that fragmentation counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from h2t2.link import answering, frames, wire
from h2t2.link.mqtt import packet, text

from ..common.errors import Failure
from ..common.places import cache
from .emulators.catalogue import ARM32

SAMPLES = 48
SECONDS = 120  # for a run: emulated ARM on a busy machine
RESOLUTION = 1024
MOST_WORK = 96 << 10  # a board that compiles the runtime itself needs the most beside what stays
SPARE = 1024  # more than the least that was enough: fragments lie otherwise on another day
TLS = 32 << 10  # peak of a handshake on an RP2040 and what stays of it, beside the rest: `h2t2 bench tls`
UPDATE = 9 << 10  # while a package comes and is verified, in one piece: `h2t2 bench memory`
LEFT_OUT = (  # entries of a configuration that this emulation has nothing for, or that would only make it wait
    "wifi_name", "wifi_password", "ntp", "ca", "cert", "key", "user", "password", "watchdog_ms", "every_us", "sleep",
    "app", "measured",
)  # fmt: skip
NO_ROOM = "memory allocation failed"  # in the words of a MemoryError
MAIN = """import gc, os, sys
os.chdir({folder!r})
sys.path[:] = [""]
from h2t2.ldl.room import reserve_for_node
reserve_for_node()
sys.modules["network"] = sys  # what is imported here and not used needs a module of that name
for name in {modules}:
    __import__("h2t2." + name)
program = None
if {app}:
    with open("app.py") as file:
        program = compile(file.read(), "app", "exec")
from h2t2.node import board
from h2t2.node.start import main
settled = board.settled
def later():  # on a board, once the network is there
    settled()
    for name in {later}:
        __import__("h2t2." + name)
board.settled = later
board.restart = lambda cause: sys.exit({again})  # an update's: with an empty heap
main()
"""
AGAIN = 3  # exit status of a node that wants to be started again
STARTS = 3


def peak(files: dict[str, bytes], record: int, rest: int, progress: Callable[[int, int], None] = lambda n, of: None) -> int:
    """Bytes of heap that must be free on a board when its main.py begins.

    files: what `h2t2 flash` would put there, for a board whose machine code 32-bit ARM runs. record: bytes of a recorded
    sample. rest: bytes that the node takes when nothing happens. progress: told (runs done, runs in all). Failure, with the
    node's words, where it fails with ample heap.
    """
    config = json.loads(files["config.json"])
    more = (TLS if config.get("ca") else 0) + (UPDATE if config.get("update") else 0) + SPARE
    kept = cache() / "heap" / f"{_digest(_as_rehearsed(files, config, record))}.json"
    if kept.exists():
        return int(json.loads(kept.read_text())) + more
    low, high = rest, rest + MOST_WORK
    runs = 1 + (high - low) // RESOLUTION
    runs = runs.bit_length()
    why = trouble(files, record, high)
    if why:
        raise Failure(f"on emulated ARM the node fails with {high:,} bytes of heap: {why}")
    for n in range(1, runs):
        progress(n, runs)
        middle = (low + high) // 2
        if trouble(files, record, middle):
            low = middle
        else:
            high = middle
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(high))
    part.replace(kept)
    return high + more


def trouble(files: dict[str, bytes], record: int, heap: int, samples: int = SAMPLES, peer: Peer | None = None) -> str:
    """Let the node decide so many samples with so many bytes free at its start. What went wrong, "" for nothing."""
    config = json.loads(files["config.json"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in _as_rehearsed(files, config, record, samples).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        script = folder / "rehearsal.py"
        modules = sorted(_apart(files, config))
        later = ["link.ntp"] if config.get("wifi_name") and config.get("ntp") else []
        script.write_text(MAIN.format(folder=name, modules=modules, later=later, app=(folder / "app.py").exists(), again=AGAIN))
        with peer or Peer() as met:
            for _ in range(STARTS):
                status, why = _play(folder, script, heap, samples, met)
                if status != AGAIN:
                    break
        return why


def _as_rehearsed(files: dict[str, bytes], config: dict[str, Any], record: int, samples: int = SAMPLES) -> dict[str, bytes]:
    """The files of a node that meets this machine's end of a line, with samples of its own."""
    entries = {name: value for name, value in config.items() if name not in LEFT_OUT}
    entries.update(device="rehearsal", records="samples.bin", snapshot="h2t2.state", deadline_ms=3000, telemetry_s=1)
    own = {path: data for path, data in files.items() if path.startswith("h2t2/") or path in (config["ldl"], "app.py")}
    own["samples.bin"] = Random(1).randbytes(samples * record)
    return {**own, "config.json": json.dumps(entries).encode()}


def _apart(files: dict[str, bytes], config: dict[str, Any]) -> set[str]:
    """The modules of a node that the rehearsal imports without using them."""
    wanted = {"node.sleep"} if config.get("sleep") else set()
    wanted |= {"node.app", "node.measured", "node.window"} if config.get("app") else set()
    wanted |= {"link.tls"} if config.get("ca") else set()
    wanted |= {"link.wifi"} if config.get("wifi_name") else set()
    return {name for name in wanted if any(path.startswith("h2t2/" + name.replace(".", "/") + ".") for path in files)}


def _digest(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256(Path(__file__).read_bytes())
    for path, data in sorted(files.items()):
        whole.update(f"{path} {len(data)} ".encode() + data)
    return whole.hexdigest()[:32]


def _play(folder: Path, script: Path, heap: int, samples: int, peer: Peer) -> tuple[int, str]:
    """(exit status, what went wrong) of one start."""
    config = json.loads((folder / "config.json").read_text())
    serial = config.get("link") == "serial"
    if not serial:
        (folder / "config.json").write_text(json.dumps({**config, "broker": "127.0.0.1", "port": peer.port}))
    process = subprocess.Popen(
        ARM32.node(script, heap), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=ARM32.environment(folder), cwd=folder,
    )  # fmt: skip
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        said, summary = _by_line(process) if serial else _by_network(process)
        if not summary and NO_ROOM not in said:
            process.wait()
    finally:
        timer.cancel()
        process.kill()
        status = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
    if NO_ROOM in said or not summary:
        return status, said.strip()[-300:] or "it ended without a word"
    failures = summary["unsaved"] + summary["errors"]
    whole = summary["samples"] == samples and summary["saves"] and (peer.answered or serial) and not failures
    return status, "" if whole else f"its summary is {summary}"


def _by_network(process: subprocess.Popen[bytes]) -> tuple[str, dict[str, Any]]:
    """What a node said, and its summary, {} where it came to none."""
    assert process.stdout
    said = ""
    for data in process.stdout:
        line = data.decode(errors="replace")
        said = said[-4096:] + line
        if line.startswith('{"summary"'):
            return said, dict(json.loads(line)["summary"])
        if NO_ROOM in line:  # it would start again, for ever
            break
    return said, {}


def _by_line(process: subprocess.Popen[bytes]) -> tuple[str, dict[str, Any]]:
    """The same of a node at a line, whose requests are answered."""
    assert process.stdout and process.stdin
    decoder = frames.Decoder()
    said = b""
    while True:
        data = os.read(process.stdout.fileno(), 4096)
        if not data:
            return said.decode(errors="replace"), {}
        said = (said + data)[-4096:]
        if NO_ROOM.encode() in said:
            return said.decode(errors="replace"), {}
        for kind, payload in decoder.feed(data):
            if kind == frames.END:
                return said.decode(errors="replace"), dict(json.loads(payload))
            if kind == frames.REQUEST:
                with suppress(OSError):
                    process.stdin.write(frames.encode(frames.REPLY, _reply(payload)))
                    process.stdin.flush()


def _reply(payload: bytes) -> bytes:
    request = answering.decode_request(payload)
    return answering.encode_reply(wire.OK, request.boot, request.sequence, request.sequence & 1, 20000)


class Peer:
    """As much of a broker and a worker as a rehearsal needs: it answers one device, and ends its first connection."""

    def __enter__(self) -> Peer:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.answered = self.connections = 0
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)

    def beside(self, connection: socket.socket, device: bytes) -> None:
        """Called after each answer. device: its part of topics."""

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, suppress(OSError, struct.error, ValueError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            requests = 0
            while True:
                kind, body = _packet(stream)
                if kind == CONNECT:
                    connection.sendall(packet(0x20, b"\0\0"))
                elif kind == SUBSCRIBE:
                    topics = _topics(body)
                    connection.sendall(packet(0x90, body[:2] + bytes(len(topics))))
                    for topic in topics:
                        if topic.startswith(wire.PRESENCE.encode()):  # a worker of the model that it looks out for
                            connection.sendall(packet(0x31, text(topic[:-1] + b"peer") + b"1"))
                elif kind == PUBLISH and body[2 : 2 + int.from_bytes(body[:2], "big")].find(b"/request/") > 0:
                    at = 2 + int.from_bytes(body[:2], "big")
                    connection.sendall(packet(0x40, body[at : at + 2]))
                    topic = body[2:at].split(b"/request/")[0] + b"/reply"
                    connection.sendall(packet(0x30, text(topic) + _reply(body[at + 2 :])))
                    self.answered += 1
                    requests += 1
                    self.beside(connection, body[2:at].split(b"/request/")[0])
                    if self.connections == 1 and requests == SAMPLES // 3:
                        return
                elif kind == PINGREQ:
                    connection.sendall(packet(0xD0, b""))
                elif kind == DISCONNECT:
                    return


CONNECT, PUBLISH, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 8, 12, 14  # MQTT 3.1.1


def _topics(body: bytes) -> list[bytes]:
    """Those of a SUBSCRIBE packet."""
    topics = []
    at = 2
    while at < len(body):
        end = at + 2 + int.from_bytes(body[at : at + 2], "big")
        topics.append(body[at + 2 : end])
        at = end + 1
    return topics


def _packet(stream: BinaryIO) -> tuple[int, bytes]:
    """(kind, body) of the next packet. ValueError at the end of the connection."""
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
