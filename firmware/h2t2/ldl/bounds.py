# Reads a bundle's header and steps, and checks them: every step stays inside the arena and the bundle, and comes to an end.
# Machine code does not check. Set-up only: a board forgets this module when the model is open. kernels.py names the parameters.
from array import array
from binascii import crc32
from struct import unpack_from

from .steps import ARENA_MAX, FEATURES, HEADER_SIZE, STEP, STEP_SIZE, VARIABLE, function, is_machine_code, name_of

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Callable

ROOM = 1024  # bytes in which convolutions gather columns of their input; more where one column is longer
MAGIC = b"H2M1"
VERSION = 3
# magic, version, steps, bytes, CRC-32 of the bytes after it; arena, input, its size, output, its size, score table
HEADER = "<4sHHIIIIIIII"
CHECKED = 16  # where the bytes begin that the checksum covers
PIECE = 1024  # bytes that are checked at once
WORK, WORK_PER_BYTE = 1 << 26, 1 << 14  # the most multiplications or moved bytes: of any bundle, and more per byte of it
CONVOLUTIONS = "conv_2d", "depthwise_conv_2d"
WEIGHTED = ("fully_connected",) + CONVOLUTIONS
FEATURES_SIZE = 8  # parameters of the entry that says where the features are


def read(model: "Any", event: int, take: "Callable[[int], bytearray]") -> None:
    """Read the header and the steps of the blob of an Int8Model, and take its arena.

    ValueError for a bundle that cannot be used.
    """
    blob = model.blob
    steps, model.checksum, size, model.input, model.input_size, model.output, model.classes, table = read_header(blob)
    model.event = 0 if model.classes == 1 else event
    if not 0 <= model.event < model.classes:
        raise ValueError("bundle: no class %d among %d outputs" % (event, model.classes))
    model.table_at = table
    model.table = blob[table : table + 256]
    model.arena = take(size)
    at = HEADER_SIZE
    total = 0
    room = [b""]
    for _ in range(steps):
        kernel, p, k, size_of_weights, new_work, at = read_step(blob, at, size, room)
        total += new_work
        check_work(total, len(blob))
        if kernel:
            model._add_step((kernel, p, k), size_of_weights)
        elif len(p) == FEATURES_SIZE:
            model.features_at, model.features = p[1], p[7]
        else:
            model.variables.append(p)
            model.state_size = max(model.state_size, p[1] + p[7] * p[8])


def read_header(blob: "Any") -> "tuple[int, int, int, int, int, int, int, int]":
    """(steps, checksum, arena bytes, place and size of the input, place and size of the output, place of the score table).

    ValueError for a header that is no bundle's, or that contradicts the bundle.
    """
    if len(blob) < HEADER_SIZE or bytes(blob[:4]) != MAGIC:
        raise ValueError("bundle: these bytes are not one")
    _, version, steps, size, checksum, arena, x, x_size, y, y_size, table = unpack_from(HEADER, blob[:HEADER_SIZE], 0)
    if version != VERSION:
        raise ValueError("bundle: format %d, this runtime reads %d: make it again, h2t2 inspect --bundle" % (version, VERSION))
    if size != len(blob):
        raise ValueError("bundle: %d bytes, want %d (truncated?)" % (len(blob), size))
    crc = 0
    for at in range(CHECKED, size, PIECE):
        crc = crc32(blob[at : at + PIECE], crc)
    if crc & 0xFFFFFFFF != checksum:
        raise ValueError("bundle: the checksum does not match")
    if arena > ARENA_MAX:
        raise ValueError("bundle: an arena of %d bytes" % arena)
    check_inside(x, x_size, arena)
    check_inside(y, y_size, arena)
    check_inside(table, 256, size)
    return steps, checksum, arena, x, x_size, y, y_size, table


