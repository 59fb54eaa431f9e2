"""`.ci/run` repeats a few failed tests, alone: it says which are flaky, and fails with those that fail again."""

import sys

import pytest
from support import ROOT, program

repeat_failed = program(ROOT / "host_tools/repeat_failed.py")

# test_first_run fails where the file "again" is missing, which it leaves
TESTS = """
import pathlib, pytest

@pytest.mark.parametrize("case", ["a.b", "x::room [1]", "3", "4"])
def test_first_run(case):
    again = pathlib.Path(f"again-{case}")
    failed, _ = again.exists(), again.touch()
    assert failed, "later than expected\\nsecond line"

def test_always():
    assert not "ever"

class TestGroup:
    @pytest.fixture
    def broken(self):
        test_first_run("fixture")

    def test_member(self, broken):
        pass
"""


pytestmark = pytest.mark.slow


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A folder of tests, and what repeat_failed.py does after a run of some of them: its status and lines."""
    (tmp_path / "tests/deep").mkdir(parents=True)
    (tmp_path / "tests/deep/test_some.py").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "-c",
        "none.ini",
    ]
    (tmp_path / "none.ini").write_text("[pytest]\n")
    monkeypatch.setattr(repeat_failed, "PYTEST", pytest_command)

    def run(*selection, capfd):
        repeat_failed.subprocess.run([*pytest_command, "--junitxml=junit.xml", "tests", *selection], check=False)
        capfd.readouterr()
        status = repeat_failed.main(["junit.xml"])
        return status, [
            line for line in capfd.readouterr().out.splitlines() if line.startswith(("flaky", "FAILED tw", "no test"))
        ]

    return run


def test_what_passes_alone_is_named_flaky(suite, capfd):
    status, lines = suite("-k", "(test_first_run and (a.b or room)) or test_member", capfd=capfd)
    assert status == 0
    assert lines[0] == "flaky: tests/deep/test_some.py::test_first_run[a.b]: AssertionError: later than expected"
    assert lines[1].startswith("flaky: tests/deep/test_some.py::test_first_run[x::room [1]]: Assert")
    assert lines[2].startswith("flaky: tests/deep/test_some.py::TestGroup::test_member: failed on setup")


def test_what_fails_again_fails(suite, capfd):
    assert suite("-k", "test_always or (test_first_run and 3)", capfd=capfd) == (
        1,
        ["FAILED twice: tests/deep/test_some.py::test_always"],
    )


def test_more_than_a_few_are_not_repeated(suite, capfd):
    assert suite("-k", "test_first_run", capfd=capfd) == (1, ["no test is repeated: 4 tests failed, and 1 to 3 are repeated"])


def test_a_file_that_cannot_be_imported_is_not_repeated(suite, tmp_path, capfd):
    (tmp_path / "tests/test_broken.py").write_text("import nothing_of_this_name")
    status, lines = suite(capfd=capfd)
    assert status == 1 and lines == ["no test is repeated: tests.test_broken is no test"]


def test_without_a_failed_test_the_failure_stays(suite, capfd):
    assert suite("-k", "nothing", capfd=capfd)[0] == 1
    assert repeat_failed.main(["absent.xml"]) == 1


@pytest.mark.parametrize("file", ["tests/common/test_test_all.py", "hil/test_hil_node.py"])
def test_pytest_takes_the_command_for_every_folder_of_tests(file):
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *repeat_failed._options(file), file]
    assert repeat_failed.subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
