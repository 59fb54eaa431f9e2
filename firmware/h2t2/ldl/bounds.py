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
WINDOWED = CONVOLUTIONS + ("pool_2d",)
PARAMETERS = {
    "fully_connected": 10, "conv_2d": 22, "depthwise_conv_2d": 23, "pool_2d": 20, "mean": 10, "arithmetic": 13, "rescale": 8,
    "pad": 14, "concatenate": 10, "look_up": 8, "softmax": 9,
    "view": 18, "extreme": 12, "prelu": 10, "resize_bilinear": 15, "batch_matmul": 14,
    "variable": 9, "lstm": 13, "log_softmax": 9, "trees": 14, "features": 8,
}  # fmt: skip
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
    size = check_step(name, p, channels if bias else 0, triples, arena, blob)
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
    return kernel, p, k, size, work(name, p), at + 4 * count


def _extents(name: str, own: "array[int]") -> tuple[int, int, int, int]:
    """(input bytes, output bytes, bytes at the seventh parameter, channels of constants) of a step; own: its p[7:]."""
    if name == "fully_connected":
        inputs, outputs = own[:2]
        return inputs, outputs, inputs * outputs, outputs
    if name in CONVOLUTIONS:
        height, width, depth, out_height, out_width, channels, kernel_height, kernel_width = own[:8]
        taps = channels * kernel_height * kernel_width
        if name == "conv_2d":
            taps *= depth
        elif channels != depth * own[15]:
            raise ValueError("bundle: %d channels from %d" % (channels, depth))
        return height * width * depth, out_height * out_width * channels, taps, channels
    if name in ("pool_2d", "pad"):
        height, width, depth, out_height, out_width = own[:5]
        return height * width * depth, out_height * out_width * depth, 0, 0
    if name == "mean":
        positions, channels, rows = own
        return rows * positions * channels, rows * channels, 0, 1
    if name in ("arithmetic", "extreme"):
        outer, repeat, inner, operation = own[-4:]
        channels = 0 if name == "extreme" else 1 if operation == 3 else 3
        return outer * repeat * inner, outer * repeat * inner, outer * inner, channels
    if name == "prelu":
        return own[1] * own[2], own[1] * own[2], own[2], 2
    if name == "batch_matmul":
        batches, rows, inner, columns, step_row, step_inner = own[1:]
        if (columns - 1) * step_row + (inner - 1) * step_inner >= inner * columns:
            raise ValueError("bundle: %s beyond its input" % name)
        return batches * rows * inner, batches * rows * columns, batches * inner * columns, 1
    if name == "resize_bilinear":
        height, width, depth, out_height, out_width, step_y, step_x, mode = own
        for size, out, step in ((height, out_height, step_y), (width, out_width, step_x)):
            if mode > 3 or (out - 1) * step + (mode & 1) * (step // 2 - 512) >> 10 >= size:
                raise ValueError("bundle: %s beyond its input" % name)
        return height * width * depth, out_height * out_width * depth, 0, 0
    if name == "view":
        return _view_extents(own)
    if name == "lstm":
        times, inputs, cells, _, bits, _ = own
        if bits > 4:
            raise ValueError("bundle: a cell of %d integer bits" % bits)
        return times * inputs, times * cells, 4 * cells * (inputs + cells), 9
    if name == "trees":
        return own[0], own[1], own[3], 1
    if name == "features":
        return 0, own[0], 0, 0
    if name == "variable":
        return 0, own[0] * own[1], own[0], 0
    if name == "concatenate":
        runs, size, step = own
        return runs * size, (runs - 1) * step + size, 0, 0
    if name in ("softmax", "log_softmax"):
        classes, rows = own
        return classes * rows, classes * rows, 1024 if name == "softmax" else 2048, 0
    return own[0], own[0], 256 if name == "look_up" else 0, 1 if name == "rescale" else 0


def _view_extents(own: "array[int]") -> "tuple[int, int, int, int]":
    """Return _extents() of a view, which may go backwards along an axis, from `start` on."""
    written = 1
    for n in own[1:6]:
        written *= n
    reaches = [(own[n] - 1) * own[n + 5] for n in range(1, 6)]
    if own[0] + sum([min(reach, 0) for reach in reaches]) < 0:
        raise ValueError("bundle: view before its input")
    return own[0] + 1 + sum([max(reach, 0) for reach in reaches]), written, 0, 0


def room_size(name: str, own: "array[int]") -> int:
    """Bytes that the machine code of a convolution needs; conv_viper.py and kernels.c say what for. own: its p[7:]."""
    taps = own[6] * own[7]
    if name == "conv_2d":
        column = 4 * taps * own[2] + 4
        return max(column, min(column * own[4], ROOM))
    return max(8 * taps + own[6] * ((own[4] - 1) * own[9] + (own[7] - 1) * own[13] + 1), 4 * own[5])


def work(name: str, p: "array[int]") -> int:
    """How many multiplications a step does, or bytes it moves. ValueError where a size is 0, or a window lies outside."""
    own = p[7:]
    sizes: "Any" = own
    if name == "fully_connected":
        sizes = own[:2]
    elif name in WINDOWED:
        sizes = own[:10]
    elif name in ("pad", "resize_bilinear"):
        sizes = own[:5]
    elif name in ("arithmetic", "extreme"):
        sizes = own[-4:-1]
    elif name in ("prelu", "batch_matmul"):
        sizes = own[1:5]
    elif name == "view":
        sizes = own[1:6]
    elif name == "lstm":
        times, inputs, cells = own[:3]
        sizes = times, 4 * cells, inputs + cells
    elif name == "trees":
        sizes = own[:4]
    if min(sizes) < 1:
        raise ValueError("bundle: %s of the size 0" % name)
    if name not in WINDOWED:
        if name == "concatenate":
            sizes = sizes[:2]
        elif name == "trees":  # each node at most once, and a row of the table for each tree
            sizes = (own[3] + own[1] * own[2],)
        elif name in ("pad", "resize_bilinear"):  # of the output
            sizes = sizes[2:]
        product = 1
        for n in sizes:
            product *= n
        return product
    depth, channels = own[2], own[5]
    dilations = own[12:14] if name in WEIGHTED else (1, 1)
    if min(dilations) < 1 or (name == "pool_2d" and channels != depth):
        raise ValueError("bundle: %s of %d channels, dilated by %d" % (name, channels, min(dilations)))
    for n in (0, 1):  # down, across
        size, out, kernel, stride, before = own[n], own[3 + n], own[6 + n], own[8 + n], own[10 + n]
        if (out - 1) * stride - before >= size or (kernel - 1) * dilations[n] < before:
            raise ValueError("bundle: %s: a window lies outside" % name)
    return own[3] * own[4] * channels * own[6] * own[7] * (depth if name == "conv_2d" else 1)


def check_work(total: int, size: int) -> None:
    """ValueError for more work than a bundle of `size` bytes can have a reason for."""
    if total > WORK + size * WORK_PER_BYTE:
        raise ValueError("bundle: %d bytes that ask for %d multiplications" % (size, total))


def check_inside(start: int, size: int, limit: int) -> None:
    """ValueError unless start .. start + size lies in 0 .. limit."""
    if not 0 <= start <= start + size <= limit:
        raise ValueError("bundle: %d bytes at %d lie outside %d" % (size, start, limit))


def weights_size(name: str, p: "array[int]") -> int:
    """How many bytes of the bundle a step reads at p[6]. ValueError for another number of parameters than its kernel has."""
    if len(p) != PARAMETERS[name]:
        raise ValueError("bundle: %s with %d parameters" % (name, len(p)))
    return 0 if _second_in_arena(name, p[7:]) else _extents(name, p[7:])[2]


def _second_in_arena(name: str, own: "array[int]") -> bool:
    """Whether the second of two inputs is in the arena; otherwise it is a constant."""
    return name == "batch_matmul" or (name in ("arithmetic", "extreme") and not own[-5])


def check_step(name: str, p: "array[int]", biases: int, multipliers: int, arena: int, blob: "Any") -> int:
    """weights_size() of a step. ValueError unless it stays inside `arena` bytes and the bundle, and has its constants."""
    constant = weights_size(name, p)
    for n, value in enumerate(p):
        backwards = name == "view" and n > 12  # its last five are steps in its input
        if (value < 0 and not backwards) or (2 <= n <= 5 and value > 255):  # zero points and bounds are bytes
            raise ValueError("bundle: %s, parameter %d is %d" % (name, n, value))
    x, y, _, _, _, _, seventh = p[:7]
    own = p[7:]
    source, written, weights, channels = _extents(name, own)
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
    return constant


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
