"""What untrusted bytes meet, a function a target: it may refuse them as it documents, and nothing else; nor hang, nor grow.
True: something in them was accepted.

seeds(name): good inputs to start from. Used by tests/test_fuzz.py (hypothesis) and by fuzz.py (atheris, for hours).
"""

import io
import json
import os
import re
import sys
import tempfile
from binascii import crc32
from pathlib import Path
from struct import pack, pack_into

sys.path[:0] = [str(Path(__file__).parents[2] / name) for name in ("firmware", "host_tools", "tests")]

from limits import limited
from snapshots import restored, saved

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.head import Heads
from h2t2.core.ordered import Ordered
from h2t2.cpython import tflite_check, worker_wire
from h2t2.cpython.whole_frames import encode
from h2t2.ldl.bounds import CHECKED
from h2t2.ldl.bundle import Int8Model
from h2t2.link import frames, names, presence, wire
from h2t2.link.link import Link
from h2t2.link.mqtt import SUBSCRIBING, UP, MqttLink, packet, text
from h2t2.node import commands, head_start, package
from h2t2.node.asking import Asking
from h2t2.node.memory_slots import BufferSlot
from h2t2.node.node import Complaints
from h2t2.node.store import Store
from h2t2.node.update import Updates
from h2t2_lab import material
from h2t2_tools.common import head_file
from h2t2_tools.common import toml_file as toml
from h2t2_tools.common.cost_table import CostTable
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import SECRETS, NodeConfig
from h2t2_tools.model import bundle as bundles

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests/material"


def request(data):
    """A worker's: what is accepted is coded again to the same bytes."""
    try:
        r = worker_wire.decode_request(data)
    except ValueError:
        return
    again = wire.encode_request(
        r.model, r.boot, r.sequence, r.shape, r.data, remaining_ms=r.remaining_ms, chance=r.chance, k=r.k, dtype=r.dtype,
        media=r.media,
    )  # fmt: skip
    assert again == bytes(data) and presence.model_of(data) == r.model
    assert worker_wire.peek_request(data) == (r.boot, r.sequence)
    return True


def reply(data):
    """A device's."""
    try:
        decoded = wire.decode_reply(data)
    except ValueError:
        return
    assert worker_wire.encode_reply(*decoded) == bytes(data)
    return True


def serial(data):
    """Frames on a noisy line, in pieces: memory stays bounded, and after the noise the next frame is whole."""
    decoder = frames.Decoder(64)
    found = []
    step = 1 + (data[0] % 7 if data else 0)
    for start in range(0, len(data), step):
        for kind, payload in decoder.feed(data[start : start + step]):
            assert len(payload) <= 64 and 0 <= kind <= 255
            found.append(kind)
        assert len(decoder.block) <= 64
    assert decoder.feed(encode(7, b"after"))[-1] == (7, b"after")
    return bool(found)


def bundle(data):
    """The integer LDL's file, once as it is, once with its checksum put right: it runs, or is refused when loaded."""
    loaded = _bundle(data)
    if len(data) >= CHECKED:
        mended = bytearray(data)
        pack_into("<II", mended, 8, len(mended), crc32(mended[CHECKED:]) & 0xFFFFFFFF)
        _bundle(bytes(mended))
    return loaded


def _bundle(data):
    if len(data) > 12 and int.from_bytes(data[16:20], "little") > 1 << 20:
        return  # an arena of a megabyte and more is allowed, and slow to fill
    try:
        model = Int8Model(data, 0)
    except ValueError:
        return
    if sum(work(p) for _, p, _ in model.steps) < 3000 and model.input_size < 3000:
        q = model.run(memoryview(bytes(model.input_size)).cast("b"))
        assert -128 <= q <= 127 and 0 <= model.level(q) <= 255
    return True


def work(p):
    """More than a step's multiplications, roughly: what a fuzzer can wait for."""
    size = 1
    for n in p[7:15]:
        size *= max(1, n)
    return size


KINDS = (1, 3, 4, 5, 7, 8, 9, 10, 149, 151, 165, 167, 69, 71)  # of POLICIES, in order
POLICIES = (
    lambda: H2T2(bits=1, window=1),
    lambda: Adaptive(bits=1, window=1),
    lambda: AdaptiveClasses([[0, 9, 9], [9, 0, 9], [9, 9, 0]], 1, window=1),
    lambda: limited(miss_rate=32768, bits=1, window=1),
    lambda: limited(miss_rate=3277, confidence=31130, bits=1, window=1),
    lambda: AdaptiveClassHead(1, [[0, 9, 9], [9, 0, 9], [9, 9, 0]], 1, window=1),
    lambda: Ordered(1, window=1),
    lambda: AdaptiveHead(1, 1, window=1),
    lambda: limited(ordered=True, miss_rate=32768, bits=1, window=1),
    lambda: limited(ordered=True, miss_rate=3277, confidence=31130, bits=1, window=1),
    lambda: limited(features=1, miss_rate=32768, bits=1, window=1),
    lambda: limited(features=1, miss_rate=3277, confidence=31130, bits=1, window=1),
    lambda: limited(costs=[[0, 9, 9], [9, 0, 9], [9, 9, 0]], normal=0, miss_rate=32768, bits=1, window=1),
    lambda: limited(costs=[[0, 9, 9], [9, 0, 9], [9, 9, 0]], normal=2, miss_rate=3277, confidence=31130, bits=1, window=1),
)


