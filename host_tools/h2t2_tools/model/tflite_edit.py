"""Changes .tflite files that others wrote, into the form that our tools and every interpreter take."""

from copy import copy
from typing import Any

import numpy as np

from h2t2.cpython.tflite import FEATURES

from .operator_names import NAMES
from .tflite_write import TYPE_CODES, append_buffer, fill, operator_code, pack, schema_of_tflite, sign, signed


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


def widen(content: bytes) -> bytes:
    """The same .tflite with float32 constants in place of float16, by which exporters halve a file, without DEQUANTIZE."""
    schema, model = _opened(content)
    halves, changed = TYPE_CODES["float16"], False
    for graph in model.subgraphs:
        kept = []
        for operator in graph.operators:
            source = graph.tensors[operator.inputs[0]] if operator.inputs is not None and len(operator.inputs) else None
            data = None if source is None or source.type != halves else model.buffers[source.buffer].data
            if data is None or _name(model, operator) != "DEQUANTIZE":
                kept.append(operator)
                continue
            numbers = np.asarray(data, np.uint8).view(np.float16).astype(np.float32)
            graph.tensors[operator.outputs[0]].buffer = append_buffer(schema, model, numbers)
            changed = True
        graph.operators = kept
        if changed:
            _drop_unused(model, graph)
    if not changed:
        return content
    return signed(schema, model)


def operator_names(content: bytes) -> list[str]:
    """The names in the table of operator codes of a normalised .tflite."""
    return [NAMES[code.builtinCode] for code in _opened(content)[1].operatorCodes]


def renamed(content: bytes, names: dict[int, str]) -> bytes:
    """The same .tflite with other operators in its table of operator codes: {place in the table: name}."""
    _, model = _opened(content)
    for n, name in names.items():
        code = NAMES.index(name)
        model.operatorCodes[n].builtinCode, model.operatorCodes[n].deprecatedBuiltinCode = code, min(127, code)
    return pack(model)


def with_dense(content: bytes, inputs: dict[int, list[int]]) -> bytes:
    """The same .tflite with FULLY_CONNECTED over sequences in place of some operators: {number: its inputs}."""
    schema, model = _opened(content)
    model.operatorCodes.append(operator_code(schema, "FULLY_CONNECTED", 1, ""))
    for n, tensors in inputs.items():
        operator = model.subgraphs[0].operators[n]
        operator.opcodeIndex, operator.inputs, operator.intermediates = len(model.operatorCodes) - 1, tensors, None
        operator.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
        operator.builtinOptions = fill(schema.FullyConnectedOptionsT(), keepNumDims=True)
    _drop_unused(model, model.subgraphs[0])
    return signed(schema, model)


