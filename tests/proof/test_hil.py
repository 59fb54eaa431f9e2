"""`h2t2 hil`: one board at a time, for every board it lists."""

import json
import subprocess
import sys

import pytest
from rig import ENTRIES
from support import ROOT

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
