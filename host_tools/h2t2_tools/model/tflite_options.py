"""The options of TFLite's operators (schema version 3) that this package reads and writes."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option: its attribute in LiteRT's generated schema, its field in the file, its struct code, and its default."""

    attribute: str
    field: int
    code: str
    default: int | float | str = 0


TEXT = "text"  # in place of a struct code
_WINDOW = {
    "padding": Option("padding", 0, "<b"),
    "stride_w": Option("strideW", 1, "<i", 1),
    "stride_h": Option("strideH", 2, "<i", 1),
}
_POOL = {
    **_WINDOW, "filter_w": Option("filterWidth", 3, "<i", 1), "filter_h": Option("filterHeight", 4, "<i", 1),
    "fused": Option("fusedActivationFunction", 5, "<b"),
}  # fmt: skip
_FUSED = {"fused": Option("fusedActivationFunction", 0, "<b")}
_BLOCK = {"block": Option("blockSize", 0, "<i")}
# operator -> (its table in the schema, name -> option)
OPTIONS: dict[str, tuple[str, dict[str, Option]]] = {
    "CONV_2D": (
        "Conv2DOptions",
        {
            **_WINDOW, "fused": Option("fusedActivationFunction", 3, "<b"),
            "dilation_w": Option("dilationWFactor", 4, "<i", 1), "dilation_h": Option("dilationHFactor", 5, "<i", 1),
        },
    ),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        {
            **_WINDOW, "multiplier": Option("depthMultiplier", 3, "<i", 1), "fused": Option("fusedActivationFunction", 4, "<b"),
            "dilation_w": Option("dilationWFactor", 5, "<i", 1), "dilation_h": Option("dilationHFactor", 6, "<i", 1),
        },
    ),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {**_FUSED, "keep_num_dims": Option("keepNumDims", 2, "<b")}),
    "ADD": ("AddOptions", _FUSED),
    "SUB": ("SubOptions", _FUSED),
    "MUL": ("MulOptions", _FUSED),
    "CONCATENATION": (
        "ConcatenationOptions",
        {"axis": Option("axis", 0, "<i"), "fused": Option("fusedActivationFunction", 1, "<b")},
    ),
    **dict.fromkeys(("MEAN", "SUM"), ("ReducerOptions", {"keep_dims": Option("keepDims", 0, "<b")})),
    "SOFTMAX": ("SoftmaxOptions", {"beta": Option("beta", 0, "<f")}),
    "GELU": ("GeluOptions", {"approximate": Option("approximate", 0, "<b")}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": Option("alpha", 0, "<f")}),
    "PACK": ("PackOptions", {"values": Option("valuesCount", 0, "<i"), "axis": Option("axis", 1, "<i")}),
    "UNPACK": ("UnpackOptions", {"values": Option("num", 0, "<i"), "axis": Option("axis", 1, "<i")}),
    "SPLIT": ("SplitOptions", {"splits": Option("numSplits", 0, "<i")}),
    "SPLIT_V": ("SplitVOptions", {"splits": Option("numSplits", 0, "<i")}),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        {
            "begin_mask": Option("beginMask", 0, "<i"), "end_mask": Option("endMask", 1, "<i"),
            "ellipsis_mask": Option("ellipsisMask", 2, "<i"), "new_axis_mask": Option("newAxisMask", 3, "<i"),
            "shrink_mask": Option("shrinkAxisMask", 4, "<i"), "offset": Option("offset", 5, "<b"),
        },
    ),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", _BLOCK),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", _BLOCK),
    "RESIZE_BILINEAR": (
        "ResizeBilinearOptions",
        {"align_corners": Option("alignCorners", 2, "<b"), "half_pixel_centers": Option("halfPixelCenters", 3, "<b")},
    ),
    "RESIZE_NEAREST_NEIGHBOR": (
        "ResizeNearestNeighborOptions",
        {"align_corners": Option("alignCorners", 0, "<b"), "half_pixel_centers": Option("halfPixelCenters", 1, "<b")},
    ),
    "ARG_MAX": ("ArgMaxOptions", {"out_type": Option("outputType", 0, "<b")}),
    "SHAPE": ("ShapeOptions", {"out_type": Option("outType", 0, "<b")}),
    "BATCH_MATMUL": ("BatchMatMulOptions", {"adjoint_x": Option("adjX", 0, "<b"), "adjoint_y": Option("adjY", 1, "<b")}),
    "VAR_HANDLE": ("VarHandleOptions", {"name": Option("sharedName", 1, TEXT, "")}),
    "CALL_ONCE": ("CallOnceOptions", {"graph": Option("initSubgraphIndex", 0, "<i")}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        {**_FUSED, "cell_clip": Option("cellClip", 1, "<f"), "time_major": Option("timeMajor", 3, "<b")},
    ),
}  # fmt: skip
