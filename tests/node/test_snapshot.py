"""Snapshots: bit for bit onwards, nothing foreign accepted, a cut at every byte survived."""

import random
import struct
from binascii import crc32

import pytest
from limits import limited
from snapshots import restored, saved
from support import paper

from h2t2.core import restoring as core_restoring
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.h2t2 import OFFLOAD
from h2t2.node import restoring, snapshot
from h2t2.node import store as stores
from h2t2.node.crc24 import crc24
from h2t2.node.memory_slots import BufferSlot

COSTS = [[0, 9000, 20000], [32768, 0, 15000], [7000, 11000, 0]]
GIVEN = 9830, 22938, 32768


MAKERS = {
    "paper": paper,
    "all": lambda: paper(feedback="all", exploration="anytime", half_life=40, bits=5),
    "adaptive-classes": lambda: AdaptiveClasses(COSTS),
    "adaptive": lambda: Adaptive(beta=5000),
    "miss-guaranteed": lambda: limited(beta=5000, miss_rate=3900, confidence=30000),
    "ordered, guaranteed": lambda: limited(ordered=True, beta=5000, miss_rate=3900, confidence=30000),
    "classes, guaranteed": lambda: limited(costs=COSTS, beta=5000, miss_rate=3900, confidence=30000, normal=1),
    "miss-limited": lambda: limited(beta=5000, miss_rate=900),
}


def play(policy, rounds, seed):
    """Run it, some labels late or lost; everything observable."""
    stream = random.Random(seed)
    seen = []
    late = 0
    for _ in range(rounds):
        if policy.classes > 2:
            cuts = sorted(stream.randrange(16385) for _ in range(2))
            x, classes = [cuts[0], cuts[1] - cuts[0], 16384 - cuts[1]], 3
        else:
            x, classes = stream.randrange(16), 2
        action = policy.decide(x)
        seen.append((action, policy.ticket, policy.local))
        if action == OFFLOAD:
            if late:
                seen.append(policy.learn(late, stream.randrange(classes), 20000))
            late = policy.ticket if stream.random() < 0.3 else 0
            if not late:
                policy.learn(policy.ticket, stream.randrange(classes))
    return seen


@pytest.mark.parametrize("name", MAKERS)
def test_a_restored_policy_goes_on_bit_for_bit(name):
    one = MAKERS[name]()
    play(one, 150, 1)
    blob = saved(one, GIVEN)
    other = MAKERS[name]()
    play(other, 30, 9)
    restored(other, blob, GIVEN)
    assert saved(other, GIVEN) == blob
    one.tickets.drop_all()  # outstanding labels are a start's own
    assert play(one, 150, 2) == play(other, 150, 2)
    assert saved(one, GIVEN) == saved(other, GIVEN)