def state(data):
    """A snapshot whose slot's checksum is right: the policy goes on, or is as it was."""
    make = POLICIES[KINDS.index(data[5]) if len(data) > 5 and data[5] in KINDS else 0]  # byte 5 says whose it is
    policy = make()
    costs = policy.cost_list()
    before = saved(policy, costs)
    try:
        changed = restored(policy, data, costs)
    except ValueError:
        assert saved(policy, costs) == before
        return False
    assert changed or data[4] != before[4] or saved(policy, costs) == bytes(data)[: len(before)]  # byte 4: an older version
    for n in range(6):
        _round(policy, n)
    restored(make(), saved(policy, costs), costs)
    return True


def _round(policy, n):
    sample = [10000, 10000, 12768] if policy.classes > 2 else [255 * (n % 2)]
    if hasattr(policy, "features"):
        sample.append(127 - 255 * (n % 3 > 1))
    action = policy.decide(sample if len(sample) > 1 else n % 2)
    assert -1 <= action <= 2
    if action == OFFLOAD:
        policy.learn(policy.ticket, n & 1)


def slots(data):
    """A store's two slots with anything in them: loading never fails, and what is saved then is what is loaded."""
    half = len(data) // 2
    memory = bytearray(max(64, len(data) + 32))
    middle = len(memory) // 2
    memory[: min(half, middle)] = data[: min(half, middle)]
    rest = data[half:][: len(memory) - middle]
    memory[middle : middle + len(rest)] = rest
    store = Store([BufferSlot(memory, 0, middle), BufferSlot(memory, middle, len(memory) - middle)])
    found = store.load()
    assert found is None or len(found) <= len(memory)
    store.save(b"new")
    assert store.load() == b"new"
    return found is not None


def command(data):
    """From anybody who may publish."""
    try:
        made = commands.parse(data)
    except ValueError as error:
        assert len(error.args) == 2 and len(error.args[1]) <= commands.LONGEST_ID
        return
    assert made.name in ("set", "snapshot", "reset", "pause") and len(data) <= commands.LARGEST
    if made.name == "set":
        H2T2(bits=1, **made.value)
    return True


def config(data):
    """An h2t2.toml without sections."""
    return _toml(data, NodeConfig, lambda made: made.content())


def cost(data):
    """A cost table."""
    return _toml(data, CostTable, lambda made: made.arguments())


def _toml(data, model, use):
    """A secret that stands where secrets stand is not repeated by an error; elsewhere it is none."""
    try:
        path = Path("x.toml")
        made = toml.validate(toml.parse_entries(data, path), path, model, SECRETS)
    except UserError as error:
        elsewhere = re.sub(rb"(?m)^\s*(wifi_)?password\s*=.*$", b"", data)
        assert b"hidden-word" in elsewhere or "hidden-word" not in str(error)
        return
    try:
        use(made)
    except ValueError:
        return
    return True


class Socket:
    """What a broker sends, in pieces."""

    def __init__(self, data):
        self.data, self.step = data, 1 + (data[0] % 40 if data else 0)

    def recv_into(self, view):
        part = self.data[: min(self.step, len(view))]
        self.data = self.data[len(part) :]
        view[: len(part)] = part
        return len(part) if part else None

    def send(self, data):
        return len(data)


def broker(data):
    """What a broker says to the boards' MQTT link: its queues and its buffer stay bounded, trouble ends the connection only."""
    link = MqttLink("localhost", 1, "dev", 1, 5, buffer=64)
    link.state = SUBSCRIBING if data[:1] == b"\x90" else UP
    link.sock = Socket(data)
    try:
        while link.sock.data:
            link._read()
    except OSError:
        return
    assert len(link.replies) <= Link.waiting_limit >= len(link.commands) and link.fill <= 64 == len(link.buffer)
    assert all(len(payload) <= 64 for payload in link.replies)
    return len(link.replies)


QUERY = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x06broker\x03lan\0\0\x01\0\x01"


def name_server(data):
    """What a name server says to a board."""
    try:
        address = names.answer(data, QUERY)
    except OSError:
        return
    assert address is None or re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", address)
    return address is not None


def tflite(data):
    """A .tflite file: refused, or fit for the interpreter's own reading."""
    try:
        tflite_check.check(data)
    except ValueError:
        return
    return True


KEY = (material.ON_DEVICE / "update.modulus").read_text().strip()  # of a key that nobody has any more


