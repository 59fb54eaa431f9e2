"""Writes a .tflite (schema version 3) from the same plain Python that tflite_file reads. Needs the extra `convert`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.errors import UserError
from .operator_names import NAMES
from .tflite import TYPES, Graph, Operator, Tensor

# operator -> (its table of options in the schema, option name -> attribute)
_WINDOW = {"padding": "padding", "stride_w": "strideW", "stride_h": "strideH", "fused": "fusedActivationFunction"}
_DILATION = {"dilation_w": "dilationWFactor", "dilation_h": "dilationHFactor"}
_POOL = {**_WINDOW, "filter_w": "filterWidth", "filter_h": "filterHeight"}
_MASKS = {"begin_mask": "beginMask", "end_mask": "endMask", "ellipsis_mask": "ellipsisMask"}
_MASKS |= {"new_axis_mask": "newAxisMask", "shrink_mask": "shrinkAxisMask", "offset": "offset"}
_CENTRES = {"align_corners": "alignCorners", "half_pixel_centers": "halfPixelCenters"}
_OPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "CONV_2D": ("Conv2DOptions", {**_WINDOW, **_DILATION}),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", {**_WINDOW, **_DILATION, "multiplier": "depthMultiplier"}),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {"fused": "fusedActivationFunction", "keep_num_dims": "keepNumDims"}),
    "ADD": ("AddOptions", {"fused": "fusedActivationFunction"}),
    "SUB": ("SubOptions", {"fused": "fusedActivationFunction"}),
    "MUL": ("MulOptions", {"fused": "fusedActivationFunction"}),
    "CONCATENATION": ("ConcatenationOptions", {"axis": "axis", "fused": "fusedActivationFunction"}),
    **dict.fromkeys(("MEAN", "SUM"), ("ReducerOptions", {"keep_dims": "keepDims"})),
    "SOFTMAX": ("SoftmaxOptions", {"beta": "beta"}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": "alpha"}),
    "PACK": ("PackOptions", {"values": "valuesCount", "axis": "axis"}),
    "UNPACK": ("UnpackOptions", {"values": "num", "axis": "axis"}),
    "SPLIT": ("SplitOptions", {"splits": "numSplits"}),
    "SPLIT_V": ("SplitVOptions", {"splits": "numSplits"}),
    "STRIDED_SLICE": ("StridedSliceOptions", _MASKS),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", {"block": "blockSize"}),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", {"block": "blockSize"}),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _CENTRES),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _CENTRES),
    "SHAPE": ("ShapeOptions", {"out_type": "outType"}),
    "BATCH_MATMUL": ("BatchMatMulOptions", {"adjoint_x": "adjX", "adjoint_y": "adjY"}),
    "VAR_HANDLE": ("VarHandleOptions", {"name": "sharedName"}),
    "CALL_ONCE": ("CallOnceOptions", {"graph": "initSubgraphIndex"}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        {"fused": "fusedActivationFunction", "cell_clip": "cellClip", "time_major": "timeMajor"},
    ),
}
_CODES = {name: code for code, name in enumerate(NAMES)}
_TYPES = {name: code for code, name in TYPES.items()}


def write(graph: Graph) -> bytes:
    """The file's bytes; `tflite.load` reads the same graph back. One signature, "serving_default", names the ends."""
    schema = _schema()
    model = schema.ModelT()
    model.version, model.description = 3, b"h2t2"
    model.buffers = [schema.BufferT()]
    graphs = (graph, *graph.others)
    kinds = list(dict.fromkeys((operator.name, operator.version) for each in graphs for operator in each.operators))
    model.operatorCodes = [_code(schema, *kind) for kind in kinds]
    model.subgraphs = [_graph(schema, model, each, kinds) for each in graphs]
    _sign(schema, model)
    return _packed(model)


def plain(content: bytes) -> bytes:
    """The same .tflite as every interpreter and tool takes it: constants that lie behind the flatbuffer (large ones may; older
    interpreters do not look there) are in it; its ends have a signature, and its tensors names of their own, which is how the
    quantizer finds them; operators' codes stand where newer tools look (older files have a deprecated field)."""
    schema = _schema()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    aged = [code for code in model.operatorCodes if code.builtinCode < code.deprecatedBuiltinCode]
    for code in aged:
        code.builtinCode = code.deprecatedBuiltinCode
    outside = [buffer for buffer in model.buffers if buffer.offset > 1]
    for buffer in outside:
        buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    tensors = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    named = len({tensor.name for tensor in tensors} - {b"", None}) == len(tensors)
    if not outside and named and model.signatureDefs and not aged:
        return content
    if not named:
        for n, tensor in enumerate(tensors):
            tensor.name = b"%s:%d" % (tensor.name or b"tensor", n)
    if not (named and model.signatureDefs):
        _sign(schema, model)
    return _packed(model)


