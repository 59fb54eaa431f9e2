"""Which other Pythons of this machine the suites use."""

import os
import sys

import pytest

from h2t2_lab import pythons

OTHER = 10 if sys.version_info[1] != 10 else 11


@pytest.fixture
def pyenv(tmp_path, monkeypatch):
    """A pyenv with one Python that prints its version, and nothing else on the path."""
    program = tmp_path / f"pyenv/versions/3.{OTHER}.1/bin/python3.{OTHER}"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 3.{OTHER}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


def test_those_of_pyenv_count(pyenv):
    assert pythons.other_versions() == {f"3.{OTHER}": str(pyenv)}


def test_one_that_this_user_may_not_run_does_not_count(pyenv):
    pyenv.chmod(0o644)
    assert pythons.other_versions() == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_another_users_pyenv_does_not_count(pyenv):
    pyenv.parents[4].chmod(0)
    try:
        assert pythons.other_versions() == {}
    finally:
        pyenv.parents[4].chmod(0o755)
