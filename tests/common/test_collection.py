"""What `make test` and `make test-all` collect."""

import subprocess
import sys

import pytest
from support import ROOT


@pytest.mark.slow
def test_the_boards_of_hil_hide_no_test_of_another_folder():
    """A test may have a parameter `board` of its own. One run collects tests and hil, as `make test` does."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "tests/boards/test_project.py"]
    alone, together = (
        subprocess.run([*command, *more], capture_output=True, text=True, cwd=ROOT).stdout.splitlines()
        for more in ([], ["hil/test_hil_node.py"])
    )
    tests = {line for line in alone if "::" in line}
    assert any("[pico]" in line for line in tests) and tests <= set(together)
