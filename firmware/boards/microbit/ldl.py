# Dense int8 layers in little memory, for MicroPython 1.9.2. They compute the same bytes as h2t2/ldl/kernels.py. The host packs
# a model (h2t2_tools/boards/microbit/packed_layers.py): it folds the zero points of the inputs into the biases, and the
# function behind the last layer (logistic, softmax) into `edges`.
from array import array


def load(name):
    """Return (event, other, edges, layers) for classify(); dense() unpacks a layer."""
    file = open(name, "rb")
    count, event, other = file.read(3)
    edges = array("h", file.read(30))
    layers = []
    for _ in range(count):
        inputs, outputs, offset, low, high, zero = array("H", file.read(12))
        bias = array("i", file.read(4 * outputs))
        limbs = array("H", file.read(6 * outputs))
        shifts = file.read(2 * outputs)
        layers.append((offset, low, high, zero, bias, limbs, shifts, file.read(inputs * outputs)))
    return event, other, edges, layers


def requantise(x, a, b, c, left, right):
    """Return x times the multiplier a 2^20 + b 2^10 + c, rounded twice as gemmlowp does; see h2t2/ldl/kernels.py."""
    negative = x < 0
    if negative:
        x = -x
    x <<= left
    h = x >> 15
    x &= 32767
    s = x * c
    low = s & 1023
    s = x * b + (s >> 10) + (h * c << 5)
    low |= s & 1023
    s = x * a + (s >> 10) + (h * b << 5) + 1024
    if negative and not low:
        s -= 1
    x = (s >> 11) + (h * a << 4)
    if right:
        x = x + (1 << right - 1) >> right
    return -x if negative else x


def dense(x, layer):
    """Return the outputs of a layer for its inputs; both are bytes u = q + 128."""
    offset, low, high, zero, bias, limbs, shifts, weights = layer
    y = bytearray(len(bias))
    w = 0
    for o in range(len(bias)):
        total = bias[o]
        for u in x:
            total += u * (weights[w] - zero)
            w += 1
        total = offset + requantise(total, limbs[3 * o], limbs[3 * o + 1], limbs[3 * o + 2], shifts[2 * o], shifts[2 * o + 1])
        y[o] = min(max(total, low), high)
    return y


def classify(model, sample):
    """Return the bin of an int8 sample: the number of edges that the event's output reaches, minus the other's with softmax."""
    event, other, edges, layers = model
    x = bytearray(sample)
    for n in range(len(x)):
        x[n] ^= 128
    for layer in layers:
        x = dense(x, layer)
    score = x[event]
    if other < 255:
        score -= x[other]
    k = 0
    for edge in edges:
        k += score >= edge
    return k