def with_constants(content: bytes, changes: dict[int, tuple[np.ndarray, np.ndarray]]) -> bytes:
    """The same .tflite with other data and scales in some constants of its first graph: {tensor: (data, scales)}."""
    schema = _schema()
    model = schema.ModelT.InitFromPackedBuf(plain(content), 0)
    for n, (data, scales) in changes.items():
        tensor = model.subgraphs[0].tensors[n]
        tensor.buffer = len(model.buffers)  # its own: others may share the one it had
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        tensor.quantization.scale = [float(scale) for scale in scales]
    return _packed(model)


def with_ends(content: bytes, source: int, output: int, constants: dict[int, np.ndarray], operators: list[int]) -> bytes:
    """The same .tflite with one input and one output, these operators alone (by number), and constants in some tensors."""
    schema = _schema()
    model = schema.ModelT.InitFromPackedBuf(plain(content), 0)
    graph = model.subgraphs[0]
    graph.operators = [graph.operators[n] for n in operators]
    used = {int(n) for operator in graph.operators for n in (*_of(operator.inputs), *_of(operator.outputs))}
    for n, tensor in enumerate(graph.tensors):
        if n in constants:
            tensor.buffer = len(model.buffers)
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = np.frombuffer(constants[n].tobytes(), np.uint8)
        elif n not in used:
            tensor.buffer = 0  # which is empty: what only the other ends needed is left out
    held = {tensor.buffer for each in model.subgraphs for tensor in each.tensors}
    for n, buffer in enumerate(model.buffers):
        if n not in held:
            buffer.data = None
    graph.inputs, graph.outputs = [source], [output]
    model.signatureDefs = []
    _sign(schema, model)
    return _packed(model)


def _of(numbers: Any) -> Any:
    return () if numbers is None else numbers


def _schema() -> Any:
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError:
        raise UserError("writing a .tflite needs the extra `convert`: pip install 'h2t2-edge[convert]'") from None
    return schema


def _packed(model: Any) -> bytes:
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _sign(schema: Any, model: Any) -> None:
    """Give it one signature, of its first graph's ends."""
    graph = model.subgraphs[0]
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = b"serving_default", 0
    for ends, kind in ((graph.inputs, "inputs"), (graph.outputs, "outputs")):
        named = []
        for n in ends:
            end = schema.TensorMapT()
            end.name, end.tensorIndex = graph.tensors[n].name, n
            named.append(end)
        setattr(signature, kind, named)
    model.signatureDefs = [signature]


def _graph(schema: Any, model: Any, graph: Graph, kinds: list[tuple[str, int]]) -> Any:
    made = schema.SubGraphT()
    made.tensors = [_tensor(schema, model, tensor) for tensor in graph.tensors]
    made.inputs, made.outputs = list(graph.inputs), list(graph.outputs)
    made.operators = [
        _operator(schema, operator, kinds.index((operator.name, operator.version))) for operator in graph.operators
    ]
    return made


def _code(schema: Any, name: str, version: int) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = _CODES[name]
    code.deprecatedBuiltinCode = min(127, _CODES[name])
    code.version = version
    return code


def _tensor(schema: Any, model: Any, tensor: Tensor) -> Any:
    if tensor.dtype not in _TYPES:
        raise UserError(f"tensor {tensor.name} is of a type that is not written here")
    made = schema.TensorT()
    made.name, made.shape, made.type = tensor.name.encode(), list(tensor.shape), _TYPES[tensor.dtype]
    made.buffer, made.isVariable = 0, tensor.variable
    if tensor.data is not None:
        made.buffer = len(model.buffers)
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(tensor.data).tobytes(), np.uint8)
        model.buffers.append(buffer)
    if len(tensor.scale):
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale = [float(s) for s in tensor.scale]
        made.quantization.zeroPoint = [int(z) for z in tensor.zero]
        made.quantization.quantizedDimension = tensor.axis
    return made


def _operator(schema: Any, operator: Operator, code: int) -> Any:
    made = schema.OperatorT()
    made.opcodeIndex, made.inputs, made.outputs = code, list(operator.inputs), list(operator.outputs)
    made.intermediates = list(operator.intermediates) or None
    if operator.name in _OPTIONS:
        table, attributes = _OPTIONS[operator.name]
        made.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        made.builtinOptions = getattr(schema, table + "T")()
        for option, value in operator.options.items():
            setattr(made.builtinOptions, attributes[option], value)
    return made
