"""MicroPython's own package manager, on the device, installs the runtime from an index that any web server serves."""

import hashlib
import json
import subprocess

import line_relay
import mip_source
import pytest
from http_server import serving_folder
from support import ROOT, need

from h2t2_lab.emulators import lwip
from h2t2_tools.boards import kinds, packages
from h2t2_tools.boards.emulators.catalogue import PICO, UNIX
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.cli.main import main

INSTALL = """import mip
mip.install({name!r}, index={url!r}, target={target!r}, mpy={mpy})
"""


@pytest.mark.slow
@pytest.mark.parametrize("mpy", [False, True], ids=["py", "mpy"])
def test_a_device_installs_it_by_itself(tmp_path, mpy, capsys):
    need(UNIX)
    assert main(["mip", str(tmp_path / "index")]) == 0
    assert "h2t2-pico_w" in capsys.readouterr().out
    target = tmp_path / "device"
    with serving_folder(tmp_path / "index") as url:
        script = tmp_path / "install.py"
        script.write_text(INSTALL.format(name="h2t2-unix", url=url, target=str(target), mpy=mpy))
        # mip is frozen into the port, which finds it where MICROPYPATH is not set
        subprocess.run(UNIX.command(script, []), check=True, timeout=120)
    suffix = ".mpy" if mpy else ".py"
    wanted = {path.removesuffix(".py") + suffix for path in kinds.modules(kinds.KINDS["unix"])} | {"main.py", *kinds.STARTERS}
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == wanted
    script.write_text("from h2t2.core.adaptive import Adaptive\nprint(Adaptive().decide(3))\n")
    assert UNIX.run(script, [], target, 60).strip() in ("-1", "0", "1")


@pytest.mark.whole
def test_a_board_with_a_pico_ws_network_stack_installs_it_by_itself(tmp_path):
    """MicroPython's lwIP, through a network that slirp carries."""
    need(lwip.LWIP)
    packages.write_index(tmp_path / "index")
    for name, source in mip_source.modules().items():
        (tmp_path / f"{name}.py").write_bytes(source)
    script, target = tmp_path / "install.py", tmp_path / "device"
    with serving_folder(tmp_path / "index") as url:
        address = url.replace("127.0.0.1", lwip.HOST)
        script.write_text(INSTALL.format(name="h2t2-pico_w", url=address, target=str(target), mpy=False))
        assert "Done" in lwip.LWIP.run(script, [], tmp_path)
    for path in kinds.modules(kinds.KINDS["pico_w"]):
        assert (target / path).read_bytes() == (ROOT / "firmware" / path).read_bytes()


DIGESTS = """import os
from binascii import hexlify
from hashlib import sha256
def each(folder):
    for name, kind, *_ in os.ilistdir(folder):
        path = folder + '/' + name
        if kind & 0x4000:
            each(path)
        else:
            print(path[1:], hexlify(sha256(open(path, 'rb').read()).digest()).decode())
each('')
"""


@pytest.mark.whole
@pytest.mark.timeout(1200)
def test_a_pico_installs_it_by_itself(tmp_path, pytestconfig):
    """mip and its HTTP client run on the emulated Pico; a Pico has no radio, so its USB line carries what its sockets send."""
    need(PICO)
    if pytestconfig.getoption("--quick", default=False):
        pytest.skip("takes a minute of a core; to run it: .venv/bin/pytest tests/boards/test_mip.py")
    packages.write_index(tmp_path / "index")
    own = {**mip_source.modules(), "socket": (ROOT / "tests/line_socket.py").read_bytes()}
    with serving_folder(tmp_path / "index") as url, Pico() as pico, RawRepl(pico.port, pace=False) as repl:
        for name, source in own.items():
            repl.write_file(f"{name}.py", source)
        install = INSTALL.format(name="h2t2-pico", url=url, target="/", mpy=True)
        assert line_relay.run(repl, install).endswith("Done")
        held = dict(line.split() for line in repl.run(DIGESTS).splitlines())
        assert repl.run("from h2t2.core.adaptive import Adaptive\nprint(Adaptive().decide(3))").strip() in ("-1", "0", "1")
    package = json.loads((tmp_path / f"index/package/{packages.FORMAT}/h2t2-pico/latest.json").read_text())
    assert len(package["hashes"]) > 30
    assert {path: held.get(path, "")[: packages.SHORT] for path, _ in package["hashes"]} == dict(package["hashes"])


def test_every_file_of_the_index_is_what_its_name_says(tmp_path):
    names = packages.write_index(tmp_path / "index")
    assert len(names) == len([kind for kind in kinds.KINDS.values() if kind.links])
    for path in (tmp_path / "index/file").rglob("*"):
        if path.is_file():
            assert path.name == hashlib.sha256(path.read_bytes()).hexdigest()[: packages.SHORT]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("")
    assert main(["mip", str(tmp_path)]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
