"""Reading and writing .tflite files: constants behind the flatbuffer, files without signatures and names."""

import numpy as np
import pytest
from support import ROOT

from h2t2_tools.common.errors import UserError
from h2t2_tools.model import tflite, tflite_edit, tflite_write

schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="the extra convert: pip install 'h2t2-edge[convert]'")
CNN = ROOT / "models/digits/ldl.tflite"


def changed(content, change):
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    change(model)
    return tflite_write.pack(model)


def constants_behind(content):
    """The same model with its constants behind the flatbuffer, as converters write those of 256 KiB and more."""
    data = {}

    def move(model):
        at = sum(map(len, data.values())) + size
        for n, buffer in enumerate(model.buffers):
            if buffer.data is not None and len(buffer.data):
                data[n] = bytes(buffer.data)
                buffer.data, buffer.offset, buffer.size = None, at, len(data[n])
                at += len(data[n])

    size = 1 << 20  # anything: it is as long when the places are known
    size = len(changed(content, move))
    data.clear()
    return changed(content, move) + b"".join(data.values())


def same(a_graph, b_graph):
    return all(
        a.shape == b.shape and a.dtype == b.dtype and (a.data is b.data is None or np.array_equal(a.data, b.data))
        for a, b in zip(a_graph.tensors, b_graph.tensors, strict=True)
    )


def test_constants_behind_the_flatbuffer_are_read_and_brought_in(tmp_path):
    path, original = tmp_path / "m.tflite", CNN.read_bytes()
    path.write_bytes(content := constants_behind(original))
    assert same(tflite.load(path), tflite.load(CNN))
    path.write_bytes(tflite_edit.normalise(content))
    assert same(tflite.load(path), tflite.load(CNN))
    assert not [b for b in schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0).buffers if b.offset or b.size]
    path.write_bytes(content[:-5])
    with pytest.raises(UserError, match="outside the file"):
        tflite.load(path)


def test_constants_are_changed_where_others_lie_behind_the_flatbuffer():
    graph = tflite.load(CNN)
    weights = next(tensor for tensor in graph.tensors if tensor.data is not None and tensor.dtype == "int8")
    changes = {weights.index: (np.zeros_like(weights.data), 2 * weights.scale)}
    model = tflite.read(tflite_edit.with_constants(constants_behind(CNN.read_bytes()), changes))
    assert not model.tensors[weights.index].data.any()
    assert np.allclose(model.tensors[weights.index].scale, 2 * weights.scale)
    unchanged = [tensor for tensor in graph.tensors if tensor.data is not None and tensor is not weights]
    assert unchanged and all(np.array_equal(model.tensors[tensor.index].data, tensor.data) for tensor in unchanged)


def test_a_signature_and_names_are_added_where_they_lack():
    def strip(model):
        model.signatureDefs = []
        for tensor in model.subgraphs[0].tensors:
            tensor.name = b"same"

    model = schema.ModelT.InitFromPackedBuf(tflite_edit.normalise(changed(CNN.read_bytes(), strip)), 0)
    names = [tensor.name for tensor in model.subgraphs[0].tensors]
    assert len(set(names)) == len(names)
    (signature,) = model.signatureDefs
    assert [end.name for end in signature.inputs] == [names[model.subgraphs[0].inputs[0]]]
    content = tflite_edit.normalise(changed(CNN.read_bytes(), strip))
    assert tflite_edit.normalise(content) is content


def test_sparse_weights_are_named(tmp_path):
    def thin(model):
        model.subgraphs[0].tensors[2].sparsity = schema.SparsityParametersT()

    path = tmp_path / "sparse.tflite"
    path.write_bytes(changed(CNN.read_bytes(), thin))
    with pytest.raises(UserError, match="is sparse: densify the weights"):
        tflite.load(path)
