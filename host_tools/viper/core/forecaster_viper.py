# The functions of forecaster.py, and what watch.py does in every round, in machine code.
import micropython

from .numbers_viper import TABLE


@micropython.viper
def forecasts(labels: ptr16, events: ptr16, prior: int, p: ptr32, bits: int, k: int):
    size = 2 << bits
    leaf = k + (size >> 1)
    i = 0
    while i < 16:
        at = leaf
        n = labels[at]
        x = events[at] << 15
        p[i] = (x + 16 * prior) // (n + 16)
        p[i + 1] = (x + 512 * prior) // (n + 512)
        smooth(bits)
        i += 4
        labels = ptr16(int(labels) + 2 * size)
        events = ptr16(int(events) + 2 * size)


@micropython.viper
def mean(labels: ptr16, weight: ptr32, p: ptr32, belief: ptr32, size: int, leaf: int):
    i = 0
    x = 0
    n = 0
    while i < 16:
        w = weight[i]
        x += w * p[i]
        m = 134324228 >> (i << 3 & 24) & 255  # half the worth of the priors, a byte each: 4, 160, 1, 8
        n += w * (labels[leaf] + m + m)
        i += 1
        if i & 3 == 0:
            leaf += size
    x >>= 15
    if x < 1:
        x = 1
    n = (n >> 15) + 4
    m = x * (32768 - x) // n << 2
    add_spread(m)
    root = 0
    square_root(root, m)
    m = root + 65536 // n
    store_belief(m)
    belief[3] = n


@micropython.viper
def judge(loss, p, label: int):
    losses = ptr32(loss)
    forecast = ptr32(p)
    label <<= 15
    i = int(len(p))
    while i:
        i -= 1
        x = forecast[i] - label >> 1
        y = losses[i]
        losses[i] = y + (x * x >> 13) - (y * 5 >> 10)


@micropython.viper
def weigh(weight, loss):
    read_table(TABLE)
    losses = ptr32(loss)
    weights = ptr32(weight)
    size = int(len(loss))
    least = losses[0]
    n = size
    while n:
        n -= 1
        x = losses[n]
        if x < least:
            least = x
    total = 0
    best = 0
    n = size
    while n:
        n -= 1
        x = losses[n] - least
        if x == 0:
            best = n
        x *= 3
        look_up_exp2(y, x, 0)
        y >>= 14
        weights[n] = y
        total += y
    n = size
    y = 32768
    while n:
        n -= 1
        x = weights[n]
        if x:
            x = (x << 14) // total << 1
            weights[n] = x
            y -= x
    weights[best] = weights[best] + y


@micropython.viper
def count(labels: ptr16, events: ptr16, size: int, leaf: int, label: int):
    memory = 4
    while memory:
        n = leaf
        while n:
            x = labels[n] + 4
            y = events[n]
            if label:
                y += 4
            if x >= 32000:
                x >>= 1
                y >>= 1
            labels[n] = x
            events[n] = y
            n >>= 1
        labels = ptr16(int(labels) + 2 * size)
        events = ptr16(int(events) + 2 * size)
        memory -= 1


@micropython.viper
def count_score(self, k: int):
    histogram = ptr32(self.fast)
    cell = k
    x = histogram[cell] + 64
    if x > 8192:
        x = 8192
    histogram[cell] = x
    histogram = ptr32(self.slow)
    x = histogram[cell] + 64
    if x > 131072:
        x = 131072
    histogram[cell] = x
    x = int(self.quiet)
    if x < 128:
        self.quiet = x + 1
    x = int(self.age) + 1
    self.age = x
    if x & 31 == 0 or x % 250 == 0:
        self._follow_schedule()
