"""Builds small networks as int8 .tflite with random weights: known ones for benchmarks, and others operator by operator."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from h2t2_tools.model.tflite import Graph, Operator, Tensor
from h2t2_tools.model.tflite_write import write

VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESHAPE": 1, "PRELU": 1, "HARD_SWISH": 1, "UNPACK": 1}
VERSIONS |= dict.fromkeys(("UNIDIRECTIONAL_SEQUENCE_LSTM", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"), 1)
VERSIONS |= {"RELU_N1_TO_1": 1, "SPACE_TO_DEPTH": 1, "DEPTH_TO_SPACE": 1, "TILE": 1, "BATCH_MATMUL": 2, "SPLIT_V": 2}
NONE, RELU, RELU6 = 0, 1, 3
SAME, VALID = 0, 1
SEED = 1  # of the weights of known networks


Output = TypeVar("Output", int, tuple[int, ...])  # index of an operator's output tensor, or several


class Builder:
    """A model that grows operator by operator. Methods take and return indices of tensors."""

    def __init__(self, seed: int, shape: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.first = self.tensor((1, *shape), self.rng.uniform(0.005, 0.1), int(self.rng.integers(-128, 128)))

    def tensor(self, shape: Any, scale: Any = None, zero: int = 0, data: Any = None, dtype: str = "int8", axis: int = 0) -> int:
        """Append a tensor. scale: one number, or one for each channel."""
        n = len(self.tensors)
        scales = np.zeros(0) if scale is None else np.atleast_1d(np.asarray(scale, np.float32))
        zeros = np.zeros(len(scales), np.int64) + zero
        shape = tuple(int(size) for size in shape)
        self.tensors.append(Tensor(n, f"t{n}", shape, dtype, data, scales, zeros, axis=axis))
        return n

    def operator(self, name: str, inputs: Any, output: Output, /, **options: Any) -> Output:
        version = VERSIONS.get(name, 2)
        outputs = output if isinstance(output, tuple) else (output,)
        self.operators.append(Operator(name, version, tuple(inputs), outputs, options))
        return output

    def shape(self, n: int) -> tuple[int, ...]:
        return self.tensors[n].shape

    def scale(self, n: int) -> float:
        return float(self.tensors[n].scale[0])

    def weighted(self, name: str, x: int, w_shape: Any, axis: int, taps: int, shape_out: Any, **options: Any) -> int:
        """Append an operator with weights. taps: products in a sum. The output's scale lets most sums fit."""
        rng = self.rng
        channels = w_shape[axis]
        each = rng.uniform(0.5, 1.5, channels if rng.random() < 0.6 else 1)
        each *= rng.uniform(0.5, 4) / (self.scale(x) * 74 * 74 * np.sqrt(taps))  # real outputs of a few units, like logits
        data = rng.integers(-127, 128, w_shape).astype(np.int8)
        w = self.tensor(w_shape, each, 0, data, axis=axis)
        spread = self.scale(x) * float(each.mean()) * 74 * 74 * np.sqrt(taps)
        bias = rng.normal(0, 0.3 * spread / (self.scale(x) * float(each.mean())), channels).astype(np.int32)
        b = self.tensor((channels,), self.scale(x) * np.asarray(each, np.float32), 0, bias, "int32")
        inputs = (x, w, -1 if name == "FULLY_CONNECTED" and rng.random() < 0.3 else b)
        fused = options.get("fused", NONE)
        zero = int(rng.integers(-128, -80)) if fused else int(rng.integers(-60, 60))
        y = self.tensor(shape_out, spread * rng.uniform(0.01, 0.04), zero)
        return self.operator(name, inputs, y, **options)

    def out(self, size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
        reach = (kernel - 1) * dilation + 1
        return -(-size // stride) if padding == SAME else (size - reach) // stride + 1

    def convolution(
        self, x: int, depthwise: bool = False, *, kernel: Any = None, stride: Any = None, channels: int | None = None,
        fused: int | None = None, padding: int | None = None, dilation: Any = None,
    ) -> int:  # fmt: skip
        """Append a convolution. It draws every option that is None."""
        rng = self.rng
        batch, height, width, depth = self.shape(x)
        kernel = kernel or tuple(int(k) for k in rng.integers(1, 5, 2))
        padding = int(rng.integers(0, 2)) if padding is None else padding
        stride = stride or tuple(int(s) for s in rng.integers(1, 4, 2))
        dilation = dilation or ((1, 1) if rng.random() < 0.6 else tuple(int(d) for d in rng.integers(1, 4, 2)))
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
        if reach[0] > height or reach[1] > width:
            padding = SAME
        multiplier = int(rng.integers(1, 4)) if channels is None else 1
        channels = depth * multiplier if depthwise else channels or int(rng.integers(1, 7))
        output_size = [self.out(n, k, s, d, padding) for n, k, s, d in zip((height, width), kernel, stride, dilation)]
        fused = int(rng.choice([NONE, RELU, RELU6])) if fused is None else fused
        options = {
            "padding": padding, "stride_w": stride[1], "stride_h": stride[0],
            "dilation_w": dilation[1], "dilation_h": dilation[0], "fused": fused,
        }  # fmt: skip
        if depthwise:
            options["multiplier"] = multiplier
            shape, axis, taps, name = (1, *kernel, channels), 3, kernel[0] * kernel[1], "DEPTHWISE_CONV_2D"
        else:
            shape, axis, taps, name = (channels, *kernel, depth), 0, kernel[0] * kernel[1] * depth, "CONV_2D"
        return self.weighted(name, x, shape, axis, taps, (batch, *output_size, channels), **options)

    def dense(self, x: int, outputs: int, fused: int = NONE) -> int:
        """Append a dense layer over a vector, or over every step of a sequence."""
        *before, n = self.shape(x)
        keep = {"keep_num_dims": 1} if len(before) > 1 else {}
        return self.weighted("FULLY_CONNECTED", x, (outputs, n), 0, n, (*before, outputs), fused=fused, **keep)

    def mean(self, x: int, keep: bool = False) -> int:
        axes = self.tensor((2,), None, 0, np.array([1, 2], np.int32), "int32")
        depth = self.shape(x)[3]
        shape_out = (1, 1, 1, depth) if keep else (1, depth)
        y = self.tensor(shape_out, self.scale(x) * self.rng.uniform(0.4, 1.1), int(self.rng.integers(-80, 80)))
        return self.operator("MEAN", (x, axes), y, keep_dims=int(keep))

    def scored(self, x: int, name: str) -> int:
        y = self.tensor(self.shape(x), 1 / 256, -128)
        return self.operator(name, (x,), y, **({"beta": 1.0} if name == "SOFTMAX" else {}))

    def bytes(self, y: int) -> bytes:
        return write(Graph("made", 0, tuple(self.tensors), tuple(self.operators), (self.first,), (y,)))


def mobilenet_v1(depth: int = 3) -> bytes:
    """MobileNet v1 (Howard et al., 2017) with random weights: 13 depthwise separable blocks, average, dense, softmax."""
    make = Builder(SEED, (96, 96, depth))
    options: dict[str, Any] = {"padding": SAME, "dilation": (1, 1), "fused": RELU6}
    x = make.convolution(make.first, kernel=(3, 3), stride=(2, 2), channels=8, **options)
    for channels, stride in (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
    ):  # fmt: skip
        x = make.convolution(x, depthwise=True, kernel=(3, 3), stride=(stride, stride), channels=1, **options)
        x = make.convolution(x, kernel=(1, 1), stride=(1, 1), channels=channels // 4, **options)
    return make.bytes(make.scored(make.dense(make.mean(x), 2), "SOFTMAX"))


def resnet_8() -> bytes:
    """ResNet-8 (MLPerf Tiny's form) with random weights: three residual blocks of 16, 32 and 64 channels."""
    make = Builder(SEED, (32, 32, 3))

    def conv(x: int, channels: int, kernel: int, stride: int, fused: int) -> int:
        return make.convolution(
            x, kernel=(kernel, kernel), stride=(stride, stride), channels=channels, padding=SAME, dilation=(1, 1), fused=fused
        )

    x = conv(make.first, 16, 3, 1, RELU)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = conv(conv(x, channels, 3, stride, RELU), channels, 3, 1, NONE)
        short = x if stride == 1 else conv(x, channels, 1, stride, NONE)
        total = make.tensor(make.shape(y), 1.5 * max(make.scale(y), make.scale(short)), -128)
        x = make.operator("ADD", (short, y), total, fused=RELU)
    return make.bytes(make.scored(make.dense(make.mean(x), 2), "SOFTMAX"))


def ds_cnn() -> bytes:
    """DS-CNN (MLPerf Tiny's form of keyword spotting) with random weights: 64 channels, four depthwise separable blocks."""
    make = Builder(SEED, (49, 10, 1))
    options: dict[str, Any] = {"padding": SAME, "dilation": (1, 1), "fused": RELU}
    x = make.convolution(make.first, kernel=(10, 4), stride=(2, 2), channels=64, **options)
    for _ in range(4):
        x = make.convolution(x, depthwise=True, kernel=(3, 3), stride=(1, 1), channels=1, **options)
        x = make.convolution(x, kernel=(1, 1), stride=(1, 1), channels=64, **options)
    return make.bytes(make.scored(make.dense(make.mean(x), 12), "SOFTMAX"))


def autoencoder() -> bytes:
    """The dense autoencoder of MLPerf Tiny's anomaly detection with random weights: 640 to 8 numbers and back."""
    make = Builder(SEED, (640,))
    x = make.first
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = make.dense(x, width, RELU)
    return make.bytes(make.dense(x, 640))


NETWORKS: dict[str, Callable[[], bytes]] = {
    "mobilenet_v1": mobilenet_v1, "resnet_8": resnet_8, "ds_cnn": ds_cnn, "autoencoder": autoencoder,
}  # fmt: skip
