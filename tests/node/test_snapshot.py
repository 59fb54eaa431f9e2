"""Snapshots: bit for bit onwards, nothing foreign accepted, a cut at every byte survived."""

import random
import struct

import pytest
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.h2t2 import OFFLOAD
from h2t2.core.miss_rate import MissLimited
from h2t2.core.pairwise import Pairwise
from h2t2.node import snapshot

COSTS = [[0, 9000, 20000], [32768, 0, 15000], [7000, 11000, 0]]
GIVEN = 9830, 22938, 32768


MAKERS = {
    "paper": paper,
    "all": lambda: paper(feedback="all", exploration="anytime", half_life=40, bits=5),
    "adaptive-classes": lambda: AdaptiveClasses(COSTS),
    "pairwise": lambda: Pairwise(COSTS, feedback="all", exploration="epsilon"),
    "adaptive": lambda: Adaptive(beta=5000),
    "miss-limited": lambda: MissLimited(beta=5000, miss_rate=900),
}


def play(policy, rounds, seed):
    """Run it, some labels late or lost; everything observable."""
    stream = random.Random(seed)
    seen = []
    late = 0
    for _ in range(rounds):
        if isinstance(policy, (Pairwise, AdaptiveClasses)):
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
    blob = snapshot.save(one, GIVEN)
    other = MAKERS[name]()
    play(other, 30, 9)
    snapshot.restore(other, blob, GIVEN)
    assert snapshot.save(other, GIVEN) == blob
    one.tickets.drop_all()  # outstanding labels are a start's own
    assert play(one, 150, 2) == play(other, 150, 2)
    assert snapshot.save(one, GIVEN) == snapshot.save(other, GIVEN)


@pytest.mark.parametrize("name", MAKERS)
def test_truncated_changed_or_foreign_bytes_are_refused_and_leave_the_policy_alone(name):
    policy = MAKERS[name]()
    play(policy, 50, 1)
    blob = snapshot.save(policy, GIVEN)
    target = MAKERS[name]()
    fresh = snapshot.save(target, GIVEN)
    stream = random.Random(3)
    bad = [blob[:n] for n in range(0, len(blob), max(1, len(blob) // 40))] + [blob + b"\0", b"", bytes(60)]
    for _ in range(60):
        changed = bytearray(blob)
        changed[stream.randrange(len(blob))] ^= 1 << stream.randrange(8)
        bad.append(bytes(changed))
    bad += [snapshot.save(make(), GIVEN) for other, make in MAKERS.items() if other != name]
    for blob in bad:
        with pytest.raises(ValueError, match="snapshot"):
            snapshot.restore(target, blob, GIVEN)
    assert snapshot.save(target, GIVEN) == fresh


def test_other_options_are_refused():
    blob = snapshot.save(paper(eta=1000000), GIVEN)
    with pytest.raises(ValueError, match="other options"):
        snapshot.restore(paper(), blob, GIVEN)


def test_costs_that_a_policy_cannot_have_are_refused_before_it_is_touched():
    blob = snapshot.save(AdaptiveClasses(COSTS), (1,) + (0,) * 9)
    target = AdaptiveClasses(COSTS)
    target.decide([0, 0, 32768])
    given = snapshot.costs(target)
    before = snapshot.save(target, given)
    with pytest.raises(ValueError, match="snapshot: costs 46341 is not in"):
        snapshot.restore(target, blob, (1,) + (46341,) * 9)
    assert snapshot.save(target, given) == before


class Cut(Exception):
    pass


class CutSlot:
    """Wraps a slot so that a write stops after so many bytes, as a power cut does."""

    def __init__(self, slot, budget):
        self.slot, self.budget = slot, budget
        self.read = slot.read

    def write(self, data):
        self.slot.write(data[: self.budget])
        if self.budget < len(data):
            raise Cut


def test_crc24_check_value():
    assert snapshot.crc24(b"123456789") == 0x21CF02


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "buffer"])
def test_a_cut_at_every_byte_leaves_a_readable_state(kind, tmp_path):
    policy = paper(bits=2, window=2)
    blobs = []
    for _ in range(3):
        for k in range(4):
            policy.decide(k)
        blobs.append(snapshot.save(policy, GIVEN))
    size = len(blobs[0]) + 12
    for cut in range(size + 1):
        if kind == "file":
            slots = [snapshot.FileSlot(str(tmp_path / f"{cut}.{n}")) for n in (0, 1)]
        else:
            memory = bytearray(b"\xff" * (2 * size))
            slots = [snapshot.BufferSlot(memory, 0, size), snapshot.BufferSlot(memory, size, size)]
        store = snapshot.Store(slots)
        assert store.load() is None
        store.save(blobs[0])
        store.save(blobs[1])
        broken = snapshot.Store([CutSlot(slot, cut) for slot in slots])
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
    store = snapshot.Store([snapshot.BufferSlot(memory, 0, 40), snapshot.BufferSlot(memory, 40, 40)])
    data = struct.pack("<II", snapshot.SERIALS - 1, 3) + b"old"
    store.slots[0].write(data + struct.pack("<I", snapshot.crc24(data)))
    for blob in (b"one", b"two", b"three", b"four"):
        store.save(blob)
        assert store.load() == blob


def test_a_slot_too_small_is_refused_before_it_is_touched():
    memory = bytearray(b"\xff" * 40)
    with pytest.raises(ValueError, match="do not fit"):
        snapshot.BufferSlot(memory, 0, 40).write(b"x" * 41)
    assert memory == b"\xff" * 40
