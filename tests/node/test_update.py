"""Updates as a node takes them: what is let in, what is refused, and what is left after a power cut at any moment."""

import builtins
import errno
import hashlib
import io
import itertools
import json
import os
import re
from contextlib import contextmanager
from struct import pack
from types import SimpleNamespace
from zlib import crc32

import pytest
import scripted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from node_updates import (
    BLOB,
    FAULTS,
    OTHER_BLOB,
    Device,
    Disk,
    after_each_cut,
    after_each_fault,
    body,
    made_key,
    service,
    signed,
)

import h2t2.clock
from h2t2.ldl.open import open_ldl
from h2t2.node import arrival as arrivals
from h2t2.node import package as packages
from h2t2.node import start
from h2t2.node.node import DOWN, NOBODY, UP
from h2t2.node.slots import Slots, checked
from h2t2.node.update import compare, model_figures, variation
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.update import keys, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions


@pytest.fixture
def device(key, tmp_path):
    return Device(tmp_path, key)


@pytest.mark.parametrize(("count", "why"), [(1, "part MORE of 9 bytes"), (2, "part MORE stands twice")])
def test_a_wrong_part_is_called_by_its_name(count, why):
    parts = pack("<4sI", b"MORE", 9 if count == 1 else 0) * count
    with pytest.raises(ValueError, match=f"^{why}$"):
        packages.parts(io.BytesIO(bytes(packages.SIGNED) + parts))


def test_an_update_is_tried_and_kept(device, key, tmp_path):
    made = signed(key, costs={"beta": 1234})
    package_id = f"{made.id:08x}"
    answer, again = device.bring(made)
    assert again and answer["ok"] and device.updates.report() == {
        "counter": 7, "id": package_id, "tried": 7, "tried_id": package_id, "trial": 50, "seconds": 0, "said": "on trial",
        "key": key.id, "key_counter": 0, "runtime": 0, "runtime_id": "",
    }  # fmt: skip
    assert device.updates.look(service()) is False  # what runs now is the old one still
    made = device.start()
    assert made["ldl"] == f"{tmp_path}/state.u1.h2m" and made["snapshot"] == f"{tmp_path}/state.u1"
    assert made["arguments"]["beta"] == 1234 and len(made["arguments"]["prior"]) == 16
    assert not device.updates.look(service(49)) and device.updates.report()["trial"] == 50
    assert not device.updates.look(service(50)) and device.updates.report()["said"] == "kept: 50 samples, which cost 0.004 each"
    assert device.start()["ldl"].endswith("u1.h2m") and not (tmp_path / "state.part").exists()
    assert device.bring(signed(key, 8))[1] and device.start()["ldl"].endswith("u2.h2m")
    device.updates.look(service())
    assert not list(tmp_path.glob("state.u1*"))  # the one before goes when the new one is kept


def test_what_became_of_a_trial_is_told_at_once(device, key):
    """A node that tells its state at changes only tells of this one."""
    device.install(signed(key), running=service(answered=0))
    node_service, node, _, _ = scripted.running(bins=[5] * 200)
    node_service.updates, node_service.telemetry_s = device.updates, 0
    node_service.run()
    first, last = (json.loads(text) for text in node.link.reported)  # of the verdict, and of the end
    assert first["samples"] == 50 and first["update"]["said"].startswith("kept: 50 samples") and last["samples"] == 200


def test_it_goes_back_to_what_was_learned_before(device, key, tmp_path):
    (tmp_path / "state.0").write_bytes(b"learned")
    device.install(signed(key))
    assert device.updates.look(service(errors=3)) is True
    assert "back: 3 exceptions" in device.log_lines[-1]
    assert device.start() == device.config and (tmp_path / "state.0").read_bytes() == b"learned"
    assert device.updates.report() == {
        "counter": 0, "id": "", "tried": 7, "tried_id": f"{signed(key).id:08x}", "trial": 0, "seconds": 0,
        "said": "back: 3 exceptions", "key": key.id, "key_counter": 0, "runtime": 0, "runtime_id": "",
    }  # fmt: skip
    answer, again = device.bring(signed(key))
    assert not again and "package 7; 7 has been tried here already" in answer["why"]


