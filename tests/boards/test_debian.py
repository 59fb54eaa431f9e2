"""Packages of a Debian release whose index apt refuses: the next release's are taken, and a failure names what each said."""

import subprocess
from contextlib import contextmanager

import pytest

from h2t2_tools.boards.emulators import debian
from h2t2_tools.common.errors import Failure

pytestmark = pytest.mark.skipif(bool(debian.absent()), reason=str(debian.absent()))


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror with one package a release, made by dpkg; only the network is faked. sound: the releases it can serve."""
    sound = ["later"]

    @contextmanager
    def apt(release, architecture):
        if release not in sound:
            raise Failure(f"apt-get update: {release}: File has unexpected size. Mirror sync in progress?")
        folder = tmp_path / release
        content = folder / "content"
        (content / "DEBIAN").mkdir(parents=True)
        (content / "usr/bin").mkdir(parents=True)
        (content / "usr/bin/told").write_text(release)
        (content / "DEBIAN/control").write_text(
            f"Package: told\nVersion: 1\nArchitecture: {architecture}\nMaintainer: nobody\nDescription: a test\n"
        )

        def get(*words):
            assert words == ("download", "told")
            subprocess.run(["dpkg-deb", "--build", str(content), str(folder / "told.deb")], check=True, capture_output=True)
            return ""

        yield get, folder

    monkeypatch.setattr(debian, "apt", apt)
    return sound


def test_the_first_release_that_serves_is_taken(mirror, tmp_path):
    target = tmp_path / "target"
    debian.unpack(("first", "later"), "armhf", ["told"], target)
    assert (target / "usr/bin/told").read_text() == "later"
    mirror.append("first")
    debian.unpack(("first", "later"), "armhf", ["told"], target)
    assert (target / "usr/bin/told").read_text() == "first"


def test_no_release_serves(mirror, tmp_path):
    target = tmp_path / "target"
    (target / "kept").mkdir(parents=True)
    with pytest.raises(Failure, match=r"first: File has unexpected size.*; .*second: File has unexpected size"):
        debian.unpack(("first", "second"), "armhf", ["told"], target)
    assert (target / "kept").exists()
