# Methods of head.Heads, head_forecaster.HeadForecaster and adaptive_head.AdaptiveHead in machine code. The three share
# an array, `places`, which has the addresses of their arrays and what follows from the current sample. No index of an array is
# one of the first three variables of a function, as in experts_viper. The first two are in registers.
from array import array

import micropython

from .adaptive_viper import decide as decide_bin
from .adaptive_viper import teach as teach_bin
from .head import RATES
from .numbers_viper import TABLE

LEARNING_RATES = bytes(RATES)
EQUAL = 45
# places: 0 number of features, 1 of inputs, 2 words of a stored sample, 3 slot of the current sample, 4 TABLE, 5 the
# rates, 6 weights, 7 roots, 8 rows, 9 answers, 10 logits, 11 x, 12 g, 13 to 15 logits of the samples in x, 16 score of
# the first, 17 g of the repeated ones, 18 and 19 their answers. 20 bits, 21 labels of the bins, 22 to 24 those of the
# heads' cells, 25 to 28 events of both, 29 prior, 30 forecast, 31 weight, 32 loss, 33 its end, 34 belief, 35 whether
# `forecast` is that of the current sample, 36 mean of the forecasts or -1. 37 fees, 38 counts, 39 events and 40 totals of
# the saving, 41 effective costs, 42 counted, 43 slots, 44 window of the tickets. 45 EQUAL: whether all memories have the
# same counts for sure.


@micropython.viper
def address(buffer) -> int:
    return int(ptr8(buffer))


def place(places, first, buffers):
    """Put the addresses of buffers into places."""
    for buffer in buffers:
        places[first] = address(buffer)
        first += 1


def places_of_heads(heads):
    """The places of Heads."""
    places = array("i", [heads.features, heads.features + 2, heads.width, -1] + [0] * 42)
    place(places, 4, (TABLE, LEARNING_RATES, heads.weights, heads.roots, heads.rows, heads.answers))
    place(places, 10, (heads.logits, heads.x, heads.g))
    places[17] = places[12] + 4 * len(RATES)
    return places


def places_of_forecaster(forecaster):
    """The places of HeadForecaster, in those of its heads."""
    places = forecaster.heads.places
    places[20] = forecaster.bits
    place(places, 21, [forecaster.labels] + forecaster.head_labels)
    place(places, 25, [forecaster.events] + forecaster.head_events)
    place(places, 29, (forecaster.prior, forecaster.forecast, forecaster.weight, forecaster.loss))
    places[33] = places[32] + 4 * len(forecaster.loss)
    place(places, 34, (forecaster.belief,))
    return places


def places_of_policy(policy):
    """The places of AdaptiveHead, in those of its forecaster."""
    places = policy.forecaster.places
    saving = policy.saving
    tickets = policy.tickets
    place(places, 37, (saving.fees, saving.counts, saving.events, saving.totals))
    place(places, 41, (policy.effective, policy.counted, tickets.slots))
    places[44] = tickets.window
    return places


@micropython.viper
def see_sample(places: ptr32, sample, own):
    places[3] = -1
    places[35] = 0
    x = places[11]
    remaining = places[0]
    if sample is own:
        item = ptr16(sample)
        score = item[0]
        while remaining:
            item = ptr16(int(item) + 2)
            ptr32(x)[0] = (item[0] ^ 32768) - 32768
            x += 12
            remaining -= 1
    else:
        score = int(sample[0])
        n = 0
        while remaining:
            n += 1
            ptr32(x)[0] = int(sample[n])
            x += 12
            remaining -= 1
    places[16] = score
    column = 0
    enter_score(score, column)


@micropython.viper
def see(self, sample):
    see_sample(self.places, sample, None)


