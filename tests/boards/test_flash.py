"""`h2t2 flash` and `h2t2 boards`."""

import dataclasses
import gc
import hashlib
import json
import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
from ports.world import ESP32, NAMES, RADIO, RP2040, RP2350, Reset, World
from support import ROOT, configuration, need, project_file

from h2t2.core import policies
from h2t2.core.ordered import Ordered
from h2t2.node import run
from h2t2_lab.emulators import built
from h2t2_tools.boards import flash, kinds, node_heap, own_main, project, refusals, targets
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX, Emulator
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "ldl.h2m"
    path.write_bytes(bundle.from_tflite(places.models() / "breast_cancer/ldl.tflite"))
    return path


def flash_unix(model, folder, reset_updates=False, **changes):
    config = configuration(model.parent).model_copy(update=changes)
    records = model.with_name("samples.bin")
    records.write_bytes(bytes(35))
    contents = kinds.Contents(model, config, records)
    return flash.flash(kinds.KINDS["unix"], str(folder), contents, False, lambda *_: None, reset_updates=reset_updates)


def test_only_a_flash_that_is_told_forgets_the_counters_of_updates(model, tmp_path):
    """A package of a wrong clock refuses all later ones; the record of updates says so."""
    record = [tmp_path / f"device/h2t2.state.update.{slot}" for slot in (0, 1)]
    record[0].parent.mkdir()
    for path in record:
        path.write_bytes(b"tried 4294967295")
    flash_unix(model, tmp_path / "device")
    assert all(path.exists() for path in record)
    flash_unix(model, tmp_path / "device", reset_updates=True)
    assert not any(path.exists() for path in record)


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


@pytest.mark.parametrize(
    "name, value, modules",
    [
        ("budget", "200/day", ["budget"]),
        ("miss_rate", 0.02, ["miss_rate"]),
        ("ordered", True, ["ordered", "past", "head_forecaster", "head"]),
    ],
)
def test_a_part_goes_onto_the_board_where_it_is_configured(model, tmp_path, name, value, modules):
    """With every module that it imports."""
    paths = {f"h2t2/core/{module}.mpy" for module in modules}
    for entries in ({}, {name: value}):
        contents = kinds.Contents(model, configuration(tmp_path, "esp32", **{"ordered": False, **entries}))
        files = kinds.payload(kinds.KINDS["esp32"], contents)
        config = json.loads(files["config.json"])
        assert paths & files.keys() == (paths if entries else set())
        assert bool({**config, **config["arguments"]}.get(name)) is bool(entries)


@pytest.mark.parametrize(
    "name, value, why",
    [
        ("miss_rate", 0.1, "miss_rate: policy = 'h2t2' keeps no such limit"),
        ("ordered", True, "ordered: of the adaptive policy for two classes"),
    ],
)
def test_the_papers_policy_takes_no_limit_and_no_past(tmp_path, name, value, why):
    with pytest.raises(UserError, match=why):
        configuration(tmp_path, "esp32", policy="h2t2", **{name: value})


APP = {"app": str(ROOT / "firmware/examples/app_pir/app.py"), "pair": "breast_cancer"}


