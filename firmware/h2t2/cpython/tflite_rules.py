# The rules of common operators of a .tflite: number, types, shapes and scales of their tensors, and their options. The
# interpreter checks other operators itself; its checks have gaps: it divides by a stride of 0, for example.
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from .tflite_parts import Operator, Tensor, type_name

Sizes = Sequence[int | None]  # None: a size that the model leaves open

FLOAT = (0, 1, 10, 18)  # types by their number in the schema
QUANTISED = (3, 7, 9)
INT8 = (3, 9, 17)
SCALES = (1e-19, 1e19)  # of what is computed: quotients and products of two are still float32
SAME, VALID = 0, 1
# operator's code -> the slots of its options that name a graph it calls
GRAPHS = {31: (0,), 118: (0, 1), 119: (0, 1), 129: (0,)}


class Rule(NamedTuple):
    """minimum, maximum: of inputs; outputs: how many, None for 1 or more; options: their kind, 0 for any.

    check(operator): raises ValueError. needed: how many of the first inputs may not be left out.
    """

    name: str
    minimum: int
    maximum: int
    outputs: int | None
    options: int
    check: Callable[[Operator], None] | None
    needed: int


def check_operator(o: Operator) -> None:
    """ValueError, saying why, for an operator that breaks its rule."""
    rule = o.rule
    if rule is None:
        return
    if not rule.minimum <= len(o.inputs) <= rule.maximum:
        raise ValueError("it has %d inputs, want %d to %d" % (len(o.inputs), rule.minimum, rule.maximum))
    if rule.outputs is not None and len(o.outputs) != rule.outputs:
        raise ValueError("it has %d outputs, want %d" % (len(o.outputs), rule.outputs))
    if rule.outputs is None and not o.outputs:
        raise ValueError("it has no output")
    if None in o.inputs[: rule.needed]:
        raise ValueError("an input that it needs is left out")
    if rule.check:
        rule.check(o)


def _want(holds: bool, words: str, *values: Any) -> None:
    if not holds:
        raise ValueError(words % values)


def _all_fixed(*tensors: Tensor) -> bool:
    """Whether no tensor has an open size."""
    return not any(tensor.open for tensor in tensors)


def _shape(tensor: Tensor, expected: Sizes, words: str = "its output") -> None:
    """A tensor's shape; None: a size that is open."""
    good = len(expected) == len(tensor.sizes) and all(_fits(*pair) for pair in zip(tensor.sizes, expected))
    _want(good, "%s has the shape %s, want %s", words, list(tensor.shape), list(expected))


def _fits(size: int | None, expected: int | None) -> bool:
    return size is None or expected is None or size == expected


def _rank(tensor: Tensor, rank: int, words: str) -> None:
    _want(len(tensor.shape) == rank, "%s has the shape %s, want %d axes", words, list(tensor.shape), rank)


def _same_type(*tensors: Tensor) -> None:
    types = {tensor.type for tensor in tensors}
    _want(len(types) == 1, "its tensors are of %s, want one type", " and ".join([type_name(tensor) for tensor in tensors]))


def _scaled(*tensors: Tensor) -> None:
    """Each that is quantised has one scale, which arithmetic can use; int16 may be plain numbers, or zeros of scale 0."""
    plain = not any(tensor.scales for tensor in tensors)
    for tensor in tensors:
        if tensor.type in QUANTISED and not (plain and tensor.type == 7):
            least = 0.0 if tensor.type == 7 else SCALES[0]
            good = len(tensor.scales) == 1 and least <= tensor.scales[0] <= SCALES[1]
            _want(good, "tensor %s has the scales %s, want one above 0", tensor.name, list(tensor.scales))


def _fused(o: Operator, slot: int) -> None:
    number = o.option(slot, "<b")
    _want(0 <= number <= 5, "a fused activation %d, which does not exist", number)


def _positive(o: Operator, slots: tuple[int, ...], words: str) -> list[int]:
    numbers = [o.option(slot) for slot in slots]
    _want(min(numbers) > 0 and max(numbers) < 2**20, "%s of %s", words, numbers)
    return numbers


