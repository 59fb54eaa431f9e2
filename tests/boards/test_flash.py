"""`h2t2 flash` and `h2t2 boards`."""

import dataclasses
import json
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
from interpreters import need
from ports.world import ESP32, World
from support import ROOT, configuration, project_file

from h2t2.node import run
from h2t2_tools.boards import flash, kinds, targets
from h2t2_tools.boards.emulators import built
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "ldl.h2m"
    path.write_bytes(bundle.from_tflite(places.models() / "breast_cancer/ldl.tflite"))
    return path


def flash_unix(model, folder, **changes):
    config = configuration(model.parent).model_copy(update=changes)
    records = model.with_name("samples.bin")
    records.write_bytes(bytes(35))
    contents = kinds.Contents(model, config, records)
    return flash.flash(kinds.KINDS["unix"], str(folder), contents, False, lambda *_: None)


@pytest.mark.slow
def test_flash_copies_only_what_changed(model, tmp_path):
    need(UNIX)
    first = flash_unix(model, tmp_path / "device")
    assert first["copied"] == len(first["files"]) and first["found"]["platform"] == "linux"
    assert flash_unix(model, tmp_path / "device")["copied"] == 0
    again = flash_unix(model, tmp_path / "device", beta=0.4)
    assert [row["path"] for row in again["files"] if row["changed"]] == ["config.json"]
    assert json.loads((tmp_path / "device/config.json").read_text())["arguments"]["beta"] == 13107
    assert not list((tmp_path / "device").rglob("*.new"))


@pytest.mark.slow
def test_a_board_that_vanishes_keeps_what_it_had(model, tmp_path, monkeypatch):
    """Cut off while copying: the old runtime is whole, repeating copies only the rest. Cut at the end: main.py finishes it."""
    need(UNIX)
    device = tmp_path / "device"
    flash_unix(model, device)
    old = {path: path.read_bytes() for path in device.rglob("*") if path.is_file()}
    write = targets.Folder.write
    real = kinds.payload

    def newer(*arguments):
        return {path: data + b"\n" if path.endswith((".py", ".mpy")) else data for path, data in real(*arguments).items()}

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
        with pytest.raises(Failure, match="still has its previous program.*repeat the same command"):
            flash_unix(model, device)
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
        flash_unix(model, device)
    command = UNIX.node(device / "main.py")
    run = subprocess.run(command, cwd=device, env=UNIX.environment(device), capture_output=True, text=True, timeout=280)
    assert '"summary"' in run.stdout  # it booted, and has decided about its one sample
    assert not list(device.rglob("*.new")) and not (device / "flash.todo").exists()
    assert (device / "main.py").read_bytes().endswith(b"\n\n")


def test_a_budget_goes_onto_the_board_where_there_is_one(model, tmp_path):
    for budget in ("", "200/day"):
        files = kinds.payload(kinds.KINDS["esp32"], kinds.Contents(model, configuration(tmp_path, "esp32", budget=budget)))
        assert ("h2t2/core/budget.mpy" in files) == ("budget" in json.loads(files["config.json"])) == bool(budget)


def test_a_limit_for_misses_goes_onto_the_board_where_there_is_one(model, tmp_path):
    for limit in (0, 0.02):
        files = kinds.payload(kinds.KINDS["esp32"], kinds.Contents(model, configuration(tmp_path, "esp32", miss_rate=limit)))
        wanted = "miss_rate" in json.loads(files["config.json"])["arguments"]
        assert ("h2t2/core/miss_rate.mpy" in files) == wanted == bool(limit)
    with pytest.raises(UserError, match="miss_rate: policy = 'h2t2' keeps no such limit"):
        configuration(tmp_path, "esp32", policy="h2t2", miss_rate=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["esp32", "pico_w"])
def test_a_dry_run_needs_no_board_and_says_what_it_would_copy(name, model, tmp_path, capsys):
    config = project_file(tmp_path, name)
    config.write_text(config.read_text().replace('wifi_name = "network"', 'wifi_name = "home"'))
    (tmp_path / "samples.bin").write_bytes(bytes(35))
    assert main(["flash", str(tmp_path), "--dry-run", "--json", "-"]) == 0
    out = capsys.readouterr().out
    report = json.loads(out)
    paths = [row["path"] for row in report["files"]]
    assert {"main.py", "config.json", "ldl.h2m", "h2t2/core/policy.mpy", "h2t2/link/wifi.mpy"} <= set(paths) and paths[
        -1
    ] == "main.py"
    # the smallest of these boards has a megabyte of flash
    assert 20_000 < report["flash_bytes"] < 140_000 and '"password"' not in out
    assert report["heap_bytes"] is None or 20_000 < report["heap_bytes"] <= kinds.KINDS[name].heap


