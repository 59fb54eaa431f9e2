# Methods of head.Heads and of head_forecaster.HeadForecaster in machine code. As in experts_viper, an object has the addresses
# of its arrays in one array, `places`, and no index of an array is one of the first three variables of a function.
from array import array

import micropython

from .adaptive_viper import decide as decide_bin
from .head import RATES
from .numbers_viper import TABLE

LEARNING_RATES = bytes(RATES)
# places of Heads: 0 number of features, 1 of inputs, 2 words of a stored sample, 3 the slot of the current sample, 4 TABLE, 5
# LEARNING_RATES, 6 weights, 7 roots, 8 rows, 9 answers, 10 logits; x, g, logit and score of the current sample from 11 on, of a
# repeated one from 15 on. Of HeadForecaster: 0 bits, 1 mean of the forecasts or -1, 2 TABLE, 3 labels of the bins, 4 to 6 those
# of the heads' cells, 7 to 10 the events of both, 11 prior, 12 g, 13 forecast, 14 weight, 15 loss, 16 its end, 17 belief.


def head_places(heads):
    """The places of Heads."""
    places = array("i", [0] * 19)
    find_head(places, heads, LEARNING_RATES)
    return places


@micropython.viper
def find_head(places: ptr32, heads, rates):
    features = int(heads.features)
    places[0] = features
    places[1] = features + 2
    places[2] = int(heads.width)
    places[3] = -1
    places[4] = int(ptr32(TABLE))
    places[5] = int(ptr8(rates))
    places[6] = int(ptr32(heads.weights))
    places[7] = int(ptr32(heads.roots))
    places[8] = int(ptr32(heads.rows))
    places[9] = int(ptr16(heads.answers))
    places[10] = int(ptr16(heads.logits))
    places[11] = int(ptr32(heads.x))
    places[12] = int(ptr32(heads.g))
    places[15] = int(ptr32(heads.repeated))
    places[16] = int(ptr32(heads.repeated_g))


def forecaster_places(forecaster):
    """The places of HeadForecaster."""
    places = array("i", [0] * 18)
    find(places, forecaster, forecaster.heads)
    return places


@micropython.viper
def find(places: ptr32, forecaster, heads):
    places[0] = int(forecaster.bits)
    places[2] = int(ptr32(TABLE))
    places[3] = int(ptr16(forecaster.labels))
    places[7] = int(ptr16(forecaster.events))
    head_labels = forecaster.head_labels
    head_events = forecaster.head_events
    at = ptr32(int(places) + 16)
    n = 0
    while n < 3:
        at[0] = int(ptr16(head_labels[n]))
        at[4] = int(ptr16(head_events[n]))
        at = ptr32(int(at) + 4)
        n += 1
    places[11] = int(ptr32(forecaster.prior))
    places[12] = int(ptr32(heads.g))
    places[13] = int(ptr32(forecaster.forecast))
    places[14] = int(ptr32(forecaster.weight))
    loss = forecaster.loss
    places[15] = int(ptr32(loss))
    places[16] = int(ptr32(loss)) + 4 * int(len(loss))
    places[17] = int(ptr32(forecaster.belief))


@micropython.viper
def enter(places: ptr32, at: int, score: int):
    sample = ptr32(int(places) + (at << 2))
    if score < 128:
        logit = 0 - int(ptr16(places[10] + (127 - score << 1))[0])
    else:
        logit = ptr16(places[10] + (score - 128 << 1))[0]
    sample[2] = logit << 2
    sample[3] = score
    places = ptr32(sample[0] + (places[0] << 2))
    places[0] = 32
    places[1] = logit >> 8


@micropython.viper
def see(self, sample):
    addresses = self.places
    places = ptr32(addresses)
    x = ptr32(places[11])
    left = places[0]
    n = 0
    while left:
        n += 1
        left -= 1
        x[0] = int(sample[n])
        x = ptr32(int(x) + 4)
    places[3] = -1
    enter(addresses, 11, sample[0])


@micropython.viper
def pack(places: ptr32, at: int, answer: int):
    ptr16(places[9] + (at << 1))[0] = answer
    row = ptr32(places[8] + (at * places[2] << 2))
    x = ptr32(places[11])
    left = places[0]
    while left > 2:
        row[0] = x[0] + 128 | x[1] + 128 << 8 | x[2] + 128 << 16
        x = ptr32(int(x) + 12)
        row = ptr32(int(row) + 4)
        left -= 3
    if left == 2:
        row[0] = x[0] + 128 | x[1] + 128 << 8
    elif left:
        row[0] = x[0] + 128