def with_constants(content: bytes, changes: dict[int, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """The same .tflite with other data and scales in some constants of its first graph: {tensor: (data, scales)}; of floats
    there are no scales."""
    schema, model = _opened(content)
    for n, (data, scales) in changes.items():
        tensor = model.subgraphs[0].tensors[n]
        tensor.buffer = append_buffer(schema, model, data)  # its own: other tensors may share the old one
        if len(scales):
            tensor.quantization.scale = [float(scale) for scale in scales]
    return pack(model)


def with_input(content: bytes, numbers: int, weights: dict[int, np.ndarray]) -> bytes:
    """The same float .tflite with an input of (1, numbers), and for the dense layers that read it other weights: {tensor: data,
    (outputs, numbers)}."""
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    for n, data in weights.items():
        graph.tensors[n].buffer = append_buffer(schema, model, data.astype(np.float32))
    for n, shape in [(graph.inputs[0], [1, numbers]), *((n, list(data.shape)) for n, data in weights.items())]:
        graph.tensors[n].shape, graph.tensors[n].shapeSignature = shape, None
    return pack(model)


def with_plain_operators(content: bytes) -> bytes:
    """The same float .tflite with products in place of SQUARED_DIFFERENCE and L2_NORMALIZATION, which boards have not."""
    schema, model = _opened(content)
    graph, operators = model.subgraphs[0], []
    for operator in graph.operators:
        name, changed = _name(model, operator), []
        if name == "SQUARED_DIFFERENCE":
            changed = _squared_difference(schema, model, operator)
        elif name == "L2_NORMALIZATION":
            changed = _normalisation(schema, model, operator)
        operators += changed or [operator]
    if len(operators) == len(graph.operators):
        return content
    graph.operators = operators
    return signed(schema, model)


def _squared_difference(schema: Any, model: Any, operator: Any) -> list[Any]:
    """SUB, and its product with itself."""
    y = int(operator.outputs[0])
    difference = _like(model, y, list(model.subgraphs[0].tensors[y].shape))
    return [
        _arithmetic(schema, model, "SUB", list(operator.inputs), difference),
        _arithmetic(schema, model, "MUL", [difference] * 2, y),
    ]


def _normalisation(schema: Any, model: Any, operator: Any) -> list[Any]:
    """x times the reciprocal root of the sum of its squares along the last axis."""
    x, y = int(operator.inputs[0]), int(operator.outputs[0])
    shape = [int(n) for n in model.subgraphs[0].tensors[y].shape]
    squares, total, root = (_like(model, y, each) for each in (shape, [*shape[:-1], 1], [*shape[:-1], 1]))
    axis = _like(model, y, [1])
    tensor = model.subgraphs[0].tensors[axis]
    tensor.type, tensor.buffer = TYPE_CODES["int32"], append_buffer(schema, model, np.array([len(shape) - 1], np.int32))
    added = _arithmetic(schema, model, "SUM", [squares, axis], total)
    added.builtinOptionsType, added.builtinOptions = (
        schema.BuiltinOptions.ReducerOptions,
        fill(schema.ReducerOptionsT(), keepDims=True),
    )
    return [
        _arithmetic(schema, model, "MUL", [x, x], squares), added, _arithmetic(schema, model, "RSQRT", [total], root),
        _arithmetic(schema, model, "MUL", [x, root], y),
    ]  # fmt: skip


def _like(model: Any, tensor: int, shape: list[int]) -> int:
    """The number of a new tensor of the first graph, of another one's type and of this shape."""
    graph = model.subgraphs[0]
    added = copy(graph.tensors[tensor])
    added.shape, added.shapeSignature, added.buffer, added.name = shape, None, 0, b"plain:%d" % len(graph.tensors)
    graph.tensors.append(added)
    return len(graph.tensors) - 1


def _arithmetic(schema: Any, model: Any, name: str, inputs: list[int], output: int) -> Any:
    """A new operator; SUB and MUL without an activation."""
    model.operatorCodes.append(operator_code(schema, name, 1, ""))
    operator = fill(schema.OperatorT(), opcodeIndex=len(model.operatorCodes) - 1, inputs=inputs, outputs=[output])
    if name in ("SUB", "MUL"):
        options = {"SUB": schema.SubOptionsT, "MUL": schema.MulOptionsT}[name]()
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, f"{name.title()}Options")
        operator.builtinOptions = options
    return operator


def with_quantisation(content: bytes, changes: dict[int, tuple[float, int]]) -> bytes:
    """The same .tflite with another scale and zero point of some tensors of its first graph: {tensor: (scale, zero point)}."""
    schema, model = _opened(content)
    for n, (scale, zero) in changes.items():
        quantisation = fill(schema.QuantizationParametersT(), scale=[scale], zeroPoint=[zero])
        model.subgraphs[0].tensors[n].quantization = quantisation
    return pack(model)


def with_ends(
    content: bytes, source: int, output: int, constants: dict[int, np.ndarray], operators: list[int], logits: bool = False
) -> bytes:
    """The same .tflite with one input and one output, these operators alone (by number), and constants in some tensors.

    logits: The output has logits; a LOGISTIC makes scores of them.
    """
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    graph.operators = [graph.operators[n] for n in operators]
    for n, data in constants.items():
        graph.tensors[n].buffer = append_buffer(schema, model, data)
    if logits:
        output = _with_score(schema, model, output, "LOGISTIC")
    graph.inputs, graph.outputs = [source], [output]
    _drop_unused(model, graph)
    return signed(schema, model)


def with_scores(content: bytes) -> bytes:
    """The same float .tflite with scores in place of its logits or of their LOG_SOFTMAX: LOGISTIC of one, SOFTMAX of more."""
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    logits = int(graph.outputs[0])
    maker = next((o for o in graph.operators if logits in list(o.outputs)), None)
    if maker is not None and _name(model, maker) == "LOG_SOFTMAX":  # its softmax is that of what it takes
        graph.operators.remove(maker)
        logits = int(maker.inputs[0])
    size = int(np.prod(graph.tensors[logits].shape))
    graph.outputs = [_with_score(schema, model, logits, "SOFTMAX" if size > 1 else "LOGISTIC")]
    _drop_unused(model, graph)
    return signed(schema, model)


def with_int8_ends(content: bytes) -> bytes:
    """The same .tflite of int16 ends with int8 ends: a QUANTIZE at its input, another that gives scores in steps of 1/256."""
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    model.operatorCodes.append(operator_code(schema, "QUANTIZE", 2, ""))
    ends = []
    for n, (name, scale, zero) in zip(
        (int(graph.inputs[0]), int(graph.outputs[0])),
        ((b"numbers", 256 * float(graph.tensors[graph.inputs[0]].quantization.scale[0]), 0), (b"score", 1 / 256, -128)),
    ):
        end = copy(graph.tensors[n])
        end.name, end.type, end.buffer = name, TYPE_CODES["int8"], 0
        end.quantization = fill(schema.QuantizationParametersT(), scale=[scale], zeroPoint=[zero])
        graph.tensors.append(end)
        ends.append(len(graph.tensors) - 1)
    pairs = (ends[0], int(graph.inputs[0])), (int(graph.outputs[0]), ends[1])
    first, last = (
        fill(schema.OperatorT(), opcodeIndex=len(model.operatorCodes) - 1, inputs=[a], outputs=[b]) for a, b in pairs
    )
    graph.operators = [first, *graph.operators, last]
    graph.inputs, graph.outputs = [ends[0]], [ends[1]]
    return signed(schema, model)


def _with_score(schema: Any, model: Any, logits: int, name: str) -> int:
    """Append LOGISTIC or SOFTMAX of a tensor of the first graph; the tensor of its output."""
    graph = model.subgraphs[0]
    model.operatorCodes.append(operator_code(schema, name, 1, ""))
    score = copy(graph.tensors[logits])
    score.name, score.buffer = b"score", 0
    graph.tensors.append(score)
    ends = {"inputs": [logits], "outputs": [len(graph.tensors) - 1]}
    operator = fill(schema.OperatorT(), opcodeIndex=len(model.operatorCodes) - 1, **ends)
    if name == "SOFTMAX":
        operator.builtinOptionsType = schema.BuiltinOptions.SoftmaxOptions
        operator.builtinOptions = fill(schema.SoftmaxOptionsT(), beta=1.0)
    graph.operators.append(operator)
    return len(graph.tensors) - 1


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
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    number = len(weights)
    quantisation = schema.QuantizationParametersT
    added = (
        (FEATURES + "/weights", [*weights.shape], "int8", weights, scales),
        (FEATURES + "/bias", [number], "int32", bias, scales * input_scale),
        (FEATURES, [1, number], "int8", None, [step]),
    )
    first = len(graph.tensors)
    for name, shape, kind, data, steps in added:
        rows = fill(quantisation(), scale=[float(s) for s in steps], zeroPoint=[0] * len(steps), quantizedDimension=0)
        buffer = 0 if data is None else append_buffer(schema, model, data)
        tensor = fill(
            schema.TensorT(), name=name.encode(), shape=shape, type=TYPE_CODES[kind], buffer=buffer, quantization=rows
        )
        graph.tensors.append(tensor)
    options = fill(schema.FullyConnectedOptionsT(), keepNumDims=False)
    model.operatorCodes.append(operator_code(schema, "FULLY_CONNECTED", 4, ""))
    layer = fill(
        schema.OperatorT(), opcodeIndex=len(model.operatorCodes) - 1, inputs=[source, first, first + 1], outputs=[first + 2],
        builtinOptionsType=schema.BuiltinOptions.FullyConnectedOptions, builtinOptions=options,
    )  # fmt: skip
    graph.operators.append(layer)
    graph.outputs = [*graph.outputs, first + 2]
    return signed(schema, model)


def _opened(content: bytes) -> tuple[Any, Any]:
    """The schema, and the normalised model of a .tflite as its objects."""
    schema = schema_of_tflite()
    return schema, schema.ModelT.InitFromPackedBuf(normalise(content), 0)


def _name(model: Any, operator: Any) -> str:
    """The name of an operator of a normalised model."""
    return str(NAMES[model.operatorCodes[operator.opcodeIndex].builtinCode])


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
