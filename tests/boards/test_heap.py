"""The heap of a board in every emulated test: MicroPython's unix port is given what a board has."""

import subprocess
from binascii import crc32
from dataclasses import replace
from struct import pack
from types import SimpleNamespace

import pytest
from node_updates import BLOB, PAIR, made_key, signed
from support import need

from h2t2.link.mqtt import packet, text
from h2t2.node import package
from h2t2_lab import networks
from h2t2_lab.boards import drive
from h2t2_tools.boards import node_heap, refusals, rehearsal, targets
from h2t2_tools.boards.emulators.catalogue import ARM32, PICO, UNIX
from h2t2_tools.boards.kinds import KINDS, Contents, payload
from h2t2_tools.boards.rehearsal_peer import Peer
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle, footprint


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=["unix", "arm32"])
@pytest.mark.parametrize("kind", ["pico_w", "esp32"])
def test_an_emulated_node_has_the_heap_of_its_board(emulator, kind, tmp_path):
    need(emulator)
    main = tmp_path / "main.py"
    main.write_text("import gc\ngc.collect()\nprint(gc.mem_free())\n")
    command = emulator.node(main) if kind == "pico_w" else emulator.node(main, KINDS[kind].heap)
    free = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    wanted = KINDS[kind].heap * (1 if emulator is ARM32 else 2)
    assert wanted <= free < wanted + 3000


def test_a_rehearsal_ends_at_a_message_that_a_full_heap_has_cut_off():
    """Without room even for its text, MicroPython prints the beginning of it; the node would restart for two minutes."""
    lines = iter([b"h2t2: MemoryError: memory allocation faile\n", b"h2t2: starting again in 1 s\n"])
    words, summary = rehearsal._by_network(SimpleNamespace(stdout=lines))
    assert "MemoryError" in words and not summary and next(lines)


OPEN = """import gc
gc.collect()
free = gc.mem_free()
from h2t2.ldl.open import open_ldl
model = open_ldl(FOLDER + "ldl.h2m", stream=True)
print(free, len(model.arena), len(model.weights))
"""


@pytest.mark.whole
def test_a_streamed_model_opens_on_a_pico_that_inspect_says_it_fits(tmp_path):
    """Its two buffers are 64 KB each: they are there before the runtime's modules cut the heap into pieces."""
    need(PICO)
    (tmp_path / "model.tflite").write_bytes(networks.mobilenet_v1())
    blob = bundle.from_tflite(tmp_path / "model.tflite")
    needs = footprint.on_a_board(blob)["ram_bytes_streamed"]
    free, arena, weights = map(int, drive.run(PICO, OPEN, {"ldl.h2m": blob}).split())
    assert arena + weights > 125_000 and free - 65_000 < needs < free