def update(data):
    """A package in chunks, and one chunk of anything: nothing but what is signed is written."""
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "ldl": f"{folder}/none",
            "snapshot": f"{folder}/s",
            "model_id": 1,
            "update": {"key": KEY, "max_bytes": 4096, "app": False},
        }
        updates = Updates(config, lambda line: None)
        assert not updates.take(package.CHUNK + data, None)[1]
        whole = False
        number = package.id_of(data)
        for at in range(0, len(data), package.MOST_DATA):
            part = data[at : at + package.MOST_DATA]
            chunk = pack("<4sIIII", package.CHUNK, number, len(data), at, crc32(part)) + part
            answer, whole = updates.take(chunk, Running())
            assert isinstance(json.loads(answer)["next"], int) and len(updates.arrival.first) <= package.SIGNED
            if not json.loads(answer)["ok"]:
                break
        assert whole or not os.listdir(folder)
        try:
            package.parts(io.BytesIO(data))
        except ValueError:
            assert not whole
        return whole


def head(data):
    """What a head begins with: it is the file's, or as it was."""
    heads = Heads(1, 1)
    before = [*heads.weights, *heads.roots]
    try:
        head_start.fill([heads], io.BytesIO(data), 7)
    except ValueError:
        assert [*heads.weights, *heads.roots] == before
        return
    assert head_file.Start(2, 1, 7, [heads]).encode() == bytes(data)
    heads.see([200, -128])
    heads.predict()
    heads.learn(0)
    return True


class Running(Asking):
    """As much of a service as an update looks at."""

    errors = every_ms = every_us = 0

    def __init__(self):
        self.node = self.sensing = self
        super().__init__(4)
        self.complain = Complaints(print)


TARGETS = {
    one.__name__: one
    for one in (request, reply, serial, bundle, state, slots, command, config, cost, broker, name_server, tflite, update, head)
}  # fmt: skip


def seeds(name):
    """Good inputs of a target, not empty."""
    if name == "request":
        return [
            wire.encode_request(1, 2, 3, (4,), b"abcd"),
            wire.encode_request(9, 8, 7, (2, 1, 3), bytes(6), remaining_ms=1500, chance=32768, k=15),
            wire.encode_request(9, 8, 7, (5,), b"photo", remaining_ms=1500, chance=9, k=15, dtype=wire.RAW, media="image/jpeg"),
        ]
    if name == "reply":
        return [worker_wire.encode_reply(0, 1, 2, 1, 9), worker_wire.encode_reply(2, 1, 2, -1, 0)]
    if name == "serial":
        return [encode(1, b"hello") + b"noise" + encode(2, bytes(20))]
    if name == "bundle":
        return [bundles.from_tflite(path) for path in sorted(MODELS.glob("*.tflite"))]
    if name == "state":
        return [saved(policy, policy.cost_list()) for policy in [make() for make in POLICIES]]
    if name == "slots":
        memory = bytearray(256)
        store = Store([BufferSlot(memory, 0, 128), BufferSlot(memory, 128, 128)])
        store.save(b"one")
        store.save(b"two")
        return [bytes(memory)]
    if name == "command":
        return [
            b'{"set": {"beta": 100, "delta_fp": 3}}',
            b'{"pause": 60}',
            b'{"reset": true}',
            b'{"snapshot": true, "id": "a1", "until": 9}',
        ]
    if name == "config":
        example = (ROOT / "firmware/boards/h2t2.toml").read_bytes()
        by_loader = b"format", b"pair", b"app"  # entries that another function reads
        lines = [line for line in example.partition(b"\n[")[0].splitlines() if not line.startswith(by_loader)]
        return [
            b"\n".join((*lines, b"remote_shape = [2]", b"model_id = 1")),
            b'remote_shape=[2]\nmodel_id=1\npassword="hidden-word"\n',
        ]
    if name == "cost":
        return [b"seconds = 4\nkilobytes = 9.5\nmillijoules = 100\nwake_mj = 2\n"]
    if name == "name_server":
        alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x05\x02pi\xc0\x13"
        address = b"\x02pi\xc0\x13\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\x02\x02"
        return [QUERY[:2] + b"\x81\x80\0\x01\0\x02\0\0\0\0" + QUERY[12:] + alias + address]
    if name == "update":
        return [(material.ON_DEVICE / "update.h2u").read_bytes()]
    if name == "head":
        heads = Heads(1, 1)
        heads.see([9, 120])
        heads.predict()
        heads.learn(1)
        return [head_file.Start(2, 1, 7, [heads]).encode()]
    if name == "broker":
        topics = [text(wire.topic("dev", leaf)) for leaf in ("reply", "command", "status")]
        publishes = [packet(0x32, topic + b"\0\1payload") for topic in topics]
        return [
            packet(0x90, b"\0\1\1\1\1\1")
            + packet(0x31, text(presence.worker_topic(1, "w")) + b"1")
            + b"".join(publishes)
            + packet(0x40, b"\0\1")
            + packet(0xD0, b"")
            + packet(0x30, bytes(90))
        ]
    return [path.read_bytes() for path in sorted(MODELS.glob("*.tflite"))]