@pytest.mark.parametrize("name", MAKERS)
def test_truncated_changed_or_foreign_bytes_are_refused_and_leave_the_policy_alone(name):
    policy = MAKERS[name]()
    play(policy, 50, 1)
    blob = saved(policy, GIVEN)
    target = MAKERS[name]()
    fresh = saved(target, GIVEN)
    stream = random.Random(3)
    bad = [blob[:n] for n in range(0, len(blob), max(1, len(blob) // 40))] + [blob + b"\0", b"", bytes(60)]
    for _ in range(60):  # bits of header and options: those of the state are the checksum's to see
        changed = bytearray(blob)
        changed[stream.choice([n for n in range(12) if n != 4] + list(range(24, 28)))] ^= 1 << stream.randrange(8)
        bad.append(bytes(changed))
    bad += [saved(make(), GIVEN) for other, make in MAKERS.items() if other != name]
    for blob in bad:
        with pytest.raises(ValueError, match="snapshot"):
            restored(target, blob, GIVEN)
    assert saved(target, GIVEN) == fresh


def test_other_options_are_refused():
    blob = saved(paper(eta=1000000), GIVEN)
    with pytest.raises(ValueError, match="other options"):
        restored(paper(), blob, GIVEN)


def test_costs_that_a_policy_cannot_have_are_refused_before_it_is_touched():
    blob = saved(AdaptiveClasses(COSTS), (1,) + (0,) * 9)
    target = AdaptiveClasses(COSTS)
    target.decide([0, 0, 32768])
    given = target.cost_list()
    before = saved(target, given)
    with pytest.raises(ValueError, match="snapshot: costs 46341 is not in"):
        restored(target, blob, (1,) + (46341,) * 9)
    assert saved(target, given) == before


class Cut(Exception):
    pass


class CutSlot:
    """Wraps a slot so that a write stops after so many bytes, as a power cut does."""

    def __init__(self, slot, budget):
        self.slot, self.budget = slot, budget
        self.open = slot.open

    def begin(self, size):
        self.stream = self.slot.begin(size)
        return self

    def write(self, data):
        self.stream.write(bytes(data)[: self.budget])
        if self.budget < len(data):
            raise Cut
        self.budget -= len(data)

    def sync(self, _):
        self.slot.sync(self.stream)

    def close(self):
        self.stream.close()


def test_every_changed_bit_of_a_slot_is_seen():
    memory = bytearray(b"\xff" * 400)
    store = stores.Store([BufferSlot(memory, 0, 200), BufferSlot(memory, 200, 200)])
    store.save(bytes(range(100)))
    written = bytes(memory)
    for bit in range(8 * 112):
        memory[bit >> 3] ^= 1 << (bit & 7)
        assert store.load() is None and store.damaged == 1, bit
        memory[:] = written
    assert store.load() == bytes(range(100)) and not store.damaged


def as_saved_before(policy, version):
    """The snapshot that a runtime of a former version wrote: without the counts of answers and the numbers of Policy.older."""
    blob = bytearray(saved(policy, GIVEN))
    names = [name for _, name, _, _ in policy.number_rows()]
    numbers = struct.unpack_from("<H", blob, 6)[0]
    if policy.answers:
        at = snapshot.SIZE + 4 * (numbers + len(names))
        for values, start, stop, *_ in policy.array_rows():
            if values is policy.answers:
                break
            at += 4 * (stop - start)
        del blob[at : at + 4 * len(policy.answers)]
    for name in policy.older if version < 6 else ():
        at = snapshot.SIZE + 4 * (numbers + names.index(name))
        del blob[at : at + 4]
    struct.pack_into("<I", blob, 8, len(blob) - snapshot.SIZE)
    blob[4] = version
    return blob + struct.pack("<I", crc24(blob)) if version == 4 else blob


@pytest.mark.parametrize("version, checksum", [(4, crc24), (5, crc32), (6, crc32)])
@pytest.mark.parametrize("name", MAKERS)
def test_what_former_versions_saved_is_taken_up(name, version, checksum, tmp_path):
    policy, target = MAKERS[name](), MAKERS[name]()
    play(policy, 100, 3)
    for came in (0, 1, 1):
        policy.count_question(3, came)
    blob = as_saved_before(policy, version)
    for n in range(len(policy.answers or ())):
        policy.answers[n] = 0
    frame = struct.pack("<II", 7, len(blob)) + blob
    (tmp_path / "state.1").write_bytes(frame + struct.pack("<I", checksum(frame)))
    store = stores.file_store(str(tmp_path / "state"))
    content = store.open()
    restoring.restore(target, content, GIVEN)
    content.close()
    for absent, value in policy.older.items() if version < 6 else ():
        assert getattr(target.limit, absent) == value
        setattr(policy.limit, absent, value)
    assert saved(target, GIVEN) == saved(policy, GIVEN)
    list(store.writing(*snapshot.encode(target, GIVEN)))
    assert (tmp_path / "state.0").read_bytes()[:4] == struct.pack("<I", 8) and store.load() == saved(policy, GIVEN)


def test_crc24_check_value():
    assert crc24(b"123456789") == 0x21CF02


@pytest.mark.parametrize("kind", ["file", "buffer"])
def test_a_cut_at_every_byte_leaves_a_readable_state(kind, tmp_path):
    policy = paper(bits=2, window=2)
    blobs = []
    for _ in range(3):
        for k in range(4):
            policy.decide(k)
        blobs.append(saved(policy, GIVEN))
    size = len(blobs[0]) + 12
    for cut in range(size + 1):
        if kind == "file":
            slots = [stores.FileSlot(str(tmp_path / f"{cut}.{n}")) for n in (0, 1)]
        else:
            memory = bytearray(b"\xff" * (2 * size))
            slots = [BufferSlot(memory, 0, size), BufferSlot(memory, size, size)]
        store = stores.Store(slots)
        assert store.load() is None
        store.save(blobs[0])
        store.save(blobs[1])
        broken = stores.Store([CutSlot(slot, cut) for slot in slots])
        try:
            broken.save(blobs[2])
        except Cut:
            # a buffer may already hold the last bytes of the new save, which is complete then
            assert store.load() == blobs[1] or (cut > size - 5 and store.load() == blobs[2])
        else:
            assert cut >= size and store.load() == blobs[2]
        # life goes on after the cut
        store.save(blobs[0])
        assert store.load() == blobs[0]


def test_serial_numbers_begin_again_after_the_largest():
    memory = bytearray(80)
    store = stores.Store([BufferSlot(memory, 0, 40), BufferSlot(memory, 40, 40)])
    data = struct.pack("<II", stores.SERIALS - 1, 3) + b"old"
    memory[: len(data) + 4] = data + struct.pack("<I", crc32(data))
    for blob in (b"one", b"two", b"three", b"four"):
        store.save(blob)
        assert store.load() == blob


def test_a_slot_too_small_is_refused_before_it_is_touched():
    memory = bytearray(b"\xff" * 40)
    with pytest.raises(ValueError, match="do not fit"):
        BufferSlot(memory, 0, 40).begin(41)
    assert memory == b"\xff" * 40


class FailsLate:
    """A state whose flash cannot be read any more in the second pass, after `count` integers."""

    def __init__(self, integers, count):
        self.integers, self.reads = integers, len(integers) + count

    def __len__(self):
        return len(self.integers)

    def __getitem__(self, n):
        self.reads -= 1
        if self.reads < 0:
            raise OSError("flash")
        return self.integers[n]


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("name", MAKERS)
def test_a_state_that_cannot_be_read_to_its_end_leaves_a_policy_that_has_learned_nothing(name, count):
    policy, target, fresh = (MAKERS[name]() for _ in range(3))
    play(policy, 100, 3)
    with pytest.raises(OSError, match="flash"):
        core_restoring.restore(target, FailsLate(list(policy.state()), count))
    assert list(target.state()) == list(fresh.state())
    play(target, 50, 3)
    play(fresh, 50, 3)
    assert list(target.state()) == list(fresh.state())