@pytest.mark.parametrize(
    "before, after, why",
    [
        ({"samples": 1000, "answered": 30}, {"samples": 1000, "cost": 400, "answered": 30}, "a sample costs"),
        ({"fallbacks": 10}, {"fallbacks": 40}, "400 of 1000 offloads have no answer, 100 before"),
        ({"fallbacks": 90}, {"fallbacks": 100}, ""),
        ({"fallbacks": 1}, {"fallbacks": 20, "offloads": 20}, ""),  # too few that asked
        ({}, {"sensor_errors": 6}, "sense() failed 6 times in 106 tries, 0 of 1000 before"),
        ({}, {"sensor_errors": 5, "retry_ms": 0}, ""),
        ({"sensor_errors": 10}, {"sensor_errors": 20, "retry_ms": 0}, ""),  # ten were at the start, as may be now
        ({"act_errors": 10}, {"act_errors": 16}, "act() failed 16 times in 100, 100 of 1000 before"),
        ({"act_errors": 10}, {"act_errors": 13}, ""),
        ({}, {"samples": 50, "act_errors": 4}, ""),  # three, and 20 of 1000
        ({}, {"samples": 50, "act_errors": 5}, "act() failed 5 times in 50, 0 of 1000 before"),
        ({}, {"lost": 30}, "the local model failed on 30 of 100 samples"),
        ({"cost": 100, "answered": 2}, {"cost": 110, "answered": 2}, ""),
        ({"cost": -1, "answered": 0}, {"cost": 900}, ""),  # nothing to hold it against
    ],
)
def test_what_a_trial_is_judged_by(device, key, before, after, why):
    device.updates.look(service(**before))
    device.install(signed(key), running=service(**before))
    assert device.updates.look(service(**after)) == bool(why)
    assert why in device.updates.report()["said"]


