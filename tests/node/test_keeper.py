"""What was learned stays learned: early saves, foreign and damaged snapshots, costs that changed."""

import errno
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from limits import limited
from scripted import running
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.miss_guarantee import DEBIT
from h2t2.node import restoring, snapshot, store
from h2t2.node.crc24 import crc24


class Counting:
    """A store that notes after how many lessons it was written."""

    damaged = 0

    def __init__(self):
        self.node, self.at, self.broken = None, [], None

    def open(self):
        return None

    def writing(self, size, chunks):
        if self.broken:
            raise self.broken
        self.at.append(self.node.policy.lessons)
        return iter(())


def test_the_first_lessons_are_saved_early_then_every_so_many():
    store = Counting()
    service, store.node, _, _ = running(bins=(5,) * 300, store=store, every=50)
    service.run()
    assert store.at == [1, 2, 4, 8, 16, 32, 64, 114, 164, 214, 264, 300]


def test_the_age_of_a_snapshot_is_that_of_this_starts_last_save(monkeypatch):
    store = Counting()
    service, store.node, _, _ = running(bins=(5,) * 3, store=store, every=50)
    assert service.keeper.age() == -1
    service.run()
    assert service.keeper.age() == 0
    monkeypatch.setattr(service.keeper.watch, "seconds", lambda: 90)
    assert service.keeper.age() == 90


@pytest.mark.parametrize("error", [OSError("no space left on device"), MemoryError("memory allocation failed")])
def test_a_disk_or_heap_that_is_full_for_a_while_costs_no_more_than_the_saves_then(error):
    store = Counting()
    service, store.node, _, said = running(bins=(5,) * 300, store=store, every=50)
    service.run(40)
    store.broken = error
    service.run(100)
    store.broken = None
    service.run()
    assert service.keeper.unsaved >= 2 and store.at[-1] == 300 and str(error) in " ".join(said)
    assert len([line for line in said if "not saved" in line]) <= 3 and service.errors == 0


@pytest.fixture
def path(tmp_path):
    """A snapshot of 20 lessons, made with beta .3; the path of its two files."""
    path = str(tmp_path / "state")
    service, _, _, _ = running(paper(epsilon=32768), bins=(5,) * 20, store=store.file_store(path))
    service.run()
    return path


def test_it_goes_on_from_there(path):
    service, node, _, said = running(paper(epsilon=32768), store=store.file_store(path))
    assert service.keeper.restored and node.policy.lessons == 20 and not said


def test_costs_given_now_win_and_it_is_said(path):
    service, node, _, said = running(paper(epsilon=32768, beta=655, delta_fn=9000), store=store.file_store(path))
    assert service.keeper.restored and node.policy.lessons == 20
    assert (node.policy.beta, node.policy.charge, node.policy.delta_fn) == (655, 655, 9000)
    assert node.policy.rates == paper(delta_fn=9000).rates
    assert len(said) == 1 and "other costs" in said[0] and "fades" in said[0]
    service.run()
    service, node, _, said = running(paper(epsilon=32768, beta=655, delta_fn=9000), store=store.file_store(path))
    assert node.policy.beta == 655 and not said


@pytest.mark.parametrize("other", [lambda: paper(bits=5), lambda: paper(eta=9000000), Adaptive])
def test_a_snapshot_of_something_else_is_kept_and_said(path, other):
    before = {name: Path(f"{path}.{name}").read_bytes() for name in "01"}
    for n in (1, 2):
        service, node, _, said = running(other(), store=store.file_store(path))
        assert not service.keeper.restored and len(said) == 1 and f"{path}.0.kept{n}" in said[0]
        assert {name: Path(f"{path}.{name}.kept{n}").read_bytes() for name in "01"} == before
        service.run()
        for name, content in before.items():
            Path(f"{path}.{name}").write_bytes(content)
    with pytest.raises(ValueError, match="snapshot_mismatch"):
        running(other(), store=store.file_store(path), mismatch="stop")
    assert {name: Path(f"{path}.{name}").read_bytes() for name in "01"} == before


def test_where_nothing_more_can_be_kept_nothing_is_written(path):
    for n in range(1, restoring.MAX_ASIDE):
        for slot in "01":
            Path(f"{path}.{slot}.kept{n}").touch()
    running(paper(bits=6), store=store.file_store(path))
    assert all(Path(f"{path}.{slot}.kept{restoring.MAX_ASIDE}").exists() for slot in "01")
    for slot in "01":
        Path(f"{path}.{slot}").write_bytes(Path(f"{path}.{slot}.kept{restoring.MAX_ASIDE}").read_bytes())
    before = {name: Path(f"{path}.{name}").read_bytes() for name in "01"}
    service, _, _, said = running(paper(bits=5), store=store.file_store(path))
    service.run()
    assert {name: Path(f"{path}.{name}").read_bytes() for name in "01"} == before and service.keeper.saves == 0
    assert "nothing is saved" in said[0]


def test_an_older_version_is_not_overwritten_but_kept(path):
    for slot in "01":
        data = bytearray(Path(f"{path}.{slot}").read_bytes())
        size = struct.unpack_from("<I", data, 4)[0]
        data[12] = 3
        data[8 + size :] = struct.pack("<I", crc24(data[: 8 + size]))
        Path(f"{path}.{slot}").write_bytes(data)
    _, _, _, said = running(paper(epsilon=32768), store=store.file_store(path))
    assert "version 3, this runtime reads 7" in said[0] and "kept" in said[0]


