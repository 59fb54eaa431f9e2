"""What is checked of a .tflite before any interpreter opens it, and the first inference in a process of its own."""

import threading
from struct import pack_into

import numpy as np
import pytest
from bundles import SHIPPED, TEST_MODELS
from random_models import Maker
from support import ROOT, program

from h2t2.cpython import tflite, tflite_trial
from h2t2.cpython.tflite_check import check
from h2t2.cpython.tflite_flat import FlatFile

pytest.importorskip("ai_edge_litert.schema_py_generated", reason="the extra convert: pip install 'h2t2-edge[convert]'")
from h2t2_tools.model import bundle  # noqa: E402
from h2t2_tools.model.tflite_write import pack, schema_of_tflite  # noqa: E402

LSTM = ROOT / "tests/material/networks/lstm.tflite"
CNN = ROOT / "tests/material/convolutions.tflite"


def changed(path, change):
    """The file with one thing changed by `change(model)`, its structure whole."""
    model = schema_of_tflite().ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    change(model)
    return pack(model)


@pytest.mark.parametrize("path", [*TEST_MODELS, *SHIPPED], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_good_models_pass(path):
    check(path.read_bytes())


def test_the_schema_is_the_one_that_litert_brings_along():

    script = program(ROOT / "host_tools/tflite_schema.py")
    assert script.OUT.read_text() == script.source()


def damaged(path, place):
    """The file with the offset of a field, which `place(file)` finds, pointing outside."""
    content = bytearray(path.read_bytes())
    pack_into("<I", content, place(FlatFile(content)), 0x00FFFFF0)
    return bytes(content)


def test_offsets_of_texts_options_metadata_and_signatures_stay_inside():
    model = lambda file: file.number(0)  # noqa: E731
    graph = lambda file: file.tables(model(file), 2)[0]  # noqa: E731
    signed = changed(CNN, lambda m: None)
    for place in (
        lambda file: file.field(file.tables(graph(file), 3)[0], 4),  # options
        lambda file: file.field(file.tables(graph(file), 0)[0], 3),  # a tensor's name
        lambda file: file.field(graph(file), 4),  # the graph's name
        lambda file: file.field(model(file), 3),  # the description
    ):
        if place(FlatFile(signed)):
            with pytest.raises(ValueError, match="outside the file"):
                check(damaged(CNN, place))
    path = ROOT / "tests/material/networks/wake_word.tflite"  # written by tflite_write, which signs
    for slot in (0, 2):
        with pytest.raises(ValueError, match="outside the file"):
            check(damaged(path, lambda file, slot=slot: file.field(file.tables(model(file), 7)[0], slot)))


def test_a_text_ends_with_a_zero():
    content = bytearray(CNN.read_bytes())
    file = FlatFile(content)
    tensor = file.tables(file.tables(file.number(0), 2)[0], 0)[0]
    start, count = file.vector(file.field(tensor, 3), 1)
    content[start + count] = 7
    with pytest.raises(ValueError, match="a text without an end"):
        check(bytes(content))


def test_a_number_that_is_not_aligned_is_refused():
    content = bytearray(CNN.read_bytes())
    pack_into("<I", content, 0, FlatFile(content).number(0) + 2)
    with pytest.raises(ValueError, match="is not where one may be|outside the file|damaged"):
        check(bytes(content))


def test_a_zero_point_may_stand_where_litert_reads_it(tmp_path):
    """Each is an int64; LiteRT wants the vector at a multiple of four bytes, and the numbers in it anywhere."""
    content = bytearray(CNN.read_bytes())
    file = FlatFile(content)
    tensors = file.tables(file.tables(file.number(0), 2)[0], 0)
    for table in filter(None, [file.table(tensor, 4) for tensor in tensors]):
        at = file.field(table, 3)
        start, count = file.vector(at, 8)
        content += bytes(-len(content) % 8)
        pack_into("<I", content, at, len(content) - at)
        content += content[start - 4 : start + 8 * count]
    check(bytes(content))
    (tmp_path / "model.tflite").write_bytes(content)
    sound, moved = tflite.TFLiteModel(str(CNN)), tflite.TFLiteModel(str(tmp_path / "model.tflite"))
    x = np.random.default_rng(1).integers(-128, 128, sound.input_shape).astype(np.int8)
    assert moved.scores(x).tolist() == sound.scores(x).tolist()
    assert bundle.from_tflite(tmp_path / "model.tflite") == bundle.from_tflite(CNN)


def _tensor(n, name, value):
    return lambda model: setattr(model.subgraphs[0].tensors[n], name, value)


def _scale(value):
    def change(model):
        graph = model.subgraphs[0]
        graph.tensors[graph.inputs[0]].quantization.scale = [value]

    return change


def _options(kind, name, value):
    def change(model):
        options = [o.builtinOptions for o in model.subgraphs[0].operators if type(o.builtinOptions).__name__ == kind + "T"]
        setattr(options[0], name, value)

    return change


def _graph(change):
    return lambda model: change(model.subgraphs[0])


def _never_computed(graph):
    graph.operators = graph.operators[1:]


def _writes_to_a_constant(graph):
    graph.operators[0].outputs = [int(graph.operators[0].inputs[1])]


def _backwards(graph):
    graph.operators = graph.operators[::-1]


def _without_weights(graph):
    graph.operators[0].inputs = graph.operators[0].inputs[:1]


def _short_weights(graph):
    tensor = graph.tensors[int(graph.operators[0].inputs[1])]
    tensor.shape = [*tensor.shape[:-1], int(tensor.shape[-1]) + 1]


@pytest.mark.parametrize(
    "path, change, words",
    [
        (CNN, _options("Conv2DOptions", "strideW", 0), "operator 0, CONV_2D: strides of"),
        (CNN, _options("Conv2DOptions", "dilationHFactor", -3), "dilations of"),
        (CNN, _options("Conv2DOptions", "padding", 7), "a padding of 7"),
        (CNN, _options("Conv2DOptions", "fusedActivationFunction", 100), "a fused activation 100"),
        (CNN, _options("Conv2DOptions", "strideH", 5), "its output has"),
        (LSTM, _options("SoftmaxOptions", "beta", 0.0), "SOFTMAX: a beta of 0"),
        (LSTM, _options("SoftmaxOptions", "beta", float("nan")), "a beta of nan"),
        (LSTM, _options("UnidirectionalSequenceLSTMOptions", "cellClip", float("inf")), "a clip of inf"),
        (CNN, _scale(0.0), "want one above 0"),
        (CNN, _scale(-1.0), "has a scale of -1.0"),
        (CNN, _scale(float("inf")), "has a scale of inf"),
        (CNN, _scale(1e-30), "want one above 0"),
        (CNN, _graph(_never_computed), "is not computed before"),
        (CNN, _graph(lambda graph: setattr(graph.tensors[graph.inputs[0]], "isVariable", True)), "a constant or a variable"),
        (CNN, _graph(_backwards), "is not computed before"),
        (CNN, _graph(_writes_to_a_constant), "is a constant, an input, or computed before"),
        (CNN, _graph(_without_weights), "it has 1 inputs, want 2 to 3"),
        (CNN, _graph(_short_weights), "do not fill the shape"),
        (CNN, _tensor(0, "type", 77), "type 77"),
        (CNN, _tensor(0, "buffer", 4000), "refers to a buffer that is not there"),
        (CNN, _tensor(0, "shape", [-5, 8]), r"shape \[-5, 8\]"),
        (CNN, lambda model: setattr(model, "version", 9), "schema version 9"),
        (CNN, lambda model: setattr(model.subgraphs[0].operators[0], "opcodeIndex", 99), "refers to a code that is not there"),
        (LSTM, lambda model: setattr(model.signatureDefs[0], "subgraphIndex", 5), "a signature refers to a graph"),
        (LSTM, lambda model: setattr(model.signatureDefs[0].inputs[0], "tensorIndex", 500), "a signature refers to a tensor"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(path, change, words):
    with pytest.raises(ValueError, match=words):
        check(changed(path, change))


def test_a_graph_that_calls_itself_is_refused(tmp_path):
    make = Maker(1, (3,))
    y = make.dense(make.first, 2)
    make.added_up(y)
    content = make.bytes(y)
    path = tmp_path / "calls.tflite"
    path.write_bytes(content)
    check(changed(path, _options("CallOnceOptions", "initSubgraphIndex", 1)))
    with pytest.raises(ValueError, match="its graphs call each other in a circle"):
        check(changed(path, _options("CallOnceOptions", "initSubgraphIndex", 0)))


@pytest.fixture(params=["forked", "started"])
def crashing(request, tmp_path, monkeypatch):
    """A file that ends LiteRT (a softmax of beta 0), unchecked; tried from a process of one thread and of several."""
    monkeypatch.setattr(tflite, "check", lambda content: None)
    path = tmp_path / "crashing.tflite"
    path.write_bytes(changed(LSTM, _options("SoftmaxOptions", "beta", 0.0)))
    release = threading.Event()
    if request.param == "started":
        thread = threading.Thread(target=release.wait)
        thread.start()
    yield path
    release.set()


def test_what_still_ends_the_interpreter_is_an_error(crashing):
    with pytest.raises(ValueError, match=r"crashing.tflite: the interpreter ends on it \(SIG[A-Z]+\)"):
        tflite.TFLiteModel(str(crashing))


def test_what_the_interpreter_refuses_is_an_error_with_its_words(tmp_path, monkeypatch):
    monkeypatch.setattr(tflite, "check", lambda content: None)
    path = tmp_path / "refused.tflite"
    path.write_bytes(changed(CNN, _graph(_without_weights)))
    with pytest.raises(ValueError, match="refused.tflite: the interpreter refuses it: .*"):
        tflite.TFLiteModel(str(path))


def test_a_trial_that_hangs_is_killed(monkeypatch):
    event = threading.Event()
    monkeypatch.setattr(tflite_trial, "_trial", lambda *_: event.wait())
    monkeypatch.setattr(tflite_trial, "WAIT_S", 0)
    assert "no answer in 0 s" in tflite_trial._forked(b"", "AUTO")


def test_a_model_is_tried_once_in_a_process(monkeypatch):
    tried = []
    monkeypatch.setattr(tflite_trial, "_passed", set())
    monkeypatch.setattr(tflite_trial, "_forked", lambda *settings: tried.append(settings) or "")
    monkeypatch.setattr(tflite_trial, "_started", lambda *settings: tried.append(settings) or "")
    for resolver in ("AUTO", "AUTO", "BUILTIN_REF"):
        tflite_trial.try_first(b"content", resolver)
    assert [settings[1] for settings in tried] == ["AUTO", "BUILTIN_REF"]
    assert np.iinfo(np.int8).max == tflite_trial._numbers(None, (2,), np.dtype(np.int8), True)[0]