@micropython.viper
def unpack(places: ptr32, base: int, at: int) -> int:
    x = ptr32(ptr32(int(places) + (base << 2))[0])
    row = ptr32(places[8] + (at * places[2] << 2))
    left = places[0]
    while left > 2:
        word = row[0]
        x[0] = (word & 255) - 128
        x[1] = (word >> 8 & 255) - 128
        x[2] = (word >> 16) - 128
        x = ptr32(int(x) + 12)
        row = ptr32(int(row) + 4)
        left -= 3
    if left:
        word = row[0]
        x[0] = (word & 255) - 128
        if left == 2:
            x[1] = (word >> 8) - 128
    return ptr16(places[9] + (at << 1))[0]


@micropython.viper
def keep(self, at: int):
    addresses = self.places
    places = ptr32(addresses)
    places[3] = at
    pack(addresses, at + 64, places[14] << 1)


@micropython.viper
def recall(self, at: int) -> bool:
    addresses = self.places
    places = ptr32(addresses)
    if places[3] == at:
        return False
    places[3] = at
    enter(addresses, 11, int(unpack(addresses, 11, at + 64)) >> 1)
    return True


@micropython.viper
def outputs(places: ptr32, base: int):
    curve = ptr32(places[4])
    slope = ptr16(int(curve) + 272)
    bend = ptr8(int(curve) + 408)
    sample = ptr32(int(places) + (base << 2))
    g = ptr32(sample[1])
    logit = sample[2]
    first = sample[0]
    end = first + (places[1] << 2)
    places = ptr32(places[6])
    heads = 3
    while heads:
        z = 0
        x = ptr32(first)
        while int(x) < end:
            z += (places[0] >> 6) * x[0]
            places = ptr32(int(places) + 4)
            x = ptr32(int(x) + 4)
        z = logit + (z >> 5)
        z = clamp(z, -114688, 114688)
        z += z * 7253 >> 14
        n = z
        if n < 0:
            n = 0 - n
        exp2(y, n, 0)
        y >>= 14
        n = y << 14
        if z >= 0:
            n = 536870912
        g[0] = n // (32768 + y) << 1
        g = ptr32(int(g) + 4)
        heads -= 1


@micropython.viper
def predict(self):
    outputs(self.places, 11)


