"""`h2t2 firmware`, and `h2t2 flash --frozen` before it changes a board."""

import dataclasses

import pytest
from support import configuration

from h2t2_lab.emulators import source
from h2t2_tools.boards import frozen, in_place, kinds, native, refusals, targets
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle

PICO_W = kinds.KINDS["pico_w"]
LIBRARIES = ["pico-sdk", "tinyusb", "micropython-lib", "cyw43-driver", "lwip", "mbedtls"]


@pytest.fixture
def contents(tmp_path):
    path = tmp_path / "ldl.h2m"
    path.write_bytes(bundle.from_tflite(places.models() / "breast_cancer/ldl.tflite"))
    return kinds.Contents(path, configuration(tmp_path, "pico_w", wifi_name="home"), frozen=True)


@pytest.fixture
def checkout(tmp_path):
    """A checkout of MicroPython without its submodules and its compiler."""
    folder = tmp_path / "micropython"
    (folder / "py").mkdir(parents=True)
    (folder / "ports/rp2/boards/RPI_PICO_W").mkdir(parents=True)
    lines = [f"#define MICROPY_VERSION_{name} {number}\n" for name, number in (("MAJOR", 1), ("MINOR", 26), ("MICRO", 1))]
    (folder / "py/mpconfig.h").write_text("".join(lines))
    (folder / "tools").mkdir()
    (folder / "tools/mpy-tool.py").write_text(f'attributes += " {frozen.TWO}"\n')
    return folder


def test_the_folder_holds_what_a_kind_runs_and_a_mark(tmp_path):
    manifest = frozen.write(PICO_W, tmp_path / "out")
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.py")}
    own = ("main.py", *kinds.STARTERS, "h2t2_frozen.py", "manifest.py", "h2t2/core/native.py")
    assert written == {*kinds.modules(PICO_W), *own}
    in_c = {path.name for path in (tmp_path / "out" / frozen.IN_C).iterdir()}
    assert in_c == {*(f"{name}.c" for name in native.NAMES), *native.FIRMWARE}
    names = {}
    exec((tmp_path / "out" / frozen.MARK).read_text(), names)
    assert frozen.Runtime(*names["RUNTIME"]) == frozen.runtime(PICO_W)
    assert [line for line in manifest.read_text().splitlines() if frozen.MARK in line] == ['module("h2t2_frozen.py")']
    (tmp_path / "out/h2t2/left_behind.py").touch()
    frozen.write(PICO_W, tmp_path / "out")
    assert not (tmp_path / "out/h2t2/left_behind.py").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").touch()
    with pytest.raises(UserError, match="not empty; name a new one with --out"):
        frozen.write(PICO_W, tmp_path / "mine")


def test_a_digest_names_one_runtime(monkeypatch):
    kinds_of = {name: frozen.runtime(kinds.KINDS[name]).digest for name in frozen.freezable()}
    assert kinds_of["pico"] == kinds_of["pico2"] != kinds_of["pico_w"]
    monkeypatch.setattr(frozen, "sources", lambda kind: {"h2t2/clock.py": b"changed"})
    assert frozen.runtime(PICO_W).digest not in kinds_of.values()


def test_flash_accepts_the_same_runtime_alone(contents):
    this = frozen.runtime(PICO_W)
    board = targets.BoardInfo("rp2", (1, 26, 1), 10**6, 10**6, 0, this)
    refusals.check(PICO_W, board, "P", [], {"runtime": 21_000}, contents)
    other = frozen.Runtime("0.0.9", "0123456789abcdef")
    for mark, word in ((other, r"holds the runtime 0.0.9 \(0123456789abcdef\)"), (None, "holds no runtime")):
        with pytest.raises(UserError, match=f"{word}, but --frozen needs {this.version}.*`h2t2 firmware pico_w`"):
            refusals.check(PICO_W, dataclasses.replace(board, frozen=mark), "P", [], None, contents)
    assert targets.parse_info(f"('rp2', (1, 26, 1), 1, 2, 3, {(this.version, this.digest)!r}, 4096)").frozen == this
    assert targets.parse_info("('rp2', (1, 26, 1), 1, 2, 3, (), 4096)").frozen is None


