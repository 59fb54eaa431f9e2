"""An .onnx file as plain Python: nodes in order, constants, and the shape of every tensor for a batch of 1."""

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....common.errors import UserError

EXTRA = "ONNX sources need the extras `onnx` and `convert`: pip install 'h2t2-edge[onnx,convert]'"


@dataclass(frozen=True)
class Node:
    """One operation. inputs: names of tensors, "" for an omitted one. attributes: by name, as Python values."""

    path: Path
    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    def refuse(self, reason: str, remedy: str = "") -> UserError:
        """The error that names this node, the reason, and what to export instead."""
        return UserError(f"{self.path}: node {self.name}: {self.kind} {reason}" + (f": {remedy}" if remedy else ""))


@dataclass(frozen=True)
class Network:
    """input, output: names of the only ends. shapes: of activations, by name. uses: how many nodes read a tensor."""

    path: Path
    nodes: tuple[Node, ...]
    constants: dict[str, np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    input: str
    output: str
    uses: Counter[str]


def read(path: Path) -> Network:
    """Read a file. onnxruntime folds its constants and batch normalisations first.

    Raises: UserError for a damaged file, several inputs or outputs, an input that is not float32, or a size that is not fixed.
    """
    try:
        import onnx
        from onnx import numpy_helper, shape_inference
    except ImportError:
        raise UserError(EXTRA) from None
    try:
        model = onnx.load_model_from_string(_folded(_with_batch_of_one(path)))
        graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except UserError:
        raise
    except Exception as error:  # protobuf, onnx and onnxruntime raise errors of many types
        raise UserError(f"{path}: onnxruntime cannot read it: {str(error).splitlines()[0]}") from None
    constants = {tensor.name: np.asarray(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    nodes = []
    for n, node in enumerate(graph.node):
        attributes = {each.name: _python(onnx.helper.get_attribute_value(each)) for each in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = np.asarray(numpy_helper.to_array(attributes["value"]))
            continue
        name = node.name or f"number {n}"
        nodes.append(Node(path, name, node.op_type, tuple(node.input), tuple(node.output), attributes))
    shapes = {info.name: _shape(info) for info in (*graph.input, *graph.value_info, *graph.output)}
    nodes = _with_hard_swish(nodes)
    uses = Counter(name for node in nodes for name in node.inputs)
    uses[graph.output[0].name] += 1
    return Network(path, tuple(nodes), constants, shapes, graph.input[0].name, graph.output[0].name, uses)


def _with_hard_swish(nodes: list[Node]) -> list[Node]:
    """The nodes with HardSwish instead of x HardSigmoid(x), as exporters write it: one table instead of four operators."""
    gates = {node.outputs[0]: node for node in nodes if node.kind == "HardSigmoid"}
    gates = {name: gate for name, gate in gates.items() if abs(gate.attributes.get("alpha", 0.2) * 6 - 1) < 1e-5}
    uses = Counter(name for node in nodes for name in node.inputs)
    replaced: list[Node] = []
    for node in nodes:
        for gate, x in (node.inputs, node.inputs[::-1]) if node.kind == "Mul" else ():
            if gate in gates and gates[gate].inputs[0] == x and uses[gate] == 1:
                replaced.remove(gates[gate])
                node = replace(node, kind="HardSwish", inputs=(x,))
                break
        replaced.append(node)
    return replaced


def _with_batch_of_one(path: Path) -> bytes:
    """The file with its first dimension set to 1, after a check of its ends."""
    import onnx

    model = onnx.load(str(path))
    graph = model.graph
    initialised = {tensor.name for tensor in graph.initializer}
    inputs = [each for each in graph.input if each.name not in initialised]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise UserError(f"{path}: {len(inputs)} inputs and {len(graph.output)} outputs, want one of each")
    kind = inputs[0].type.tensor_type
    if kind.elem_type != onnx.TensorProto.FLOAT:
        raise UserError(f"{path}: its input is not float32: export the float model; h2t2 quantises it")
    if len(kind.shape.dim) < 2:
        raise UserError(f"{path}: its input has no batch dimension: export it with an example of the shape (1, ...)")
    for end in (inputs[0], graph.output[0]):
        end.type.tensor_type.shape.dim[0].dim_value = 1
    open_sizes = [n for n, size in enumerate(kind.shape.dim) if size.dim_value < 1]
    if open_sizes:
        raise UserError(f"{path}: dimension {open_sizes[0]} of its input is not fixed: export it with fixed sizes")
    del graph.value_info[:]  # shapes of another batch
    return bytes(model.SerializeToString())


def _folded(content: bytes) -> bytes:
    """The same network with folded constants and batch normalisations, by onnxruntime's basic optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder, "folded.onnx"))
        onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return Path(options.optimized_model_filepath).read_bytes()


def _shape(info: Any) -> tuple[int, ...]:
    return tuple(int(size.dim_value) for size in info.type.tensor_type.shape.dim)


def _python(value: Any) -> Any:
    """An attribute's value: text instead of bytes, a list instead of a repeated field."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if not isinstance(value, (int, float, str)) and hasattr(value, "__iter__") else value