def read_step(blob: "Any", at: int, arena: int, room: "list[Any]") -> "tuple[Any, ...]":
    """The step that begins at a place in the bundle. ValueError for a step that check_step() refuses.

    Args:
        blob: the bundle.
        at: the place.
        arena: bytes of the arena.
        room: its one item is memory for the machine code of convolutions, which becomes as large as this step needs.

    Returns:
        (kernel, p, k, bytes of the bundle that it reads at p[6], its work(), the place of the next step); kernel: None for a
        variable and for features, which only say where the arena has numbers.
    """
    check_inside(at, STEP_SIZE, len(blob))
    code, count, bias, limbs, shifts, channels = unpack_from(STEP, blob[at : at + STEP_SIZE], 0)
    at += STEP_SIZE
    kernel = None if code in (VARIABLE, FEATURES) else function(code)
    name = name_of(code)
    check_inside(at, 4 * count, len(blob))
    if bias:
        check_inside(bias, 4 * channels, len(blob))
    check_inside(limbs, shifts - limbs, len(blob))
    p = array("i", bytes(blob[at : at + 4 * count]))
    triples = (shifts - limbs) // 6 if limbs else 0
    size, work_of_it = check_step(name, p, channels if bias else 0, triples, arena, blob)
    k: "tuple[Any, ...] | None" = None
    if limbs:
        check_inside(shifts, 2 * triples, len(blob))
        biases, multipliers = (blob[bias : bias + 4 * channels] if bias else None), blob[limbs : limbs + 6 * triples]
        if not is_machine_code(kernel):
            biases, multipliers = (array("i", bytes(biases)) if biases else None), array("H", bytes(multipliers))
        k = (biases, multipliers, blob[shifts : shifts + 2 * triples])
        if name in CONVOLUTIONS:
            needed = room_size(name, p[7:])
            check_inside(0, needed, ARENA_MAX)
            if is_machine_code(kernel):
                if len(room[0]) < needed:
                    room[0] = bytearray(needed)
                k += (room,)
    return kernel, p, k, size, work_of_it, at + 4 * count


def _windows(name: str, own: "tuple[int, ...]") -> "tuple[int, ...]":
    """Return the row of OPERATORS of a convolution or a pool."""
    height, width, depth, out_height, out_width, channels, kernel_height, kernel_width = own[:8]
    weighted = name in CONVOLUTIONS
    taps = channels * kernel_height * kernel_width
    if name == "conv_2d":
        taps *= depth
    elif channels != depth * (own[15] if weighted else 1):
        raise ValueError("bundle: %d channels from %d" % (channels, depth))
    dilations = own[12:14] if weighted else (1, 1)
    if min(own[:10]) < 1 or min(dilations) < 1:
        raise ValueError("bundle: %s of the size 0" % name)
    for n in (0, 1):  # down, across
        size, out, kernel, stride, before = own[n], own[3 + n], own[6 + n], own[8 + n], own[10 + n]
        if (out - 1) * stride - before >= size or (kernel - 1) * dilations[n] < before:
            raise ValueError("bundle: %s: a window lies outside" % name)
    constants = (taps, channels) if weighted else (0, 0)
    return (height * width * depth, out_height * out_width * channels) + constants + (out_height * out_width * taps,)


def _pixels(height: int, width: int, depth: int, out_height: int, out_width: int) -> "tuple[int, ...]":
    """Return the row of OPERATORS of a picture that becomes one of another size."""
    written = out_height * out_width * depth
    return height * width * depth, written, 0, 0, written if height * width else 0


