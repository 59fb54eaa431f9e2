# Whether a bundle's steps stay inside the arena and the bundle: machine code does not look. Set-up only.
ARENA_MAX = 67108864  # bytes; no board has as much, and a stranger's bundle may not ask for more


def _area(p, *at):
    size = 1
    for n in at:
        size *= p[n]
    return size


def _reach(name, p):
    """(input bytes, output bytes, bytes of the bundle at p[6], channels of constants) of a step."""
    if name == "fully_connected":
        return p[7], p[8], p[7] * p[8], p[8]
    if name == "conv_2d":
        return _area(p, 7, 8, 9), _area(p, 10, 11, 12), _area(p, 9, 12, 13, 14), p[12]
    if name == "depthwise_conv_2d":
        if p[12] != p[9] * p[21]:
            raise ValueError("bundle: %d channels from %d" % (p[12], p[9]))
        return _area(p, 7, 8, 9), _area(p, 10, 11, 12), _area(p, 12, 13, 14), p[12]
    if name == "pool_2d":
        return _area(p, 7, 8, 9), _area(p, 10, 11, 9), 0, 0
    if name == "mean":
        return p[7] * p[8], p[8], 0, 1
    if name in ("add", "multiply"):
        return p[8], p[8], 0, 3 if name == "add" else 1
    if name == "pad":
        return _area(p, 7, 8, 9), _area(p, 9, 10, 11), 0, 0
    if name == "concatenate":
        return p[7] * p[8], (p[7] - 1) * p[9] + p[8], 0, 0
    if name == "softmax":
        return p[7] * p[8], p[7] * p[8], 1024, 0
    return p[7], p[7], 256 if name == "look_up" else 0, 1 if name == "rescale" else 0


WEIGHTED = "fully_connected", "conv_2d", "depthwise_conv_2d"
LENGTHS = {
    "fully_connected": 9, "conv_2d": 21, "depthwise_conv_2d": 22, "pool_2d": 20, "mean": 9, "add": 9, "multiply": 9,
    "rescale": 8, "pad": 14, "concatenate": 10, "look_up": 8, "softmax": 9,
}  # fmt: skip


def inside(start, size, limit):
    """Raise ValueError unless start .. start + size lies in 0 .. limit."""
    if not 0 <= start <= start + size <= limit:
        raise ValueError("bundle: %d bytes at %d lie outside %d" % (size, start, limit))


def check(name, p, k, arena, blob):
    """Raise ValueError unless a step (kernel's name, parameters, constants) stays inside `arena` bytes and the bundle."""
    if len(p) != LENGTHS[name]:
        raise ValueError("bundle: %s with %d parameters" % (name, len(p)))
    for n, value in enumerate(p):
        if value < 0 or (n in (2, 3, 4, 5) and value > 255):
            raise ValueError("bundle: %s, parameter %d is %d" % (name, n, value))
    source, made, weights, channels = _reach(name, p)
    inside(p[0], source, arena)
    inside(p[1], made, arena)
    if name in ("add", "multiply"):
        inside(p[6], p[8], arena)
    elif weights:
        inside(p[6], weights, len(blob))
    if name == "softmax":
        _exponentials(blob[p[6] : p[6] + 1024], p[7])
    if channels or name in WEIGHTED:
        if not isinstance(k, tuple) or len(k[1]) < 3 * channels or len(k[2]) < 2 * channels:
            raise ValueError("bundle: %s lacks constants" % name)
        if name in WEIGHTED and (k[0] is None or len(k[0]) < channels):
            raise ValueError("bundle: %s lacks its bias" % name)


def _exponentials(table, classes):
    """exp of 0, -1, ... steps as Q0.31: the first is 1, none is more; their sum over the classes stays a small int."""
    first = table[0] == table[1] == table[2] == 255 and table[3] == 127
    if not first or max([table[n] for n in range(3, 1024, 4)]) > 127 or not 0 < classes < 2048:
        raise ValueError("bundle: softmax over %d classes, with a table of no exponentials" % classes)