def test_flash_refuses_before_it_touches_anything(model, tmp_path, capsys):
    (tmp_path / "samples.bin").write_bytes(bytes(35))
    project_file(tmp_path)
    base = ["flash", str(tmp_path)]
    for extra, word in (([], "name the folder"), (["--port", str(model)], "File exists")):
        assert main([*base, *extra]) == 2
        err = capsys.readouterr().err
        assert word in err and "Traceback" not in err
    whole = model.read_bytes()
    for content, word in ((whole[:100], "bundle"), (None, "no such file; this makes it: h2t2 bundle")):
        model.unlink()
        if content:
            model.write_bytes(content)
        assert main([*base, "--port", str(tmp_path / "d")]) == 2
        assert word in capsys.readouterr().err
    found = targets.BoardInfo("rp2", (1, 24, 1), 10_000, 5_000, 6 | 3 << 8 | 4 << 10)
    kind = kinds.KINDS["pico_w"]
    rows, heap = [{"path": "a", "bytes": 9000, "changed": True}], {"runtime": 40_000, "model": 7_000, "app": 0}
    contents = kinds.Contents(model, configuration(tmp_path))
    for changes, word in (
        ({"platform": "esp32"}, "reports 'esp32', but pico_w needs 'rp2'"),
        ({}, "MicroPython 1.24.1; pico_w needs 1.25 or newer"),
        ({"version": (1, 25, 0)}, "9,000 bytes to copy, but its file system has 5,000 free"),
        ({"version": (1, 25, 0), "flash": 10**6}, r"47,000 bytes \(runtime 40,000, model 7,000\) of heap, but 10,000 are free"),
        ({"version": (1, 25, 0), "flash": 10**6, "heap": 10**6, "mpy": 5}, "loads .mpy format 5.0"),
        (
            {"version": (1, 25, 0), "flash": 10**6, "heap": 10**6, "mpy": 6 | 2 << 8},
            "format 6.2, these files have 6.3: give --source",
        ),
    ):
        with pytest.raises(UserError, match=word):
            flash.check(kind, targets.BoardInfo(**{**vars(found), **changes}), "P", rows, heap, contents)


def test_a_boards_own_numbers_say_what_it_loads():
    """Every bit of sys.implementation._mpy."""
    esp32 = targets.BoardInfo("esp32", (1, 26, 1), 1, 1, 6 | 3 << 8 | 10 << 10)
    assert (esp32.mpy_format, esp32.arch, esp32.arch_flags) == ((6, 3), "xtensawin", 0)
    rv32 = targets.BoardInfo("esp32", (1, 27, 0), 1, 1, 6 | 3 << 8 | 11 << 10 | 1 << 16)
    assert (rv32.mpy_format, rv32.arch, rv32.arch_flags) == ((6, 3), "rv32imc", 1)
    assert rv32.report()["mpy_format"] == "6.3"
    assert [targets.BoardInfo("x", (1, 26), 1, 1, number << 10).arch for number in (0, 12, 15)] == ["", "rv64imc", ""]


@pytest.mark.parametrize("board", [UNIX, ARM32, built.XTENSA, built.XTENSA_NEXT], ids=lambda board: board.name)
def test_every_interpreter_says_its_architecture(board, tmp_path):
    need(board)
    (tmp_path / "info.py").write_text("import sys\nprint(sys.implementation._mpy)\n")
    words = [tmp_path / "info.py", tmp_path] if isinstance(board, built.Xtensa) else [tmp_path / "info.py", [], tmp_path]
    said = targets.BoardInfo("x", (1, 25), 1, 1, int(board.run(*words)))
    native = {"x86_64": "x64"}.get(platform.machine(), "")
    names = {"unix": native, "arm32": "armv7emdp", "xtensa": "xtensa", "xtensa-forky": "xtensa"}
    assert (said.mpy_format, said.arch) == (flash.MPY_FORMAT, names[board.name])


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", [UNIX, ARM32], ids=lambda interpreter: interpreter.name)
def test_machine_code_is_for_the_boards_own_processor(interpreter, model, tmp_path):
    """Not for the one that boards of its kind usually have. Without any, the modules of machine code stay away."""
    need(interpreter)
    (tmp_path / "samples.bin").write_bytes(bytes(35))
    contents = kinds.Contents(model, configuration(tmp_path), tmp_path / "samples.bin", mpy=True)
    other = dataclasses.replace(kinds.KINDS["unix"], arch="xtensawin")
    report = flash.flash(other, str(tmp_path / "device"), contents, False, lambda *_: None, interpreter=interpreter)
    arch = report["found"]["arch"]
    module = tmp_path / "device/h2t2/ldl/conv_viper.mpy"
    assert arch != "xtensawin" and module.exists() == bool(arch)
    assert not arch or targets.ARCHITECTURES[module.read_bytes()[2] >> 2] == arch
    files = kinds.payload(dataclasses.replace(other, arch=""), contents)
    assert "h2t2/ldl/conv.mpy" in files and "h2t2/ldl/conv_viper.mpy" not in files


