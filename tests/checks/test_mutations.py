"""Damaged .tflite files through everything that reads them: no signal, no traceback.

Twenty of the 2,000 here; all with `pytest tests/checks/test_mutations.py --mutations 2000`, as `make mutations` does.
"""

import subprocess
import sys
from collections import Counter

import mutations
import pytest
from support import ROOT

pytest.importorskip("ai_edge_litert.schema_py_generated", reason="the extra convert: pip install 'h2t2-edge[convert]'")
SHARE = 100  # mutations of one process


def pytest_generate_tests(metafunc):
    if "span" in metafunc.fixturenames:
        count = metafunc.config.getoption("--mutations")
        spans = [(first, min(first + SHARE, count)) for first in range(0, count, SHARE)]
        metafunc.parametrize("span", spans, ids=lambda span: f"{span[0]}-{span[1]}")


@pytest.mark.whole
def test_no_damaged_file_ends_a_reader(span):
    command = [sys.executable, str(ROOT / "tests/mutations.py"), *map(str, span)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, f"status {run.returncode} after: {lines[-1]}"
    assert not [line for line in lines if line.startswith("raises")]
    assert len([line for line in lines if line.startswith("ends")]) == span[1] - span[0]


def test_the_mutations_are_of_every_file_and_kind():
    """What passes for damage: a third is refused, and much of the rest still runs."""
    drawn = [mutations.mutation(n) for n in range(60)]
    assert {path for path, *_ in drawn} == set(mutations.FILES) and len(mutations.FILES) == 10
    kinds = Counter(words.split()[0].split(".")[0] for *_, words in drawn)
    assert {"byte", "word", "tensor", "operator", "options"} <= set(kinds), kinds
    assert sum(content != path.read_bytes() for path, content, _ in drawn) > 50
    assert mutations.mutation(7)[1] == mutations.mutation(7)[1]
