"""Writes the .onnx files of this folder: the mean of four numbers. Needs the package onnx; run: python make_onnx.py"""

from pathlib import Path

from onnx import TensorProto, helper, save


def mean(name, kind, batch):
    """(batch, 4) of that type to the mean as a score: floats as they are, int8 by (q + 128) / 255."""
    nodes = []
    if kind == TensorProto.INT8:
        nodes = [
            helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["f", "zero"], ["shifted"]),
            helper.make_node("Div", ["shifted", "span"], ["scaled"]),
        ]
    nodes.append(helper.make_node("ReduceMean", ["scaled" if nodes else "x"], ["y"], axes=[1], keepdims=1))
    constants = [
        helper.make_tensor("zero", TensorProto.FLOAT, [1], [128.0]),
        helper.make_tensor("span", TensorProto.FLOAT, [1], [255.0]),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("x", kind, [batch, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 1])],
        constants if kind == TensorProto.INT8 else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, str(Path(__file__).parent / f"{name}.onnx"))


mean("mean", TensorProto.FLOAT, "n")
mean("mean_int8_one", TensorProto.INT8, 1)