@pytest.mark.slow
def test_a_board_without_the_policys_machine_code_loses_it(model, tmp_path):
    """That of local models stays. A board with little heap never gets it."""
    need(UNIX)
    (tmp_path / "samples.bin").write_bytes(bytes(35))
    code = tmp_path / "device/h2t2/core/numbers_viper.mpy"
    for machine_code in (True, False):
        config = configuration(tmp_path).model_copy(update={"machine_code": machine_code})
        contents = kinds.Contents(model, config, tmp_path / "samples.bin")
        flash.flash(kinds.KINDS["unix"], str(tmp_path / "device"), contents, False, lambda *_: None, interpreter=UNIX)
        assert code.exists() == machine_code and (tmp_path / "device/h2t2/ldl/dense_viper.mpy").exists()
        assert b"machine_code" not in (tmp_path / "device/config.json").read_bytes()
        for name, room in (("pico", True), ("esp32", False)):
            files = kinds.payload(kinds.KINDS[name], contents)
            assert ("h2t2/core/numbers_viper.mpy" in files) == (room and machine_code)


def test_boards_lists_what_is_plugged_in_and_says_when_nothing_is(capsys, monkeypatch):
    """Serial ports without a USB number are the machine's own, not boards; the others in the order of their names."""

    def port(device, vid, about):
        return SimpleNamespace(device=device, vid=vid, pid=5, description=about)

    plugged = [port("/dev/ttyACM1", 0x2E8A, "Board in FS mode"), port("/dev/ttyACM0", 0x0D28, "DAPLink")]
    monkeypatch.setattr(flash.list_ports, "comports", lambda: [*plugged, port("/dev/ttyS0", None, "n/a")])
    assert main(["boards", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"port": "/dev/ttyACM0", "about": "DAPLink", "usb": "0d28:0005"},
        {"port": "/dev/ttyACM1", "about": "Board in FS mode", "usb": "2e8a:0005"},
    ]
    monkeypatch.setattr(flash.list_ports, "comports", lambda: [])
    assert main(["boards"]) == 0
    assert capsys.readouterr().out == "no board is plugged in; emulated ones: h2t2 emulators\n"


APP = "def sense(): return None\n\n\ndef act(decision): pass\n"


@pytest.mark.slow
def test_an_app_goes_along_and_is_not_overwritten(tmp_path, capsys):
    need(UNIX)
    project_file(tmp_path, pair=str(ROOT / "models/breast_cancer"), app="app.py")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "device").mkdir()
    words = ["flash", str(tmp_path), "--port", str(tmp_path / "device")]
    assert main(words) == 0 and main(words) == 0
    assert {"app.py", "h2t2/node/app.mpy", "h2t2/node/measured.mpy"} <= {
        str(path.relative_to(tmp_path / "device")) for path in (tmp_path / "device").rglob("*.*py")
    }
    (tmp_path / "device/app.py").write_text(APP + "# mine\n")
    assert main(words) == 2
    assert "another app.py" in capsys.readouterr().err and "mine" in (tmp_path / "device/app.py").read_text()
    assert main([*words, "--replace-app"]) == 0 and "mine" not in (tmp_path / "device/app.py").read_text()


@pytest.mark.parametrize(
    "source, words",
    [("def sense(): pass\n", "has the functions sense"), ("def sense(:\n", "app.py: "), (None, "no such app")],
)
def test_what_is_no_app_is_refused_before_anything_is_touched(tmp_path, capsys, source, words):
    project_file(tmp_path, pair=str(ROOT / "models/breast_cancer"), app="app.py")
    if source:
        (tmp_path / "app.py").write_text(source)
    (tmp_path / "device").mkdir()
    assert main(["flash", str(tmp_path), "--port", str(tmp_path / "device")]) == 2
    assert words in capsys.readouterr().err and not list((tmp_path / "device").iterdir())
    with pytest.raises(UserError, match="also give `pair`"):
        configuration(tmp_path, app="app.py")


