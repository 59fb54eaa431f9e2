"""Kept samples: what workers write, what stays where there is no room, what is read of it."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image
from support import children, need_mosquitto, until, worker

from h2t2.cpython import worker_wire
from h2t2.cpython.worker_wire import decode_request
from h2t2.link import wire
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.database import transaction, used_bytes
from h2t2_tools.fleet.samples import agreement, sample_files, sample_store
from h2t2_tools.fleet.samples.sample_store import Keeper

ONE = 32768


def reply(sequence, label=1, status=wire.OK, boot=7):
    return worker_wire.encode_reply(status, boot, sequence, label, 30000)


def request(sequence, chance=ONE, k=3, data=bytes(64), boot=7):
    return wire.encode_request(2, boot, sequence, (8, 8, 1), data, remaining_ms=2000, chance=chance, k=k)


def keep(folder, rows, megabytes=100.0):
    """A folder with those requests and replies in it."""
    said = []
    keeper = Keeper(folder, megabytes, said.append)
    for device, payload, answer in rows:
        keeper.keep(device, decode_request(payload), answer)
    keeper.close()
    assert not said and not keeper.dropped
    return folder


def test_what_is_kept_and_what_is_not(tmp_path):
    """Each request once, errors never."""
    began = time.time()
    rows = [("a", request(1), reply(1)), ("a", request(1), reply(1)), ("b", request(1), reply(1, 0))]
    rows += [
        ("a", request(2), reply(2, -1, wire.FAILED)),
        ("a", request(4, 1024, 9), reply(4)),
    ]
    base = sample_store.open_folder(keep(tmp_path, rows))
    made = list(sample_store.read(base))
    assert [(one.device, one.sequence, one.label) for one in made] == [("a", 1, 1), ("b", 1, 0), ("a", 4, 1)]
    last = made[-1]
    assert (last.chance, last.bin, last.shape, last.data, last.score) == (1024, 9, (8, 8, 1), bytes(64), 30000)
    assert last.weight == 32 and made[0].weight == 1 and began <= last.at <= time.time()
    assert [one.label for one in sample_store.read(base, "b")] == [0] and not list(sample_store.read(base, model=3))


def test_several_workers_write_one_file(tmp_path):
    """Four processes at once, from a folder that is not there yet, with many commits each: nothing is lost."""
    program = (
        "import sys, time; sys.path[:0] = sys.argv[2:]\nfrom pathlib import Path\nimport test_samples as t\n"
        "n, t.sample_store.EVERY_S = int(sys.argv[1]) * 100, 0.001\n"
        "rows = (('d', t.request(n + i), t.reply(n + i)) for i in range(100))\n"
        "t.keep(Path(sys.argv[4]), (time.sleep(0.002) or row for row in rows))"
    )
    here = os.path.dirname(__file__)
    command = [sys.executable, "-c", program]
    runs = [subprocess.Popen([*command, str(n), here, os.path.dirname(here), str(tmp_path / "new")]) for n in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert len(list(sample_store.read(sample_store.open_folder(tmp_path / "new")))) == 400


def test_where_there_is_no_room_explored_ones_stay_longest(tmp_path):
    """Twenty times as much as there is room for: what stays fits, stands for about as many as came, and has every explored one
    while certain ones can still be thinned. Which ones stay is chance: sixteen times, six standard errors of their mean."""
    data, n, times = np.random.default_rng(1), 6000, 16
    rows = [("d", request(i, 2048 if i % 20 == 0 else ONE, data=data.bytes(64)), reply(i)) for i in range(n)]
    base = sample_store.open_folder(keep(tmp_path, rows, megabytes=100.0))
    whole, came = used_bytes(base), n - n // 20
    stand_for, variances = [], []
    for _ in range(times):
        copy = sqlite3.connect(":memory:", isolation_level=None)
        base.backup(copy)
        sample_store.thin(copy, whole // 4)
        left = list(sample_store.read(copy))
        certain = [one for one in left if one.chance == ONE]
        assert used_bytes(copy) <= whole // 4 and sum(one.chance < ONE for one in left) == n // 20
        assert len(certain) < came / 3
        stand_for.append(sum(one.weight for one in certain))
        variances.append(sum(1 / one.share**2 for one in certain))
        copy.close()
    assert abs(np.mean(stand_for) - came) < 6 * np.sqrt(np.mean(variances) / times)
    base.execute("BEGIN")
    sample_store.thin(base, 40_000)
    base.execute("COMMIT")
    assert used_bytes(base) <= 40_000 and all(one.chance < ONE for one in sample_store.read(base))


@pytest.mark.parametrize("size, n", [(30, 20_000), (4000, 1000)])
def test_no_more_is_deleted_than_needed(tmp_path, size, n):
    """Small samples lie many to a page, and only whole pages become free."""
    base, request_size = sample_store.open_folder(tmp_path, create=True), json.dumps([size])
    marks = ", ".join("?" * (len(sample_store.COLUMNS) - 1))
    rows = [(i, "d", 1, i, i, ONE, 1.0, 5, 0, request_size, "", os.urandom(size), 1, 30000) for i in range(n)]
    with transaction(base):
        base.executemany(f"INSERT INTO samples ({', '.join(sample_store.COLUMNS[1:])}) VALUES ({marks})", rows)
    limit = int(0.9 * used_bytes(base))
    with transaction(base):
        sample_store.thin(base, limit)
    left = list(sample_store.read(base))
    assert used_bytes(base) <= limit and len(left) > 0.85 * n
    assert sum(one.weight for one in left) == pytest.approx(n, rel=0.05)
    assert all(one.data == rows[one.sequence][-3] for one in left)


def test_after_a_clock_was_set_back_the_newest_do_not_go_first(tmp_path):
    """Half of them were written before, with later times. They are thinned several times, and moved in the file."""
    base = sample_store.open_folder(tmp_path, create=True)
    marks = ", ".join("?" * (len(sample_store.COLUMNS) - 1))
    n = 4000
    times = [i + (10**6 if i < n // 2 else 0) for i in range(n)]
    rows = [(at, "d", 1, i, i, ONE, 1.0, 5, 0, "[30]", "", os.urandom(30), 1, 30000) for i, at in enumerate(times)]
    with transaction(base):
        base.executemany(f"INSERT INTO samples ({', '.join(sample_store.COLUMNS[1:])}) VALUES ({marks})", rows)
    whole = used_bytes(base)
    for part in (0.9, 0.8, 0.75):
        with transaction(base):
            sample_store.thin(base, int(part * whole))
    left = [one.sequence for one in sample_store.read(base)]
    newest = sum(number >= n // 2 for number in left)
    assert newest > len(left) - newest
    assert [number for number in left if number >= 3 * n // 4] == [*range(3 * n // 4, n)]


def test_a_worker_stays_within_its_room(tmp_path):
    rows = [("d", request(i, data=os.urandom(64)), reply(i)) for i in range(9000)]
    base = sample_store.open_folder(keep(tmp_path, rows, megabytes=0.5))
    assert used_bytes(base) <= 500_000 and 0 < len(list(sample_store.read(base))) < 9000


def test_a_folder_that_cannot_be_used(tmp_path, capsys):
    assert main(["samples", str(tmp_path)]) == 2
    assert "no such file" in capsys.readouterr().err
    (tmp_path / sample_store.FILE).write_bytes(b"something else, and long enough for SQLite to look into it" * 20)
    assert main(["samples", str(tmp_path)]) == 2
    assert "not a database" in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    sqlite3.connect(other / sample_store.FILE).execute("CREATE TABLE mine (x)")
    assert main(["samples", str(other)]) == 2
    assert "no samples of this version" in capsys.readouterr().err


def test_a_full_disk_costs_no_answer(tmp_path):
    """What cannot be written is counted and said, and the worker goes on."""
    said = []
    keeper = Keeper(tmp_path, 100.0, said.append)
    keeper._base.execute(f"PRAGMA max_page_count = {keeper._base.execute('PRAGMA page_count').fetchone()[0]}")
    for n in range(3):
        keeper.keep("d", decode_request(request(n, data=os.urandom(64))), reply(n))
    big = wire.encode_request(2, 7, 9, (2, 60_000), bytes(120_000))
    keeper.keep("d", decode_request(big), reply(9))
    keeper.close()
    assert keeper.dropped == 4 and "database or disk is full" in said[0]


def test_what_another_process_kept_from_being_written_is_written_later(tmp_path, monkeypatch):
    """Several processes share the file, so none may lock it for itself; a paid label waits for the one that holds it."""
    monkeypatch.setattr(sample_store, "EVERY_S", 0.01)
    said = []
    keeper = Keeper(tmp_path, 100.0, said.append)
    keeper._base.execute("PRAGMA busy_timeout = 1")
    other = sample_store.open_folder(tmp_path)
    other.execute("BEGIN IMMEDIATE")
    for n in range(3):
        keeper.keep("d", decode_request(request(n)), reply(n))
        assert until(lambda: said)
    other.execute("COMMIT")
    assert until(lambda: len(list(sample_store.read(other))) == 3)
    keeper.close()
    assert keeper.dropped == 0 and "locked" in said[0]
    other.close()


def test_what_they_say_of_the_local_model(tmp_path):
    """Of 100 samples 60 were certain offloads at a score of .6 that the remote model calls 1 half of the time, 40 explored ones
    with probability 1/10 at a score of .1, of which it calls 4 an event: they stand for 400."""
    rows = [("d", request(i, k=9), reply(i, i % 2)) for i in range(60)]
    rows += [("d", request(100 + i, 3277, k=1), reply(100 + i, int(i < 4))) for i in range(40)]
    base = sample_store.open_folder(keep(tmp_path, rows))
    samples = agreement.by_device(sample_store.read(base))["d"]
    one = agreement.to_json(samples, 4)
    weight = 40 * ONE / 3277
    assert one["samples"] == 100 and one["explored"] == 40 and abs(one["stand_for"] - 60 - weight) < 0.1
    assert abs(one["accuracy"] - (30 + 0.9 * weight) / (60 + weight)) < 1e-4 and 0 < one["error"] < 0.1
    bins = {row["bin"]: row for row in agreement.reliability(samples, 4)}
    assert bins[9]["events"] == 0.5 and abs(bins[1]["events"] - 0.1) < 1e-9 and bins[1]["score"] == 1.5 / 16
    assert set(zip(samples["bin"].tolist(), agreement.local_labels(samples, 4).tolist())) == {(1, 0), (9, 1)}
    rows = agreement.over_time(samples, 4)
    assert sum(row["samples"] for row in rows) == 100


@pytest.mark.whole
def test_the_whole_way_and_a_kill(tmp_path, capsys):
    """A node offloads to a worker that keeps; the worker is killed: what it answered a second ago is there, and is exported."""
    need_mosquitto()
    with broker.running("mosquitto") as url:
        out = tmp_path / "out"
        command = ["node", "--pair", "digits", "--broker", url, "--every", "10ms", "--deadline", "20s", "--out"]
        with worker(url, "digits", "--keep", str(tmp_path / "kept")) as process:
            assert main([*command, str(out), "--device", "kitchen", "--samples", "400"]) == 0
            time.sleep(1.5)
            for child in children(process.pid):
                os.kill(child, signal.SIGKILL)
        with worker(url, "digits"):  # nothing is kept without the option
            assert main([*command, str(tmp_path / "none"), "--device", "other", "--samples", "50"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    remote = [line for line in lines if line.get("source") == "remote"]
    capsys.readouterr()
    folder = str(tmp_path / "kept")
    assert (
        main(["samples", folder, "--json", "-", "--figure", str(tmp_path / "kept.png"), "--export", str(tmp_path / "x.npz")])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert list(told["devices"]) == ["kitchen"] and told["devices"]["kitchen"]["samples"] >= len(remote) > 50
    with np.load(tmp_path / "x.npz") as data:
        assert data["x"].shape[1:] == (8, 8, 1) and data["x"].dtype == np.int8 and len(data["x"]) == told["exported"]
        pair = pairs.load("digits")
        known = {pair.test_payload(n) for n in range(len(pair.x))}
        assert all(row.tobytes() in known for row in data["x"]) and (data["weight"] >= 1).all()
    assert Image.open(tmp_path / "kept.png").size[0] > 900
    assert main(["samples", folder, "--export", str(tmp_path / "x.csv")]) == 0
    with (tmp_path / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == told["exported"] and rows[0]["device"] == "kitchen" and "x63" in rows[0]
    assert main(["samples", folder, "--export", str(tmp_path / "pictures")]) == 0
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"0", "1"}
    assert main(["samples", folder, "--delete", "kitchen"]) == 0
    assert main(["samples", folder]) == 2 and b"kitchen" not in (tmp_path / "kept" / sample_store.FILE).read_bytes()


@pytest.mark.slow
def test_damaged_samples_end_in_words(tmp_path, capsys):
    """150 damages: `h2t2 samples`, its exports and the reading of a pair end well, or say which sample it is."""
    import random

    from h2t2_tools.model.retrain import field_samples

    folder = keep(tmp_path, [("kitchen", request(n), reply(n)) for n in range(200)])
    base = sample_store.open_folder(folder)
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()
    content = (folder / sample_store.FILE).read_bytes()
    pair = pairs.load("digits")
    statuses = []
    for seed in range(150):
        rng = random.Random(seed)
        damaged = bytearray(content)
        if seed % 5 == 0:
            del damaged[rng.randrange(len(damaged)) :]
        for _ in range(rng.choice((1, 20, 400)) if damaged else 0):
            damaged[rng.randrange(min(100 * (seed % 2), len(damaged) - 1), len(damaged))] = rng.randrange(256)
        place = tmp_path / str(seed)
        place.mkdir()
        (place / sample_store.FILE).write_bytes(bytes(damaged))
        statuses.append(main(["samples", str(place), "--json", str(place / "r.json"), "--export", str(place / "kept.csv")]))
        said = capsys.readouterr().err
        assert statuses[-1] in (0, 2) and "Traceback" not in said, said
        assert statuses[-1] == 0 or str(place) in said
        with suppress(UserError):
            field_samples.load(pair, place, None)
    assert statuses.count(2) > 50


@pytest.mark.parametrize(
    "column, value",
    [
        ("at", "9e999"), ("share", "0"), ("share", "-1.0"), ("bin", "4096"), ("chance", "70000"), ("dtype", "9"),
        ("label", "-1"), ("shape", "'[2'"), ("shape", "'[-2, -1]'"), ("shape", "'[[2]]'"), ("data", "x'00'"),
        ("data", "'text'"), ("device", "'a/b'"), ("label", "1.5"), ("score", "'x'"), ("at", "x'ff'"),
        ("boot", "-1"), ("boot", "4294967297"), ("sequence", "-1"), ("model", "-1"), ("model", "65536"), ("at", "-0.5"),
        ("chance", "-1"), ("bin", "-1"), ("score", "-1"), ("score", "32769"), ("dtype", "-1"), ("media", "x'00'"),
    ],
)  # fmt: skip
def test_a_row_that_no_worker_writes_is_named(tmp_path, column, value):
    folder = keep(tmp_path, [("kitchen", request(n), reply(n)) for n in range(3)])
    with pytest.raises(UserError, match=f"sample 2: {column} is .*recover"), sample_store.readable(folder) as base:
        base.execute(f"UPDATE samples SET {column} = {value} WHERE id = 2")
        list(sample_store.read(base))


def test_a_zero_byte_of_a_device_is_written_as_text():
    """Python 3.10's csv refuses it."""
    assert sample_files._cell("a\0b") == "a\ufffdb" and sample_files._cell("=\0") == "'=\ufffd" and sample_files._cell(7) == 7
