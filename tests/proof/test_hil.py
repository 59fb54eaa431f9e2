"""`h2t2 hil`: one board at a time, for every board it lists."""

import json
import subprocess
import sys

import pytest
from rig import ENTRIES
from support import ROOT

# tests that end at once, whatever the board is, and what they need of it
QUICK = {"golden_vectors": "core", "a_model_unlike": "heap"}
SLOW = {"heap_is_what_flash_says": "memory"}


@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.parametrize("name", [entry["id"] for entry in ENTRIES])
def test_a_board_alone(name, tmp_path):
    features = next(entry["features"] for entry in ENTRIES if entry["id"] == name)
    quick = SLOW if "slow" in features else QUICK
    command = [sys.executable, "-m", "h2t2_tools", "hil", "--board", name, "--out", tmp_path, "--json", tmp_path / "r.json"]
    done = subprocess.run([*command, "--", "-k", " or ".join(quick)], capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert "INTERNALERROR" not in done.stderr and "Traceback" not in done.stderr
    if any(feature in features for feature in quick.values()):
        assert done.returncode == 0, done.stderr[-800:]
        assert {row["board"] for row in json.loads((tmp_path / "r.json").read_text())} == {name}
    else:
        assert done.returncode == 2 and "no test" in done.stderr
