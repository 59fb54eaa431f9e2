"""`h2t2-lab emulators`: what it builds, what it asks for, and what it says of a board that it cannot build."""

import pytest

from h2t2_lab.emulators import install, source
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.common.errors import UserError


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty cache, on a machine without compilers and network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(source.shutil, "which", lambda program: None)
    monkeypatch.setattr(catalogue, "_fetch", lambda board: "no network")


def test_the_packages_for_what_is_not_built_are_named(empty):
    assert "gcc-xtensa-lx106" in install.measure(print, ["xtensa"], needs=True)
    assert install.report(install.measure(print, ["unix"], needs=True), True) == [""]
    source.firmware("xtensa").parent.mkdir(parents=True)
    source.firmware("xtensa").touch()
    assert install.measure(print, ["xtensa"], needs=True) == {}


def test_a_board_that_cannot_be_built_does_not_keep_the_others_back(empty, monkeypatch):
    built = []
    monkeypatch.setattr(source, "build", lambda names, progress: dict.fromkeys(built.extend(names) or names, "make failed"))
    monkeypatch.setattr(source, "lacking", lambda name: "no compiler" if name == "rv32" else None)
    measured = install.measure(print, ["rv32", "cortex-m3", "unix"])
    assert built == ["cortex-m3"]
    assert measured["rv32"] == "no compiler" and measured["cortex-m3"] == "make failed" and measured["unix"] == "no network"
    assert "cortex-m3, rv32" in install.broken(measured)[0]


def test_a_name_that_no_emulator_has_is_refused():
    with pytest.raises(UserError, match="nosuch: no such emulator; want all or some of unix, arm32"):
        install.measure(print, ["nosuch", "all"])
