"""Writes a .tflite (schema version 3) from the same plain Python that tflite.py reads. Needs the extra `convert`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.errors import UserError
from .operator_names import NAMES, TREES
from .tflite import TYPES, Graph, Operator, Tensor
from .tflite_options import OPTIONS

_CODES = {name: code for code, name in enumerate(NAMES)}
_CODES[TREES] = _CODES["CUSTOM"]
_TYPES = {name: code for code, name in TYPES.items()}


def write(graph: Graph) -> bytes:
    """The file's bytes; `tflite.load` reads the same graph back. One signature, "serving_default", names the ends."""
    schema = _schema()
    model = _fill(schema.ModelT(), version=3, description=b"h2t2", buffers=[schema.BufferT()])
    graphs = (graph, *graph.subgraphs)
    kinds = list(dict.fromkeys((o.name, o.version, o.custom) for subgraph in graphs for o in subgraph.operators))
    model.operatorCodes = [_code(schema, *kind) for kind in kinds]
    model.subgraphs = [
        _fill(
            schema.SubGraphT(),
            tensors=[_tensor(schema, model, tensor) for tensor in subgraph.tensors],
            inputs=list(subgraph.inputs),
            outputs=list(subgraph.outputs),
            operators=[_operator(schema, o, kinds.index((o.name, o.version, o.custom))) for o in subgraph.operators],
        )
        for subgraph in graphs
    ]
    _sign(schema, model)
    return _pack(model)


def normalise(content: bytes) -> bytes:
    """The same .tflite in the form that every interpreter and tool accepts.

    Constants behind the flatbuffer move into it: older interpreters do not look behind it. Ends get a signature, and tensors
    unique names: the quantizer finds them so. Operators' codes move from the deprecated field to the new one.
    """
    schema = _schema()
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
        _sign(schema, model)
    return _pack(model)


def with_constants(content: bytes, changes: dict[int, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """The same .tflite with other data and scales in some constants of its first graph: {tensor: (data, scales)}."""
    schema = _schema()
    model = schema.ModelT.InitFromPackedBuf(normalise(content), 0)
    for n, (data, scales) in changes.items():
        tensor = model.subgraphs[0].tensors[n]
        tensor.buffer = _append_buffer(schema, model, data)  # its own: other tensors may share the old one
        tensor.quantization.scale = [float(scale) for scale in scales]
    return _pack(model)


def with_ends(content: bytes, source: int, output: int, constants: dict[int, np.ndarray], operators: list[int]) -> bytes:
    """The same .tflite with one input and one output, these operators alone (by number), and constants in some tensors."""
    schema = _schema()
    model = schema.ModelT.InitFromPackedBuf(normalise(content), 0)
    graph = model.subgraphs[0]
    graph.operators = [graph.operators[n] for n in operators]
    used = {int(n) for o in graph.operators for numbers in (o.inputs, o.outputs) for n in (() if numbers is None else numbers)}
    for n, tensor in enumerate(graph.tensors):
        if n in constants:
            tensor.buffer = _append_buffer(schema, model, constants[n])
        elif n not in used:
            tensor.buffer = 0  # the empty buffer: only the other ends needed this constant
    referenced = {tensor.buffer for subgraph in model.subgraphs for tensor in subgraph.tensors}
    for n, buffer in enumerate(model.buffers):
        if n not in referenced:
            buffer.data = None
    graph.inputs, graph.outputs = [source], [output]
    _sign(schema, model)
    return _pack(model)


def _schema() -> Any:
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError:
        raise UserError("writing a .tflite needs the extra `convert`: pip install 'h2t2-edge[convert]'") from None
    return schema


def _pack(model: Any) -> bytes:
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _fill(table: Any, **fields: Any) -> Any:
    """The table of the schema with these fields."""
    vars(table).update(fields)
    return table


def _append_buffer(schema: Any, model: Any, data: np.ndarray) -> int:
    """The number of a new buffer that holds the data."""
    content = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
    model.buffers.append(_fill(schema.BufferT(), data=content))
    return len(model.buffers) - 1


def _sign(schema: Any, model: Any) -> None:
    """Give the model one signature: the ends of its first graph."""
    graph = model.subgraphs[0]

    def named(tensors: list[int]) -> list[Any]:
        return [_fill(schema.TensorMapT(), name=graph.tensors[n].name, tensorIndex=n) for n in tensors]

    ends = {"inputs": named(graph.inputs), "outputs": named(graph.outputs)}
    model.signatureDefs = [_fill(schema.SignatureDefT(), signatureKey=b"serving_default", subgraphIndex=0, **ends)]


def _code(schema: Any, name: str, version: int, custom: str) -> Any:
    code = _CODES[name]
    table = _fill(schema.OperatorCodeT(), builtinCode=code, deprecatedBuiltinCode=min(127, code), version=version)
    custom = TREES if name == TREES else custom
    return _fill(table, customCode=custom.encode()) if custom else table


def _tensor(schema: Any, model: Any, tensor: Tensor) -> Any:
    if tensor.dtype not in _TYPES:
        raise UserError(f"tensor {tensor.name} has the type {tensor.dtype}, which h2t2 does not write")
    table = _fill(
        schema.TensorT(),
        name=tensor.name.encode(),
        shape=list(tensor.shape),
        type=_TYPES[tensor.dtype],
        buffer=0 if tensor.data is None else _append_buffer(schema, model, tensor.data),
        isVariable=tensor.variable,
    )
    if len(tensor.scale):
        table.quantization = _fill(
            schema.QuantizationParametersT(),
            scale=[float(s) for s in tensor.scale],
            zeroPoint=[int(z) for z in tensor.zero],
            quantizedDimension=tensor.axis,
        )
    return table


def _operator(schema: Any, operator: Operator, code: int) -> Any:
    table = _fill(
        schema.OperatorT(),
        opcodeIndex=code,
        inputs=list(operator.inputs),
        outputs=list(operator.outputs),
        intermediates=list(operator.intermediates) or None,
    )
    if operator.name in OPTIONS:
        name, options = OPTIONS[operator.name]
        table.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        values = {options[option].attribute: value for option, value in operator.options.items()}
        table.builtinOptions = _fill(getattr(schema, name + "T")(), **values)
    return table
