"""What PyTorch exports today: both of its exporters and exported programs. Runs in .venv-torch: make test-torch."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[1] / "material/pytorch"
sys.path.insert(0, str(FOLDER))

from export import networks  # noqa: E402
from samples import SHAPES, draw  # noqa: E402

from h2t2_tools.model.convert.readers import open_source  # noqa: E402


@pytest.fixture
def network(request):
    """(an untrained network, an example, its scores of six samples, the samples)."""
    x = torch.from_numpy(draw(request.param, 6, 1)[0])
    module = networks()[request.param]
    module(x)  # lazy layers
    module.eval()
    with torch.no_grad():
        return module, (x[:1],), module(x).numpy(), x.numpy()


def test_networks_begin_alike():
    """So that the page's figures can be had again."""
    first, again = (networks()["attention"].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("network", SHAPES, indirect=True)
def test_each_exporter_gives_what_the_converter_reads(network, tmp_path):
    module, example, scores, x = network
    torch.onnx.export(module, example, tmp_path / "new.onnx", external_data=False, verbose=False)
    torch.onnx.export(module, example, tmp_path / "old.onnx", dynamo=False, opset_version=17)
    for name in ("new.onnx", "old.onnx"):
        assert np.allclose(open_source(tmp_path / name).scores(x), scores, atol=1e-5)


@pytest.mark.parametrize("network", ["perceptron", "mobile", "attention"], indirect=True)
def test_an_exported_program_is_a_source(network, tmp_path):
    module, example, scores, x = network
    torch.export.save(torch.export.export(module, example), tmp_path / "program.pt2")
    source = open_source(tmp_path / "program.pt2")
    assert source.kind == "PyTorch" and np.allclose(source.scores(x), scores, atol=1e-5)
