"""int8 .tflite models in random shapes over every operator of the integer interpreter; no TensorFlow."""

from dataclasses import replace

import numpy as np
import pytest

from h2t2_lab.networks import NONE, RELU, RELU6, SAME, VALID, Builder
from h2t2_tools.model.operators import SAME_BYTES
from h2t2_tools.model.tflite import Graph, Operator, Tensor
from h2t2_tools.model.tflite import read as tflite_read
from h2t2_tools.model.tflite_write import write

WEIGHTED = "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"
# of int8 only; RESIZE_BILINEAR of uint8 is drawn by doubled() alone, for not every size can be had
SIGNED = {"RESIZE_BILINEAR", "BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM"}


class Maker(Builder):
    """A Builder of whatever a random model may have."""

    def __init__(self, seed, shape):
        super().__init__(seed, shape)
        self.initial_values = []  # of each variable, by the first graph

    def numbers(self, *values):
        """A constant of int32."""
        return self.tensor((len(values),), None, 0, np.array(values, np.int32), "int32")

    def zero(self, n):
        return int(self.tensors[n].zero[0])

    def pool(self, x):
        rng = self.rng
        _, height, width, depth = self.shape(x)
        kernel = (int(rng.integers(1, min(4, height) + 1)), int(rng.integers(1, min(4, width) + 1)))
        stride, padding = tuple(int(s) for s in rng.integers(1, 4, 2)), int(rng.integers(0, 2))
        made = [self.out(n, k, s, 1, padding) for n, k, s in zip((height, width), kernel, stride)]
        y = self.tensor((1, *made, depth), self.scale(x), self.zero(x))
        return self.operator(
            "AVERAGE_POOL_2D" if rng.random() < 0.5 else "MAX_POOL_2D", (x,), y, padding=padding, stride_w=stride[1],
            stride_h=stride[0], filter_w=kernel[1], filter_h=kernel[0], fused=int(rng.choice([NONE, RELU, RELU6])),
        )  # fmt: skip

    def branches(self, x):
        """ADD or MUL of two convolutions of one input."""
        rng, depth = self.rng, int(self.rng.integers(1, 5))
        a, b = (self.convolution(x, kernel=(k, k), stride=(1, 1), channels=depth, padding=SAME) for k in (1, 3))
        name = "ADD" if rng.random() < 0.6 else "MUL"
        large = max(self.scale(a), self.scale(b)) if name == "ADD" else self.scale(a) * self.scale(b) * 40
        y = self.tensor(self.shape(a), large * rng.uniform(0.7, 2), int(rng.integers(-100, 100)))
        return self.operator(name, (a, b), y, fused=int(rng.choice([NONE, RELU, RELU6])))

    def operand(self, x):
        """Something of the shape of x, or that is repeated to it: a constant, or computed from x."""
        rng, shape = self.rng, self.shape(x)
        which = int(rng.integers(5))
        if which == 0 and len(shape) == 4:
            return self.mean(x, keep=True)  # one number a channel, as squeeze-and-excitation has
        made = {1: (), 2: shape[-1:], 3: (1,) * (len(shape) - 1) + shape[-1:]}.get(which, shape)
        data = rng.integers(-128, 128, made).astype(np.int8)
        return self.tensor(made, self.scale(x) * rng.uniform(0.3, 2), int(rng.integers(-128, 128)), data)

    def combined(self, x):
        """ADD, SUB, MUL, MAXIMUM or MINIMUM with a constant or another tensor, before or behind it."""
        rng, other = self.rng, self.operand(x)
        name = str(rng.choice(["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]))
        pair = (x, other) if rng.random() < 0.5 else (other, x)
        if name in ("MAXIMUM", "MINIMUM"):
            t = self.tensors[other]
            if t.data is None:
                return x
            scale = np.array([self.scale(x)], np.float32)
            self.tensors[other] = Tensor(other, t.name, t.shape, t.dtype, t.data, scale, np.array([self.zero(x)]))
            return self.operator(name, pair, self.tensor(self.shape(x), self.scale(x), self.zero(x)))
        large = self.scale(x) * self.scale(other) * 40 if name == "MUL" else max(self.scale(x), self.scale(other))
        y = self.tensor(self.shape(x), large * rng.uniform(0.7, 2), int(rng.integers(-100, 100)))
        return self.operator(name, pair, y, fused=int(rng.choice([NONE, RELU, RELU6])))

    def function(self, x):
        """A function of each number."""
        rng = self.rng
        name = str(rng.choice(["TANH", "LEAKY_RELU", "HARD_SWISH", "RELU_N1_TO_1", "PRELU"]))
        scale = self.scale(x) * rng.uniform(0.5, 2)
        if name == "TANH":
            return self.operator(name, (x,), self.tensor(self.shape(x), 1 / 128, 0))
        y = self.tensor(self.shape(x), scale, int(rng.integers(-128, 100)))
        if name == "PRELU":
            made = (*[1] * (len(self.shape(x)) - 2), self.shape(x)[-1])
            factors = rng.integers(-128, 128, made).astype(np.int8)
            factor = self.tensor(made, rng.uniform(0.001, 0.02), int(rng.integers(-128, 128)), factors)
            return self.operator(name, (x, factor), y)
        return self.operator(name, (x,), y, **({"alpha": float(rng.uniform(0.01, 1.5))} if name == "LEAKY_RELU" else {}))

    def moved(self, x):
        """The same numbers in another order, or some of them."""
        rng = self.rng
        _, height, width, depth = shape = self.shape(x)

        def like(made):
            return self.tensor(made, self.scale(x), self.zero(x))

        kinds = "TRANSPOSE SLICE STRIDED_SLICE SPLIT SPLIT_V PACK TILE DEPTH RESIZE REVERSE_V2".split()
        which = str(rng.choice(kinds))
        if which == "TRANSPOSE":
            order = [0, *(int(n) for n in rng.permutation([1, 2, 3]))]
            return self.operator(which, (x, self.numbers(*order)), like([shape[n] for n in order]))
        if which in ("SLICE", "STRIDED_SLICE"):
            begin = [0, *(int(rng.integers(size)) for size in shape[1:])]
            size = [1, *(int(rng.integers(1, full - at + 1)) for at, full in zip(begin[1:], shape[1:]))]
            if which == "SLICE":
                return self.operator(which, (x, self.numbers(*begin), self.numbers(*size)), like(size))
            return self.strided(x, begin, [at + n for at, n in zip(begin, size)])
        axis = int(rng.integers(1, 4))
        if which == "REVERSE_V2":
            return self.operator(which, (x, self.numbers(axis)), like(shape))
        if which in ("SPLIT", "SPLIT_V"):
            if shape[axis] < 2:
                return x
            parts = [1, shape[axis] - 1] if which == "SPLIT_V" else [shape[axis] // 2] * 2
            if sum(parts) != shape[axis]:
                return x
            made = tuple(like((*shape[:axis], n, *shape[axis + 1 :])) for n in parts)
            inputs = (self.numbers(axis), x) if which == "SPLIT" else (x, self.numbers(*parts), self.numbers(axis))
            return self.operator(which, inputs, made, splits=2)[int(rng.integers(2))]
        if which == "PACK":
            made = list(shape)
            made.insert(axis, 2)
            packed = self.operator(which, (x, x), like(made), values=2, axis=axis)
            both = tuple(like(shape) for _ in range(2))
            return self.operator("UNPACK", (packed,), both, values=2, axis=axis)[int(rng.integers(2))]
        if which == "TILE":
            times = [1, *(int(rng.integers(1, 3)) if n != axis else 1 for n in (1, 2, 3))]
            return self.operator(which, (x, self.numbers(*times)), like([n * t for n, t in zip(shape, times)]))
        if which == "DEPTH":
            tiled = self.operator("TILE", (x, self.numbers(1, 1, 1, 4)), like((1, height, width, 4 * depth)))
            wide = self.operator("DEPTH_TO_SPACE", (tiled,), like((1, 2 * height, 2 * width, depth)), block=2)
            if rng.random() < 0.5:
                return wide
            return self.operator("SPACE_TO_DEPTH", (wide,), like((1, height, width, 4 * depth)), block=2)
        half, corners = bool(rng.random() < 0.5), False
        name = str(rng.choice(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]))
        if name == "RESIZE_BILINEAR":
            size = [int(n) for n in rng.integers(1, 14, 2)]
            corners = not half and bool(rng.random() < 0.5)
        else:
            size = [n * int(rng.integers(1, 4)) for n in (height, width)]
        options = {"align_corners": int(corners), "half_pixel_centers": int(half)}
        return self.operator(name, (x, self.numbers(*size)), like((1, *size, depth)), **options)

    def strided(self, x, begin, ends):
        """A STRIDED_SLICE from `begin` to `ends`, with masks of every kind that a board runs; what it shrinks comes back."""
        rng, shape = self.rng, self.shape(x)
        steps = [1, *(int(rng.integers(1, 3)) for _ in range(3))]
        masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_mask"), 0)
        masks |= {name: int(rng.integers(8)) << 1 for name in ("begin_mask", "end_mask") if rng.random() < 0.4}
        if rng.random() < 0.4:
            masks["shrink_mask"] = int(rng.integers(8)) << 1
        made = []
        for n, full in enumerate(shape):
            first = 0 if masks["begin_mask"] >> n & 1 else begin[n]
            last = full if masks["end_mask"] >> n & 1 else ends[n]
            made.append(1 if masks["shrink_mask"] >> n & 1 else -(-(last - first) // steps[n]))
            if rng.random() < 0.3:  # from the end
                begin[n] -= full
            if rng.random() < 0.3 and ends[n] < full:
                ends[n] -= full
        kept = [size for n, size in enumerate(made) if not masks["shrink_mask"] >> n & 1]
        like = self.scale(x), self.zero(x)
        inputs = (x, *(self.numbers(*values) for values in (begin, ends, steps)))
        y = self.operator("STRIDED_SLICE", inputs, self.tensor(kept, *like), **masks)
        return self.operator("RESHAPE", (y, self.numbers(*made)), self.tensor(made, *like)) if kept != made else y

    def attended(self, x):
        """BATCH_MATMUL of a tensor with itself, turned or not."""
        _, height, width, depth = self.shape(x)
        other = self.convolution(x, kernel=(1, 1), stride=(1, 1), channels=depth, padding=SAME)
        turned = int(self.rng.random() < 0.6)
        if not turned:
            other = self.operator("TRANSPOSE", (other, self.numbers(0, 1, 3, 2)), self.tensor(
                (1, height, depth, width), self.scale(other), self.zero(other)))  # fmt: skip
        scale = self.scale(x) * self.scale(other) * 74 * np.sqrt(depth)
        y = self.tensor((1, height, width, width), scale * self.rng.uniform(0.3, 2), int(self.rng.integers(-50, 50)))
        return self.operator("BATCH_MATMUL", (x, other), y, adjoint_x=0, adjoint_y=turned)

    def joined(self, x):
        a = self.convolution(x, kernel=(1, 1), stride=(1, 1), channels=2)
        axis = int(self.rng.integers(1, 4))
        b = self.rescaled(self.convolution(x, kernel=(1, 1), stride=(1, 1), channels=2), (self.scale(a), self.zero(a)))
        shape = list(self.shape(a))
        shape[axis] += self.shape(b)[axis]
        return self.operator("CONCATENATION", (a, b), self.tensor(shape, self.scale(a), self.zero(a)), axis=axis, fused=NONE)

    def rescaled(self, x, to=None, name="QUANTIZE"):
        rng = self.rng
        scale, zero = to or (self.scale(x) * rng.uniform(0.4, 2.5), int(rng.integers(-128, 100)))
        return self.operator(name, (x,), self.tensor(self.shape(x), scale, zero))

    def padded(self, x):
        around = self.rng.integers(0, 3, (2, 2))
        data = np.array([[0, 0], *around, [0, 0]], np.int32)
        amount = self.tensor((4, 2), None, 0, data, "int32")
        _, height, width, depth = self.shape(x)
        made = (1, height + around[0].sum(), width + around[1].sum(), depth)
        return self.operator("PAD", (x, amount), self.tensor(made, self.scale(x), self.zero(x)))

    def padded_channels(self, x):
        """As a residual block pads its shortcut: BlazeFace, the first ResNets."""
        around = np.array([[0, 0]] * 3 + [self.rng.integers(0, 4, 2)], np.int32)
        *before, depth = self.shape(x)
        y = self.tensor((*before, depth + int(around.sum())), self.scale(x), self.zero(x))
        return self.operator("PAD", (x, self.tensor((4, 2), None, 0, around, "int32")), y)

    def doubled(self, x):
        """A picture twice or four times as high and wide, or half, by RESIZE_BILINEAR: of uint8 as well."""
        _, height, width, depth = self.shape(x)
        size = [max(1, int(n * self.rng.choice([0.5, 1, 2, 4]))) for n in (2 * height, 2 * width)]
        twice = self.operator("TILE", (x, self.numbers(1, 2, 2, 1)), self.tensor(
            (1, 2 * height, 2 * width, depth), self.scale(x), self.zero(x)))  # fmt: skip
        options = {"align_corners": 0, "half_pixel_centers": int(self.rng.integers(2))}
        y = self.tensor((1, *size, depth), self.scale(x), self.zero(x))
        return self.operator("RESIZE_BILINEAR", (twice, self.numbers(*size)), y, **options)

    def log_scored(self, x):
        return self.operator("LOG_SOFTMAX", (x,), self.tensor(self.shape(x), 1 / 16, 127))

    def largest(self, x):
        """The place of the largest score, as classifiers that give a label end."""
        return self.operator("ARG_MAX", (x, self.numbers(1)), self.tensor((1,), dtype="int64"), out_type=4)

    def padded_in_time(self, x):
        """Of a sequence, as causal convolutions want it."""
        around = np.array([[0, 0], self.rng.integers(0, 4, 2), [0, 0]], np.int32)
        _, times, depth = self.shape(x)
        y = self.tensor((1, times + int(around.sum()), depth), self.scale(x), self.zero(x))
        return self.operator("PAD", (x, self.tensor((3, 2), None, 0, around, "int32")), y)

    def dilated(self, x):
        """A dilated convolution in three operators, as older converters write it."""
        rng = self.rng
        _, height, width, depth = self.shape(x)
        block = [int(n) for n in rng.integers(1, 4, 2)]
        kernel = [int(n) for n in rng.integers(1, 4, 2)]
        pads = []
        for size, b, k in zip((height, width), block, kernel):
            first = int(rng.integers(0, min(3, (k - 1) * b + 1)))
            whole = max(size + first + int(rng.integers(0, 3)), (k - 1) * b + 1)
            pads.append([first, -(-whole // b) * b - size - first])
        each = [(size + sum(pad)) // b for size, pad, b in zip((height, width), pads, block)]
        like = self.scale(x), self.zero(x)
        amounts = [self.numbers(*block), self.tensor((2, 2), None, 0, np.array(pads, np.int32), "int32")]
        apart = self.operator("SPACE_TO_BATCH_ND", (x, *amounts), self.tensor((block[0] * block[1], *each, depth), *like))
        rest = {"kernel": tuple(kernel), "stride": (1, 1), "padding": VALID, "dilation": (1, 1)}
        made = self.convolution(apart, depthwise=rng.random() < 0.5, **rest)
        batch, *sides, channels = self.shape(made)
        crops, whole = [], []
        for n, b, pad, size in zip(sides, block, pads, (height, width)):
            first = int(rng.integers(min(pad[0] + 1, n * b)))
            whole.append(min(n * b - first, size + pad[0] - first))
            crops.append([first, n * b - first - whole[-1]])
        amounts = [self.numbers(*block), self.tensor((2, 2), None, 0, np.array(crops, np.int32), "int32")]
        y = self.tensor((1, *whole, channels), self.scale(made), self.zero(made))
        return self.operator("BATCH_TO_SPACE_ND", (made, *amounts), y)

    def reduced(self, x):
        """MEAN or SUM over axes that lie together."""
        shape, first = self.shape(x), int(self.rng.integers(1, 4))
        last = int(self.rng.integers(first, 4))
        axes = self.numbers(*range(first, last + 1))
        made = [1 if first <= n <= last else size for n, size in enumerate(shape)]
        count = int(np.prod(shape[first : last + 1]))
        name = "SUM" if self.rng.random() < 0.5 else "MEAN"
        scale = self.scale(x) * self.rng.uniform(0.4, 1.1) * (np.sqrt(count) if name == "SUM" else 1)
        return self.operator(name, (x, axes), self.tensor(made, scale, int(self.rng.integers(-80, 80))), keep_dims=1)

    def variable(self, shape, like):
        """A handle of a new variable that holds random numbers, or one number, at first."""
        data = self.rng.integers(-128, 128, shape if self.rng.random() < 0.5 else ()).astype(np.int8)
        data = np.broadcast_to(data, shape).copy()
        scale, zero = np.array([self.scale(like)]), np.array([self.zero(like)])
        self.initial_values.append(Tensor(0, "", tuple(shape), "int8", data, scale, zero))
        handle = self.tensor((), dtype="resource")
        return self.operator("VAR_HANDLE", (), handle, name=f"v{len(self.initial_values)}")

    def read(self, handle, shape, like):
        return self.operator("READ_VARIABLE", (handle,), self.tensor(shape, self.scale(like), self.zero(like)))

    def assign(self, handle, x):
        self.operator("ASSIGN_VARIABLE", (handle, x), ())

    def remembered(self, x, rows=None):
        """x behind the rows that came before it, as a stream's convolution wants; the last rows are kept for the next time."""
        _, height, width, depth = self.shape(x)
        rows = rows or int(self.rng.integers(1, 5))
        kept, whole = (1, rows, width, depth), (1, rows + height, width, depth)
        handle = self.variable(kept, x)
        both = self.tensor(whole, self.scale(x), self.zero(x))
        self.operator("CONCATENATION", (self.read(handle, kept, x), x), both, axis=1, fused=NONE)
        size = [self.numbers(*values) for values in ((0, height, 0, 0), kept)]
        self.assign(handle, self.operator("SLICE", (both, *size), self.tensor(kept, self.scale(x), self.zero(x))))
        return both

    def added_up(self, x):
        """What came before and x, which is kept: the variable is read before it is written, and once more after."""
        handle = self.variable(self.shape(x), x)
        before = self.read(handle, self.shape(x), x)
        now = self.operator("ADD", (before, x), self.tensor(self.shape(x), self.scale(x), self.zero(x)), fused=NONE)
        self.assign(handle, now)
        late = self.read(handle, self.shape(x), x) if self.rng.random() < 0.5 else before  # before: what stood there must stay
        return self.operator("MAXIMUM", (late, x), self.tensor(self.shape(x), self.scale(x), self.zero(x)))

    def recurrent(self, x, cells):
        """An LSTM over a sequence, as Keras' is converted."""
        rng = self.rng
        _, times, width = self.shape(x)
        out_scale, out_zero = rng.uniform(0.003, 0.008), int(rng.integers(-40, 40))
        power = int(rng.integers(-15, -10))
        none = np.zeros(0)
        gates, biases = [], []
        for inputs, given in ((width, self.scale(x)), (cells, out_scale)):
            for _ in range(4):
                scale = rng.uniform(0.3, 3) / (given * 74 * 74 * np.sqrt(inputs))
                gates.append(self.tensor((cells, inputs), scale, 0, rng.integers(-127, 128, (cells, inputs)).astype(np.int8)))
                if len(biases) < 4:
                    data = rng.normal(0, 0.5 / (given * scale), cells).astype(np.int32)
                    biases.append(self.tensor((cells,), given * scale, 0, data, "int32"))
        state, cell = self.tensor((1, cells), out_scale, out_zero), self.tensor((1, cells), 2.0**power, 0, dtype="int16")
        for n in (state, cell):
            self.tensors[n] = replace(self.tensors[n], variable=True)
        inside = tuple(self.tensor((0,), none, dtype="float32") for _ in range(4)) + (self.tensor((0,), out_scale, out_zero),)
        y = self.tensor((1, times, cells), out_scale, out_zero)
        inputs = (x, *gates, -1, -1, -1, *biases, -1, -1, state, cell, -1, -1, -1, -1)
        options = {"fused": 4, "cell_clip": float(rng.choice([0, 10, 1])), "time_major": 0}
        self.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, **options)
        self.operators[-1] = replace(self.operators[-1], intermediates=inside)
        return y

    def flat(self, x):
        size = int(np.prod(self.shape(x)))
        target = self.tensor((2,), None, 0, np.array([1, size], np.int32), "int32")
        return self.operator("RESHAPE", (x, target), self.tensor((1, size), self.scale(x), self.zero(x)))

    def unsigned(self, y):
        """Ends of uint8 before and behind, as QUANTIZE makes them."""
        x, self.first = self.first, self.tensor(self.shape(self.first), self.scale(self.first), self.zero(self.first) + 128,
                                                dtype="uint8")  # fmt: skip
        self.operators.insert(0, Operator("QUANTIZE", 1, (self.first,), (x,), {}))
        return self.operator("QUANTIZE", (y,), self.tensor(self.shape(y), self.scale(y), self.zero(y) + 128, dtype="uint8"))

    def legacy(self):
        """Every tensor as uint8, and weights around a zero point of their own, as converters made them before int8."""
        for n, tensor in enumerate(self.tensors):
            if tensor.dtype != "int8":
                continue
            data, zero = tensor.data, tensor.zero + 128
            if data is not None:
                data = (data.astype(np.int16) + 128).astype(np.uint8)
            if any(o.name in WEIGHTED and o.inputs[1] == n for o in self.operators):
                zero = self.rng.integers(90, 166, 1)
            self.tensors[n] = replace(tensor, dtype="uint8", data=data, scale=tensor.scale[:1], zero=zero[:1])
        for o in self.operators:
            if o.name in WEIGHTED and len(o.inputs) > 2 and o.inputs[2] >= 0:
                scale = self.tensors[o.inputs[0]].scale * self.tensors[o.inputs[1]].scale
                self.tensors[o.inputs[2]] = replace(self.tensors[o.inputs[2]], scale=scale, zero=np.zeros(1, np.int64))
        self.initial_values = [
            replace(t, dtype="uint8", data=(t.data.astype(np.int16) + 128).astype(np.uint8), zero=t.zero + 128)
            for t in self.initial_values
        ]

    def bytes(self, y):
        """The file of the model whose output is y; without what writes it, the test skips."""
        pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
        others = ()
        if self.initial_values:
            self.operators.insert(0, Operator("CALL_ONCE", 1, (), (), {"graph": 1}))
            others = (self.beginning(),)
        return write(Graph("made", 0, tuple(self.tensors), tuple(self.operators), (self.first,), (y,), others))

    def write(self, folder, y):
        """Write that file into a folder; return its path."""
        path = folder / "made.tflite"
        path.write_bytes(self.bytes(y))
        return path

    def beginning(self):
        """The graph that gives every variable what it holds at first."""
        tensors, operators = [], []
        for n, first in enumerate(self.initial_values):
            handle, given = 2 * n, 2 * n + 1
            tensors.append(Tensor(handle, f"handle{n}", (), "resource"))
            tensors.append(replace(first, index=given, name=f"first{n}"))
            operators.append(Operator("VAR_HANDLE", 1, (), (handle,), {"name": f"v{n + 1}"}))
            operators.append(Operator("ASSIGN_VARIABLE", 1, (handle, given), (), {}))
        return Graph("begin", 0, tuple(tensors), tuple(operators), (), ())


def refused_model(seed):
    """(A random model with one thing that no board may run, what it is): a negative alpha, or a scale that is not above 0."""
    rng = np.random.default_rng(seed)
    graph = tflite_read(random_model(seed))
    tensors, operators = list(graph.tensors), list(graph.operators)
    leaky = [n for n, o in enumerate(operators) if o.name == "LEAKY_RELU"]
    if leaky:
        at = leaky[int(rng.integers(len(leaky)))]
        operators[at] = replace(operators[at], options={"alpha": -float(rng.uniform(0.01, 1.5))})
        kind = "a negative alpha"
    else:
        computed = [graph.inputs[0], *(n for o in operators if o.name not in SAME_BYTES for n in o.outputs)]
        scaled = [n for n in computed if len(tensors[n].scale)]
        at = scaled[int(rng.integers(len(scaled)))]
        value = -tensors[at].scale if rng.random() < 0.7 else 0 * tensors[at].scale
        tensors[at] = replace(tensors[at], scale=value)
        kind = f"a scale of {float(value[0]):g} of tensor {at}"
    return write(replace(graph, tensors=tuple(tensors), operators=tuple(operators))), kind


def stepless(kind):
    """A model that a board has nothing to do for: its input is its output, or is reshaped once or twice."""
    make = Maker(1, (2, 3))
    y = make.first
    if kind != "nothing":
        y = make.flat(y)
    if kind == "twice":
        y = make.operator("RESHAPE", (y, make.numbers(1, 3, 2)), make.tensor((1, 3, 2), make.scale(y), make.zero(y)))
    return make.bytes(y)


STEPLESS = ("nothing", "once", "twice")


def ended_model(seed):
    """A picture with padded channels, resized; behind it LOG_SOFTMAX, or SOFTMAX and ARG_MAX; every third of uint8."""
    make = Maker(seed, (3, 4, 2))
    x = make.doubled(make.padded_channels(make.first))
    x = make.dense(make.flat(x), 2 + seed % 9)
    if seed % 3 == 0:
        x = make.scored(x, "SOFTMAX")
        make.legacy()
        return make.bytes(x)
    return make.bytes(make.log_scored(x) if seed % 3 == 1 else make.largest(make.scored(x, "SOFTMAX")))


def random_model(seed):
    """2 to 5 operators on an image, then a head; or layers on a vector or on a sequence. Some have ends of uint8."""
    rng = np.random.default_rng(seed)
    unsigned = seed % 7 == 3
    if rng.random() < 0.25:
        steps = (int(rng.integers(2, 9)),) if rng.random() < 0.4 else ()
        make = Maker(seed, (*steps, int(rng.integers(1, 40))))
        x = make.first
        if steps and rng.random() < 0.4:
            x = make.padded_in_time(x)
        if steps and rng.random() < 0.5:
            x = make.recurrent(x, int(rng.integers(1, 9)))
        for _ in range(int(rng.integers(bool(steps), 3))):
            x = make.dense(x, int(rng.integers(1, 12)), int(rng.choice([NONE, RELU, RELU6])))
        x = make.flat(x) if steps else x
    else:
        make = Maker(seed, (int(rng.integers(3, 12)), int(rng.integers(3, 12)), int(rng.integers(1, 5))))
        x = make.first
        body = (
            make.convolution, make.convolution, lambda x: make.convolution(x, depthwise=True), make.pool, make.branches,
            make.joined, make.rescaled, make.padded, lambda x: make.rescaled(x, name="RELU"),
            lambda x: make.rescaled(x, name="RELU6"), make.combined, make.combined, make.function, make.function, make.moved,
            make.moved, make.moved, make.attended, make.reduced, make.dilated, make.remembered, make.remembered, make.added_up,
        )  # fmt: skip
        for _ in range(int(rng.integers(2, 6))):
            x = body[int(rng.integers(len(body)))](x)
        x = make.mean(x) if rng.random() < 0.5 else make.flat(x)
    x = make.dense(x, int(rng.integers(1, 8)))
    head = int(rng.integers(3))
    x = make.scored(x, ("SOFTMAX", "LOGISTIC")[head]) if head < 2 else x
    if seed % 9 == 4 and not {o.name for o in make.operators} & SIGNED:
        make.legacy()
        unsigned = False
    return make.bytes(make.unsigned(x) if unsigned else x)