def contents_of(model, board, **changes):
    """What goes onto a board: its usual configuration with some entries changed, and recorded samples."""
    config = configuration(model.parent, board).model_copy(update=changes)
    (model.parent / "samples.bin").write_bytes(bytes(35))
    return kinds.Contents(model, config, model.parent / "samples.bin")


@pytest.mark.parametrize(
    "board, limit", [("pico", 8388), ("pico_w", 8388), ("esp32", None), ("unix", None)], ids=lambda value: str(value)
)
def test_a_watchdog_beyond_the_boards_limit_is_refused(model, board, limit):
    """The board would refuse it too, at every start: it would never be a node."""
    name = {"wifi_name": "home"}
    flash.refuse(kinds.KINDS[board], contents_of(model, board, watchdog=(limit or 60000) / 1000, **name))
    if limit:
        with pytest.raises(UserError, match=f'watchdog = "{limit + 1}ms": the watchdog of a {board} takes at most 8388 ms'):
            flash.refuse(kinds.KINDS[board], contents_of(model, board, watchdog=(limit + 1) / 1000, **name))


def test_sleep_that_cannot_work_is_refused(model, tmp_path):
    recorded = contents_of(model, "esp32", wifi_name="home", sleep="deep", every=600)
    with pytest.raises(UserError, match="the recorded samples anew: set `app`"):
        flash.refuse(kinds.KINDS["esp32"], recorded)
    given = {"remote_shape": [30], "model_id": 1}
    for changes, words in (
        ({"sleep": "deep", "every": "900ms"}, "of use from 1000 ms on"),
        ({"sleep": "light", "every": "20ms"}, "of use from 50 ms on"),
        ({"sleep": "deep", "every": "10s", "snapshot": ""}, "each waking begins with nothing learned"),
    ):
        with pytest.raises(UserError, match=words):
            NodeConfig(**given, **changes).content()


@pytest.mark.parametrize("running", [8000, 0])
def test_an_esp32s_watchdog_does_not_interrupt_copying(tmp_path, monkeypatch, running):
    """A soft reset does not stop it. It takes a longer limit; one that does not run must not be begun."""
    world = World(ESP32)
    (tmp_path / "config.json").write_text(json.dumps({"watchdog_ms": running}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "esp32")
    monkeypatch.setitem(sys.modules, "machine", world.machine)
    if running:
        world.machine.WDT(timeout=running)
    exec(targets.QUIET, {})
    world.pass_ms(10 * 60 * 1000)
    assert not world.resets and bool(world.limit) == bool(running)
    (tmp_path / "config.json").unlink()
    exec(targets.QUIET, {})  # a board without a node


def test_a_hello_is_waited_for_as_long_as_a_start_can_take():
    """A board with Wi-Fi that finds neither network nor broker says it once it has given up waiting."""
    for name, kind in kinds.KINDS.items():
        waited = run.PATIENT_MS / 1000 if "mqtt" in kind.links else 0
        assert flash.longest_start(kind) >= 60 + waited, name


@pytest.mark.parametrize("ntp, wanted", [("pool.ntp.org", True), ("192.168.1.1", False), ("", False)])
def test_a_board_that_asks_a_time_server_by_its_name_can_look_it_up(model, ntp, wanted):
    """Without waiting: two name servers that are silent would outlast its watchdog."""
    pytest.importorskip("h2t2.link.names")
    files = kinds.payload(kinds.KINDS["esp32"], contents_of(model, "esp32", ntp=ntp, broker="192.168.1.2"))
    assert any(path.startswith("h2t2/link/names.") for path in files) == wanted


@pytest.mark.slow
def test_the_memory_of_a_node_that_sleeps_is_known_too(model):
    """The emulation that measures it has no sleep."""
    need(ARM32)
    taken = []
    for changes in ({}, {"sleep": "light", "every": 10}):
        files = kinds.payload(kinds.KINDS["pico"], contents_of(model, "pico", **changes))
        heap, _, _ = flash.resting(files)
        taken.append(sum(heap.values()))
    assert taken[0] + 3000 < taken[1] < taken[0] + 10_000