def test_what_cannot_be_frozen_is_refused(contents):
    for kind, changes, word in (
        ("unix", {}, "nobody freezes a runtime for a unix"),
        ("pico_w", {"mpy": False}, "exclude each"),
    ):
        with pytest.raises(UserError, match=word):
            refusals.refuse(kinds.KINDS[kind], dataclasses.replace(contents, **changes))


def test_the_project_alone_is_copied(contents):
    assert [*kinds.payload(PICO_W, contents)] == ["ldl.h2m", "config.json"]


def test_what_a_build_lacks_is_listed_with_remedies(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(frozen.shutil, "which", lambda tool: None if tool == "cmake" else f"/usr/bin/{tool}")
    monkeypatch.chdir(tmp_path)
    assert main(["firmware", "pico_w", "--micropython", str(checkout)]) == 1
    output = capsys.readouterr()
    manifest = tmp_path / "firmware-pico_w/manifest.py"
    assert manifest.read_text() in output.out
    assert (
        f"make -C {checkout}/ports/rp2 BOARD=RPI_PICO_W FROZEN_MANIFEST={manifest} USER_C_MODULES={manifest.parent}/native"
        in output.out
    )
    for remedy in (
        f"sed -i 's/aligned (2)/aligned (4)/' {checkout}/tools/mpy-tool.py",
        "cmake: sudo apt-get install cmake",
        f"lib/{', lib/'.join(LIBRARIES)}: make -C",
        f"make -C {checkout}/mpy-cross",
    ):
        assert remedy in output.err
    frozen.align_machine_code(checkout)
    (checkout / "mpy-cross/build").mkdir(parents=True)
    (checkout / "mpy-cross/build/mpy-cross").touch()
    for library in LIBRARIES:
        (checkout / "lib" / library / "src").mkdir(parents=True)
    monkeypatch.setattr(frozen.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    assert main(["firmware", "pico_w", "--micropython", str(checkout)]) == 0


def test_a_checkout_is_a_new_micropython(checkout, tmp_path, capsys):
    assert main(["firmware", "pico_w"]) == 2
    assert "--micropython: name a checkout of MicroPython" in capsys.readouterr().err
    for board, folder, word in (
        ("pico_w", tmp_path, "no checkout of MicroPython"),
        ("esp32", checkout, "no board ESP32_GENERIC"),
    ):
        assert main(["firmware", board, "--micropython", str(folder), "--out", str(tmp_path / "out")]) == 2
        assert word in capsys.readouterr().err
    header = checkout / "py/mpconfig.h"
    header.write_text(header.read_text().replace("26", "25"))
    assert main(["firmware", "pico_w", "--micropython", str(checkout), "--out", str(tmp_path / "out")]) == 2
    assert "1.25; its compiler cannot compile the kernels" in capsys.readouterr().err


def test_the_constants_of_a_module_are_counted():
    """Two names, 300 names and 5 objects, in blocks of 16 bytes; a module that the node has forgotten does not count."""
    header = bytes([ord("M"), 6, 0, 31])
    files = {"h2t2/a.mpy": header + bytes([2, 0]), "h2t2/b/__init__.mpy": header + bytes([0x82, 300 & 127, 5])}
    files["h2t2/forgotten.mpy"] = files["h2t2/a.mpy"]
    assert in_place.constants(files, ["h2t2.a", "h2t2.b", "app"]) == 16 + (608 + 32 + 5 * 16)


@pytest.mark.parametrize("port", source.OWN_SOURCES)
def test_a_port_of_our_own_that_has_changed_is_built_again(port, tmp_path, monkeypatch):
    (tmp_path / "port.c").write_text("int port;")
    before = source.firmware(port)
    monkeypatch.setattr(source, "FOLDER", tmp_path)
    monkeypatch.setitem(source.OWN_SOURCES, port, (tmp_path,))
    changed = source.firmware(port)
    (tmp_path / "port.c").write_text("int port = 1;")
    assert len({before, changed, source.firmware(port)}) == 3
