# The functions of head.py and head_forecaster.py in machine code.
import micropython

from .head import RATES
from .numbers_viper import TABLE

LEARNING_RATES = bytes(RATES)


@micropython.viper
def outputs(weights: ptr32, x, logit: int, g):
    features = ptr8(x)
    probabilities = ptr32(g)
    inputs = int(len(x))
    heads = int(len(g))
    read_table(TABLE)
    r = 0
    while r < heads:
        z = 0
        n = 0
        while n < inputs:
            z += (weights[n] >> 6) * ((features[n] ^ 128) - 128)
            n += 1
        weights = ptr32(int(weights) + 4 * inputs)
        z = logit + (z >> 5)
        z = clamp(z, -114688, 114688)
        z += z * 7253 >> 14
        n = z
        if n < 0:
            n = 0 - n
        look_up_exp2(y, n, 0)
        y >>= 14
        n = y << 14
        if z >= 0:
            n = 536870912
        probabilities[r] = n // (32768 + y) << 1
        r += 1


@micropython.viper
def descend(weights: ptr32, roots: ptr32, x, g, label: int):
    features = ptr8(x)
    probabilities = ptr32(g)
    inputs = int(len(x))
    heads = int(len(g))
    rates = ptr8(LEARNING_RATES)
    r = 0
    while r < heads:
        error = probabilities[r] - (label << 15)
        rate = rates[r]
        n = 0
        while n < inputs:
            gradient = error * ((features[n] ^ 128) - 128)
            if gradient:
                grown = roots[n]
                root = grown >> 10
                step = weights[n] - (((gradient << 8) + (root >> 1)) // root * rate + 32 >> 6)
                step = clamp(step, -8388607, 8388607)
                weights[n] = step
                if gradient < 0:
                    gradient = 0 - gradient
                gradient >>= 8
                grown += (gradient * gradient << 2) // ((root << 1) + (gradient >> 4))
                if grown > 536870911:
                    grown = 536870911
                roots[n] = grown
            n += 1
        weights = ptr32(int(weights) + 4 * inputs)
        roots = ptr32(int(roots) + 4 * inputs)
        r += 1


@micropython.viper
def pack(x: ptr8, features: int, rows: ptr32, at: int):
    n = 0
    word = 0
    shift = 0
    while n < features:
        word |= (x[n] ^ 128) << shift
        shift += 8
        n += 1
        if shift == 24 or n == features:
            rows[at] = word
            at += 1
            word = 0
            shift = 0


@micropython.viper
def unpack(rows: ptr32, start: int, x: ptr8, features: int):
    at = start
    n = 0
    shift = 0
    while n < features:
        x[n] = rows[at] >> shift & 255 ^ 128
        shift += 8
        n += 1
        if shift == 24:
            at += 1
            shift = 0


@micropython.viper
def view_forecasts(labels: ptr16, events: ptr16, prior: int, p: ptr32, worth: ptr32, k: int, i: int):
    leaf = k + 16
    light = worth[0]
    heavy = worth[1]
    memory = 4
    while memory:
        at = leaf
        n = labels[at]
        x = events[at] << 15
        p[i] = (x + light * prior) // (n + light)
        p[i + 1] = (x + heavy * prior) // (n + heavy)
        smooth(4)
        i += 4
        labels = ptr16(int(labels) + 64)
        events = ptr16(int(events) + 64)
        memory -= 1


@micropython.viper
def add_view(labels: ptr16, weight: ptr32, p: ptr32, sums: ptr32, worth: ptr32, size: int, leaf: int):
    i = sums[0]
    x = sums[1]
    n = sums[2]
    light = worth[2]
    heavy = worth[3]
    memory = 4
    while memory:
        m = labels[leaf]
        w = weight[i]
        if w:
            x += w * p[i]
            n += w * (m + light)
        w = weight[i + 1]
        if w:
            x += w * p[i + 1]
            n += w * (m + heavy)
        w = weight[i + 2]
        if w:
            x += w * p[i + 2]
            n += w * (m + 2)
        w = weight[i + 3]
        if w:
            x += w * p[i + 3]
            n += w * (m + 16)
        i += 4
        leaf += size
        memory -= 1
    sums[0] = i
    sums[1] = x
    sums[2] = n


@micropython.viper
def conclude(weight: ptr32, p: ptr32, sums: ptr32, belief: ptr32):
    x = sums[1] >> 15
    if x < 1:
        x = 1
    n = (sums[2] >> 15) + 4
    m = x * (32768 - x) // n << 2
    i = sums[0]
    add_spread(m)
    root = 0
    square_root(root, m)
    m = root + 65536 // n
    store_belief(m)
    belief[3] = n >> 2
    sums[0] = 0
    sums[1] = 0
    sums[2] = 0


@micropython.viper
def mixed(weight: ptr32, forecast) -> int:
    p = ptr32(forecast)
    x = 0
    n = int(len(forecast))
    while n:
        n -= 1
        w = weight[n]
        if w:
            x += w * p[n]
    return x >> 15