@micropython.viper
def pack(places: ptr32, x: int, answer: int):
    at = x
    ptr16(places[9] + (at << 1))[0] = answer
    row = ptr32(places[8] + (at * places[2] << 2))
    x = places[11]
    remaining = places[0]
    while remaining > 2:
        row[0] = ptr32(x)[0] + 128 | ptr32(x)[3] + 128 << 8 | ptr32(x)[6] + 128 << 16
        x += 36
        row = ptr32(int(row) + 4)
        remaining -= 3
    if remaining == 2:
        row[0] = ptr32(x)[0] + 128 | ptr32(x)[3] + 128 << 8
    elif remaining:
        row[0] = ptr32(x)[0] + 128


@micropython.viper
def load(places: ptr32, x: int, taught: int):
    """A stored sample, or where `taught` is not 0 the two repeated ones after turn x."""
    turn = x
    column = 0
    if taught:
        column = 1
    while column < 3:
        at = turn
        if taught:
            turn = turn + 27 & 63
            at = turn % taught
        row = ptr32(places[8] + (at * places[2] << 2))
        x = places[11] + (column << 2)
        remaining = places[0]
        while remaining > 2:
            word = row[0]
            ptr32(x)[0] = (word & 255) - 128
            ptr32(x)[3] = (word >> 8 & 255) - 128
            ptr32(x)[6] = (word >> 16) - 128
            x += 36
            row = ptr32(int(row) + 4)
            remaining -= 3
        if remaining:
            word = row[0]
            ptr32(x)[0] = (word & 255) - 128
            if remaining == 2:
                ptr32(x)[3] = (word >> 8) - 128
            x += 12 * remaining
        score = ptr16(places[9] + (at << 1))[0]
        if taught:
            ptr32(int(places) + (column << 2))[17] = score
        score >>= 1
        enter_score(score, column)
        column += 1
        if taught == 0:
            places[16] = score
            column = 3


@micropython.viper
def keep(self, at: int):
    addresses = self.places
    places = ptr32(addresses)
    places[3] = at
    pack(addresses, at + 64, places[16] << 1)


@micropython.viper
def recall(self, at: int) -> bool:
    addresses = self.places
    places = ptr32(addresses)
    if places[3] == at:
        return False
    places[3] = at
    places[35] = 0
    load(addresses, at + 64, 0)
    return True


@micropython.viper
def outputs(weight: ptr32, x: int, last: int):
    places = weight
    curve = ptr32(places[4])
    slope = ptr16(int(curve) + 272)
    bend = ptr8(int(curve) + 408)
    column = x
    g = ptr32(places[12])
    if column:
        g = ptr32(places[17])
    while column <= last:
        first = places[11] + (column << 2)
        logit = ptr32(int(places) + (column << 2))[13]
        weight = ptr32(places[6])
        heads = 3
        while heads:
            z = 0
            x = first
            remaining = places[1]
            while remaining > 1:
                z = (weight[0] >> 6) * ptr32(x)[0] + z
                z = (weight[1] >> 6) * ptr32(x)[3] + z
                weight = ptr32(int(weight) + 8)
                x += 24
                remaining -= 2
            if remaining:
                z = (weight[0] >> 6) * ptr32(x)[0] + z
                weight = ptr32(int(weight) + 4)
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
            g[0] = n // (32768 + y) << 1
            g = ptr32(int(g) + 4)
            heads -= 1
        column += 1


@micropython.viper
def predict(self):
    outputs(self.places, 0, 0)