def _axis(number: int, rank: int, words: str = "an axis") -> int:
    _want(-rank <= number < rank, "%s %d of %d", words, number, rank)
    return number % rank


def _windows(
    x: Tensor, y: Tensor, padding: int, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1)
) -> None:
    """The output of windows over a picture has the size that follows."""
    _want(padding in (SAME, VALID), "a padding of %d, which does not exist", padding)
    for axis in (1, 2):
        reach = (sizes[axis - 1] - 1) * dilations[axis - 1] + 1
        size, stride = x.sizes[axis], strides[axis - 1]
        if size is not None:
            expected = -(-size // stride) if padding == SAME else (size - reach) // stride + 1
            good = expected > 0 and _fits(y.sizes[axis], expected)
            _want(good, "its output has %d along axis %d, want %d", y.shape[axis], axis, expected)


def _weights(x: Tensor, w: Tensor, y: Tensor, bias: Tensor | None, channels: int) -> None:
    """Types and scales of what has weights."""
    if x.type in FLOAT:
        _want(w.type in (*FLOAT, *INT8), "its weights, tensor %s, are %s", w.name, type_name(w))
        _same_type(x, y)
    else:
        _want(x.type in QUANTISED and y.type in QUANTISED, "its input is %s, its output %s", type_name(x), type_name(y))
        _want(w.type in INT8, "its weights, tensor %s, are %s, want int8", w.name, type_name(w))
        _scaled(x, y)
        _want(len(w.scales) in (1, channels), "%d scales for %d channels", len(w.scales), channels)
        _want(max(w.scales) <= SCALES[1], "a scale of %g", max(w.scales))
    if bias is not None and _all_fixed(bias):
        _want(bias.size == channels, "a bias of %d numbers for %d channels", bias.size, channels)


def _conv(o: Operator) -> None:
    x, w, y = o.inputs[0], o.inputs[1], o.outputs[0]
    bias = o.inputs[2] if len(o.inputs) > 2 else None
    for tensor, words in ((x, "its input"), (w, "its filter"), (y, "its output")):
        _rank(tensor, 4, words)
    depthwise = o.code == 4
    strides = _positive(o, (2, 1), "strides")
    slots = (6, 5) if depthwise else (5, 4)
    dilations = [o.option(slot, "<i", 1) for slot in slots]
    _want(min(dilations) > 0 and max(dilations) < 2**20, "dilations of %s", dilations)
    _fused(o, 4 if depthwise else 3)
    channels, depth = w.shape[3 if depthwise else 0], x.sizes[3]
    _want(min(w.shape) > 0 and (depth is None or depth > 0), "an input of %s by a filter of %s", list(x.shape), list(w.shape))
    if depthwise:
        multiplier = _positive(o, (3,), "multipliers")[0]
        good = w.shape[0] == 1 and _fits(depth, channels // multiplier)
        _want(good, "%d channels from %d times %d", channels, x.shape[3], multiplier)
    elif depth is not None:
        _want(depth % w.shape[3] == 0, "a filter of %d channels for %d", w.shape[3], depth)
        _want(channels % (depth // w.shape[3]) == 0, "%d channels in %d groups", channels, depth // w.shape[3])
    _shape(y, [x.sizes[0], None, None, channels])
    _windows(x, y, o.option(0, "<b"), w.shape[1:3], strides, dilations)
    _weights(x, w, y, bias, channels)


def _pool(o: Operator) -> None:
    x, y = o.inputs[0], o.outputs[0]
    _rank(x, 4, "its input")
    _rank(y, 4, "its output")
    strides, sizes = _positive(o, (2, 1), "strides"), _positive(o, (4, 3), "a filter")
    _fused(o, 5)
    _same_type(x, y)
    _windows(x, y, o.option(0, "<b"), sizes, strides)
    _shape(y, [x.sizes[0], None, None, x.sizes[3]])


def _dense(o: Operator) -> None:
    x, w, y = o.inputs[0], o.inputs[1], o.outputs[0]
    bias = o.inputs[2] if len(o.inputs) > 2 else None
    _rank(w, 2, "its weights")
    _fused(o, 0)
    outputs, inputs = w.shape
    if _all_fixed(x, w, y):
        _want(inputs > 0 and outputs > 0 and x.size % inputs == 0, "weights of %s for %s", list(w.shape), list(x.shape))
        _want(y.size == x.size // inputs * outputs, "its output has the shape %s", list(y.shape))
    if o.option(1, "<b") == 0:  # else in an order of a processor's own
        _weights(x, w, y, bias, outputs)


def _elementwise(o: Operator) -> None:
    x, y = o.inputs[0], o.outputs[0]
    if _all_fixed(x, y):
        _want(x.size == y.size, "of %s it gives %s", list(x.shape), list(y.shape))


def _unary(o: Operator) -> None:
    """A function of each number."""
    _elementwise(o)
    _same_type(o.inputs[0], o.outputs[0])
    _scaled(o.inputs[0], o.outputs[0])
    if o.code == 98:
        _want(isfinite(o.option(0, "<f")), "an alpha of %g", o.option(0, "<f"))


def _quantize(o: Operator) -> None:
    _elementwise(o)
    _want(o.outputs[0].type in (*QUANTISED, 2, 17), "its output is %s", type_name(o.outputs[0]))
    _scaled(o.inputs[0], o.outputs[0])


def _dequantize(o: Operator) -> None:
    _elementwise(o)
    _want(o.outputs[0].type in FLOAT, "its output is %s", type_name(o.outputs[0]))


def _softmax(o: Operator) -> None:
    x, y = o.inputs[0], o.outputs[0]
    _elementwise(o)
    beta = o.option(0, "<f")
    _want(isfinite(beta) and 0 < beta < 1e6, "a beta of %g", beta)
    _want(len(x.shape) > 0, "a number by itself")
    if x.type in QUANTISED:
        _want(y.type in QUANTISED, "its output is %s", type_name(y))
        _scaled(x, y)
    else:
        _same_type(x, y)


def _pair(o: Operator) -> None:
    """Two inputs number by number, one of them repeated (broadcast) where it has 1 along an axis."""
    first, second, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _same_type(first, second, *([y] if o.code not in COMPARISONS else []))
    if o.code in (0, 18, 41, 42):
        _fused(o, 0)
        _scaled(first, second, y)
    if o.code in (0, 41) and y.type in QUANTISED and y.scales:
        larger = max(first.scales[0], second.scales[0])
        _want(2 * larger < 2 ** (15 if y.type == 7 else 20) * y.scales[0], "its output's steps, %g, are too small", y.scales[0])
    if o.code in (55, 57):
        _scaled(*[tensor for tensor in (first, second, y) if tensor.scales])
    rank = max(len(first.shape), len(second.shape))
    expected = []
    for a, b in zip(*[[1] * (rank - len(tensor.shape)) + tensor.sizes for tensor in (first, second)]):
        repeats = None in (a, b) or a == b or 1 in (a, b)
        _want(repeats, "of %s and %s, neither of which repeats to the other", list(first.shape), list(second.shape))
        expected.append(None if None in (a, b) else b if a == 1 else a)
    _shape(y, expected)


def _concatenation(o: Operator) -> None:
    y = o.outputs[0]
    _want(len(o.inputs) > 0 and None not in o.inputs, "nothing to put together")
    _fused(o, 1)
    _same_type(*o.inputs, y)
    axis = _axis(o.option(0), len(y.shape))
    for x in o.inputs:
        _rank(x, len(y.shape), "an input")
        _shape(x, [None if n == axis else size for n, size in enumerate(y.sizes)], "an input")
    along = [tensor.sizes[axis] for tensor in (y, *o.inputs)]
    _want(None in along or sum(along[1:]) == along[0], "%s along axis %d, want %s", along[1:], axis, along[0])


def _moved(o: Operator) -> None:
    """Another order, or part, of the same numbers."""
    _same_type(o.inputs[-1] if o.code == 49 else o.inputs[0], *o.outputs)


def _reshape(o: Operator) -> None:
    _moved(o)
    _elementwise(o)


def _pad(o: Operator) -> None:
    x, amounts, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _moved(o)
    _want(list(amounts.shape) == [len(x.shape), 2] or amounts.open, "amounts of the shape %s", list(amounts.shape))
    if amounts.values:
        _want(min(amounts.values) >= 0, "it pads by %d", min(amounts.values))
        around = [before + after for before, after in zip(amounts.values[::2], amounts.values[1::2])]
        _shape(y, [None if size is None else size + added for size, added in zip(x.sizes, around)])


def _reduced(o: Operator) -> None:
    x = o.inputs[0]
    _want(o.inputs[1].type == 2, "its axes are %s", type_name(o.inputs[1]))
    _same_type(x, o.outputs[0])
    if o.code in (40, 74):
        _scaled(x, o.outputs[0])
    for axis in o.inputs[1].values or ():
        _axis(axis, len(x.shape))


def _transpose(o: Operator) -> None:
    x, order, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _moved(o)
    if order.values:
        rank = len(x.shape)
        axes = [_axis(n, rank) for n in order.values]
        _want(sorted(axes) == list(range(rank)), "an order of %s for %d axes", order.values, rank)
        _shape(y, [x.sizes[n] for n in axes])


def _slice(o: Operator) -> None:
    x, begin, size = o.inputs
    _moved(o)
    good = begin.size == size.size == len(x.shape) or begin.open or size.open
    _want(good, "places of %d axes for %d", begin.size, len(x.shape))
    if begin.values and size.values:
        for at, count, full in zip(begin.values, size.values, x.sizes):
            _want(full is None or (0 <= at <= full and -1 <= count <= full - at), "%d from %d of %s", count, at, full)


def _strided_slice(o: Operator) -> None:
    x, begin, end, strides = o.inputs
    _moved(o)
    _want(begin.size == end.size == strides.size <= 8 or not _all_fixed(begin, end, strides), "places of different lengths")
    _want(0 not in (strides.values or ()), "a stride of 0")


def _split(o: Operator) -> None:
    x, axis = (o.inputs[1], o.inputs[0]) if o.code == 49 else (o.inputs[0], o.inputs[2])
    _moved(o)
    _want(o.option(0) == len(o.outputs) > 0, "%d outputs, want %d", len(o.outputs), o.option(0))
    if axis.values:
        n = _axis(axis.values[0], len(x.shape))
        for y in o.outputs:
            _shape(y, [None if axis == n else size for axis, size in enumerate(x.sizes)], "an output")
        along = [tensor.sizes[n] for tensor in (x, *o.outputs)]
        _want(None in along or sum(along[1:]) == along[0], "%s along axis %d, want %s", along[1:], n, along[0])


def _pack(o: Operator) -> None:
    y = o.outputs[0]
    _want(len(o.inputs) == o.option(0) > 0 and None not in o.inputs, "%d inputs, want %d", len(o.inputs), o.option(0))
    _same_type(*o.inputs, y)
    axis = _axis(o.option(1), len(o.inputs[0].shape) + 1)
    for x in o.inputs:
        good = not _all_fixed(x, y) or x.size * len(o.inputs) == y.size
        _want(good, "%d of %s are not %s", len(o.inputs), list(x.shape), y.shape)
    if _all_fixed(y, *o.inputs):
        _want(y.shape[axis] == len(o.inputs), "%d along axis %d", y.shape[axis], axis)


def _unpack(o: Operator) -> None:
    x = o.inputs[0]
    _moved(o)
    axis = _axis(o.option(1), len(x.shape))
    _want(len(o.outputs) == o.option(0) > 0, "%d outputs, want %d", len(o.outputs), o.option(0))
    _want(_fits(x.sizes[axis], o.option(0)), "%d outputs of %d", o.option(0), x.shape[axis])


def _tile(o: Operator) -> None:
    x, times, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _moved(o)
    if times.values:
        _want(len(times.values) == len(x.shape) and min(times.values) > 0, "times %s", times.values)
        _shape(y, [None if size is None else size * n for size, n in zip(x.sizes, times.values)])


def _resize(o: Operator) -> None:
    x, size, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _moved(o)
    _rank(x, 4, "its input")
    if size.values:
        _want(len(size.values) == 2 and min(size.values) > 0, "a size of %s", size.values)
        _shape(y, [x.sizes[0], *size.values, x.sizes[3]])


def _blocks(o: Operator) -> None:
    x, y = o.inputs[0], o.outputs[0]
    _moved(o)
    _rank(x, 4, "its input")
    block = _positive(o, (0,), "blocks")[0]
    batch, height, width, depth = x.sizes
    if None in (height, width, depth):
        return
    if o.code == 5:
        _want(depth % block**2 == 0, "%d channels in blocks of %d", depth, block)
        _shape(y, [batch, height * block, width * block, depth // block**2])
    else:
        _want(height % block == 0 and width % block == 0, "%d by %d in blocks of %d", height, width, block)
        _shape(y, [batch, height // block, width // block, depth * block**2])


def _batches(o: Operator) -> None:
    """SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""
    x, block, around = o.inputs
    _moved(o)
    _want(len(x.shape) in (3, 4), "an input of the shape %s", list(x.shape))
    good = block.size == len(x.shape) - 2 and around.size == 2 * block.size
    _want(good, "%d sizes for %d axes", block.size, len(x.shape) - 2)
    _want(min(block.values or (1,)) > 0 and min(around.values or (0,)) >= 0, "blocks of %s", block.values)


def _matmul(o: Operator) -> None:
    first, second, y = o.inputs[0], o.inputs[1], o.outputs[0]
    _want(len(first.shape) >= 2 and len(second.shape) >= 2, "of %s and %s", list(first.shape), list(second.shape))
    if first.type in QUANTISED:
        _scaled(first, second, y)
    inner = first.sizes[-2 if o.option(0, "<b") else -1], second.sizes[-1 if o.option(1, "<b") else -2]
    _want(_fits(*inner), "rows of %s by columns of %s", *inner)


def _lstm(o: Operator) -> None:
    _want(len(o.inputs) in (20, 24), "%d inputs, want 20 or 24", len(o.inputs))
    x, y = o.inputs[0], o.outputs[0]
    _rank(x, 3, "its input")
    _fused(o, 0)
    for slot in (1, 2):
        clip = o.option(slot, "<f")
        _want(isfinite(clip) and clip >= 0, "a clip of %g", clip)
    _want(o.inputs[18] is not None and o.inputs[19] is not None, "its state is left out")
    _want(o.inputs[18].variable and o.inputs[19].variable, "its state is no variable")
    named = [o.inputs[n] for n in (2, 3, 4, 6, 7, 8)]
    _want(None not in named, "a weight that it needs is left out")
    cells, width = named[0].shape if len(named[0].shape) == 2 else (0, 0)
    _want(cells > 0 and width == x.shape[2], "weights of %s for %s", list(named[0].shape), list(x.shape))
    hidden = o.inputs[18].size // max(x.shape[1 if o.option(3, "<b") else 0], 1)
    for n in (1, 2, 3, 4, 5, 6, 7, 8):
        w = o.inputs[n]
        if w is not None:
            _shape(w, [cells, width if n < 5 else hidden], "a weight")
            _want(x.type in FLOAT or (w.type in INT8 and len(w.scales) == 1), "a weight is %s", type_name(w))
    for n in (12, 13, 14, 15):
        bias = o.inputs[n]
        if bias is not None:
            _shape(bias, [cells], "a bias")
    if x.type in QUANTISED:
        _scaled(x, y, o.inputs[18], o.inputs[19])
        _want(len(o.indices[2]) == 5 and min(o.indices[2]) >= 0, "%d intermediates, want 5", len(o.indices[2]))


def _gather(o: Operator) -> None:
    x = o.inputs[0]
    _same_type(x, o.outputs[0])
    axis = _axis(o.option(0), len(x.shape))
    for n in o.inputs[1].values or ():
        _want(x.sizes[axis] is None or 0 <= n < x.sizes[axis], "place %d of %d", n, x.shape[axis])


def _assign(o: Operator) -> None:
    _want(o.inputs[0].type in (2, 13), "a variable's handle is %s", type_name(o.inputs[0]))


COMPARISONS = (58, 61, 62, 63, 71, 72)
# inputs, outputs, check; then of each operator its code, name and the kind of its options
ROWS = (
    (2, 1, _pair, "0 ADD 11, 18 MUL 21, 41 SUB 28, 42 DIV 29, 54 PRELU 0, 55 MAXIMUM 0, 57 MINIMUM 0, 58 LESS 0, 61 GREATER 0"),
    (2, 1, _pair, "62 GREATER_EQUAL 0, 63 LESS_EQUAL 0, 71 EQUAL 0, 72 NOT_EQUAL 0"),
    (1, 1, _unary, "14 LOGISTIC 0, 19 RELU 0, 20 RELU_N1_TO_1 0, 21 RELU6 0, 28 TANH 0, 98 LEAKY_RELU 75, 117 HARD_SWISH 0"),
    (1, 1, _pool, "1 AVERAGE_POOL_2D 5, 12 L2_POOL_2D 5, 17 MAX_POOL_2D 5"),
    ((2, 3), 1, _conv, "3 CONV_2D 1, 4 DEPTHWISE_CONV_2D 2"),
    ((2, 3), None, _dense, "9 FULLY_CONNECTED 8"),
    ((1, 10**6), 1, _concatenation, "2 CONCATENATION 10"),
    (2, 1, _reduced, "40 MEAN 27, 74 SUM 27, 81 REDUCE_PROD 27, 82 REDUCE_MAX 27, 89 REDUCE_MIN 27"),
    (1, 1, _softmax, "25 SOFTMAX 9"),
    (1, 1, _quantize, "114 QUANTIZE 0"),
    (1, 1, _dequantize, "6 DEQUANTIZE 0"),
    (1, 1, _reshape, "43 SQUEEZE 0"),
    ((1, 2), 1, _reshape, "22 RESHAPE 0"),
    (2, 1, _reshape, "70 EXPAND_DIMS 0"),
    (2, 1, _resize, "23 RESIZE_BILINEAR 15, 97 RESIZE_NEAREST_NEIGHBOR 74"),
    (1, 1, _blocks, "5 DEPTH_TO_SPACE 94, 26 SPACE_TO_DEPTH 19"),
    (3, 1, _batches, "37 BATCH_TO_SPACE_ND 0, 38 SPACE_TO_BATCH_ND 0"),
    (2, 1, _pad, "34 PAD 0, 100 MIRROR_PAD 77"),
    (3, 1, _pad, "60 PADV2 0"),
    (2, 1, _gather, "36 GATHER 23"),
    (2, 1, _transpose, "39 TRANSPOSE 0"),
    (3, 1, _slice, "65 SLICE 0"),
    (4, 1, _strided_slice, "45 STRIDED_SLICE 32"),
    (2, None, _split, "49 SPLIT 35"),
    (3, None, _split, "102 SPLIT_V 79"),
    (2, 1, _tile, "69 TILE 0"),
    ((1, 10**6), 1, _pack, "83 PACK 59"),
    (1, None, _unpack, "88 UNPACK 64"),
    (2, 1, _matmul, "126 BATCH_MATMUL 101"),
    (1, 1, _assign, "143 READ_VARIABLE 0"),
    (2, 0, _assign, "144 ASSIGN_VARIABLE 0"),
    (1, 1, None, "77 SHAPE 0"),
    (0, 0, None, "129 CALL_ONCE 103"),
    (0, 1, None, "142 VAR_HANDLE 111"),
)  # type: tuple[tuple[int | tuple[int, int], int | None, Callable[[Operator], None] | None, str], ...]
RULES = {44: Rule("UNIDIRECTIONAL_SEQUENCE_LSTM", 20, 24, 1, 71, _lstm, needed=1)}
for _inputs, _outputs, _check, _operators in ROWS:
    _least, _most = _inputs if isinstance(_inputs, tuple) else (_inputs, _inputs)
    for _code, _name, _options in map(str.split, _operators.split(", ")):
        RULES[int(_code)] = Rule(_name, _least, _most, _outputs, int(_options), _check, needed=_least)
