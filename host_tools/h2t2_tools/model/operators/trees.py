"""Decision trees, which convert/forest.py writes as an operator of h2t2's own: TFLite has none."""

from ..tflite import Graph, Operator
from .step import Step, ends, parameters
from .tflite_fixed_point import multiplier

LARGEST_SUM = 32767  # in steps of the leaves, of 16 bits


def trees(graph: Graph, operator: Operator) -> list[Step]:
    """H2T2_TREES: x, nodes (bytes, as h2t2/ldl/trees.py describes them), bias, layout (count, record, leaves), sums.

    The nodes' scale is the real size of a step of a leaf and of the bias.
    """
    x, y, _ = ends(graph, operator)
    nodes, bias, layout, sums = (graph.tensors[n] for n in operator.inputs[1:])
    assert nodes.data is not None and bias.data is not None and layout.data is not None
    count, record, leaves = (int(n) for n in layout.data)
    own = {"inputs": x.size, "outputs": y.size, "count": count, "size": nodes.size, "record": record, "leaves": leaves}
    p = parameters("trees", x, y, 0, **own, sums=sums.index)
    return [
        Step(
            "trees", p, y.index, nodes.data.tobytes(), bias.data.astype("int64"),
            [multiplier(float(nodes.scale[0]) / float(y.scale[0]))],
            scratch=("sums", sums.index), reach=LARGEST_SUM + int(max(abs(bias.data.ravel()))),
        )
    ]  # fmt: skip
