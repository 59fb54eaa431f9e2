"""Frames, the MQTT link of boards, configuration, flashing: the parts below the HIL tests."""

import json
import os
import random
import re
import subprocess
import time
import tty
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, worker

from h2t2.link import frames, wire
from h2t2.link.cost import LinkCost
from h2t2.link.serial import SerialLink
from h2t2_tools.boards import flash, kinds, packages, targets
from h2t2_tools.boards.emulators import UNIX
from h2t2_tools.boards.gateway import Line, Out, parse
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.fleet import broker
from h2t2_tools.fleet import config as board_config
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.model import bundle
from h2t2_tools.proof.proxy import Faults

CONFIG = ROOT / "firmware/boards/unix/config.toml"


@given(st.integers(0, 255), st.binary(max_size=700))
def test_a_frame_comes_back(kind, payload):
    data = frames.encode(kind, payload)
    assert data[0] == data[-1] == 0 and 0 not in data[1:-1]
    assert frames.Decoder().feed(data) == [(kind, payload)]


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=40)), max_size=6), st.integers(0, 2**32))
def test_after_noise_the_next_frame_is_whole(parts, seed):
    """Any bytes between frames: every frame still comes, in order, and nothing else is believed."""
    cut = random.Random(seed)
    stream = b"".join(noise + frames.encode(7, payload) for payload, noise in parts)
    decoder, found = frames.Decoder(), []
    while stream:
        n = cut.randrange(1, 50)
        found += decoder.feed(stream[:n])
        stream = stream[n:]
    wanted = [(7, payload) for payload, _ in parts]
    assert [frame for frame in found if frame in wanted] == wanted


def test_a_frame_too_long_takes_no_memory():
    decoder = frames.Decoder(100)
    assert decoder.feed(frames.encode(1, bytes(range(1, 250)) * 40)) == []
    assert decoder.noise == 1 and not decoder.block
    assert decoder.feed(frames.encode(1, b"good")) == [(1, b"good")]


def test_the_serial_link_speaks_frames():
    """Hello at the start and when asked; replies and commands told apart; what is not a frame is nothing."""

    class Line:
        def __init__(self):
            self.out, self.arriving = b"", b""

        def write(self, data):
            self.out += data

        def read(self):
            data, self.arriving = self.arriving, b""
            return data

    line = Line()
    link = SerialLink(line, "dev")
    assert frames.Decoder().feed(line.out) == [(frames.HELLO, b"dev")]
    line.out = b""
    line.arriving = (
        b"junk" + frames.encode(frames.ASK, b"") + frames.encode(frames.COMMAND, b"{}") + frames.encode(65, b"reply")
    )
    assert link.receive(0) == b"reply" and link.receive(0) is None and link.command() == b"{}"
    assert link.send(b"question")
    assert frames.Decoder().feed(line.out) == [(frames.HELLO, b"dev"), (frames.REQUEST, b"question")]


def test_proxy_faults_are_checked():
    with pytest.raises(UserError, match="--drop 2"):
        Faults(drop=2.0).check()
    with pytest.raises(UserError, match="least first"):
        Faults(delay_ms=(5, 1)).check()


@pytest.mark.parametrize("name", ["unix", "esp32", "pico_w", "microbit"])
def test_the_commented_configurations_are_right(name):
    config = board_config.load(ROOT / f"firmware/boards/{name}/config.toml")
    board = config.content()
    assert board["arguments"]["beta"] == 6554 and board["remote_shape"] == [30]


@pytest.mark.parametrize("name", ["unix", "esp32", "pico_w"])
def test_the_cost_table_of_a_board_is_right_when_it_is_taken_in(name, tmp_path):
    text = (ROOT / f"firmware/boards/{name}/config.toml").read_text()
    before, table = text.split("# [cost]\n")
    (tmp_path / "c.toml").write_text(before + "[cost]\n" + re.sub(r"(?m)^# ", "", table))
    board = board_config.load(tmp_path / "c.toml").content()
    assert len(board["cost"]) == 4 and LinkCost(*board["cost"]).paid(1000, 1024) > board["cost"][0] > 0


@pytest.mark.parametrize(
    "line, word",
    [
        ("beta = 2.0", "beta 2.0"),
        ("bits = 9", "bits 9"),
        ("colour = 1", "colour"),
        ('device = "a/b"', "device"),
        ("beta = ", "not TOML"),
        ('password = ["secret-word"]', "password"),
    ],
)
def test_a_wrong_entry_is_named_and_no_secret_told(line, word, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f"remote_shape = [30]\nmodel_id = 1\n{line}\n")
    with pytest.raises(UserError) as error:
        board_config.load(path)
    assert word in str(error.value) and "secret-word" not in str(error.value)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "ldl.h2m"
    path.write_bytes(bundle.from_tflite(places.models() / "breast_cancer/ldl.tflite"))
    return path


