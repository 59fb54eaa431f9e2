"""Firmware that a release has is fetched where the project has a public address; a clone builds it."""

from email.message import Message

import pytest
from http_server import serving_folder

from h2t2_tools import __version__
from h2t2_tools.boards import frozen
from h2t2_tools.boards.emulators import catalogue, download
from h2t2_tools.cli.main import main


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """An installed wheel with an empty cache. Return a function that gives the project a public address."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "SOURCE_TREE", tmp_path)
    monkeypatch.setattr(frozen, "sources", lambda kind: {"h2t2/clock.py": b"ticks = 1"})  # to translate all takes seconds
    monkeypatch.setattr(frozen.native, "write", lambda folder: None)
    metadata = Message()
    monkeypatch.setattr(download.metadata, "metadata", lambda name: metadata)
    return lambda address: metadata.add_header("Project-URL", f"Source, {address}")


def test_without_a_release_the_command_for_a_clone_is_named(wheel, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["firmware", "pico"]) == 1
    assert (
        "no release to fetch it from; in a clone of H2T2 Edge, run: h2t2-lab emulators pico-frozen" in capsys.readouterr().err
    )
    assert not (tmp_path / "firmware-pico").exists()
    monkeypatch.setattr(catalogue.npm, "unpack", lambda package, target: None)
    assert catalogue.install([catalogue.PICO], print)["pico"].endswith("run: h2t2-lab emulators pico")


def test_what_a_release_has_is_fetched(wheel, tmp_path, capsys, monkeypatch):
    folder = tmp_path / f"served/releases/download/v{__version__}"
    folder.mkdir(parents=True)
    (folder / f"h2t2-{__version__}-pico.uf2").write_bytes(b"firmware")
    (folder / f"h2t2-{__version__}-pico.bin").write_bytes(b"emulated")
    monkeypatch.chdir(tmp_path)
    with serving_folder(tmp_path / "served") as address:
        wheel(address + "/")
        assert main(["firmware", "pico"]) == 0
        catalogue.rp2040js().mkdir(parents=True)
        catalogue.PICO.fetch()
    assert (tmp_path / "firmware-pico/firmware.uf2").read_bytes() == b"firmware"
    assert catalogue.PICO.content().read_bytes() == b"emulated"
    assert main(["firmware", "pico"]) == 0  # without a network


def test_a_clone_fetches_no_firmware_of_a_release(wheel, monkeypatch):
    wheel("https://example.org/h2t2")
    assert download.release() == f"https://example.org/h2t2/releases/download/v{__version__}"
    monkeypatch.undo()
    assert download.release() is None


def test_the_newest_firmware_of_this_runtime_is_taken(wheel):
    absent = frozen.pico_uf2()
    assert absent.stem == frozen.pico_digest()
    absent.parent.mkdir(parents=True)
    for name in (f"{absent.stem}-1.uf2", "another.uf2"):
        (absent.parent / name).touch()
    assert frozen.pico_uf2().name == f"{absent.stem}-1.uf2"