TEN = [[float(i != j) for j in range(10)] for i in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"policy": "h2t2"}], ids=["adaptive", "h2t2"])
def test_a_rehearsal_goes_on_over_a_second_connection(options, tmp_path):
    """However fast the machine is: without a wait for the connection, the node decides all other samples in that time."""
    need(ARM32)
    (tmp_path / "ldl.h2m").write_bytes(BLOB)
    config = NodeConfig(remote_shape=PAIR.info.remote.shape, model_id=PAIR.info.model_id, **options)
    contents = Contents(tmp_path / "ldl.h2m", config)
    peer = Peer(rehearsal.SAMPLES // 3)
    assert rehearsal.trouble(payload(KINDS["pico_w"], contents), contents.record_size, 1 << 20, peer=peer) == ""
    assert peer.connections == 2 and peer.answered > peer.first


@pytest.mark.whole
@pytest.mark.timeout(600)  # a thousand decisions of emulated ARM
@pytest.mark.parametrize(
    "name, of, options",
    [
        ("pico", "breast_cancer", {}),
        ("pico_w", "breast_cancer", {}),
        pytest.param("esp32", "breast_cancer", {}, marks=pytest.mark.evidence),
        ("pico", "breast_cancer", {"bits": 6}),
        pytest.param("esp32", "breast_cancer", {"policy": "h2t2"}, marks=pytest.mark.evidence),
        ("pico", "ten_digits", {"class_costs": TEN}),
    ],
    ids=["pico", "pico_w", "esp32", "6 bits", "h2t2", "ten classes"],
)
def test_what_flash_predicts_is_enough_and_less_is_refused(name, of, options, tmp_path):
    """With 4 KB more than predicted: a thousand decisions, a snapshot after each of the first lessons, a second connection."""
    need(ARM32)
    pair, kind = pairs.load(of), KINDS[name]
    (tmp_path / "ldl.h2m").write_bytes(bundle.from_tflite(pair.ldl))
    config = NodeConfig(remote_shape=pair.info.remote.shape, model_id=pair.info.model_id, **options)
    contents = Contents(tmp_path / "ldl.h2m", config)
    heap = node_heap.needed(kind, contents)
    files = payload(replace(kind, arch="armv6m"), contents)
    predicted = sum(heap.values())
    assert rehearsal.trouble(files, contents.record_size, predicted + 4096, 1000) == ""
    found = targets.BoardInfo(kind.platform, (1, 26, 0), predicted - 4096, 1 << 20, 6 | 3 << 8)
    with pytest.raises(UserError, match="heap"):
        refusals.check(kind, found, "port", [], heap, contents)


SAVE = """import gc
from h2t2.core.adaptive import Adaptive
from h2t2.node.snapshot import encode
from h2t2.node.store import file_store
policy = Adaptive(bits=BITS, window=8)
costs = policy.cost_list()
store = file_store("state")
for _ in store.writing(*encode(policy, costs)):
    pass
size = encode(policy, costs)[0]
blocks = hole = None
least = n = 0

def fill():
    # nothing is free but the hole
    global blocks
    for n in (1024, 64, 1):
        gc.collect()
        try:
            while True:
                blocks = blocks, bytearray(n)
        except MemoryError:
            pass

for n in range(512, 4096, 64):
    gc.collect()
    hole = bytearray(n)
    fill()
    hole = None
    gc.collect()
    try:
        for _ in store.writing(*encode(policy, costs)):
            pass
        least = n
    except MemoryError:
        pass
    blocks = None
    if least:
        break
print(size, least)
"""


@pytest.mark.slow
@pytest.mark.parametrize("bits", [4, 6, 8])
def test_a_snapshot_is_saved_with_one_kilobyte_of_heap(bits, tmp_path):
    need(ARM32)
    script = tmp_path / "save.py"
    script.write_text(f"import os\nos.chdir('{tmp_path}')\nBITS = {bits}\n{SAVE}")  # a board's paths are short
    size, needed = map(int, ARM32.run(script, [], places.RUNTIME.parent, heap=200_000).split())
    assert size > 1000 and needed <= 1024


class Updating(Peer):
    """A broker that brings a package, a chunk with every answer from the thirtieth on, where it is sent but once."""

    def __init__(self, content):
        super().__init__(200)  # the package comes before: a node without a connection may decide the rest before it has another
        number = package.id_of(content)
        most = package.MOST_DATA
        self.chunks = [
            pack("<4sIIII", package.CHUNK, number, len(content), at, crc32(content[at : at + most])) + content[at : at + most]
            for at in range(0, len(content), most)
        ]

    def beside(self, connection, device):
        if self.answered > 30 and self.chunks:
            connection.sendall(packet(0x30, text(device + b"/command") + self.chunks.pop(0)))


@pytest.mark.whole
@pytest.mark.timeout(600)  # a thousand decisions of emulated ARM take a minute on a quiet machine
def test_an_update_comes_in_with_the_heap_that_flash_predicts(tmp_path):
    """A signed model arrives in chunks while the node decides; it is verified, installed, tested and on trial after a start."""
    need(ARM32)
    key = made_key(tmp_path)
    (tmp_path / "ldl.h2m").write_bytes(BLOB)
    config = NodeConfig(
        remote_shape=PAIR.info.remote.shape,
        model_id=PAIR.info.model_id,
        update_key="fleet.pub",
        folder=tmp_path,
    )
    contents = Contents(tmp_path / "ldl.h2m", config)
    kind = KINDS["pico_w"]
    heap = node_heap.needed(kind, contents)
    files = payload(replace(kind, arch="armv6m"), contents)
    peer = Updating(signed(key, seconds=600).content)
    assert rehearsal.trouble(files, contents.record_size, sum(heap.values()) + 4096, 1000, peer) == ""
    assert not peer.chunks and peer.connections == 2  # the update starts the node again
