"""`h2t2 doctor clean` lists what commands have written outside of projects, and deletes it where somebody says so."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from h2t2_tools.cli import clean
from h2t2_tools.cli.main import main
from h2t2_tools.common import places

KILLED = """import os
from h2t2_tools.common.places import temporary_folder
folder = temporary_folder("fleet")
print(folder.name, flush=True)
os._exit(1)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A cache with an emulator, compiled code and a note of a running emulator, and a folder for temporary files."""
    for name in ("unix/usr", "numba", "emulated"):
        (tmp_path / "cache/h2t2" / name).mkdir(parents=True)
        (tmp_path / "cache/h2t2" / name / "file").write_bytes(bytes(1000))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def left_behind():
    """The folder of a process that was killed."""
    run = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    return run.stdout.strip()


def report(capsys, *words):
    assert main(["doctor", "clean", "--json", "-", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_lists_and_deletes_nothing_before_somebody_says_so(machine, capsys):
    left = left_behind()
    found = report(capsys)
    assert [(folder["kind"], folder["path"], folder["bytes"], folder["deleted"]) for folder in found] == [
        ("cache", str(machine / "cache/h2t2/numba"), 1000, False),
        ("emulator", str(machine / "cache/h2t2/unix"), 1000, False),
        ("left behind", left, 0, False),
    ]
    assert main(["doctor", "clean"]) == 0
    said = capsys.readouterr().out
    assert left in said and said.endswith("0 of 3 folders deleted, 0.0 MB; --yes deletes all of it\n") and os.path.isdir(left)


def test_it_deletes_no_folder_in_use_and_none_of_others(machine, capsys):
    with places.temporary_folder("fleet") as own:
        used, unused = left_behind(), left_behind()
        (machine / "tmp/h2t2-notes").mkdir()
        (machine / f"tmp/h2t2-pico-{2**22 + 1}-abc").symlink_to(machine / "cache")
        command = [sys.executable, "-c", "input(0)", used]  # as a broker that outlives its command
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.read(1)  # the kernel knows the command line of a program that runs
            found = report(capsys, "--yes")
            process.communicate(b"\n")
        assert [folder["path"] for folder in found if folder["kind"] == "left behind"] == [unused]
        assert all(folder["deleted"] for folder in found) and not os.path.exists(unused)
        assert os.path.isdir(own) and os.path.isdir(used) and (machine / "tmp/h2t2-notes").is_dir()
    assert [path.name for path in (machine / "cache/h2t2").iterdir()] == ["emulated"]


def test_it_asks_about_each_kind(machine, capsys, monkeypatch):
    questions = []
    monkeypatch.setattr(clean.Clean, "_may_ask", True)
    monkeypatch.setattr(clean, "answers_yes", lambda question: questions.append(question) or question.startswith("emulator"))
    assert main(["doctor", "clean"]) == 0
    assert [question.partition(":")[0] for question in questions] == ["cache", "emulator"]
    assert sorted(path.name for path in (machine / "cache/h2t2").iterdir()) == ["emulated", "numba"]
    assert capsys.readouterr().out.endswith("1 of 2 folders deleted, 0.0 MB\n")
