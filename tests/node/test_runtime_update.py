"""A runtime that comes by update: which one a start chooses, what is refused, and what a power cut leaves."""

import json
import os
import sys

import pytest
from node_updates import FAULTS, Device, Resetting, Restarted, after_each_cut, after_each_fault, assert_says, service, signed

from h2t2.node import runtime
from h2t2.node.package import DETAILS, RUNTIME, genuine
from h2t2.node.package import FILES as RUN
from h2t2_tools import __version__
from h2t2_tools.boards import kinds
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.fleet.update import rollout, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions

OURS = 6 | 3 << 8 | 4 << 10  # of an RP2040
FILES = {f"h2t2/{name}.mpy": name.encode() * 400 for name in ("core/policy", "node/run", "exports")}
SELECTOR = compile((places.boards() / "selector.py").read_text(), "selector.py", "exec")


def runtime_package(key, counter=7, files=FILES, mpy=OURS):
    return signed_package.runtime(files, mpy, key.private, PackageOptions(counter=counter, trial=50, trial_time=0))


class Board(Resetting):
    """A board with a device's updates. A start runs selector.py as main.py does.

    Attributes:
        chosen: folder whose runtime this start runs.
        broken: folders whose runtime ends before it reaches the updates.
    """

    def __init__(self, folder, key, patched, broken=()):
        self.broken = broken
        patched.setattr(sys.implementation, "_mpy", OURS, raising=False)
        patched.setattr(runtime, "running_folder", lambda: self.chosen)
        super().__init__(folder, key, patched)

    def start(self):
        """Start, again and again until a runtime stays; at most ten times."""
        for _ in range(10):
            self.chosen = self.choose()
            if self.chosen in self.broken:
                continue
            try:
                return super().start()
            except Restarted:
                pass
        raise AssertionError(f"no runtime stays: {self.log_lines}")

    def choose(self):
        """Run selector.py where main.py would; return the folder that it chose."""
        path = list(sys.path)
        try:
            if runtime.MARK in os.listdir():
                exec(SELECTOR, {})
            chosen = sys.path[0] if len(sys.path) > len(path) else runtime.FLASHED
            return chosen if os.path.isdir(chosen) else runtime.FLASHED
        finally:
            sys.path[:] = path

    def files(self):
        """The files of the runtime that runs, as of a package; empty for the flashed one."""
        if self.chosen == runtime.FLASHED:
            return {}
        root = self.folder / self.chosen
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def device(key, tmp_path, monkeypatch):
    return Board(tmp_path, key, monkeypatch)


def test_a_runtime_is_tried_and_kept(device, key):
    assert device.chosen == runtime.FLASHED
    made = runtime_package(key)
    answer, again = device.bring(made)
    assert again and answer["ok"]
    config = device.start()
    assert device.files() == FILES and config["ldl"].endswith("ldl.h2m") and config["snapshot"].endswith("/state")
    report = device.updates.report()
    assert (report["trial"], report["runtime"], report["runtime_id"]) == (50, 7, f"{made.id:08x}")
    assert (report["counter"], report["id"]) == (0, "")  # of the model
    assert not device.updates.look(service(49)) and not device.updates.look(service(50))
    assert device.updates.report()["said"].startswith("kept: 50 samples")
    for _ in range(5):
        device.start()
        assert device.files() == FILES and runtime.mark() == ("h2t2_1", ".", 0)


def test_the_next_one_lies_in_the_other_folder_and_a_model_does_not_touch_it(device, key, tmp_path):
    device.keep(runtime_package(key))
    assert device.install(signed(key, 8))["ldl"].endswith("u1.h2m")
    device.updates.look(service())
    other = {"h2t2/node/run.mpy": b"another"}
    device.keep(runtime_package(key, 9, other))
    assert device.files() == other and device.chosen == "h2t2_2" and not (tmp_path / "h2t2_1").exists()
    assert device.start()["ldl"].endswith("u1.h2m")
    report = device.updates.report()
    assert (report["counter"], report["runtime"]) == (8, 9)
    device.install(signed(key, 10))
    assert device.updates.look(service(errors=3))  # the model goes back, the runtime stays
    assert device.start()["ldl"].endswith("u1.h2m") and device.files() == other


def test_a_runtime_that_does_not_start_gives_way_and_the_one_before_says_so(key, tmp_path, monkeypatch):
    device = Board(tmp_path, key, monkeypatch, broken=["h2t2_1"])
    device.install(runtime_package(key))
    assert device.chosen == runtime.FLASHED
    assert device.updates.report()["said"] == "back: the runtime does not start"
    assert device.updates.report()["runtime"] == 0 and not (tmp_path / "h2t2_1").exists()
    assert "7 has been tried here already" in device.bring(runtime_package(key))[0]["why"]
    device.broken = []
    device.keep(runtime_package(key, 8))