@pytest.mark.parametrize(
    ("entries", "reads"),
    [
        (APP, True), ({}, False), ({"ordered": True}, True), ({**APP, "ordered": False}, False),
        ({**APP, "policy": "h2t2"}, False),
        ({**APP, "miss_rate": 0.1}, False), ({**APP, "miss_rate": 0.1, "ordered": True}, True),
        ({**APP, "features": 4}, False), ({**APP, "context": 2}, False),
        ({**APP, "class_costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, False),
    ],
)  # fmt: skip
def test_a_policy_reads_its_past_where_an_app_measures_and_where_it_can(tmp_path, entries, reads):
    arguments = configuration(tmp_path, "esp32", **entries).arguments()
    assert arguments.get("ordered", False) is reads
    assert isinstance(policies.make(entries.get("policy", "adaptive"), arguments), Ordered) is reads


@pytest.mark.parametrize(
    ("entries", "heaps", "left_out"),
    [
        (APP, (120_000, 105_000), True), (APP, (112_000, 90_000), False), (APP, (160_000, 130_000), False),
        ({**APP, "ordered": True}, (120_000, 105_000), False),
    ],
)  # fmt: skip
def test_a_board_without_room_for_the_past_does_without_it_unless_it_is_asked_for(
    model, tmp_path, monkeypatch, entries, heaps, left_out
):
    """heaps: of the node with its past and without."""
    monkeypatch.setattr(flash, "needed", lambda _, c, __: {"runtime": heaps["ordered" not in c.config.arguments()]})
    given = kinds.Contents(model, configuration(tmp_path, "esp32", **entries))
    contents, heap = flash.with_room(kinds.KINDS["esp32"], given, lambda *_: None)
    assert heap == {"runtime": heaps[left_out]} and contents.past_left_out is left_out
    assert ("ordered" in contents.config.arguments()) is not left_out


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
    for content, word in ((whole[:100], "bundle"), (None, "no such file; this makes it: h2t2 inspect")):
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
        ({"version": (1, 25, 0), "flash": 10**6}, r"47,000 bytes \(runtime 40,000, model 7,000\) of heap, but 10,000 are free"),
        ({"version": (1, 25, 0), "flash": 10**6, "heap": 10**6, "mpy": 5}, "loads .mpy format 5.0"),
        (
            {"version": (1, 25, 0), "flash": 10**6, "heap": 10**6, "mpy": 6 | 2 << 8},
            "format 6.2, these files have 6.3: give --source",
        ),
    ):
        with pytest.raises(UserError, match=word):
            refusals.check(kind, targets.BoardInfo(**{**vars(found), **changes}), "P", rows, heap, contents)


@pytest.mark.parametrize(
    "free, block, sizes, needed",
    [
        (5000, 1, {"a": 9000}, "9,000 bytes to copy take 9,000 in its file system, which has 5,000 free"),
        (8192, 4096, {"a": 1, "b": 1, "c": 1}, "3 bytes to copy take 12,288"),
        (8192, 4096, {"x/a": 1}, "1 bytes to copy take 12,288"),  # and its folder
        (0, 4096, {"a": 1}, "has 0 free"),  # littlefs counts what an interrupted copy has left
        (12288, 4096, {"a": 1, "b": 1, "c": 1}, ""),
        (8192, 4096, {"h2t2/a": 4096, "h2t2/b": 4096}, ""),
        (-1, 1, {"a": 9000}, ""),  # a board that does not know
    ],
)
def test_files_have_room_in_whole_blocks(free, block, sizes, needed):
    info = targets.BoardInfo("rp2", (1, 26, 0), 10_000, free, 6, block=block)
    if not needed:
        refusals.check_room(info, "P", sizes, {"h2t2"})
        return
    with pytest.raises(UserError, match=needed):
        refusals.check_room(info, "P", sizes, {"h2t2"})


def test_free_blocks_below_zero_are_none(monkeypatch):
    """littlefs may count more blocks than it has, if files are open or half written."""

    class Implementation(tuple):
        _mpy = 6

    lines = []
    monkeypatch.setattr(sys, "implementation", Implementation(("micropython", (1, 26, 0))))
    monkeypatch.setattr(os, "statvfs", lambda path: (4096, 0, 212, -3))
    monkeypatch.setattr(gc, "mem_free", lambda: 1000, raising=False)
    exec(targets.INFO, {"print": lines.append})
    assert (targets.parse_info(lines[0]).flash, targets.parse_info(lines[0]).block) == (0, 4096)


def test_a_boards_own_numbers_say_what_it_loads():
    """Every bit of sys.implementation._mpy."""
    esp32 = targets.BoardInfo("esp32", (1, 26, 1), 1, 1, 6 | 3 << 8 | 10 << 10)
    assert (esp32.mpy_format, esp32.arch, esp32.arch_flags) == ((6, 3), "xtensawin", 0)
    rv32 = targets.BoardInfo("esp32", (1, 27, 0), 1, 1, 6 | 3 << 8 | 11 << 10 | 1 << 16)
    assert (rv32.mpy_format, rv32.arch, rv32.arch_flags) == ((6, 3), "rv32imc", 1)
    assert rv32.report()["mpy_format"] == "6.3"
    # MPY_FEATURE_ARCH of py/persistentcode.h, as the ports build each chip (esp32: EMIT_RV32 since 1.24, before that no code)
    for chip, mpy, arch, flags in (
        ("RP2040", 6 | 3 << 8 | 4 << 10, "armv6m", 0),
        ("RP2350, Arm", 6 | 3 << 8 | 7 << 10, "armv7emsp", 0),
        ("RP2350, RISC-V, 1.26", 6 | 3 << 8 | 11 << 10, "rv32imc", 0),
        ("RP2350, RISC-V, 1.28", 6 | 3 << 8 | 11 << 10 | 3 << 16, "rv32imc", 3),  # with Zba and Zcmp
        ("ESP32-C3, 1.23", 6 | 3 << 8, "", 0),
        ("ESP32-C3 and -C6, 1.24", 6 | 3 << 8 | 11 << 10, "rv32imc", 0),
        ("ESP32-P4, 1.28", 6 | 3 << 8 | 11 << 10 | 2 << 16, "rv32imc", 2),  # with Zcmp
    ):
        found = targets.BoardInfo("x", (1, 28), 1, 1, mpy)
        assert (found.mpy_format, found.arch, found.arch_flags) == ((6, 3), arch, flags), chip
    assert [targets.BoardInfo("x", (1, 26), 1, 1, number << 10).arch for number in (0, 12, 15)] == ["", "rv64imc", ""]


@pytest.mark.parametrize("one, two", [("pico", "pico2"), ("pico_w", "pico2_w")])
def test_the_heaps_of_the_rp2_follow_its_memory_maps(one, two):
    """memmap_mp_rp2040.ld and memmap_mp_rp2350.ld of 1.24 to 1.28: 256 and 512 KB, of which an RP2350 gives 4 KB to the stack.

    A test of the emulated Pico holds the first heap; what a firmware takes itself differs little between the two chips.
    """
    grown = 512 - 4 - 256 << 10
    assert kinds.KINDS[one].heap + grown - (4 << 10) <= kinds.KINDS[two].heap <= kinds.KINDS[one].heap + grown


@pytest.mark.parametrize("board", [UNIX, ARM32, built.XTENSA, built.XTENSA_NEXT], ids=lambda board: board.name)
def test_every_interpreter_says_its_architecture(board, tmp_path):
    need(board)
    (tmp_path / "info.py").write_text("import sys\nprint(sys.implementation._mpy)\n")
    said = targets.BoardInfo("x", (1, 25), 1, 1, int(board.run(tmp_path / "info.py", [], tmp_path)))
    native = {"x86_64": "x64"}.get(platform.machine(), "")
    names = {"unix": native, "arm32": "armv7emdp", "xtensa": "xtensa", "xtensa-forky": "xtensa"}
    assert (said.mpy_format, said.arch) == (targets.MPY_FORMAT, names[board.name])


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
    policy = "h2t2/core/numbers.mpy"
    code = tmp_path / "device" / policy
    for machine_code in (True, False):
        config = configuration(tmp_path).model_copy(update={"machine_code": machine_code})
        contents = kinds.Contents(model, config, tmp_path / "samples.bin")
        flash.flash(kinds.KINDS["unix"], str(tmp_path / "device"), contents, False, lambda *_: None, interpreter=UNIX)
        assert not is_for_a_processor(code.read_bytes())  # a program on Linux may run on another processor
        assert b"machine_code" not in (tmp_path / "device/config.json").read_bytes()
        for name, room in (("pico", True), ("esp32", False)):
            files = kinds.payload(kinds.KINDS[name], dataclasses.replace(contents, native=False))
            assert is_for_a_processor(files[policy]) == (room and machine_code)
            assert is_for_a_processor(files["h2t2/ldl/dense.mpy"])


def is_for_a_processor(module):
    """Whether an .mpy file has machine code."""
    return module[2] >> 2 != 0


def test_boards_lists_what_is_plugged_in_and_says_when_nothing_is(capsys, monkeypatch):
    """Serial ports without a USB number are the machine's own, not boards; the others in the order of their names."""

    def port(device, vid, about):
        return SimpleNamespace(device=device, vid=vid, pid=5, description=about)

    plugged = [port("/dev/ttyACM1", 0x2E8A, "Board in FS mode"), port("/dev/ttyACM0", 0x0D28, "DAPLink")]
    monkeypatch.setattr(flash.list_ports, "comports", lambda: [*plugged, port("/dev/ttyS0", None, "n/a")])
    assert main(["boards", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["boards"] == [
        {"port": "/dev/ttyACM0", "about": "DAPLink", "usb": "0d28:0005"},
        {"port": "/dev/ttyACM1", "about": "Board in FS mode", "usb": "2e8a:0005"},
    ]
    monkeypatch.setattr(flash.list_ports, "comports", lambda: [])
    assert main(["boards"]) == 0
    assert capsys.readouterr().out.startswith("no board is plugged in\n")


def test_boards_lists_the_emulators_that_take_the_place_of_a_board(capsys, monkeypatch):
    monkeypatch.setattr(Emulator, "missing", lambda self: "not fetched" if self is ARM32 else None)
    assert main(["boards", "unix", "arm32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    emulators = lines[lines.index("emulators, in place of a board:") + 1 :]
    assert [line.split()[0] for line in emulators] == ["unix", "arm32"]
    assert emulators[0].endswith(": ready") and emulators[1].endswith(": not fetched")
    assert main(["boards", "arm32", "--json", "-"]) == 0
    assert [row["missing"] for row in json.loads(capsys.readouterr().out)["emulators"]] == ["not fetched"]


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


def programs_of_the_documents():
    """The blocks of docs/your-program.md that import h2t2: main.py of users."""
    blocks = (ROOT / "docs/your-program.md").read_text().split("```python\n")[1:]
    return [block.split("```")[0].encode() for block in blocks if "h2t2" in block]


def test_a_program_of_the_users_that_imports_h2t2_is_not_overwritten(model, tmp_path):
    main_py = tmp_path / "device/main.py"
    main_py.parent.mkdir()
    programs = programs_of_the_documents()
    changed = (places.boards() / "unix/main.py").read_bytes().replace(b"main()\n", b"print('mine')\nmain()\n")
    assert len(programs) >= 2
    for content in (*programs, changed, b"# later: try h2t2\n", b"open('program_12ab')\n"):
        main_py.write_bytes(content)
        with pytest.raises(UserError, match=r"the board holds another main\.py; save it, or give --replace-app"):
            flash_unix(model, main_py.parent)
        assert [*main_py.parent.iterdir()] == [main_py] and main_py.read_bytes() == content


def test_every_main_py_of_ours_is_known():
    """A new version of one is added to DIGESTS, where the versions before stay."""
    present = {path.parent.name: path.read_bytes() for path in places.boards().glob("*/main.py")}
    assert {"esp32", "pico", "pico_w", "unix"} <= {*present}
    for board, content in present.items():
        assert own_main.is_ours(content), f"{board}/main.py: add {hashlib.sha256(content).hexdigest()} to own_main.DIGESTS"


@pytest.mark.parametrize(
    "source, words",
    [
        ("def sense(): pass\n", "has the functions sense"),
        ("def sense(:\n", "app.py: "),
        (None, "no such app"),
        (
            "def sense(): pass\ndef act(d): pass\nasync def setup(c): pass\n",
            "async def setup(): a node awaits sense() and act() al",
        ),
    ],  # fmt: skip
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
    config = configuration(model.parent, kinds.KINDS[board].like or board).model_copy(update=changes)
    (model.parent / "samples.bin").write_bytes(bytes(35))
    return kinds.Contents(model, config, model.parent / "samples.bin")


@pytest.mark.parametrize(
    "board, limit",
    [("pico", 8388), ("pico_w", 8388), ("pico2", 8388), ("pico2_w", 8388), ("esp32", None), ("unix", None)],
    ids=lambda value: str(value),
)
def test_a_watchdog_beyond_the_boards_limit_is_refused(model, board, limit):
    """The board would refuse it too, at every start: it would never be a node."""
    name = {"wifi_name": "home"}
    refusals.refuse(kinds.KINDS[board], contents_of(model, board, watchdog=(limit or 60000) / 1000, **name))
    if limit:
        with pytest.raises(UserError, match=f'watchdog = "{limit + 1}ms": the watchdog of a {board} takes at most 8388 ms'):
            refusals.refuse(kinds.KINDS[board], contents_of(model, board, watchdog=(limit + 1) / 1000, **name))


def test_what_needs_no_board_is_refused_before_the_line_is_opened(model, monkeypatch):
    monkeypatch.setattr(flash, "RawRepl", lambda *_: pytest.fail("it interrupts the board"))
    contents = contents_of(model, "pico", watchdog=9)
    with pytest.raises(UserError, match="the watchdog of a pico"):
        flash.flash(kinds.KINDS["pico"], "/dev/nowhere", contents, True, lambda *_: None)


def test_sleep_that_cannot_work_is_refused(model):
    recorded = contents_of(model, "esp32", wifi_name="home", sleep="deep", every=600)
    with pytest.raises(UserError, match="the recorded samples anew: set `app`"):
        refusals.refuse(kinds.KINDS["esp32"], recorded)
    given = {"remote_shape": [30], "model_id": 1}
    for changes, words in (
        ({"sleep": "deep", "every": "900ms"}, "of use from 1000 ms on"),
        ({"sleep": "light", "every": "20ms"}, "of use from 50 ms on"),
        ({"sleep": "deep", "every": "10s", "snapshot": ""}, "each waking begins with nothing learned"),
    ):
        with pytest.raises(UserError, match=words):
            NodeConfig(**given, **changes).content()


@pytest.mark.parametrize("chip", [RP2040, RP2350, ESP32])
@pytest.mark.parametrize("running", [8000, 0])
def test_a_watchdog_does_not_interrupt_copying_and_starts_the_node_where_it_ends(tmp_path, monkeypatch, chip, running):
    """It is fed for as long as files are copied. One that the node does not have is not started."""
    world = World(chip)
    (tmp_path / "config.json").write_text(json.dumps({"watchdog_ms": running}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", NAMES[chip][0])
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(_machine=NAMES[chip][1]))
    monkeypatch.setitem(sys.modules, "machine", world.machine)
    names = {}
    exec(targets.FEEDING, names)
    for _ in range(100):
        world.pass_ms(8000)
        names["k"]()
    assert not world.resets and bool(world.limit) == bool(running)
    if running:
        with pytest.raises(Reset):  # the command was killed
            world.pass_ms(61_000)
        assert world.resets == ["wdt"]
        exec(targets.FEEDING, {})
    exec(targets.RELEASE, {})
    assert bool(world.limit) == bool(running and chip == ESP32)
    (tmp_path / "config.json").unlink()
    exec(targets.FEEDING, {})  # a board without a node


def test_an_esp32s_radio_takes_its_memory_before_the_heap(monkeypatch):
    """One memory for both: 150,000 bytes were accepted on the board, and nothing was left for the radio."""
    world = World(ESP32)
    network = world.network
    monkeypatch.setattr(sys, "platform", "esp32")
    monkeypatch.setitem(sys.modules, "network", network)
    monkeypatch.setattr(gc, "mem_free", world.heap.mem_free, raising=False)
    monkeypatch.setattr(sys, "implementation", type("", (tuple,), {"_mpy": 6 | 3 << 8 | 10 << 10})(("micropython", (1, 26, 1))))
    lines = []
    for _ in range(2):  # also where a node has run before, whose radio a soft reset leaves
        exec(targets.INFO, {"print": lines.append})
    first, second = (targets.parse_info(line) for line in lines)
    assert first.heap == second.heap == 152_000 - RADIO
    contents = SimpleNamespace(frozen=False, mpy=True, config=NodeConfig(remote_shape=[4], model_id=1))
    refusals.check(kinds.KINDS["esp32"], first, "P", [], {"runtime": 110_000}, contents)
    with pytest.raises(UserError, match=r"takes 115,000 bytes .* of heap, but 111,040 are free"):
        refusals.check(kinds.KINDS["esp32"], first, "P", [], {"runtime": 115_000}, contents)


def test_an_esp32s_program_lets_the_radio_take_its_memory_first(monkeypatch):
    order = []
    network = SimpleNamespace(STA_IF=0, WLAN=lambda interface: order.append("radio"))
    reserving = SimpleNamespace(reserve_for_node=lambda: order.append("heap"))
    monkeypatch.setitem(sys.modules, "network", network)
    monkeypatch.setitem(sys.modules, "h2t2.ldl.buffers", reserving)
    monkeypatch.setattr(run, "main", lambda: order.append("node"))
    source = (ROOT / "firmware/boards/esp32/main.py").read_text()
    exec(source, {})

    def no_room(interface):
        raise RuntimeError("Wifi Unknown Error 0x0101")

    network.WLAN = no_room
    exec(source, {})
    assert order == ["radio", "heap", "node", "heap", "node"]


@pytest.mark.parametrize(
    "entries, words",
    [
        ({"wifi_bssid": "f0:9f"}, "wifi_bssid"),
        ({"wifi_country": "Germany"}, "wifi_country"),
        ({"wifi_address": ["192.168.1.7"]}, "wifi_address"),
        ({"wifi_address": ["192.168.1.7", "255.255.255.0", "192.168.1.1", "dns"]}, "wifi_address"),
        ({"wifi_security": "wep"}, "wifi_security"),
    ],
)
def test_a_wrong_entry_about_the_network_is_refused(entries, words):
    with pytest.raises(ValueError, match=words):
        NodeConfig(remote_shape=[4], model_id=1, **entries)


def test_an_esp32_takes_the_security_of_the_access_point(model):
    config = NodeConfig(remote_shape=[30], model_id=1, wifi_name="home", wifi_security="wpa3")
    for name, refused in (("esp32", True), ("pico_w", False)):
        contents = kinds.Contents(model, config, model)
        if refused:
            with pytest.raises(UserError, match="wifi_security: an esp32 takes the security of the access point"):
                refusals.refuse(kinds.KINDS[name], contents)
        else:
            refusals.refuse(kinds.KINDS[name], contents)


def test_provisioning_needs_an_access_point_and_its_password(model):
    """And the runtime's module for it goes onto the board, with the password, and on no other board."""
    given = {"provision": True, "provision_password": "correct horse", "wifi_name": ""}
    for name, entries, words in (
        ("unix", given, "provision: a unix has no Wi-Fi, so no access point"),
        ("microbit", given, "provision: a microbit has no Wi-Fi"),
        ("pico", given, "provision: a pico has no Wi-Fi"),
        ("pico_w", {"provision": True, "wifi_name": ""}, r'add provision_password = "[0-9a-f]{10}"'),
        ("esp32", {**given, "wifi_name": refusals.PLACEHOLDER}, 'write wifi_name = ""'),
    ):
        with pytest.raises(UserError, match=words):
            refusals.refuse(kinds.KINDS[name], contents_of(model, name, **entries))
    for name in ("pico_w", "esp32"):
        contents = contents_of(model, name, **given)
        refusals.refuse(kinds.KINDS[name], contents)
        files = kinds.payload(kinds.KINDS[name], contents)
        assert "h2t2/node/provision.mpy" in files and "h2t2/link/names.mpy" in files
        assert json.loads(files["config.json"])["provision"] == "correct horse"
        without = kinds.payload(kinds.KINDS[name], contents_of(model, name, wifi_name="home"))
        assert "h2t2/node/provision.mpy" not in without and "provision" not in json.loads(without["config.json"])
    for password in ("short", "x" * 64, "line\nbreak"):
        with pytest.raises(ValueError, match="provision_password"):
            NodeConfig(remote_shape=[4], model_id=1, provision_password=password)


@pytest.mark.slow
@pytest.mark.parametrize("provision", [True, False])
def test_flash_names_the_access_point_and_the_alternative(tmp_path, capsys, provision):
    folder, pair = tmp_path / "porch", pairs.load("breast_cancer")
    project.write(folder, pair, bundle=bundle.for_board(pair, "pico_w"), board="pico_w")
    toml = folder / "h2t2.toml"
    network = 'provision = true\nprovision_password = "correct horse"\nwifi_name = ""' if provision else 'wifi_name = "home"'
    lines = [line for line in toml.read_text().splitlines() if not line.startswith(("wifi_", "provision"))]
    toml.write_text("\n".join([network, *lines]))
    toml.chmod(0o600)  # it holds a secret
    assert main(["flash", str(folder), "--dry-run"]) == 0
    words = capsys.readouterr().out
    assert ("join h2t2-porch with its provision_password, and open http://192.168.4.1" in words) == provision
    assert ("the alternative: write wifi_name and wifi_password into h2t2.toml" in words) == provision


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
        heap, _, _ = node_heap.resting(files)
        taken.append(sum(heap.values()))
    assert taken[0] + 3000 < taken[1] < taken[0] + 10_000