def put(model, folder, **changes):
    config = board_config.load(CONFIG).model_copy(update=changes)
    return flash.flash(kinds.KINDS["unix"], str(folder), model, config, None, False, False, lambda *_: None)


def test_flash_copies_only_what_changed(model, tmp_path):
    if UNIX.missing():
        pytest.skip(UNIX.missing())
    first = put(model, tmp_path / "device")
    assert first["copied"] == len(first["files"]) and first["found"]["platform"] == "linux"
    assert put(model, tmp_path / "device")["copied"] == 0
    again = put(model, tmp_path / "device", beta=0.4)
    assert [row["path"] for row in again["files"] if row["changed"]] == ["config.json"]
    assert json.loads((tmp_path / "device/config.json").read_text())["arguments"]["beta"] == 13107
    assert not list((tmp_path / "device").rglob("*.new"))


def test_a_board_that_vanishes_keeps_what_it_had(model, tmp_path, monkeypatch):
    """Cut off while copying: the old runtime is whole, repeating copies only the rest. Cut at the end: main.py finishes it."""
    if UNIX.missing():
        pytest.skip(UNIX.missing())
    device = tmp_path / "device"
    put(model, device)
    old = {path: path.read_bytes() for path in device.rglob("*") if path.is_file()}
    write = targets.Folder.write
    real = kinds.payload

    def newer(*arguments):
        return {path: data + b"\n" if path.endswith(".py") else data for path, data in real(*arguments).items()}

    monkeypatch.setattr(flash, "payload", newer)
    copied = []
    for stop in (0, 1, 7, 9):
        count = [0]

        def cut(self, path, data, stop=stop, count=count):
            if path.endswith(".new"):
                count[0] += 1
                if count[0] > stop:
                    raise Failure("the board is gone")
                copied.append(path)
            write(self, path, data)

        monkeypatch.setattr(targets.Folder, "write", cut)
        with pytest.raises(Failure, match="left with what it ran before.*repeat the same command"):
            put(model, device)
        assert {path: path.read_bytes() for path in old} == old
    monkeypatch.setattr(targets.Folder, "write", write)
    assert len(copied) == 17 == len(set(copied))

    def half(self, paths):  # the power goes while the new files are put in place
        write(self, "flash.todo", "\n".join(paths).encode())
        for path in paths[:5]:
            (self.path / (path + ".new")).replace(self.path / path)
        raise Failure("the board is gone")

    monkeypatch.setattr(targets.Folder, "replace", half)
    with pytest.raises(Failure):
        put(model, device)
    command = UNIX.command(device / "main.py", [])
    run = subprocess.run(command, cwd=device, env=UNIX.environment(device), capture_output=True, text=True, timeout=60)
    assert "samples.bin" in run.stdout + run.stderr  # it booted, and misses its records
    assert not list(device.rglob("*.new")) and not (device / "flash.todo").exists()
    assert (device / "main.py").read_bytes().endswith(b"\n\n")


@pytest.mark.parametrize("name", ["esp32", "pico_w"])
def test_a_dry_run_needs_no_board_and_says_what_it_would_copy(name, model, capsys):
    config = ROOT / f"firmware/boards/{name}/config.toml"
    command = ["flash", "--board", name, "--model", str(model), "--config", str(config), "--dry-run", "--mpy", "--json", "-"]
    assert main(command) == 0
    out = capsys.readouterr().out
    report = json.loads(out)
    paths = [row["path"] for row in report["files"]]
    assert {"main.py", "config.json", "ldl.h2m", "h2t2/core/policy.mpy", "h2t2/link/wifi.mpy"} <= set(paths) and paths[
        -1
    ] == "main.py"
    assert 20_000 < report["flash_bytes"] < 60_000 and '"password"' not in out
    assert report["heap_bytes"] is None or 20_000 < report["heap_bytes"] < 100_000


