"""Changes .tflite files that others wrote, into the form that our tools and every interpreter take."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from h2t2.cpython.tflite import FEATURES

from .tflite import NAMES, Operator
from .tflite_write import TYPE_CODES, append_buffer, fill, operator_code, operator_table, pack, schema_of_tflite, sign, signed


def normalise(content: bytes) -> bytes:
    """The same .tflite in the form that every interpreter and tool accepts.

    Constants behind the flatbuffer move into it: older interpreters do not look behind it. Ends get a signature, and tensors
    unique names: the quantizer finds them so. Operators' codes move from the deprecated field to the new one.
    """
    schema = schema_of_tflite()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    deprecated = [code for code in model.operatorCodes if code.builtinCode < code.deprecatedBuiltinCode]
    for code in deprecated:
        code.builtinCode = code.deprecatedBuiltinCode
    outside = [buffer for buffer in model.buffers if buffer.offset > 1]
    for buffer in outside:
        buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    tensors = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    named = len({tensor.name for tensor in tensors} - {b"", None}) == len(tensors)
    if not outside and named and model.signatureDefs and not deprecated:
        return content
    if not named:
        for n, tensor in enumerate(tensors):
            tensor.name = b"%s:%d" % (tensor.name or b"tensor", n)
    if not (named and model.signatureDefs):
        sign(schema, model)
    return pack(model)


class _Edit:
    """A .tflite that changes: the objects of its schema, normalised.

    Attributes:
        schema: LiteRT's generated schema.
        model: All graphs.
        graph: The first one, which changes.
    """

    def __init__(self, content: bytes) -> None:
        self.schema = schema_of_tflite()
        self.model = self.schema.ModelT.InitFromPackedBuf(normalise(content), 0)
        self.graph = self.model.subgraphs[0]

    def name(self, operator: Any) -> str:
        """The name of an operator."""
        return str(NAMES[self.model.operatorCodes[operator.opcodeIndex].builtinCode])

    def store(self, tensor: int, data: np.ndarray) -> None:
        """Give a tensor these numbers, in a buffer of its own: other tensors may share the old one."""
        self.graph.tensors[tensor].buffer = append_buffer(self.schema, self.model, data)

    def quantisation(self, scales: np.ndarray | Sequence[float], zero: int = 0) -> Any:
        """The quantisation by these scales, one or one a channel, with one zero point for all."""
        scale, zeros = [float(each) for each in scales], [zero] * len(scales)
        return fill(self.schema.QuantizationParametersT(), scale=scale, zeroPoint=zeros)

    def like(self, tensor: int, **fields: Any) -> int:
        """Append a tensor like another one, which no constant fills, with these fields; its number."""
        self.graph.tensors.append(fill(copy(self.graph.tensors[tensor]), **{"buffer": 0, **fields}))
        return len(self.graph.tensors) - 1

    def operator(self, name: str, inputs: list[int], output: int, version: int = 1, **options: float) -> Any:
        """A new operator, which no graph has yet."""
        self.model.operatorCodes.append(operator_code(self.schema, name, version, ""))
        added = Operator(name, version, tuple(inputs), (output,), options)
        return operator_table(self.schema, self.graph.tensors, added, len(self.model.operatorCodes) - 1)

    def score(self, logits: int, name: str) -> int:
        """Append LOGISTIC or SOFTMAX of a tensor; the number of its output."""
        score = self.like(logits, name=b"score")
        self.graph.operators.append(self.operator(name, [logits], score, 1, **({"beta": 1.0} if name == "SOFTMAX" else {})))
        return score

    def packed(self) -> bytes:
        """The file's bytes, without the tensors that nothing uses, and with one signature."""
        _drop_unused(self.model, self.graph)
        return signed(self.schema, self.model)


def widen(content: bytes) -> bytes:
    """The same .tflite with float32 constants in place of float16, by which exporters halve a file, without DEQUANTIZE."""
    edit = _Edit(content)
    halves, changed = TYPE_CODES["float16"], False
    for graph in edit.model.subgraphs:
        kept = []
        for operator in graph.operators:
            source = graph.tensors[operator.inputs[0]] if operator.inputs is not None and len(operator.inputs) else None
            data = None if source is None or source.type != halves else edit.model.buffers[source.buffer].data
            if data is None or edit.name(operator) != "DEQUANTIZE":
                kept.append(operator)
                continue
            numbers = np.asarray(data, np.uint8).view(np.float16).astype(np.float32)
            graph.tensors[operator.outputs[0]].buffer = append_buffer(edit.schema, edit.model, numbers)
            changed = True
        graph.operators = kept
        if changed:
            _drop_unused(edit.model, graph)
    return signed(edit.schema, edit.model) if changed else content