@micropython.viper
def descend(weight: ptr32, gradient: int, y: int):
    places = weight
    sample = ptr32(int(places) + (gradient << 2))
    g = ptr32(sample[1])
    first = sample[0]
    end = first + (places[1] << 2)
    rates = ptr8(places[5])
    weight = ptr32(places[6])
    shift = places[7] - places[6]
    label = y << 15
    heads = 3
    while heads:
        error = g[0] - label
        rate = rates[0]
        x = first
        while x < end:
            gradient = error * ptr32(x)[0]
            if gradient:
                root = ptr32(int(weight) + shift)
                y = root[0] >> 10
                step = weight[0] - (((gradient << 8) + (y >> 1)) // y * rate + 32 >> 6)
                if step + 4194304 >> 23:
                    step = clamp(step, -8388607, 8388607)
                weight[0] = step
                if gradient < 0:
                    gradient = 0 - gradient
                gradient >>= 8
                gradient = root[0] + (gradient * gradient << 2) // ((y << 1) + (gradient >> 4))
                if gradient >> 29:
                    gradient = 536870911
                root[0] = gradient
            x += 4
            weight = ptr32(int(weight) + 4)
        g = ptr32(int(g) + 4)
        rates = ptr8(int(rates) + 1)
        heads -= 1


@micropython.viper
def teach(self, label: int):
    addresses = self.places
    places = ptr32(addresses)
    descend(addresses, 11, label)
    taught = int(self.taught)
    pack(addresses, taught & 63, places[14] << 1 | label)
    taught += 1
    if taught == 128:
        taught = 64
    self.taught = taught
    if taught > 64:
        taught = 64
    turn = int(self.turn)
    again = 2
    while again:
        again -= 1
        turn = turn + 27 & 63
        answer = int(unpack(addresses, 15, turn % taught))
        enter(addresses, 15, answer >> 1)
        outputs(addresses, 15)
        descend(addresses, 15, answer & 1)
    self.turn = turn


@micropython.viper
def forecast(places: ptr32, k: int):
    places[1] = -1
    bits = places[0]
    prior = ptr32(places[11] + (k << 2))[0]
    g = ptr32(places[12])
    p = ptr32(places[13])
    leaf = (1 << bits) + k
    size = 4 << bits
    view = ptr32(int(places) + 12)
    views = 4
    while views:
        labels = view[0]
        events = view[4]
        memory = 4
        while memory:
            shift = bits
            if memory < 4:
                while shift >= 0:
                    at = leaf >> shift << 1
                    cell = ptr16(labels + at - size)
                    if cell[0] == ptr16(labels + at)[0]:
                        cell = ptr16(events + at - size)
                        if cell[0] == ptr16(events + at)[0]:
                            shift -= 1
                            continue
                    shift = bits
                    break
            if shift >= 0:
                a = 16384
                b = 16384
                n = 0
                x = 0
                while shift >= 0:
                    at = leaf >> shift << 1
                    n = ptr16(labels + at)[0]
                    if n:
                        x = ptr16(events + at)[0] << 15
                        a = (x + (a << 2)) // (n + 4)
                        b = (x + (b << 5)) // (n + 32)
                    shift -= 1
                light = prior
                heavy = prior
                if n:
                    light = (x + (prior << 4)) // (n + 16)
                    heavy = (x + (prior << 9)) // (n + 512)
            p[0] = light
            p[1] = heavy
            p[2] = a
            p[3] = b
            p = ptr32(int(p) + 16)
            labels += size
            events += size
            memory -= 1
        views -= 1
        if views < 3:
            p[0] = prior
            p = ptr32(int(p) + 4)
        if views:
            prior = g[0]
            g = ptr32(int(g) + 4)
            leaf = (prior >> 11) + 16
            bits = 4
            size = 64
            view = ptr32(int(view) + 4)


@micropython.viper
def believe(places: ptr32, k: int):
    weight = ptr32(places[14])
    p = ptr32(places[13])
    g = ptr32(places[12])
    size = 4 << places[0]
    view = ptr32(int(places) + 12)
    cell = view[0] + (size >> 1) + (k << 1)
    heavy = 320
    x = 0
    n = 0
    views = 4
    while views:
        memory = 4
        while memory:
            m = ptr16(cell)[0]
            w = weight[0]
            if w:
                x += w * p[0]
                n += w * (m + 8)
            w = weight[1]
            if w:
                x += w * p[1]
                n += w * (m + heavy)
            w = weight[2]
            if w:
                x += w * p[2]
                n += w * (m + 2)
            w = weight[3]
            if w:
                x += w * p[3]
                n += w * (m + 16)
            weight = ptr32(int(weight) + 16)
            p = ptr32(int(p) + 16)
            cell += size
            memory -= 1
        views -= 1
        if views < 3:
            w = weight[0]
            if w:
                x += w * p[0]
                n += w * (int(ptr16(cell - 192)[0]) + 64)
            weight = ptr32(int(weight) + 4)
            p = ptr32(int(p) + 4)
        if views:
            view = ptr32(int(view) + 4)
            cell = view[0] + (g[0] >> 11 << 1) + 32
            g = ptr32(int(g) + 4)
            size = 64
            heavy = 256
    x >>= 15
    places[1] = x
    if x < 1:
        x = 1
    n = (n >> 15) + 4
    m = x * (32768 - x) // n << 2
    cell = places[13]
    while int(p) > cell:
        p = ptr32(int(p) - 4)
        weight = ptr32(int(weight) - 4)
        w = weight[0]
        if w:
            k = p[0] - x
            k *= k
            m += (k >> 15) * w + ((k & 32767) * w >> 15)
    root = 0
    square_root(root, m)
    m = root + 65536 // n
    belief = ptr32(places[17])
    store_belief(m)
    belief[3] = n >> 2


@micropython.viper
def estimate(self, k: int):
    addresses = self.places
    if int(self.bin) != k:
        outputs(self.heads.places, 11)
        forecast(addresses, k)
        self.bin = k
    believe(addresses, k)


@micropython.viper
def mixed(places: ptr32) -> int:
    x = places[1]
    if x < 0:
        p = ptr32(places[13])
        weight = ptr32(places[14])
        end = int(weight) + places[16] - places[15]
        x = 0
        while int(weight) < end:
            x += weight[0] * p[0]
            weight = ptr32(int(weight) + 4)
            p = ptr32(int(p) + 4)
        x >>= 15
    return x


@micropython.viper
def judge(loss: ptr32, x: int, y: int):
    places = loss
    curve = ptr32(places[2])
    slope = ptr16(int(curve) + 272)
    bend = ptr8(int(curve) + 408)
    p = ptr32(places[13])
    weight = places[14]
    end = places[16]
    label = x << 15
    least = 1073741823
    loss = ptr32(places[15])
    while int(loss) < end:
        y = loss[0]
        x = p[0] - label >> 1
        y += (x * x >> 13) - (y * 5 >> 10)
        loss[0] = y
        if y < least:
            least = y
        p = ptr32(int(p) + 4)
        loss = ptr32(int(loss) + 4)
    end = places[15]
    shift = weight - end
    total = 0
    best = p
    while int(loss) > end:
        loss = ptr32(int(loss) - 4)
        x = loss[0] - least
        y = 0
        if x < 87382:
            p = ptr32(int(loss) + shift)
            if x == 0:
                best = p
            x *= 3
            d = (x & 2047) << 1
            y = 60 + (x >> 11 & 7)
            y = curve[y] - d * (slope[y] - (d * bend[y] >> 10)) >> (x >> 14) + 14
            total += y
        ptr32(int(loss) + shift)[0] = y
    y = 32768
    loss = ptr32(weight)
    end = weight + places[16] - places[15]
    while int(loss) < end:
        x = loss[0]
        if x:
            x = (x << 14) // total << 1
            loss[0] = x
            y -= x
        loss = ptr32(int(loss) + 4)
    best[0] = best[0] + y


@micropython.viper
def count(places: ptr32, n: int, x: int):
    label = x
    g = ptr32(places[12])
    size = places[0]
    leaf = (1 << size) + n
    size = 4 << size
    view = ptr32(int(places) + 12)
    views = 4
    while views:
        labels = view[0]
        events = view[4]
        memory = 4
        while memory:
            n = leaf
            while n:
                places = ptr32(labels + (n << 1))
                x = ptr16(places)[0] + 4
                ptr16(places)[0] = x
                if label:
                    ptr16(events + (n << 1))[0] = ptr16(events + (n << 1))[0] + 4
                if x >= 32000:
                    ptr16(places)[0] = x >> 1
                    ptr16(events + (n << 1))[0] = ptr16(events + (n << 1))[0] >> 1
                n >>= 1
            labels += size
            events += size
            memory -= 1
        views -= 1
        if views:
            view = ptr32(int(view) + 4)
            leaf = (g[0] >> 11) + 16
            g = ptr32(int(g) + 4)
            size = 64


@micropython.viper
def learn(self, k: int, label: int):
    addresses = self.places
    heads = self.heads
    if int(self.bin) != k:
        outputs(heads.places, 11)
        forecast(addresses, k)
    x = int(mixed(addresses))
    if label == 0:
        x = 32768 - x
    if x < 64:
        x = 64
    x = (int(self.surprise) << 14) // x
    if x < 512:
        x = 512
    self.surprise = x
    if x >= 32768:
        self.doubt_all()
        forecast(addresses, k)
    judge(addresses, label, 0)
    count(addresses, k, label)
    self.bin = -1
    heads.learn(label)


@micropython.viper
def count_round(self, k: int, belief: ptr32, effective: ptr32) -> int:
    fp = effective[1]
    fn = effective[2]
    totals = self.totals
    total = ptr32(totals)
    if total[1] >= 16384:
        self.settle(fp, fn)
    p = belief[0]
    cost = p * fn >> 15
    x = (32768 - p) * fp >> 15
    action = 0
    if x <= cost:
        action = 1
        cost = x
    fee = effective[0]
    if fee < cost:
        action = 2
        cost = fee
    total[1] = total[1] + 1
    x = total[0] + cost
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    k <<= 2
    total = ptr32(self.fees)
    total = ptr32(int(total) + k)
    total[0] = total[0] + fee
    total = ptr32(self.counts)
    total = ptr32(int(total) + k)
    total[0] = total[0] + 1
    total = ptr32(self.events)
    total = ptr32(int(total) + k)
    x = total[0] + p
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    return p << 2 | action


@micropython.viper
def correct_round(self, counted: int, label: int, slot: ptr32, at: int, effective: ptr32):
    slot = ptr32(int(slot) + 4 * at)
    chance = (slot[4] >> 14) - 655
    if chance < 164:
        chance = 164
    chance >>= 1
    p = counted >> 2
    total = ptr32(self.events)
    total = ptr32(int(total) + (slot[1] << 2))
    x = total[0] + (((label << 15) - p << 14) // chance)
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    counted &= 3
    if counted < 2:
        x = p * effective[2] >> 15
        if counted:
            x = (32768 - p) * effective[1] >> 15
        if counted != label:
            p = effective[1]
            if label:
                p = effective[2]
            x = p - x
        else:
            x = 0 - x
        total = ptr32(self.totals)
        x = total[0] + ((x << 14) // chance)
        x = clamp(x, -1006632960, 1006632960)
        total[0] = x


@micropython.viper
def decide(self, sample) -> int:
    forecaster = self.forecaster
    heads = forecaster.heads
    see(heads, sample)
    forecaster.bin = -1
    k = int(sample[0]) >> 8 - int(self.bits)
    action = int(decide_bin(self, k))
    counted = int(count_round(self.saving, k, forecaster.belief, self.effective))
    if action < 0:
        at = int(self.ticket) % int(self.tickets.window)
        keep(heads, at)
        ptr32(self.counted)[at] = counted
    return action
