"""The integer interpreter on a host: compiled or not, the bytes of a board."""

import subprocess
import sys

import numpy as np
import pytest
from bundles import SHIPPED, TEST_MODELS
from support import ROOT

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle
from h2t2_tools.model.exact import open_exact

pytest.importorskip("numba", reason="the extra lab, which compiles, is not installed")
SMALL = [path for path in [*TEST_MODELS, *SHIPPED] if path.stat().st_size < 8000]
PLAIN = """
import sys
sys.modules["numba"] = None
import numpy as np
from pathlib import Path
from h2t2_tools.model.exact import open_exact
model = open_exact(Path(sys.argv[1]))
print(model.outputs(np.arange(model.input_size).astype(np.int8)).tolist())
"""


@pytest.mark.parametrize("path", SMALL, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_compiled_kernels_leave_the_same_bytes_in_the_arena(path):
    plain, compiled = Int8Model(bundle.from_tflite(path), 0), open_exact(path)
    rng = np.random.default_rng(1)
    for _ in range(3):  # in a row: a model may keep state
        x = rng.integers(-128, 128, plain.input_size).astype(np.int8)
        assert compiled.run(x) == plain.run(x.tolist()) and compiled.arena == plain.arena


@pytest.mark.parametrize("name, times", [("digits", 0), ("ten_digits", 0), ("chest_xray", 1)])
def test_without_numba_a_large_model_is_slow_and_says_so_and_each_gives_the_same(name, times):
    path = ROOT / f"models/{name}/ldl.tflite"
    process = subprocess.run([sys.executable, "-c", PLAIN, path], capture_output=True, text=True, timeout=100)
    model = open_exact(path)
    assert process.stdout.strip() == str(model.outputs(np.arange(model.input_size).astype(np.int8)).tolist())
    assert process.stderr.count("without numba") == process.stderr.count("[lab]'") == times


def test_an_output_or_a_sample_that_is_none_is_refused():
    model = open_exact(TEST_MODELS[0])
    with pytest.raises(ValueError, match="the model takes int8"):
        model.run(np.zeros(3, np.int8))
    with pytest.raises(UserError, match="no class 99"):
        open_exact(TEST_MODELS[0], event=99)