def operator_names(content: bytes) -> list[str]:
    """The names in the table of operator codes of a normalised .tflite."""
    return [NAMES[code.builtinCode] for code in _Edit(content).model.operatorCodes]


def renamed(content: bytes, names: dict[int, str]) -> bytes:
    """The same .tflite with other operators in its table of operator codes: {place in the table: name}."""
    model = _Edit(content).model
    for n, name in names.items():
        code = NAMES.index(name)
        model.operatorCodes[n].builtinCode, model.operatorCodes[n].deprecatedBuiltinCode = code, min(127, code)
    return pack(model)


def with_dense(content: bytes, inputs: dict[int, list[int]]) -> bytes:
    """The same .tflite with FULLY_CONNECTED over sequences in place of some operators: {number: its inputs}."""
    edit = _Edit(content)
    operators = edit.graph.operators
    for n, tensors in inputs.items():
        operators[n] = edit.operator("FULLY_CONNECTED", tensors, int(operators[n].outputs[0]), keep_num_dims=True)
    return edit.packed()


def with_constants(content: bytes, changes: dict[int, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """The same .tflite with other data and scales in some constants of its first graph: {tensor: (data, scales)}; of floats
    there are no scales."""
    edit = _Edit(content)
    for n, (data, scales) in changes.items():
        edit.store(n, data)
        if len(scales):
            edit.graph.tensors[n].quantization.scale = [float(scale) for scale in scales]
    return pack(edit.model)


def with_input(content: bytes, numbers: int, weights: dict[int, np.ndarray]) -> bytes:
    """The same float .tflite with an input of (1, numbers), and for the dense layers that read it other weights: {tensor: data,
    (outputs, numbers)}."""
    edit = _Edit(content)
    graph = edit.graph
    for n, data in weights.items():
        edit.store(n, data.astype(np.float32))
    for n, shape in [(graph.inputs[0], [1, numbers]), *((n, list(data.shape)) for n, data in weights.items())]:
        graph.tensors[n].shape, graph.tensors[n].shapeSignature = shape, None
    return pack(edit.model)


def with_plain_operators(content: bytes) -> bytes:
    """The same float .tflite with products in place of SQUARED_DIFFERENCE and L2_NORMALIZATION, which boards have not."""
    edit, operators = _Edit(content), []
    plain = {"SQUARED_DIFFERENCE": _squared_difference, "L2_NORMALIZATION": _normalisation}
    for operator in edit.graph.operators:
        name = edit.name(operator)
        operators += plain[name](edit, operator) if name in plain else [operator]
    if len(operators) == len(edit.graph.operators):
        return content
    edit.graph.operators = operators
    return signed(edit.schema, edit.model)


def _plain(edit: _Edit, tensor: int, shape: list[int], **fields: Any) -> int:
    """A new tensor, of another one's type and of this shape."""
    return edit.like(tensor, shape=shape, shapeSignature=None, name=b"plain:%d" % len(edit.graph.tensors), **fields)


def _squared_difference(edit: _Edit, operator: Any) -> list[Any]:
    """SUB, and its product with itself."""
    y = int(operator.outputs[0])
    difference = _plain(edit, y, list(edit.graph.tensors[y].shape))
    return [
        edit.operator("SUB", list(operator.inputs), difference, fused=0),
        edit.operator("MUL", [difference] * 2, y, fused=0),
    ]


def _normalisation(edit: _Edit, operator: Any) -> list[Any]:
    """x times the reciprocal root of the sum of its squares along the last axis."""
    x, y = int(operator.inputs[0]), int(operator.outputs[0])
    shape = [int(n) for n in edit.graph.tensors[y].shape]
    squares, total, root = (_plain(edit, y, each) for each in (shape, [*shape[:-1], 1], [*shape[:-1], 1]))
    axis = _plain(edit, y, [1], type=TYPE_CODES["int32"])
    edit.store(axis, np.array([len(shape) - 1], np.int32))
    return [
        edit.operator("MUL", [x, x], squares, fused=0), edit.operator("SUM", [squares, axis], total, keep_dims=True),
        edit.operator("RSQRT", [total], root), edit.operator("MUL", [x, root], y, fused=0),
    ]  # fmt: skip


def with_quantisation(content: bytes, changes: dict[int, tuple[float, int]]) -> bytes:
    """The same .tflite with another scale and zero point of some tensors of its first graph: {tensor: (scale, zero point)}."""
    edit = _Edit(content)
    for n, (scale, zero) in changes.items():
        edit.graph.tensors[n].quantization = edit.quantisation([scale], zero)
    return pack(edit.model)


def with_ends(
    content: bytes, source: int, output: int, constants: dict[int, np.ndarray], operators: list[int], logits: bool = False
) -> bytes:
    """The same .tflite with one input and one output, these operators alone (by number), and constants in some tensors.

    logits: The output has logits; a LOGISTIC makes scores of them.
    """
    edit = _Edit(content)
    edit.graph.operators = [edit.graph.operators[n] for n in operators]
    for n, data in constants.items():
        edit.store(n, data)
    edit.graph.inputs, edit.graph.outputs = [source], [edit.score(output, "LOGISTIC") if logits else output]
    return edit.packed()


def with_scores(content: bytes) -> bytes:
    """The same float .tflite with scores in place of its logits or of their LOG_SOFTMAX: LOGISTIC of one, SOFTMAX of more."""
    edit = _Edit(content)
    graph = edit.graph
    logits = int(graph.outputs[0])
    maker = next((o for o in graph.operators if logits in list(o.outputs)), None)
    if maker is not None and edit.name(maker) == "LOG_SOFTMAX":  # its softmax is that of what it takes
        graph.operators.remove(maker)
        logits = int(maker.inputs[0])
    size = int(np.prod(graph.tensors[logits].shape))
    graph.outputs = [edit.score(logits, "SOFTMAX" if size > 1 else "LOGISTIC")]
    return edit.packed()


def with_int8_ends(content: bytes) -> bytes:
    """The same .tflite of int16 ends with int8 ends: a QUANTIZE at its input, another that gives scores in steps of 1/256."""
    edit = _Edit(content)
    graph, int8 = edit.graph, TYPE_CODES["int8"]
    first, last = int(graph.inputs[0]), int(graph.outputs[0])
    scale = 256 * float(graph.tensors[first].quantization.scale[0])
    numbers = edit.like(first, name=b"numbers", type=int8, quantization=edit.quantisation([scale]))
    score = edit.like(last, name=b"score", type=int8, quantization=edit.quantisation([1 / 256], -128))
    before, behind = (edit.operator("QUANTIZE", [a], b, 2) for a, b in ((numbers, first), (last, score)))
    graph.operators = [before, *graph.operators, behind]
    graph.inputs, graph.outputs = [numbers], [score]
    return signed(edit.schema, edit.model)


def with_features(
    content: bytes, source: int, weights: np.ndarray, scales: np.ndarray, bias: np.ndarray, input_scale: float, step: float
) -> bytes:
    """The same .tflite with a second output, FEATURES: a FULLY_CONNECTED on a tensor of its first graph.

    Args:
        content: An int8 .tflite.
        source: The tensor.
        weights: int8 (features, size).
        scales: Of each row of weights.
        bias: int32 (features,).
        input_scale: Of the tensor.
        step: Scale of the features; their zero point is 0.
    """
    edit = _Edit(content)
    places = []
    for name, shape, kind, data, steps in (
        (FEATURES + "/weights", [*weights.shape], "int8", weights, scales),
        (FEATURES + "/bias", [len(weights)], "int32", bias, scales * input_scale),
        (FEATURES, [1, len(weights)], "int8", None, [step]),
    ):
        tensor = edit.schema.TensorT()
        edit.graph.tensors.append(
            fill(tensor, name=name.encode(), shape=shape, type=TYPE_CODES[kind], quantization=edit.quantisation(steps))
        )
        places.append(len(edit.graph.tensors) - 1)
        if data is not None:
            edit.store(places[-1], data)
    *constants, features = places
    edit.graph.operators.append(edit.operator("FULLY_CONNECTED", [source, *constants], features, 4, keep_num_dims=False))
    edit.graph.outputs = [*edit.graph.outputs, features]
    return signed(edit.schema, edit.model)


def _drop_unused(model: Any, graph: Any) -> None:
    """Remove the tensors that no operator and no end uses, which the quantizer would read, and the data that only they had."""
    lists = [(o, field) for o in graph.operators for field in ("inputs", "outputs", "intermediates")]
    lists += [(graph, "inputs"), (graph, "outputs")]
    numbers = {
        (id(owner), field): [int(n) for n in owned] for owner, field in lists if (owned := getattr(owner, field)) is not None
    }
    used = sorted({n for owned in numbers.values() for n in owned} - {-1})
    place = {-1: -1, **{n: k for k, n in enumerate(used)}}
    for owner, field in lists:
        if (id(owner), field) in numbers:
            setattr(owner, field, [place[n] for n in numbers[id(owner), field]])
    graph.tensors = [graph.tensors[n] for n in used]
    referenced = {tensor.buffer for subgraph in model.subgraphs for tensor in subgraph.tensors}
    for n, buffer in enumerate(model.buffers):
        if n not in referenced:
            buffer.data = None
