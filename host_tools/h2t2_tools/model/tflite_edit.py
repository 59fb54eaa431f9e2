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


def with_integer_prelus(content: bytes) -> bytes:
    """The same int8 .tflite with each PRELU in int8. The quantizer leaves it in float32, between DEQUANTIZE and QUANTIZE."""
    schema, model = _opened(content)
    graph = model.subgraphs[0]
    for operator in graph.operators:
        operator.inputs = [] if operator.inputs is None else operator.inputs
        operator.outputs = [] if operator.outputs is None else operator.outputs
    makers = {int(o.outputs[0]): o for o in graph.operators if len(o.outputs)}
    removed = set()
    for operator in graph.operators:
        if _name(model, operator) != "PRELU" or graph.tensors[operator.inputs[1]].type != TYPE_CODES["float32"]:
            continue
        before = makers.get(int(operator.inputs[0]))
        users = [o for o in graph.operators if int(operator.outputs[0]) in o.inputs]
        data = model.buffers[graph.tensors[operator.inputs[1]].buffer].data
        if before is None or _name(model, before) != "DEQUANTIZE" or [_name(model, o) for o in users] != ["QUANTIZE"]:
            continue
        if data is None or int(operator.outputs[0]) in graph.outputs:
            continue
        slopes = np.asarray(data, np.uint8).view(np.float32)
        scale = float(np.abs(slopes).max() / 127) or 1.0
        table = copy(graph.tensors[operator.inputs[1]])
        table.type, table.buffer = TYPE_CODES["int8"], append_buffer(schema, model, np.round(slopes / scale).astype(np.int8))
        table.quantization = fill(schema.QuantizationParametersT(), scale=[scale], zeroPoint=[0])
        table.name = b"%s_int8" % table.name
        graph.tensors.append(table)
        operator.inputs, operator.outputs = [before.inputs[0], len(graph.tensors) - 1], users[0].outputs
        removed.add(id(users[0]))
    if not removed:
        return content
    read = {int(n) for o in graph.operators if id(o) not in removed for n in o.inputs} | {*map(int, graph.outputs)}
    graph.operators = [
        o for o in graph.operators
        if id(o) not in removed and (_name(model, o) != "DEQUANTIZE" or int(o.outputs[0]) in read)
    ]  # fmt: skip
    _drop_unused(model, graph)
    return signed(schema, model)


def with_constants(content: bytes, changes: dict[int, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """The same .tflite with other data and scales in some constants of its first graph: {tensor: (data, scales)}."""
    schema, model = _opened(content)
    for n, (data, scales) in changes.items():
        tensor = model.subgraphs[0].tensors[n]
        tensor.buffer = append_buffer(schema, model, data)  # its own: other tensors may share the old one
        tensor.quantization.scale = [float(scale) for scale in scales]
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
        model.operatorCodes.append(operator_code(schema, "LOGISTIC", 1, ""))
        score = copy(graph.tensors[output])
        score.name, score.buffer = b"score", 0
        graph.tensors.append(score)
        ends = {"inputs": [output], "outputs": [len(graph.tensors) - 1]}
        graph.operators.append(fill(schema.OperatorT(), opcodeIndex=len(model.operatorCodes) - 1, **ends))
        output = len(graph.tensors) - 1
    graph.inputs, graph.outputs = [source], [output]
    _drop_unused(model, graph)
    return signed(schema, model)


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
