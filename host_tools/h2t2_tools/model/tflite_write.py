"""Writes a .tflite (schema version 3) from the same plain Python that tflite.py reads. Needs the extra `convert`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.errors import UserError
from ..common.extras import install_hint
from .tflite import NAMES, OPTIONS, TREES, TYPES, Graph, Operator, Tensor

_CODES = {name: code for code, name in enumerate(NAMES)}
_CODES[TREES] = _CODES["CUSTOM"]
TYPE_CODES = {name: code for code, name in TYPES.items()}


def write(graph: Graph) -> bytes:
    """The file's bytes; `tflite.load` reads the same graph back. One signature, "serving_default", names the ends."""
    schema = schema_of_tflite()
    model = fill(schema.ModelT(), version=3, description=b"h2t2", buffers=[schema.BufferT()])
    graphs = (graph, *graph.subgraphs)
    kinds = list(dict.fromkeys((o.name, o.version, o.custom) for subgraph in graphs for o in subgraph.operators))
    model.operatorCodes = [operator_code(schema, *kind) for kind in kinds]
    model.subgraphs = [
        fill(
            schema.SubGraphT(),
            tensors=[_tensor(schema, model, tensor) for tensor in subgraph.tensors],
            inputs=list(subgraph.inputs),
            outputs=list(subgraph.outputs),
            operators=[
                operator_table(schema, subgraph.tensors, o, kinds.index((o.name, o.version, o.custom)))
                for o in subgraph.operators
            ],
        )
        for subgraph in graphs
    ]
    return signed(schema, model)


def schema_of_tflite() -> Any:
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError:
        raise UserError(f"writing a .tflite needs ai_edge_litert; {install_hint('convert')}") from None
    return schema


def pack(model: Any) -> bytes:
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def fill(table: Any, **fields: Any) -> Any:
    """The table of the schema with these fields."""
    vars(table).update(fields)
    return table


def append_buffer(schema: Any, model: Any, data: np.ndarray) -> int:
    """The number of a new buffer that holds the data."""
    content = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
    model.buffers.append(fill(schema.BufferT(), data=content))
    return len(model.buffers) - 1


def sign(schema: Any, model: Any) -> None:
    """Give the model one signature: the ends of its first graph."""
    graph = model.subgraphs[0]

    def named(tensors: list[int]) -> list[Any]:
        return [fill(schema.TensorMapT(), name=graph.tensors[n].name, tensorIndex=n) for n in tensors]

    ends = {"inputs": named(graph.inputs), "outputs": named(graph.outputs)}
    model.signatureDefs = [fill(schema.SignatureDefT(), signatureKey=b"serving_default", subgraphIndex=0, **ends)]


def signed(schema: Any, model: Any) -> bytes:
    """The file's bytes, with one signature."""
    sign(schema, model)
    return pack(model)


def operator_code(schema: Any, name: str, version: int, custom: str) -> Any:
    code = _CODES[name]
    table = fill(schema.OperatorCodeT(), builtinCode=code, deprecatedBuiltinCode=min(127, code), version=version)
    custom = TREES if name == TREES else custom
    return fill(table, customCode=custom.encode()) if custom else table


def _tensor(schema: Any, model: Any, tensor: Tensor) -> Any:
    if tensor.dtype not in TYPE_CODES:
        raise UserError(f"tensor {tensor.name} has the type {tensor.dtype}, which h2t2 does not write")
    table = fill(
        schema.TensorT(),
        name=tensor.name.encode(),
        shape=list(tensor.shape),
        type=TYPE_CODES[tensor.dtype],
        buffer=0 if tensor.data is None else append_buffer(schema, model, tensor.data),
        isVariable=tensor.variable,
    )
    if len(tensor.scale):
        table.quantization = fill(
            schema.QuantizationParametersT(),
            scale=[float(s) for s in tensor.scale],
            zeroPoint=[int(z) for z in tensor.zero],
            quantizedDimension=tensor.axis,
        )
    return table


def operator_table(schema: Any, tensors: Sequence[Any], operator: Operator, code: int) -> Any:
    """An operator of a graph with these tensors. code: its place in the model's table of operator codes."""
    table = fill(
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
        table.builtinOptions = fill(getattr(schema, name + "T")(), **values)
    elif operator.name == "RESHAPE" and len(operator.inputs) == 1:  # no tensor holds the new shape
        table.builtinOptionsType = schema.BuiltinOptions.ReshapeOptions
        table.builtinOptions = fill(schema.ReshapeOptionsT(), newShape=list(tensors[operator.outputs[0]].shape))
    return table