@micropython.viper
def descend(x: ptr32, gradient: int):
    """A step on the current sample, whose label is `gradient`, and on the two repeated ones."""
    places = x
    first = places[11]
    inputs = places[1]
    rates = ptr8(places[5])
    weight = ptr32(places[6])
    shift = places[7] - places[6]
    g = ptr32(places[12])
    g_1 = ptr32(places[17])
    label = gradient << 15
    label_1 = (places[18] & 1) << 15
    label_2 = (places[19] & 1) << 15
    heads = 3
    while heads:
        error = g[0] - label
        error_1 = g_1[0] - label_1
        error_2 = g_1[3] - label_2
        rate = rates[0]
        x = ptr32(first)
        remaining = inputs
        while remaining:
            gradient = x[0] * error
            total = gradient
            gradient >>= 9
            square = gradient * gradient
            gradient = x[1] * error_1
            total += gradient
            gradient >>= 9
            square += gradient * gradient
            gradient = x[2] * error_2
            total += gradient
            gradient >>= 9
            square += gradient * gradient
            gradient = ptr32(int(weight) + shift)[0]
            gradient += (square << 2) // (gradient >> 11)
            if gradient >> 29:
                gradient = 536870911
            ptr32(int(weight) + shift)[0] = gradient
            gradient = weight[0] - ((total << 6) // (gradient >> 10) * rate + 8 >> 4)
            if gradient + 4194304 >> 23:
                gradient = clamp(gradient, -8388607, 8388607)
            weight[0] = gradient
            weight = ptr32(int(weight) + 4)
            x = ptr32(int(x) + 12)
            remaining -= 1
        g = ptr32(int(g) + 4)
        g_1 = ptr32(int(g_1) + 4)
        rates = ptr8(int(rates) + 1)
        heads -= 1


@micropython.viper
def learn_label(heads, label: int):
    """Heads.learn."""
    addresses = heads.places
    places = ptr32(addresses)
    taught = int(heads.taught)
    pack(addresses, taught & 63, places[16] << 1 | label)
    taught += 1
    if taught == 128:
        taught = 64
    heads.taught = taught
    if taught > 64:
        taught = 64
    x = int(heads.turn)
    load(addresses, x, taught)
    heads.turn = x + 54 & 63
    outputs(addresses, 1, 2)
    descend(addresses, label)


@micropython.viper
def forecast(labels: ptr32, at: int):
    places = labels
    bits = places[20]
    prior = ptr32(places[29] + (at << 2))[0]
    leaf = (1 << bits) + at
    g = ptr32(places[12])
    p = ptr32(places[30])
    equal = places[45]
    places[35] = 1
    places[36] = -1
    size = 4 << bits
    view = ptr32(int(places) + 84)
    views = 4
    while views:
        labels = ptr32(view[0])
        events = view[4] - view[0]
        memory = 4
        while memory:
            shift = bits
            if memory & 3 and equal:
                shift = -1
            if shift >= 0:
                a = 16384
                b = 16384
                n = 0
                x = 0
                while shift >= 0:
                    at = (leaf >> shift << 1) + int(labels)
                    n = ptr16(at)[0]
                    if n:
                        x = ptr16(at + events)[0] << 15
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
            labels = ptr32(int(labels) + size)
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
def believe(weight: ptr32, w: int) -> int:
    """Set the mean of the forecasts. Return the labels behind them, quarters.

    It does not call conclude() itself: a pointer as an argument becomes an integer, which is on the heap above 2^30.
    """
    places = weight
    size = 4 << places[20]
    view = ptr32(int(places) + 84)
    cell = view[0] + (size >> 1) + (w << 1)
    weight = ptr32(places[31])
    p = ptr32(places[30])
    g = ptr32(places[12])
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
                x = p[0] * w + x
                n = (m + 8) * w + n
            w = weight[1]
            if w:
                x = p[1] * w + x
                n = (m + heavy) * w + n
            w = weight[2]
            if w:
                x = p[2] * w + x
                n = (m + 2) * w + n
            w = weight[3]
            if w:
                x = p[3] * w + x
                n = (m + 16) * w + n
            weight = ptr32(int(weight) + 16)
            p = ptr32(int(p) + 16)
            cell += size
            memory -= 1
        views -= 1
        if views < 3:
            w = weight[0]
            if w:
                x = p[0] * w + x
                n = (int(ptr16(cell - 192)[0]) + 64) * w + n
            weight = ptr32(int(weight) + 4)
            p = ptr32(int(p) + 4)
        if views:
            view = ptr32(int(view) + 4)
            cell = view[0] + (g[0] >> 11 << 1) + 32
            g = ptr32(int(g) + 4)
            size = 64
            heavy = 256
    places[36] = x >> 15
    return (n >> 15) + 4


@micropython.viper
def conclude(p: ptr32, n: int):
    """Set `belief` from the mean of the forecasts. n: Labels behind them, quarters."""
    places = p
    count = n
    x = places[36]
    if x < 1:
        x = 1
    m = x * (32768 - x) // n << 2
    shift = places[31] - places[30]
    p = ptr32(places[30])
    end = places[30] + places[33] - places[32]
    while int(p) < end:
        weight = ptr32(int(p) + shift)[0]
        if weight:
            n = p[0] - x
            n *= n
            m += (n >> 15) * weight + ((n & 32767) * weight >> 15)
        p = ptr32(int(p) + 4)
    n = 0
    square_root(n, m)
    m = n + 65536 // count
    belief = ptr32(places[34])
    store_belief(m)
    belief[3] = count >> 2


@micropython.viper
def estimate(self, k: int):
    addresses = self.places
    places = ptr32(addresses)
    if places[35] == 0 or int(self.bin) != k:
        outputs(addresses, 0, 0)
        forecast(addresses, k)
        self.bin = k
    k = int(believe(addresses, k))
    conclude(addresses, k)


@micropython.viper
def mixed(places: ptr32) -> int:
    x = places[36]
    if x < 0:
        p = ptr32(places[30])
        weight = ptr32(places[31])
        end = int(weight) + places[33] - places[32]
        x = 0
        while int(weight) < end:
            x += weight[0] * p[0]
            weight = ptr32(int(weight) + 4)
            p = ptr32(int(p) + 4)
        x >>= 15
    return x


@micropython.viper
def judge_and_count(loss: ptr32, x: int, label: int) -> int:
    """Update all losses and count a label in bin x and in the heads' cells. Return where the least loss is, in bytes."""
    places = loss
    leaf = x + (1 << places[20])
    shift = places[30] - places[32]
    end = places[33]
    label <<= 15
    least = 1073741823
    best = 0
    loss = ptr32(places[32])
    while int(loss) < end:
        x = ptr32(int(loss) + shift)[0] - label >> 1
        x = (x * x >> 13) + loss[0] - (loss[0] * 5 >> 10)
        loss[0] = x
        if x < least:
            least = x
            best = int(loss)
        loss = ptr32(int(loss) + 4)
    g = ptr32(places[12])
    size = 4 << places[20]
    view = ptr32(int(places) + 84)
    views = 4
    while views:
        loss = ptr32(view[0])
        events = view[4] - view[0]
        memory = 4
        while memory:
            x = leaf
            while x:
                at = int(loss) + (x << 1)
                y = ptr16(at)[0] + 4
                ptr16(at)[0] = y
                if label:
                    ptr16(at + events)[0] = ptr16(at + events)[0] + 4
                if y + 768 >> 15:
                    ptr16(at)[0] = y >> 1
                    ptr16(at + events)[0] = ptr16(at + events)[0] >> 1
                x >>= 1
            loss = ptr32(int(loss) + size)
            memory -= 1
        views -= 1
        if views:
            view = ptr32(int(view) + 4)
            leaf = (g[0] >> 11) + 16
            g = ptr32(int(g) + 4)
            size = 64
    return best - places[32]


@micropython.viper
def weigh(loss: ptr32, x: int):
    """Set the weights of all forecasts. x: Bytes from the first loss to the least."""
    places = loss
    best = places[32] + x
    curve = ptr32(places[4])
    slope = ptr16(int(curve) + 272)
    bend = ptr8(int(curve) + 408)
    least = ptr32(best)[0]
    shift = places[31] - places[32]
    best += shift
    end = places[33]
    loss = ptr32(places[32])
    first = 4
    total = 0
    while int(loss) < end:
        x = loss[0]
        weight = ptr32(int(loss) + shift)
        if first:
            first -= 1
        elif x == ptr32(int(loss) - 16)[0]:
            x = ptr32(int(weight) - 16)[0]
            if x > 0:
                x = 0 - x
            weight[0] = x
            total -= x
            loss = ptr32(int(loss) + 4)
            continue
        x -= least
        y = 0
        if x < 87382:
            x *= 3
            d = (x & 2047) << 1
            y = 60 + (x >> 11 & 7)
            y = curve[y] - d * (slope[y] - (d * bend[y] >> 10)) >> (x >> 14) + 14
            total += y
        weight[0] = y
        loss = ptr32(int(loss) + 4)
    loss = ptr32(places[31])
    end += shift
    y = 32768
    while int(loss) < end:
        x = loss[0]
        if x:
            if x < 0:
                x = ptr32(int(loss) - 16)[0]
            else:
                x = (x << 14) // total << 1
            loss[0] = x
            y -= x
        loss = ptr32(int(loss) + 4)
    ptr32(best)[0] = ptr32(best)[0] + y


@micropython.viper
def learn(self, k: int, label: int):
    addresses = self.places
    places = ptr32(addresses)
    if places[35] == 0 or int(self.bin) != k:
        outputs(addresses, 0, 0)
        forecast(addresses, k)
    x = places[36]
    if x < 0:
        x = int(mixed(addresses))
    if label == 0:
        x = 32768 - x
    if x < 64:
        x = 64
    surprise = int(self.surprise)
    x = (surprise << 14) // x
    if x < 512:
        x = 512
    if x != surprise:
        self.surprise = x
    if x >= 32768:
        self.doubt_all()
        forecast(addresses, k)
    weigh(addresses, int(judge_and_count(addresses, k, label)))
    places[35] = 0
    learn_label(self.heads, label)


@micropython.viper
def decide(self, sample) -> int:
    addresses = self.places
    see_sample(addresses, sample, self.sample)
    places = ptr32(addresses)
    k = places[16] >> 8 - places[20]
    action = int(decide_bin(self, k))
    costs = ptr32(places[41])
    fp = costs[1]
    fn = costs[2]
    total = ptr32(places[40])
    if total[1] >= 16384:
        self.saving.settle(fp, fn)
    p = ptr32(places[34])[0]
    cost = p * fn >> 15
    x = (32768 - p) * fp >> 15
    counted = p << 2
    if x <= cost:
        counted += 1
        cost = x
    fee = costs[0]
    if fee < cost:
        counted = p << 2 | 2
        cost = fee
    total[1] = total[1] + 1
    x = total[0] + cost
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    k <<= 2
    total = ptr32(places[37] + k)
    total[0] = total[0] + fee
    total = ptr32(places[38] + k)
    total[0] = total[0] + 1
    total = ptr32(places[39] + k)
    x = total[0] + p
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    if action < 0:
        k = int(self.ticket) % places[44]
        places[3] = k
        ptr32(places[42] + (k << 2))[0] = counted
        pack(addresses, k + 64, places[16] << 1)
    return action


@micropython.viper
def teach(self, slot: int, label: int):
    addresses = self.places
    places = ptr32(addresses)
    at = slot // 5
    if places[3] != at:
        places[3] = at
        places[35] = 0
        load(addresses, at + 64, 0)
    teach_bin(self, slot, label)
    counted = ptr32(places[42] + (at << 2))[0]
    costs = ptr32(places[41])
    slots = ptr32(places[43] + (slot << 2))
    chance = (slots[4] >> 14) - 655
    if chance < 164:
        chance = 164
    chance >>= 1
    p = counted >> 2
    total = ptr32(places[39] + (slots[1] << 2))
    x = total[0] + (((label << 15) - p << 14) // chance)
    x = clamp(x, -1006632960, 1006632960)
    total[0] = x
    counted &= 3
    if counted < 2:
        x = p * costs[2] >> 15
        if counted:
            x = (32768 - p) * costs[1] >> 15
        x = 0 - x
        if counted != label:
            p = costs[1]
            if label:
                p = costs[2]
            x += p
        total = ptr32(places[40])
        x = total[0] + ((x << 14) // chance)
        x = clamp(x, -1006632960, 1006632960)
        total[0] = x