def test_damage_is_said(path):
    for slot in "10":
        with open(f"{path}.{slot}", "r+b") as file:
            file.seek(40)
            file.write(b"damaged")
        service, _, _, said = running(paper(epsilon=32768), store=store.file_store(path))
        assert service.keeper.restored == (slot == "1") and "damaged" in said[0]
    assert "2 of 2" in said[0] and "nothing is left" in said[0]


class BadBlock(store.FileSlot):
    """A file whose blocks an SD card cannot read any more."""

    def open(self):
        stream = super().open()
        return SimpleNamespace(readinto=self.fail, seek=stream.seek, close=stream.close)

    def fail(self, _):
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("slot, lessons", [(0, 20), (1, 16)])
@pytest.mark.parametrize("kind", ["bad block", "folder"])
def test_a_slot_that_cannot_be_read_costs_its_own_lessons_alone(path, kind, slot, lessons):
    slots = [store.FileSlot(f"{path}.{n}") for n in (0, 1)]
    if kind == "folder":
        os.remove(f"{path}.{slot}")
        os.mkdir(f"{path}.{slot}")  # reading it is an error for root as well
    else:
        slots[slot] = BadBlock(f"{path}.{slot}")
    service, node, _, said = running(paper(epsilon=32768), store=store.Store(slots))
    assert service.keeper.restored and node.policy.lessons == lessons
    assert said == ["snapshot damaged (1 of 2): the other one is used"]
    service.run()
    assert service.keeper.saves and not service.keeper.unsaved
    assert running(paper(epsilon=32768), store=store.file_store(path))[1].policy.lessons == lessons + 30


def test_files_that_cannot_be_read_are_said_and_left_alone(path):
    for slot in "01":
        os.remove(f"{path}.{slot}")
        os.mkdir(f"{path}.{slot}")
    service, _, _, said = running(paper(epsilon=32768), store=store.file_store(path))
    assert not service.keeper.restored and len(said) == 1 and "directory" in said[0].lower()
    service.run()
    assert os.path.isdir(f"{path}.0.kept1") and os.path.isdir(f"{path}.1.kept1")


@pytest.mark.parametrize("content", [b"", b"\xff" * 400])
def test_files_without_content_are_said(path, content):
    for slot in "01":
        Path(f"{path}.{slot}").write_bytes(content)
    service, _, _, said = running(paper(epsilon=32768), store=store.file_store(path))
    assert not service.keeper.restored and said == ["snapshot: its files are empty; beginning anew"]
    service.run()
    Path(f"{path}.0").write_bytes(content)  # the power went as a save began
    assert running(paper(epsilon=32768), store=store.file_store(path))[3] == []


def origin(model=1, remote=2, classes=3):
    return struct.pack(snapshot.ORIGIN, model, remote, classes)


@pytest.mark.parametrize(
    "other, name",
    [({"model": 9}, "local model"), ({"remote": 9}, "remote model"), ({"classes": 9}, "event or other classes")],
)
def test_a_snapshot_of_other_models_or_classes_is_kept_and_said(tmp_path, other, name):
    path = str(tmp_path / "state")
    service, *_ = running(paper(epsilon=32768), bins=(5,) * 20, store=store.file_store(path), origin=origin())
    service.run()
    service, node, _, said = running(paper(epsilon=32768), store=store.file_store(path), origin=origin())
    assert node.policy.lessons == 20 and not said
    service, node, _, said = running(paper(epsilon=32768), store=store.file_store(path), origin=origin(**other))
    assert not service.keeper.restored and node.policy.lessons == 0
    assert said == [f"snapshot: of another {name}; kept as {path}.0.kept1, {path}.1.kept1; beginning anew"]
    service.run()
    service, node, _, said = running(paper(epsilon=32768), store=store.file_store(path), origin=origin(**other))
    assert node.policy.lessons == 30 and not said


def test_a_snapshot_that_names_no_models_is_taken(path):
    """Of a former release, and of a router."""
    assert running(paper(epsilon=32768), store=store.file_store(path), origin=origin())[1].policy.lessons == 20


def test_a_snapshot_grows_by_sixteen_bytes_at_most():
    policy = paper()
    costs = policy.cost_list()
    assert snapshot.encode(policy, costs, origin())[0] - snapshot.encode(policy, costs)[0] <= 16


def test_what_fell_back_is_saved_before_a_power_cut_could_hide_it(tmp_path):
    """Answers 0 without the policy, while the broker is away; after a power cut the evidence is what it was, or less."""
    policy = limited(miss_rate=3277, confidence=31130)
    policy.limit.evidence = policy.limit.threshold + 100 * DEBIT
    files = str(tmp_path / "state")
    service, node, decisions, _ = running(policy, bins=(0,) * 80, store=store.file_store(files))
    service.keeper.save()
    node.paused = True
    for n in range(80):
        service._turn()
        if n % 7 == 0:
            again, *_ = running(limited(miss_rate=3277, confidence=31130), bins=(), store=store.file_store(files))
            assert again.keeper.restored and again.node.policy.limit.evidence <= policy.limit.evidence
    assert {decision for _, _, decision, _ in decisions} == {0} and service.keeper.saves < 50


def test_an_orderly_end_loses_no_evidence(tmp_path):
    files = str(tmp_path / "state")
    policy = limited(miss_rate=3277, confidence=31130)
    policy.limit.evidence = policy.limit.threshold + 7
    running(policy, bins=(), store=store.file_store(files))[0].end()
    for _ in range(2):
        service, node, *_ = running(limited(miss_rate=3277, confidence=31130), bins=(), store=store.file_store(files))
        assert node.policy.limit.evidence == policy.limit.evidence and node.policy.report()["miss_guaranteed"]
        service.end()