def _resize(*own: int) -> "tuple[int, ...]":
    mode = own[7]
    for n in (0, 1):
        size, out, step = own[n], own[3 + n], own[5 + n]
        if mode > 3 or (out - 1) * step + (mode & 1) * (step // 2 - 512) >> 10 >= size:
            raise ValueError("bundle: resize_bilinear beyond its input")
    return _pixels(*own[:5])


def _view(start: int, *own: int) -> "tuple[int, ...]":
    """Return the row of OPERATORS of a view, which may go backwards along an axis, from `start` on."""
    written = 1
    for n in own[:5]:
        written *= n
    reaches = [(own[n] - 1) * own[n + 5] for n in range(5)]
    if start + sum([min(reach, 0) for reach in reaches]) < 0:
        raise ValueError("bundle: view before its input")
    return start + 1 + sum([max(reach, 0) for reach in reaches]), written, 0, 0, written


def _matmul(_: int, batches: int, rows: int, inner: int, columns: int, step_row: int, step_inner: int) -> "tuple[int, ...]":
    if (columns - 1) * step_row + (inner - 1) * step_inner >= inner * columns:
        raise ValueError("bundle: batch_matmul beyond its input")
    written = batches * rows * columns
    return batches * rows * inner, written, batches * inner * columns, 1, written * inner


def _lstm(times: int, inputs: int, cells: int, _: int, bits: int, __: int) -> "tuple[int, ...]":
    if bits > 4:
        raise ValueError("bundle: a cell of %d integer bits" % bits)
    weights = 4 * cells * (inputs + cells)
    return times * inputs, times * cells, weights, 9, times * weights


def _trees(inputs: int, outputs: int, count: int, size: int, *_: int) -> "tuple[int, ...]":
    """The work: each node at most once, and a row of the table for each tree."""
    return inputs, outputs, size, 1, size + outputs * count if inputs * outputs * count else 0


# Of each operator: the number of its parameters, and what these, from the eighth on, say of a step: bytes of the input, of the
# output, and at the seventh parameter; channels of constants; multiplications or moved bytes, 0 where a size is 0.
# The functions raise ValueError for a step that would read beyond its input.
OPERATORS = {
    "fully_connected": (10, lambda inputs, outputs, _: (inputs, outputs, inputs * outputs, outputs, inputs * outputs)),
    "conv_2d": (22, lambda *own: _windows("conv_2d", own)),
    "depthwise_conv_2d": (23, lambda *own: _windows("depthwise_conv_2d", own)),
    "pool_2d": (20, lambda *own: _windows("pool_2d", own)),
    "mean": (10, lambda n, channels, rows: (rows * n * channels, rows * channels, 0, 1, rows * n * channels)),
    "arithmetic": (13, lambda a, b, m, n, inner, kind: _pairs(m * n * inner, m * inner, 1 if kind == 3 else 3)),
    "rescale": (8, lambda n: (n, n, 0, 1, n)),
    "pad": (14, lambda *own: _pixels(*own[:5])),
    "concatenate": (10, lambda runs, n, step: (runs * n, (runs - 1) * step + n, 0, 0, runs * n if step else 0)),
    "look_up": (8, lambda n: (n, n, 256, 0, n)),
    "softmax": (9, lambda classes, rows: _pairs(classes * rows, 1024, 0)),
    "view": (18, _view),
    "extreme": (12, lambda a, m, n, inner, kind: _pairs(m * n * inner, m * inner, 0)),
    "prelu": (10, lambda a, n, inner: _pairs(n * inner, inner, 2)),
    "resize_bilinear": (15, _resize),
    "batch_matmul": (14, _matmul),
    "variable": (9, lambda n, times: (0, n * times, n, 0, n * times)),
    "lstm": (13, _lstm),
    "log_softmax": (9, lambda classes, rows: _pairs(classes * rows, 2048, 0)),
    "trees": (14, _trees),
    "features": (8, lambda n: (0, n, 0, 0, n)),
}  # type: dict[str, tuple[int, Callable[..., tuple[int, ...]]]]


def _pairs(size: int, constant: int, channels: int) -> "tuple[int, ...]":
    """Return the row of OPERATORS of a step that makes each byte of one."""
    return size, size, constant, channels, size


def extents(name: str, p: "array[int]") -> "tuple[int, ...]":
    """Return what OPERATORS says of a step. ValueError for another number of parameters than its kernel has."""
    count, function = OPERATORS[name]
    if len(p) != count:
        raise ValueError("bundle: %s with %d parameters" % (name, len(p)))
    return function(*p[7:])


def room_size(name: str, own: "array[int]") -> int:
    """Bytes that the machine code of a convolution needs; conv_viper.py and kernels.c say what for. own: its p[7:]."""
    taps = own[6] * own[7]
    if name == "conv_2d":
        column = 4 * taps * own[2] + 4
        return max(column, min(column * own[4], ROOM))
    return max(8 * taps + own[6] * ((own[4] - 1) * own[9] + (own[7] - 1) * own[13] + 1), 4 * own[5])


def check_work(total: int, size: int) -> None:
    """ValueError for more work than a bundle of `size` bytes can have a reason for."""
    if total > WORK + size * WORK_PER_BYTE:
        raise ValueError("bundle: %d bytes that ask for %d multiplications" % (size, total))


def check_inside(start: int, size: int, limit: int) -> None:
    """ValueError unless start .. start + size lies in 0 .. limit."""
    if not 0 <= start <= start + size <= limit:
        raise ValueError("bundle: %d bytes at %d lie outside %d" % (size, start, limit))


def weights_size(name: str, p: "array[int]", weights: int) -> int:
    """How many bytes of the bundle a step reads at p[6], of extents(): where a second input is in the arena, none."""
    return 0 if name == "batch_matmul" or (name in ("arithmetic", "extreme") and not p[-5]) else weights


def check_step(name: str, p: "array[int]", biases: int, multipliers: int, arena: int, blob: "Any") -> "tuple[int, int]":
    """(weights_size(), work) of a step. ValueError unless it stays inside the arena and the bundle, and has its constants."""
    source, written, weights, channels, work = extents(name, p)
    constant = weights_size(name, p, weights)
    for n, value in enumerate(p):
        backwards = name == "view" and n > 12  # its last five are steps in its input
        if (value < 0 and not backwards) or (2 <= n <= 5 and value > 255):  # zero points and bounds are bytes
            raise ValueError("bundle: %s, parameter %d is %d" % (name, n, value))
    x, y, _, _, _, _, seventh = p[:7]
    own = p[7:]
    check_inside(x, source, arena)
    check_inside(y, written, arena)
    if weights:
        check_inside(seventh, weights, len(blob) if constant else arena)
    if name == "lstm":
        check_inside(own[3], 2 * own[2], arena)
    if name == "trees":
        from .trees_bounds import check_trees

        check_inside(own[6], 2 * own[1], arena)
        check_trees(blob, seventh, own)
    if name == "softmax":
        _check_exponentials(blob[seventh : seventh + 1024], own[0])
    if name == "log_softmax":
        _check_logarithms(blob[seventh : seventh + 2048], own[0])
    if multipliers < channels:
        raise ValueError("bundle: %s lacks constants" % name)
    if biases < (4 * own[2] if name == "lstm" else written if name == "trees" else channels if name in WEIGHTED else 0):
        raise ValueError("bundle: %s lacks its bias" % name)
    if work < 1:
        raise ValueError("bundle: %s of the size 0" % name)
    return constant, work


def _check_exponentials(table: bytes, classes: int) -> None:
    """exp of 0, -1, ... steps as Q0.31: the first is 1, none is more; their sum over the classes stays a small int."""
    first = table[0] == table[1] == table[2] == 255 and table[3] == 127
    if not first or max([table[n] for n in range(3, 1024, 4)]) > 127 or not 0 < classes < 2048:
        raise ValueError("bundle: softmax over %d classes, with a table of no exponentials" % classes)


def _check_logarithms(table: bytes, classes: int) -> None:
    """exp of 0, -1, ... steps as Q12.19: the first is 1, none is more; and no distance is 2^30 steps or more."""
    exponentials = [table[n + 2] << 16 | table[n + 1] << 8 | table[n] for n in range(0, 2048, 8)]
    first = exponentials[0] == max(exponentials) == 524288
    if not first or max([table[n] for n in range(7, 2048, 8)]) > 63 or not 0 < classes < 2048:
        raise ValueError("bundle: log_softmax over %d classes, with a table of no logarithms" % classes)
