"""`h2t2 hil`: one board at a time, for every board it lists."""

import json
import subprocess
import sys

import pytest
from rig import ENTRIES
from support import ROOT

from h2t2_tools.checks import hil

# a test that ends at once, and what it needs of a board; of others the tests are only collected here: they run beside this one
QUICK, NEEDS = "a_model_unlike", "heap"


@pytest.mark.whole
@pytest.mark.timeout(700)
@pytest.mark.parametrize("name", [entry["id"] for entry in ENTRIES])
def test_a_board_alone(name, tmp_path):
    features = next(entry["features"] for entry in ENTRIES if entry["id"] == name)
    command = [sys.executable, "-m", "h2t2_tools", "hil", "--board", name, "--out", tmp_path, "--json", tmp_path / "r.json"]
    ran = NEEDS in features
    which = ["-k", QUICK] if ran else ["--collect-only"]
    done = subprocess.run([*command, "--", *which], capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert "INTERNALERROR" not in done.stderr and "Traceback" not in done.stderr
    if ran:
        assert done.returncode == 0, done.stderr[-800:]
        assert {row["board"] for row in json.loads((tmp_path / "r.json").read_text())} == {name}
    else:
        assert done.returncode == 2 and "no test" in done.stderr and f"[{name}]" in done.stdout + done.stderr


JUNIT = """<testsuites><testsuite>
<testcase name="test_noise[pico]" time="1.2345"><properties><property name="board" value="&quot;pico&quot;"/>
<property name="offloads" value="98"/></properties></testcase>
<testcase name="test_noise[unix]" time="2"><failure message="assert 1 == 2">E assert</failure></testcase>
<testcase name="test_wrap" time="0"><skipped type="pytest.skip" message="no qemu"/></testcase>
</testsuite></testsuites>"""


def test_a_row_of_each_test_from_junits_file(tmp_path, monkeypatch):
    (tmp_path / "boards.toml").touch()

    def ran(command, stdout):
        (tmp_path / "hil.xml").write_text(JUNIT)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", ran)
    status, rows = hil.run_tests(tmp_path, ["pico"], None, [], tmp_path)
    common = {"board": "", "emulated": False, "firmware": ""}
    passed = {"outcome": "passed", "reason": "", "seconds": 1.23}
    assert status == 1 and rows == [
        {"test": "test_noise", **common, **passed, "board": "pico", "offloads": 98},
        {"test": "test_noise", **common, "outcome": "failed", "reason": "assert 1 == 2", "seconds": 2.0},
        {"test": "test_wrap", **common, "outcome": "skipped", "reason": "no qemu", "seconds": 0.0},
    ]