def test_flash_refuses_before_it_touches_anything(model, tmp_path, capsys):
    base = ["flash", "--board", "unix", "--model", str(model), "--config", str(CONFIG)]
    for extra, word in (
        ([], "name the folder"),
        (["--port", str(tmp_path / "d"), "--model", str(tmp_path / "no.h2m")], "no such file"),
        (["--port", str(tmp_path / "d"), "--config", str(tmp_path / "no.toml")], "no such file"),
        (["--port", str(model)], "File exists"),
    ):
        assert main([*base, *extra]) == 2
        err = capsys.readouterr().err
        assert word in err and "Traceback" not in err
    (tmp_path / "bad.h2m").write_bytes(model.read_bytes()[:100])
    assert main([*base, "--port", str(tmp_path / "d"), "--model", str(tmp_path / "bad.h2m")]) == 2
    assert "bundle" in capsys.readouterr().err
    found = targets.Found("rp2", (1, 21, 0), 10_000, 5_000, 6)
    kind = kinds.KINDS["pico_w"]
    rows = [{"path": "a", "bytes": 9000, "changed": True}]
    for changes, word in (
        ({"platform": "esp32"}, "says it is 'esp32'"),
        ({}, "needs 1.22.0"),
        ({"version": (1, 25, 0)}, "9,000 bytes to copy, 5,000 free"),
        ({"version": (1, 25, 0), "flash": 10**6}, "47,000 bytes of heap, 10,000 are free"),
        ({"version": (1, 25, 0), "flash": 10**6, "heap": 10**6, "mpy": 5}, "loads .mpy format 5"),
    ):
        with pytest.raises(UserError, match=word):
            flash.check(kind, targets.Found(**{**vars(found), **changes}), "P", rows, 47_000, True)


def test_one_gateway_serves_many_lines(tmp_path):
    """Two devices on two ptys, one gateway: each gets the replies to its own requests, noise on one troubles neither."""
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")

    class Pty:
        def __init__(self):
            self.end, other = os.openpty()
            tty.setraw(other)
            os.set_blocking(self.end, False)
            self.port = os.ttyname(other)

        def read(self):
            try:
                return os.read(self.end, 4096)
            except BlockingIOError:
                return None

        def write(self, data):
            os.write(self.end, data)

    pair = pairs.load("digits")
    said, decided = [], []
    with broker.running("mosquitto") as url, worker(url):
        ends = [Pty(), Pty()]
        out = Out(said.append, decided.append)
        lines = [Line(end.port, f"dev{n}", Endpoint(*broker.parse(url)), 115200, False, out) for n, end in enumerate(ends)]
        links = [SerialLink(end, f"dev{n}") for n, end in enumerate(ends)]
        for sequence in range(1, 21):
            ends[0].write(b"noise" * (sequence % 3))
            for n, link in enumerate(links):
                assert link.send(wire.encode_request(pair.about.model_id, 70 + n, sequence, (8, 8, 1), bytes(64)))
            for n, link in enumerate(links):
                assert wire.decode_reply(link.receive(5000))[:3] == (wire.OK, 70 + n, sequence)
        ends[1].write(frames.encode(frames.DECISION, b"\5\1\0"))
        for _ in range(100):
            if decided:
                break
            time.sleep(0.02)
        counters = [line.stop() for line in lines]
    assert decided == [{"device": "dev1", "n": 0, "bin": 5, "decision": 1, "source": "local"}]
    assert [c.requests for c in counters] == [c.replies for c in counters] == [20, 20]
    assert counters[0].noise > 5 and counters[1].noise == 0 and any("hello from dev1" in text for text in said)


def test_gateway_ports():
    assert parse("/dev/ttyACM0") == ("/dev/ttyACM0", "ttyACM0")
    assert parse("/dev/ttyACM0=hall") == ("/dev/ttyACM0", "hall")
    assert parse("socket://h:1=x") == ("socket://h:1", "x")
    assert main(["gateway", "--port", "/nowhere/tty", "--broker", "mqtt://127.0.0.1:1"]) == 2


def test_boards_lists_nothing_where_nothing_is_plugged_in(capsys):
    assert main(["boards", "--json", "-"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


@pytest.mark.parametrize("name", ["unix", "esp32", "pico_w"])
def test_every_list_of_the_runtime_is_the_one_in_modules_txt(name, monkeypatch):
    """package.json (mip) is what `make packages` writes, and the manifest freezes what `h2t2 flash` copies."""
    folder, kind = ROOT / f"firmware/boards/{name}", kinds.KINDS[name]
    assert (folder / "package.json").read_text() == packages.content(kind), "run: make packages"
    for path, source in json.loads(packages.content(kind))["urls"]:
        assert (folder / source).is_file(), path
    frozen = []

    def run(path, **options):
        if "$" in path:
            return
        monkeypatch.chdir(Path(path).parent)  # as MicroPython's manifestfile.py does
        exec(Path(path).read_text(), {**names, "options": type("Options", (), options)})

    names = {
        "include": lambda path, **options: run(path if "$" in path else str((folder / path).resolve()), **options),
        "package": lambda package, base_path, files: frozen.extend(f"{package}/{file}" for file in files),
        "module": lambda path, base_path: frozen.append(path),
    }
    run(str(folder / "manifest.py"))
    assert frozen == [*kinds.modules(kind), "main.py", "finish.py"] and len(frozen) > 25