class Clock:
    """Seconds that a test lets go by."""

    def __init__(self, monkeypatch):
        self.ns = 10**9
        monkeypatch.setattr(h2t2.clock, "monotonic_ns", lambda: self.ns)

    def wait(self, seconds):
        self.ns += seconds * 10**9


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def tried(device, key, clock, samples_before=1000, seconds_before=1000, gap=1, **options):
    """A device on trial, whose model before had a sample each second or so."""
    for n in range(0, seconds_before, gap):
        clock.wait(gap)
        device.updates.look(service(samples_before * n // seconds_before + 1))
    device.install(signed(key, **options), running=service(samples_before))


def test_a_fast_node_s_trial_lasts_its_time(device, key, clock):
    """After 560 samples, which took less than a second, the program fails for good."""
    tried(device, key, clock, seconds=600)
    assert not device.updates.look(service(560)) and device.updates.report()["trial"] == 50
    for errors in range(1, 16):
        clock.wait(1)
        if device.updates.look(service(560, sensor_errors=errors)):
            break
    assert device.updates.report()["said"] == "back: sense() failed 15 times in 575 tries, 0 of 1000 before"


def test_a_sensor_that_has_just_died_is_not_kept(device, key, clock):
    """It dies after 560 samples, 40 s before the trial's end: too late to have failed often by then."""
    tried(device, key, clock, seconds=600)
    for samples in range(10, 570, 10):
        clock.wait(10)
        assert not device.updates.look(service(samples))
    for errors in (1, 2, 3):
        clock.wait(20)
        assert not device.updates.look(service(560, sensor_errors=errors)) and device.updates.trying
    clock.wait(1)
    assert device.updates.look(service(560, sensor_errors=3))
    assert device.updates.report()["said"] == "back: no sample for 61 s, after 560"


def test_a_trial_ends_by_time_and_by_samples(device, key, clock):
    tried(device, key, clock, seconds=600)
    for samples in range(1, 580, 20):
        clock.wait(20)
        assert not device.updates.look(service(samples)) and device.updates.report()["trial"] == 50
    clock.wait(20)
    assert not device.updates.look(service(600)) and device.updates.report()["said"].startswith("kept")


def test_a_package_says_how_long_a_trial_lasts_and_ten_minutes_are_usual(device, key, clock):
    tried(device, key, clock, seconds=int(PackageOptions().trial_time))
    assert device.updates.report()["seconds"] == 600
    clock.wait(30)
    assert not device.updates.look(service(10**6)) and device.updates.trying
    with pytest.raises(ValueError, match="trial_time"):
        signed(key, 8, seconds=-1)


@pytest.mark.parametrize("gap, seconds", [(1, 60), (100, 400)])
def test_no_samples_end_a_trial(device, key, clock, gap, seconds):
    """A minute, or four times what was usual; and the next package is taken."""
    tried(device, key, clock, gap=gap)
    clock.wait(seconds)
    assert not device.updates.look(service(0, offloads=0))
    clock.wait(10)
    assert device.updates.look(service(0, offloads=0))
    assert device.updates.report()["said"] == f"back: no sample for {seconds + 10} s, after 0"
    device.start()
    assert device.bring(signed(key, 8))[1]


def test_samples_of_which_nothing_is_known_may_be_rare(device, key, clock):
    tried(device, key, clock, seconds_before=10)
    clock.wait(600)
    assert not device.updates.look(service(0, offloads=0))
    clock.wait(1)
    assert device.updates.look(service(0, offloads=0))


def test_a_schedule_says_how_rare_samples_are(device, key, clock):
    tried(device, key, clock)
    running = service(1)
    running.sensing.every_ms = 300_000
    clock.wait(1200)
    assert not device.updates.look(running)


def test_a_sensor_that_fails_at_once_ends_a_trial(device, key, clock):
    tried(device, key, clock)
    assert not device.updates.look(service(0, sensor_errors=3, offloads=0))
    assert device.updates.look(service(0, sensor_errors=4, offloads=0))
    assert device.updates.report()["said"] == "back: sense() failed 4 times in 4 tries, 0 of 1000 before"


def test_without_answers_there_is_no_verdict_and_in_the_end_no_package(device, key, clock):
    """A cost was known before: below 30 answers the trial goes on, and after four times as long as usual the node goes back."""
    tried(device, key, clock)
    for n in range(1, 362):
        clock.wait(10)
        over = device.updates.look(service(20 * n, answered=1))
        assert over == (n == 361)
    assert device.updates.report()["said"] == "back: 7220 samples and 16 answers in 3610 s: too few to judge by"


def test_only_samples_that_could_be_answered_are_compared(device, key, clock):
    """A start has many samples before the broker and its workers are there; the old model had few beside its others."""
    device.updates.look(service(10_000, fallbacks=10, offloads=1000))
    device.install(signed(key), running=service(10_000, fallbacks=10, offloads=1000))
    for standing, samples, missed, asked in ((DOWN, 40, 40, 40), (NOBODY, 45, 45, 45), (UP, 100, 45, 100)):
        running = service(samples, fallbacks=missed, offloads=asked)
        running.standing = standing
        assert not device.updates.look(running)
    assert device.updates.report()["said"].startswith("kept")


def test_scores_that_lie_elsewhere_than_where_it_was_signed(device, key):
    device.install(signed(key, shares=[2000] * 16))
    assert not device.updates.look(service()) and "kept" in device.updates.report()["said"]
    device.install(signed(key, 8, shares=[30000] + [0] * 15))
    assert device.updates.look(service()) and "its scores drift: 9" in device.updates.report()["said"]
    assert variation([1, 1], [1]) == 0 and variation([0, 0], [1, 1]) == 0 and variation([1, 0], [0, 5]) == 1000


def test_costs_are_those_the_fleet_s_owner_sees():
    from h2t2_tools.fleet.monitoring.costs import of_counters

    node = service(1000, 300, 20).node
    node.paid = 40 * 6554
    mine = of_counters(node.scores, node.answered, node.local_cost, node.paid, 6554)
    told = model_figures(node)
    assert abs(told["cost"] - 1000 * mine.own) < 3 and abs(told["variance"] - 1e6 * mine.error**2) < 20


def test_too_few_answers_tell_nothing_of_the_costs():
    node = SimpleNamespace(scores=[5, 9], answered=[0, 3], local_cost=[0, 100], paid=6554)
    assert model_figures(node) == {"samples": 14, "cost": -1, "variance": 0}


def test_a_package_is_on_the_disk_every_few_kilobytes(key, tmp_path, monkeypatch):
    """So that a power cut costs little of it."""
    device, made, synced = Device(tmp_path, key), signed(key), []
    monkeypatch.setattr(arrivals, "SYNCED", 1024)
    monkeypatch.setattr(packages, "sync", lambda file: synced.append(file.name))
    for offset in range(0, len(made.content) - packages.MOST_DATA, packages.MOST_DATA):
        device.take(made.chunk(offset))
    assert synced == [f"{tmp_path}/state.part"] * ((len(made.content) - packages.MOST_DATA) // 1024) and synced


def test_a_trial_that_does_not_survive_its_starts(device, key):
    device.bring(signed(key))
    for _ in range(3):
        assert device.start()["ldl"].endswith("u1.h2m")
    assert device.start() == device.config and "back: it was started 3 times" in device.updates.report()["said"]


def test_a_model_that_gives_other_outputs_here(device, key, monkeypatch):
    monkeypatch.setattr(signed_package, "_test", lambda *_: pack("<I", 1) + bytes(8))
    assert device.install(signed(key)) == device.config and "self-test: " in device.updates.report()["said"]


def test_a_bundle_of_another_model(key, tmp_path):
    device = Device(tmp_path, key, model_id=2)
    assert "of model 1, this node's is 2" in device.bring(signed(key))[0]["why"]


def test_a_bundle_that_is_none_of_the_node_s(device, key, monkeypatch):
    monkeypatch.setattr(signed_package, "_test", lambda *_: pack("<I", 1) + bytes(30))
    assert device.install(signed(key, blob=OTHER_BLOB)) == device.config
    assert "inputs of another size" in device.updates.report()["said"]
    assert device.install(signed(key, 8, blob=b"no bundle")) == device.config
    assert "back: it does not start" in device.updates.report()["said"]


@pytest.mark.parametrize("failed", [False, True], ids=["no other", "another failed"])
def test_a_kept_model_that_broke_gives_way_to_what_was_flashed(device, key, tmp_path, failed):
    """The one in force is none of the packages then, whatever their counters."""
    device.keep(signed(key))
    if failed:
        device.install(signed(key, 8))
        assert device.updates.look(service(errors=3))
        assert device.start()["ldl"].endswith("u1.h2m") and device.updates.report()["counter"] == 7
    (tmp_path / "state.u1.h2m").write_bytes(BLOB[:-9])
    told = device.start() == device.config and device.updates.report()
    assert (told["counter"], told["id"], told["tried"]) == (0, "", 8 if failed else 7)
    assert failed or "bundle: 683 bytes" in told["said"]


def test_a_model_whose_cost_was_not_known_needs_no_answers_to_be_replaced(device, key):
    device.install(signed(key), running=service(answered=0))
    assert not device.updates.look(service(answered=0)) and device.updates.report()["said"] == "kept: 100 samples"


def test_flashed_anew(device, key, tmp_path):
    device.bring(signed(key))
    (tmp_path / "ldl.h2m").write_bytes(OTHER_BLOB)
    assert device.start() == device.config and "flashed anew" in " ".join(device.log_lines)
    assert device.updates.report()["tried"] == 7  # an old package stays an old one


# what strangers do


def test_another_key(device, tmp_path):
    answer, again = device.bring(signed(made_key(tmp_path, "stranger")))
    assert not again and answer["why"] == "the package is not signed with the key that this node trusts"
    assert not (tmp_path / "state.part").exists()


@pytest.mark.parametrize("at", [4, 6, 8, 30, 60, 200, packages.SIGNED, packages.SIGNED + 8, -1])
def test_an_altered_byte(device, key, tmp_path, at):
    made = signed(key)
    content = bytearray(made.content)
    content[at] ^= 1
    answer, again = device.bring(signed_package.Package(bytes(content), made.head, made.details))
    assert not again and not answer["ok"] and answer["why"]
    assert device.start() == device.config and not (tmp_path / "state.part").exists()


def test_a_package_of_a_later_runtime_is_refused_with_the_numbers_that_this_one_reads(key):
    content = bytearray(signed(key).content)
    content[5] = packages.FIRMWARE + 1
    with pytest.raises(ValueError, match="version 1, flags 4; this runtime reads 1, 0 to 3"):
        packages.Head(content)


def test_an_older_one(device, key):
    device.install(signed(key, 7))
    assert "update 7 is on trial" in device.bring(signed(key, 9))[0]["why"]
    device.updates.look(service())
    for counter in (6, 7):
        assert f"package {counter}; 7 has been tried here already" in device.bring(signed(key, counter))[0]["why"]


def test_two_at_once(device, key, monkeypatch):
    one, two = signed(key, 7), signed(key, 8)
    for offset in (0, 192, 384):
        assert device.take(one.chunk(offset))[0]["ok"]
    assert device.take(two.chunk(0))[0]["why"] == "another update is under way"
    assert device.take(one.question())[0]["next"] == 576  # the first goes on
    monkeypatch.setattr(arrivals.Stopwatch, "seconds", lambda self: 61)  # its sender has gone
    assert device.bring(two)[1] and device.updates.report()["counter"] == 8


def test_chunks_from_a_stranger(device, key):
    made = signed(key)
    for junk in (b"H2UC", b"H2UC" + bytes(8), b"H2UC" + bytes(16) + bytes(193), b"H2UC" + bytes(16)):
        answer, again = device.take(junk)
        assert not again and not answer["ok"]
    device.take(made.chunk(0))
    beyond = pack("<4sIIII", b"H2UC", made.id, len(made.content), 192, 0x8D6DE2C1)  # a wrong checksum: not taken
    assert device.take(beyond + b"x" * 100)[0]["next"] == 192
    assert device.take(pack("<4sIIII", b"H2UC", made.id, 1 << 30, 0, 0))[0]["why"].startswith(
        "a package of 1073741516 bytes; this"
    )
    answer, again = device.bring(made)  # and the owner's comes through
    assert again and answer["next"] == len(made.content)


def chunk(number, size, offset, data):
    return pack("<4sIIII", b"H2UC", number, size, offset, crc32(data)) + data


@pytest.mark.parametrize("silent", [False, True], ids=["the owner sends", "the owner was silent for a minute"])
def test_a_stranger_s_chunk_costs_a_package_that_half_arrived_nothing(device, key, tmp_path, clock, silent):
    made = signed(key)
    half = 192 * (len(made.content) // 384)
    for offset in range(0, half, 192):
        assert device.take(made.chunk(offset))[0]["ok"]
    clock.wait(70 if silent else 1)
    size = len(made.content)
    for junk in (
        chunk(5, 100, 0, b"x" * 100),  # too small for a package
        chunk(5, 1 << 30, 0, b"x" * 100),
        chunk(5, size, 0, b"x" * 192), chunk(5, size, 192, b"x" * 192),  # a head that is none
        chunk(made.id, size + 1, 0, b"x" * 192),
        chunk(made.id, size, 0, b"x" * 192),  # in place of what has arrived
        chunk(made.id, half + 100, half, b"x" * 192),
    ):  # fmt: skip
        device.take(junk)
    assert device.take(made.question())[0]["next"] == half and (tmp_path / "state.part").stat().st_size >= half - 4096
    answer, again = device.bring(made, half)
    assert again and answer["ok"]


def test_a_chunk_beyond_the_end_is_refused_and_no_more(device, key):
    made = signed(key)
    last = (len(made.content) - 1) // 192 * 192
    for offset in range(0, last, 192):
        device.take(made.chunk(offset))
    assert "goes beyond the package's end" in device.take(chunk(made.id, len(made.content), last, b"x" * 192))[0]["why"]
    assert device.bring(made, last)[1]


def test_signatures_are_looked_at_four_times_and_then_each_15_s(device, key):
    answers = []
    for n in range(6):
        made = signed(key, 7 + n)
        content = made.content[:100] + b"\0" + made.content[101:]
        answers.append(device.bring(signed_package.Package(content, made.head, made.details))[0]["why"])
    assert ["more packages than one each 15 s" in answer for answer in answers] == [False] * 4 + [True] * 2


def test_too_large(key, tmp_path):
    device = Device(tmp_path, key, max_bytes=1000)
    assert "bytes; this node takes 1000" in device.bring(signed(key))[0]["why"]
    assert os.listdir(tmp_path) == ["ldl.h2m"]


def test_a_program_where_none_is_allowed(device, key, tmp_path):
    app = tmp_path / "mine.py"
    app.write_text("def sense():\n    return [0]\n\ndef act(decision):\n    pass\n")
    assert "does not allow that" in device.bring(signed(key, app=app))[0]["why"] and device.start() == device.config
    device = Device(tmp_path, key, app=True)
    name = device.install(signed(key, 8, app=app))["app"]
    assert name.startswith("app_u1_") and (tmp_path / f"{name}.py").read_bytes() == app.read_bytes()


def test_a_program_that_was_installed_runs_no_more_once_none_is_allowed(tmp_path):
    base = str(tmp_path / "state")
    (tmp_path / "state.u1.h2m").write_bytes(b"model")
    (tmp_path / "state.u1.json").write_text(json.dumps({"event": 1, "app": True}))
    (tmp_path / "u1_app_0.py").write_text("")
    config = {"snapshot": base, "update": {"app": False}, "arguments": {}, "policy": "adaptive", "app": "mine"}
    assert Slots(config).configuration(1, None)["app"] == "mine"


def program(folder, version, text=""):
    """The source of an app, in a file, that says its version."""
    path = folder / f"version{version}.py"
    path.write_text(f"version = {version}\ndef sense():\n    return [0.0] * 30\ndef act(decision):\n    pass\n{text}")
    return path


def test_each_package_runs_its_own_program(key, tmp_path, monkeypatch):
    """One process, as on a Pi: versions 1, 2 and 3 alternate between two slots, each runs and the state says which."""
    monkeypatch.syspath_prepend(tmp_path)
    first = program(tmp_path, 0)
    device = Device(tmp_path, key, app=True, measured=measured_config(), deadline_ms=100)
    for version in (1, 2, 3, 4):
        source = program(tmp_path, version, "def setup(config):\n    raise OSError('no sensor')\n" if version == 3 else "")
        config = device.install(signed(key, version, app=source))
        try:
            app = start.open_app(config, None)
        except OSError as error:
            assert version == 3 and device.updates.failed(error)  # and version 4, in the same slot, is not version 3
            continue
        assert app.program.version == version
        assert app.report()["program"] == hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        device.updates.look(service())
        assert device.updates.report()["counter"] == version
    assert [path.name[:7] for path in tmp_path.glob("app_u*")] == ["app_u1_"] and first.exists()
    assert not list(tmp_path.glob("__pycache__/app_u2*"))


def measured_config():
    """A node's `measured`: 30 numbers that are int8 already."""
    return {name: [None, [1] * 30, [0] * 30, [0] * 30] for name in ("local", "remote")}


def test_a_full_disk(device, key, tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "room", lambda path: 100)
    assert "no room: 100 bytes free" in device.bring(signed(key))[0]["why"]
    monkeypatch.undo()
    whole = builtins.open
    made, later = signed(key), signed(key, 8)
    full = Disk(tmp_path, 10**9, OSError(errno.ENOSPC, "No space left on device"))
    for n in itertools.count(1):
        folder = tmp_path / str(n)
        folder.mkdir()
        device = Device(folder, key)
        full.folder, full.left = folder, n
        with monkeypatch.context() as patched:
            full.install(patched)
            answer, again = device.bring(made)
        if full.left > 0:
            break
        if again:  # nothing was left to write as a file was closed
            continue
        assert "No space left" in answer["why"] or "Errno 28" in answer["why"], answer
        assert device.start() == device.config and not (folder / "state.part").exists()
        assert device.bring(later)[1]  # there is room again
    assert n > 10 and builtins.open is whole


def test_no_signature_where_a_board_cannot_tell(device, key, monkeypatch):
    monkeypatch.setitem(vars(packages), "pow", lambda *_: (_ for _ in ()).throw(NotImplementedError("pow of three")))
    assert "this board cannot verify a signature: pow of three" in device.bring(signed(key))[0]["why"]


# cuts


@pytest.mark.parametrize("with_program", [False, True], ids=["a model", "a model and a program"])
def test_a_power_cut_at_every_operation(key, tmp_path, monkeypatch, with_program):
    """The node runs afterwards, with the program that its configuration names."""
    made = signed(key, app=program(tmp_path, 1) if with_program else None)
    for device in after_each_cut(tmp_path, monkeypatch, lambda folder: Device(folder, key, app=with_program), made):
        assert open_ldl(device.running["ldl"]).input_size == 5
        assert "app" not in device.running or (device.folder / f"{device.running['app']}.py").exists()


def assert_says_what_it_does(device):
    """What `h2t2 update` reads in the state is what runs."""
    report = device.updates.report()
    update_runs = ".u1." in device.running["ldl"]
    assert update_runs == (report["counter"] == 7) == bool(report["id"]), report
    if report["said"].startswith("kept"):
        assert update_runs and not report["trial"]
    elif report["said"].startswith("back"):
        assert not update_runs and not report["trial"]
    else:
        assert update_runs == (report["said"] == "on trial") == bool(report["trial"])


@pytest.mark.parametrize("good", [True, False], ids=["kept", "back"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_file_operation_of_an_update(key, tmp_path, monkeypatch, fault, good):
    """The node always ends with a package that runs, and with the one that it names."""
    made, later, begin = signed(key), signed(key, 8), lambda folder: Device(folder, key)
    for device in after_each_fault(tmp_path, monkeypatch, fault, begin, made, good, assert_says_what_it_does, kept_holds=True):
        if not good:
            assert device.boot() == device.config
        elif device.updates.report()["counter"] != 7:
            assert device.bring(later)[1] and device.boot()["ldl"] != device.config["ldl"]


@contextmanager
def read_only(folder):
    """A folder that cannot be written."""
    with pytest.MonkeyPatch.context() as patched:
        Disk(folder, 1, **FAULTS["EROFS"]).install(patched)
        yield


def test_a_file_system_that_is_read_only_in_a_trial_lets_the_package_before_run(device, key, tmp_path, monkeypatch):
    """The new program failed, and "back" could not be written: each start read the old record and ran it again."""
    device.bring(signed(key))
    assert device.boot()["ldl"].endswith("u1.h2m")
    with read_only(tmp_path):
        assert device.updates.look(service(errors=3)) and device.start() == device.config
        assert device.updates.report()["said"] == "back: 3 exceptions; not on the disk yet: a later start may try it again"
        for _ in range(5):
            device.log_lines.clear()
            assert device.boot() == device.config and not device.updates.trying
            assert device.updates.report()["said"].startswith("back: its start cannot be recorded: [Errno 30] Read-only file")
            assert "the record of updates cannot be written" in device.log_lines[0]
            assert device.updates.report()["counter"] == 0


def test_a_way_back_is_written_as_soon_as_the_disk_takes_it(device, key, tmp_path, monkeypatch, clock):
    """A full disk has room again: no later start tries the package that failed. Until then the state says that one may."""
    device.bring(signed(key))
    device.boot()
    with read_only(tmp_path):
        assert device.updates.look(service(errors=3)) and device.boot() == device.config
        for _ in range(10):
            clock.wait(30)
            assert not device.updates.look(service())
            assert device.updates.report()["said"].endswith("; not on the disk yet: a later start may try it again")
        assert len([line for line in device.log_lines if "cannot be written" in line]) == 2  # of the two starts
    clock.wait(60)
    assert not device.updates.look(service()) and device.updates.report()["said"].endswith("[Errno 30] Read-only file system")
    for _ in range(3):
        assert device.boot() == device.config and not device.updates.trying


def test_a_package_whose_failure_is_never_written_is_tried_three_times(device, key, tmp_path, monkeypatch):
    """The disk takes each start and no end: what it holds then is what a power cut leaves, so the limit of starts ends it."""
    device.bring(signed(key))
    for _ in range(3):
        assert device.boot()["ldl"].endswith("u1.h2m")
        with read_only(tmp_path):
            assert device.updates.look(service(errors=3)) and device.start() == device.config
            assert device.updates.report()["said"] == "back: 3 exceptions; not on the disk yet: a later start may try it again"
    for _ in range(3):
        assert device.boot() == device.config
        assert device.updates.report()["said"] == "back: it was started 3 times and did not come to an end"


def test_a_package_that_cannot_be_recorded_as_kept_is_not_kept(device, key, tmp_path, monkeypatch):
    device.bring(signed(key))
    device.boot()
    with read_only(tmp_path):
        assert device.updates.look(service()) and not device.updates.news()
        assert device.updates.report()["said"].startswith("back: its end cannot be recorded: [Errno 30]")
        assert device.boot() == device.config


def test_a_kept_package_that_fails_on_a_read_only_disk_gives_way_in_the_same_process(device, key, tmp_path, monkeypatch):
    device.live(signed(key))
    assert device.boot()["ldl"].endswith("u1.h2m")
    with read_only(tmp_path):
        assert device.updates.failed(MemoryError("no room"))
        assert device.start() == device.config
    assert device.start() == device.config and device.boot() == device.config  # written once it can be
    assert device.updates.report()["said"] == "back: it does not start: no room"


def test_orderly_restarts_are_no_crashes(device, key, clock):
    """A nightly reboot in a trial of a day: its samples and seconds count on, and so does what failed."""
    clock.wait(100)
    device.bring(signed(key, seconds=86400))
    for n in range(8):
        assert device.boot()["ldl"].endswith("u1.h2m"), n
        clock.wait(10000)
        device.updates.stats.look(service(9))
        assert not device.updates.look(service(9))
        device.updates.pause(service(9))
    device.boot()
    clock.wait(6400)
    assert not device.updates.look(service(10))
    assert device.updates.report()["said"].startswith("kept: 82 samples")


def test_what_failed_before_an_orderly_restart_counts(device, key):
    device.bring(signed(key))
    for _ in range(2):
        device.boot()
        assert not device.updates.look(service(10, errors=1))
        device.updates.pause(service(10, errors=1))
    device.boot()
    assert device.updates.look(service(10, errors=1)) and device.updates.report()["said"] == "back: 3 exceptions"


def test_a_service_that_is_stopped_ends_in_order_and_one_whose_sensor_ends_does_not(device, key):
    device.bring(signed(key, seconds=9999))
    for orderly in (True, True, True, True, False):
        device.boot()
        node_service, *_ = scripted.running(bins=[5] * 30)
        node_service.updates = device.updates
        node_service.run(10 if orderly else 0)
    assert device.updates.record["starts"] == 1 and device.updates.record["past"]["samples"] == 40


def test_a_cut_at_every_chunk(key, tmp_path):
    """The sender goes on where the disk ends."""
    made = signed(key, tests=8)
    for stop in range(192, len(made.content), 192):
        folder = tmp_path / str(stop)
        folder.mkdir()
        device = Device(folder, key)
        for offset in range(0, stop, 192):
            device.take(made.chunk(offset))
        device.updates.arrival._close()
        device.boot()
        answer, _ = device.take(made.question())
        assert answer["ok"] and answer["next"] in (0, stop)
        device.install(made, answer["next"])


# the owner's own


@pytest.mark.slow
def test_a_damaged_bit_of_a_slot_s_numbers_is_noticed(key, tmp_path):
    """Of the part MORE, and of the program: the node goes back to what was flashed."""
    app = program(tmp_path, 1)
    device = Device(tmp_path, key, app=True, measured=measured_config())
    device.keep(signed(key, app=app))
    record = [(tmp_path / f"state.update.{n}").read_bytes() for n in (0, 1)]
    files = [tmp_path / "state.u1.json", *tmp_path.glob("app_u1_*.py")]
    before = {path: path.read_bytes() for path in tmp_path.glob("*u1*") if path.is_file()}
    assert len(files) == 2
    for path in files:
        whole = before[path]
        for bit in range(0, 8 * len(whole), 1 + 8 * len(whole) // 200):
            damaged = bytearray(whole)
            damaged[bit >> 3] ^= 1 << (bit & 7)
            path.write_bytes(damaged)
            assert device.begun() == device.config, (path, bit)
            for kept, content in before.items():
                kept.write_bytes(content)
            for n in (0, 1):
                (tmp_path / f"state.update.{n}").write_bytes(record[n])
    assert device.begun()["ldl"].endswith("u1.h2m")


GOOD = {"event": 1, "arguments": {}, "measured": {}, "scores": None, "app": False, "seconds": 0}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5,
)  # fmt: skip


def answers_and_runs(key, folder, more):
    """A device answers that package, and what it starts with afterwards is a configuration, its own or the package's."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    device = Device(folder, key, max_bytes=1 << 18)
    answer, again = device.bring(body(key, more))
    assert again or (answer["why"] and device.updates.report()["tried"] == 0)
    running = device.start()
    assert running["event"] == 1 or again
    if again:
        device.updates.look(service())
    return answer, again


@pytest.mark.parametrize(
    "more, why",
    [
        (b"", "syntax error in JSON|Expecting value"),
        (b"\xff", "decode"),
        (b"[]", "no JSON object"),
        (b"[" * 20000, "nested too deep|Expecting value"),  # it depends on the interpreter
        (b'{"event": 1, "arguments": ' + b'{"a":' * 20000, "nested too deep|Expecting"),
        (b'{"arguments": {}}', "it lacks an event"),
        (b'{"event": "x"}', "event is of another kind than int"),
        (b'{"event": 1, "arguments": [1]}', "arguments is of another kind than dict"),
        (b'{"event": 1, "scores": [1, "x"]}', "scores are no list of shares"),
        (b'{"event": 1, "scores": 5}', "scores are no list of shares"),
        (b'{"event": 1, "seconds": -1}', "seconds are out of range"),
        (b'{"event": 1, "seconds": 99999999999}', "seconds are out of range"),
        (b'{"event": 1, "app": true}', "it names a program, and there is none"),
    ],
)
def test_a_signed_package_that_is_malformed_is_answered(key, tmp_path, more, why):
    answer, again = answers_and_runs(key, tmp_path / "d", more)
    assert not again and re.search(why, answer["why"]), answer


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_signed_is_answered_and_the_node_runs_on(key, tmp_path, data):
    entries = data.draw(st.dictionaries(st.sampled_from(list(GOOD)), ANYTHING, max_size=3))
    more = data.draw(st.just({**GOOD, **entries}) | ANYTHING)
    answers_and_runs(key, tmp_path / "d", json.dumps(more).encode())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.dictionaries(st.sampled_from(list(GOOD)), ANYTHING, max_size=3), program=st.booleans())
def test_the_part_more_is_refused_or_has_what_a_trial_uses(tmp_path, entries, program):
    (tmp_path / "more.json").write_text(json.dumps({**GOOD, **entries}))
    try:
        more = checked(f"{tmp_path}/more.json", program)
    except ValueError as error:
        assert "part MORE" in str(error)
        return
    assert isinstance(more["event"], int) and more["seconds"] >= 0 and (program or not more["app"])
    assert more["scores"] is None or variation([1, 2], more["scores"]) >= 0


def test_keys_are_not_written_over(key, tmp_path):
    with pytest.raises(UserError, match="is there already"):
        keys.make(key.private.with_suffix(""))
    for text in (b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"):
        (tmp_path / "no.pub").write_bytes(text)
        with pytest.raises(UserError, match="no public key"):
            keys.modulus(tmp_path / "no.pub")
    key.private.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        keys.sign(key.private, b"")
    key.private.chmod(0o600)


def test_a_package_is_read_back(key, tmp_path):
    made = signed(key)
    (tmp_path / "a.h2u").write_bytes(made.content)
    again = signed_package.read(tmp_path / "a.h2u")
    assert again.id == made.id and again.details == made.details and again.to_json() == made.to_json()
    for broken in (made.content[:-1], made.content[:100], b"", made.content + b"LDL \0\0\0\0"):
        (tmp_path / "b.h2u").write_bytes(broken)
        with pytest.raises(UserError, match="b.h2u"):
            signed_package.read(tmp_path / "b.h2u")


def test_parts_of_a_package():
    file = io.BytesIO(bytes(packages.SIGNED) + pack("<4sI", b"LDL ", 2) + b"ab")
    assert packages.parts(file) == [(b"LDL ", packages.SIGNED + 8, 2)]
    for content in (b"LDL", pack("<4sI", b"LDL ", 3) + b"ab", pack("<4sI", b"NONE", 0), 2 * pack("<4sI", b"LDL ", 0)):
        with pytest.raises(ValueError):
            packages.parts(io.BytesIO(bytes(packages.SIGNED) + content))


def test_worse_without_anything_to_compare_with():
    now = {"asked": 900, "missed": 900, "cost": 900, "variance": 0, "samples": 10}
    assert compare(now, [1] * 16, {"old": None, "scores": None}) == ""
