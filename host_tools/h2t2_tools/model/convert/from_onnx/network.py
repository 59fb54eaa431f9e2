"""An .onnx file as plain Python: nodes in order, constants, and the shape of every tensor for a batch of 1."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....common.errors import UserError
from ....common.extras import install_hint
from ....common.places import temporary_folder
from ..trained_model import NoInt8Form

LINEAR = 17.0  # above, Softplus(x) is x in float32
FOR_GELU = 20  # the first opset with a node for it, which onnxruntime makes of GELU's parts


@dataclass(frozen=True)
class Node:
    """One operation. inputs: names of tensors, "" for an omitted one. attributes: by name, as Python values."""

    path: Path
    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    def number(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        return float(self.attributes.get(name, default))

    def refuse(self, reason: str, remedy: str = "") -> UserError:
        """The error that names this node, the reason, and what to export instead."""
        return NoInt8Form(f"{self.path}: node {self.name}: {self.kind} {reason}" + (f": {remedy}" if remedy else ""))


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
        raise UserError(f"{path}: {install_hint('onnx', 'convert')}") from None
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
    _normalise_bands(nodes, constants)
    nodes = _with_softmax(_with_hard_swish(_with_plain_softplus(_with_reciprocal_roots(nodes), constants)))
    uses = Counter(name for node in nodes for name in node.inputs)
    uses[graph.output[0].name] += 1
    return Network(path, tuple(nodes), constants, shapes, graph.input[0].name, graph.output[0].name, uses)


def _normalise_bands(nodes: list[Node], constants: dict[str, np.ndarray]) -> None:
    """Let a Conv whose channels are normalised in bands take their mean factors: int8 then rounds all channels alike."""
    makers = {node.outputs[0]: node for node in nodes}
    uses = Counter(name for node in nodes for name in node.inputs)
    for node in nodes:
        view = makers.get(node.inputs[0]) if node.kind == "BatchNormalization" else None
        conv = makers.get(view.inputs[0]) if view and view.kind == "Reshape" else None
        if not view or not conv or conv.kind != "Conv":
            continue
        names = *conv.inputs[1:], *node.inputs[1:]
        if any(uses[name] > 1 for name in (*names, *conv.outputs, *view.outputs)) or not constants.keys() >= {*names}:
            continue
        scale, _, mean, variance = (constants[name] for name in node.inputs[1:])
        channels = len(constants[conv.inputs[1]])
        factor = np.abs(scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))).reshape(channels, -1).mean(1)
        factor[factor == 0] = 1
        for name in conv.inputs[1:]:
            constants[name] = (constants[name].T * factor).T
        factor = factor.repeat(len(scale) // channels)
        constants[node.inputs[1]], constants[node.inputs[3]] = scale / factor, mean * factor


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


def _with_reciprocal_roots(nodes: list[Node]) -> list[Node]:
    """The nodes with x Rsqrt(y) in place of x / Sqrt(y), and Rsqrt(y) in place of Reciprocal(Sqrt(y))."""
    roots = {node.outputs[0]: node.inputs[0] for node in nodes if node.kind == "Sqrt"}
    replaced: list[Node] = []
    for node in nodes:
        divisor = node.inputs[-1] if node.kind in ("Div", "Reciprocal") else ""
        if divisor in roots:
            name = f"{divisor} reciprocal" if node.kind == "Div" else node.outputs[0]
            replaced.append(Node(node.path, node.name, "Rsqrt", (roots[divisor],), (name,), {}))
            if node.kind == "Reciprocal":
                continue
            node = replace(node, kind="Mul", inputs=(node.inputs[0], name))
        replaced.append(node)
    return _without_unread(replaced, nodes, "Sqrt")


def _with_plain_softplus(nodes: list[Node], constants: dict[str, np.ndarray]) -> list[Node]:
    """The nodes with Softplus(x) in place of x where it is large, and Softplus(x) elsewhere, which is the same."""
    makers = {node.outputs[0]: node for node in nodes}
    replaced = []
    for node in nodes:
        parts = [makers.get(name) for name in node.inputs] if node.kind == "Where" else []
        if len(parts) == 3 and parts[0] and parts[2] and (parts[0].kind, parts[2].kind) == ("Greater", "Softplus"):
            bound = constants.get(parts[0].inputs[1], np.zeros(1))
            if parts[0].inputs[0] == node.inputs[1] == parts[2].inputs[0] and bound.min() >= LINEAR:
                node = replace(node, kind="Identity", inputs=node.inputs[2:])
        replaced.append(node)
    return _without_unread(replaced, nodes, "Greater")


def _with_softmax(nodes: list[Node]) -> list[Node]:
    """The nodes with Softmax in place of the Exp of LogSoftmax."""
    logs = {node.outputs[0]: node for node in nodes if node.kind == "LogSoftmax"}
    replaced = [
        replace(logs[node.inputs[0]], name=node.name, kind="Softmax", outputs=node.outputs)
        if node.kind == "Exp" and node.inputs[0] in logs
        else node
        for node in nodes
    ]
    return _without_unread(replaced, nodes, "LogSoftmax")


def _without_unread(replaced: list[Node], nodes: list[Node], kind: str) -> list[Node]:
    """The replaced nodes without those of this kind that only the nodes before read."""
    before, after = ({name for node in each for name in node.inputs} for each in (nodes, replaced))
    return [node for node in replaced if node.kind != kind or node.outputs[0] not in before - after]


def _with_batch_of_one(path: Path) -> bytes:
    """The file with its first dimension set to 1, after a check of its ends."""
    import onnx
    from onnx import version_converter

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
    if any(node.op_type == "Erf" for node in graph.node) and model.opset_import[0].version < FOR_GELU:
        model = version_converter.convert_version(model, FOR_GELU)
    return bytes(model.SerializeToString())


def _folded(content: bytes) -> bytes:
    """The same network with folded constants and batch normalisations, by onnxruntime's basic optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with temporary_folder("onnx") as folder:
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