def test_a_runtime_with_a_broken_successor_stays(key, tmp_path, monkeypatch):
    device = Board(tmp_path, key, monkeypatch, broken=["h2t2_2"])
    device.keep(runtime_package(key))
    device.install(runtime_package(key, 8))
    assert device.files() == FILES and device.updates.report()["runtime"] == 7
    assert not (tmp_path / "h2t2_2").exists()


@pytest.mark.parametrize("how", ["its node is worse", "it starts and starts", "its node cannot be assembled"])
def test_a_runtime_that_fails_its_trial_goes_back(device, key, tmp_path, how):
    (tmp_path / "state.0").write_bytes(b"learned")
    device.install(runtime_package(key))
    assert device.chosen == "h2t2_1"
    for name in ("state.0", "state.1"):
        (tmp_path / name).write_bytes(b"in a form that only the new runtime reads")
    if how == "its node is worse":
        assert device.updates.look(service(errors=3))
    elif how == "its node cannot be assembled":
        assert device.updates.failed(ValueError("no module named x"))
    else:
        device.start()
        device.start()
    device.start()
    assert device.chosen == runtime.FLASHED and device.updates.report()["said"].startswith("back: ")
    device.start()
    assert not (tmp_path / "h2t2_1").exists() and not device.updates.report()["runtime"]
    assert (tmp_path / "state.0").read_bytes() == b"learned" and not (tmp_path / "state.1").read_bytes()
    assert not list(tmp_path.glob("*.aside"))
    (tmp_path / "state.0").write_bytes(b"learned since")
    device.start()
    assert (tmp_path / "state.0").read_bytes() == b"learned since"


def test_what_a_node_learns_on_trial_stays_with_a_runtime_that_is_kept(device, key, tmp_path):
    (tmp_path / "state.0").write_bytes(b"learned")
    device.install(runtime_package(key))
    (tmp_path / "state.0").write_bytes(b"learned since")
    device.updates.look(service())
    device.start()
    assert (tmp_path / "state.0").read_bytes() == b"learned since" and not list(tmp_path.glob("*.aside"))


def test_a_flash_puts_its_own_runtime_in_force(device, key, tmp_path):
    device.keep(runtime_package(key))
    (tmp_path / runtime.MARK).unlink()  # as `h2t2 flash` does
    device.start()
    assert device.chosen == runtime.FLASHED and not device.updates.report()["runtime"]
    assert not (tmp_path / "h2t2_1").exists()
    assert "flashed anew" in device.log_lines[-1]


def test_without_a_selector_a_runtime_is_given_up(device, key, monkeypatch):
    """A board that was flashed before this version has none."""
    monkeypatch.setattr(device, "choose", lambda: runtime.FLASHED)
    device.install(runtime_package(key))
    assert device.updates.report()["said"].startswith("back: ")


@pytest.mark.parametrize(
    "mpy, why",
    [
        (OURS, ""),
        (6 | 3 << 8, "this board loads 6.3, 4"),  # another sub-version of bytecode alone is no matter, but this is not it
        (6, ""),
        (0, ""),
        (6 | 3 << 8 | 7 << 10, "a runtime for .mpy 6.3, processor 7; this board loads 6.3, 4"),
        (6 | 2 << 8 | 4 << 10, "6.2"),
        (5 | 3 << 8 | 4 << 10, "5.3"),
    ],
)
def test_a_runtime_for_another_board_is_refused_before_it_comes(device, key, tmp_path, mpy, why):
    made = runtime_package(key, mpy=mpy)
    device.take(made.chunk(0))
    answer, _ = device.take(made.chunk(192))
    assert answer["ok"] is not bool(why) and why in answer["why"]
    assert (tmp_path / "state.part").exists() is not bool(why)


def test_a_computer_takes_none(key, tmp_path):
    assert "update it with pip" in Device(tmp_path, key).bring(runtime_package(key))[0]["why"]


def test_it_needs_room_for_the_package_and_its_files(device, key, tmp_path, monkeypatch):
    made = runtime_package(key)
    monkeypatch.setattr("h2t2.node.package.room", lambda path: 4 * made.head.size - 1)
    assert "no room" in device.bring(made)[0]["why"] and not (tmp_path / "state.part").exists()


@pytest.mark.parametrize("path", ["main.py", "h2t2/../main.py", "/h2t2/x.py"])
def test_only_files_of_a_runtime_are_unpacked(device, key, tmp_path, path):
    answer, again = device.bring(runtime_package(key, files={"h2t2/a.py": b"", path: b"x"}))
    assert not again and "is no file of a runtime" in answer["why"]
    device.start()
    assert not (tmp_path / "h2t2_1").exists() and not (tmp_path / "main.py").exists()


