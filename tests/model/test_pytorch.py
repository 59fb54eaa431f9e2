"""PyTorch networks, trained and exported by tests/material/pytorch/export.py: int8 decides as PyTorch does."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

from on_boards import NETWORKS, PUBLIC, TRAINED, compared, host_scores, network  # noqa: E402

from h2t2_tools.checks import ldl_check  # noqa: E402
from h2t2_tools.cli.execute import execute  # noqa: E402
from h2t2_tools.model.convert.readers import open_source  # noqa: E402
from h2t2_tools.model.exact import open_exact  # noqa: E402
from h2t2_tools.model.inspect import inspect  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_becomes_an_int8_model_that_decides_alike(name, tmp_path):
    case, path = network(name, 500), tmp_path / "int8.tflite"
    path.write_bytes(open_source(case.path).quantise(case.fit[0]))
    model = open_exact(path)
    row = compared(case.scores, np.array([model.scores(model.quantise(x))[-1] for x in case.test[0]]), case.test[1])
    assert not inspect(path)["problems"]
    assert ldl_check.compare(path, None, 3, 1, True, lambda *_: None)["differ"] == 0
    assert row["changed"] <= 0.01 and row["mean"] < 0.01
    assert np.isclose(row["float"], row["int8"], atol=0.011)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_a_network_of_a_public_repository_decides_alike(name, tmp_path, monkeypatch):
    """By `h2t2 convert`. Each processor trains another network; docs/from-pytorch.md has the figures of one."""
    if not (TRAINED / f"{name}.onnx").exists():
        pytest.skip("not trained yet; run: make test-torch")
    case = network(name)
    monkeypatch.chdir(tmp_path)

    def h2t2(*words):
        assert execute([str(word) for word in words]) == 0

    row = compared(case.scores, host_scores(h2t2, tmp_path, case), case.test[1])
    assert row["float"] > 0.85 and row["changed"] <= 0.02 and row["mean"] <= 0.03
    assert not inspect(tmp_path / "pair/ldl.tflite")["problems"]