@pytest.mark.parametrize(
    "parts, reason",
    [
        ({DETAILS: b'{"seconds": 0}'}, "lacks a runtime"),
        ({RUN: b""}, "lacks a runtime"),
        ({DETAILS: b"[]", RUN: b""}, "lacks its seconds"),
        ({DETAILS: b'{"seconds": -1}', RUN: b""}, "lacks its seconds"),
    ],
)
def test_a_package_without_all_that_a_runtime_needs_is_refused(device, key, parts, reason):
    options = PackageOptions(counter=7, trial=50, trial_time=0)
    answer, again = device.bring(signed_package._packed(key.private, RUNTIME, OURS, parts, options, {}))
    assert not again and reason in answer["why"]
    device.start()
    assert device.chosen == runtime.FLASHED


NEWER = {"h2t2/node/run.mpy": b"new" * 500}


def board_of(key, monkeypatch, before):
    """A function that makes a board in a folder, which runs the flashed runtime or (before) one that came by update."""

    def begin(folder):
        device = Board(folder, key, monkeypatch)
        if before:
            device.keep(runtime_package(key))
        return device

    return begin


@pytest.mark.parametrize("before", [False, True], ids=["the first", "the second"])
def test_a_power_cut_at_every_operation(key, tmp_path, monkeypatch, before):
    """A whole runtime runs afterwards."""

    def is_newer_alone(device):
        assert device.files() == NEWER
        assert [path.name for path in device.folder.glob("h2t2_*")] == [device.chosen]

    made, begin = runtime_package(key, 8, NEWER), board_of(key, monkeypatch, before)
    for device in after_each_cut(tmp_path, monkeypatch, begin, made, is_newer_alone):
        assert device.files() in ({}, FILES, NEWER)


def assert_says_what_it_does(device):
    assert_says(device, device.files() == NEWER, 8)


@pytest.mark.parametrize(
    "good, before",
    [
        pytest.param(True, False, id="the first is kept"),
        pytest.param(False, True, id="the second goes back"),
        pytest.param(False, False, id="the first goes back", marks=pytest.mark.whole),
        pytest.param(True, True, id="the second is kept", marks=pytest.mark.whole),
    ],
)
@pytest.mark.parametrize("fault", [name for name in FAULTS if "power" not in name])
def test_a_fault_at_every_file_operation(key, tmp_path, monkeypatch, fault, before, good):
    """A runtime runs, and it is the one that the state names."""
    made, begin = runtime_package(key, 8, NEWER), board_of(key, monkeypatch, before)
    assert list(after_each_fault(tmp_path, monkeypatch, fault, begin, made, good, assert_says_what_it_does))


def test_an_orderly_restart_gives_a_runtime_its_starts_back(device, key):
    assert device.bring(runtime_package(key))[1]
    for _ in range(5):
        device.boot()
        assert device.files() == FILES and not device.updates.look(service(9))
        device.updates.pause(service(9))
    device.boot()
    assert not device.updates.look(service(5)) and device.updates.report()["said"].startswith("kept: 50 samples")


@pytest.mark.slow
def test_h2t2_update_sign_makes_its_package(key, tmp_path, capsys):
    made = tmp_path / "runtime.h2u"
    words = ["update", "sign", "pico", "--runtime", "--key", str(key.private), "--out", str(made)]
    assert main([*words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["mpy"], report["version"]) == (OURS, __version__)
    content = made.read_bytes()
    assert all(path.encode() in content for path in kinds.runtime_files(kinds.KINDS["pico"]))
    assert main([*words, "--beta", "0.1"]) == 2 and "--beta: it is about a model" in capsys.readouterr().err
    words[2] = "digits"
    assert main(words) == 2 and "digits is no kind of board that takes updates: unix, esp32" in capsys.readouterr().err


@pytest.mark.slow
def test_h2t2_update_signs_and_sends_a_runtime_in_one_command(key, tmp_path, capsys, monkeypatch):
    sent = []
    monkeypatch.setattr(rollout, "roll_out", lambda to, devices, made, *_: (sent.append((devices, made)), REPORT)[1])
    words = ["update", "kitchen", "porch", "pico", "--runtime"]
    assert main([*words, "--signing-key", str(key.private)]) == 0
    ((devices, made),) = sent
    assert devices == ["kitchen", "porch"] and made.head.runtime and made.head.model == OURS
    assert genuine(made.content, bytes.fromhex(key.modulus))
    assert all(path.encode() in made.content for path in kinds.runtime_files(kinds.KINDS["pico"]))
    assert main(words) == 2 and "--signing-key names the private key" in capsys.readouterr().err
    assert main([*words, "--signing-key", str(tmp_path / "lost.key")]) != 0 and "lost.key" in capsys.readouterr().err
    assert main(["update", "kitchen", "x.h2u", "--signing-key", str(key.private)]) == 2 and len(sent) == 1


REPORT = {"devices": [], "trouble": "", "stopped": False, "left": []}
