# The methods of experts.Experts in machine code. The code of log_add stands in each function once or twice, in a loop over its
# uses, since it is long. No index of an array is one of the first three variables of a function: these are in registers, and on
# 32-bit ARM (not Thumb) the emitter of MicroPython 1.25 multiplies the register of an index by the size of an item.
#
# Looking up an attribute costs as much as twenty sums, so an object has the addresses of its arrays in one array, `places`.
from array import array

import micropython

from .numbers_viper import TABLE, exp2


def _pull(self, n, last):
    """Experts._pull. A rebuild calls it first, which every object begins with."""
    try:
        places = self.places
    except AttributeError:
        places = self.places = array("i", [0] * 8)
        find(places, self)
    pull(places, n, last, self.unit)


@micropython.viper
def find(places: ptr32, experts):
    places[0] = int(ptr32(TABLE))
    places[1] = int(ptr32(experts.u))
    places[2] = int(ptr32(experts.v))
    places[3] = int(ptr32(experts.p))
    places[4] = int(ptr32(experts.losses))
    places[5] = int(ptr32(experts.fine))
    places[6] = int(experts.n)


@micropython.viper
def pull(places: ptr32, n: int, last: int, unit: int):
    read_table(places[0])
    u = ptr32(places[1])
    v = ptr32(places[2])
    p = ptr32(places[3])
    losses = ptr32(places[4])
    size = places[6]
    narrow = 262144 >> unit
    half = (1 << unit) >> 1
    node = n
    lower = n << 1
    upper = lower + 1
    if lower >= size:
        lower = 0
        upper = 0
    while node >= last:
        a = losses[node]
        b = v[upper] - losses[node + size]
        x = p[lower]
        y = p[upper] - a - losses[node + size]
        turn = 0
        while turn < 4:
            x = log_add(x, y)
            if turn == 0:
                y = u[lower] + b
            elif turn == 1:
                p[node] = x
                x = u[lower]
                y = u[upper] - a
            elif turn == 2:
                u[node] = x
                x = v[lower]
                y = b
            turn += 1
        v[node] = x
        lower = node & -2
        upper = lower + 1
        node >>= 1


@micropython.viper
def charge(self, k: int, loss: ptr32):
    ah = loss[0]
    al = loss[1]
    bh = loss[2]
    bl = loss[3]
    unit = int(self.unit)
    mask = (1 << unit) - 1
    al += (ah & mask) << 14
    bl += (bh & mask) << 14
    ah >>= unit
    bh >>= unit
    x = ah
    if x < 0:
        x = 0 - x
    y = bh
    if y < 0:
        y = 0 - y
    if y > x:
        x = y
    self.bound = int(self.bound) + 1 + x
    addresses = self.places  # an object: a pointer that is passed on becomes an integer, which takes heap above 0x3fffffff
    places = ptr32(addresses)
    losses = ptr32(places[4])
    fine = ptr32(places[5])
    size = places[6]
    unit += 14
    mask = (1 << unit) - 1
    k += size
    while k & 1:
        k >>= 1
    n = k
    while n > 1:
        at = n & 1
        n >>= 1
        if at == 0:
            x = fine[n] + al
            fine[n] = x & mask
            losses[n] = losses[n] + ah + (x >> unit)
            at = n + size
            x = fine[at] + bl
            fine[at] = x & mask
            losses[at] = losses[at] + bh + (x >> unit)
    pull(addresses, k >> 1, 2, unit - 14)


@micropython.viper
def regions(self, k: int) -> int:
    places = ptr32(self.places)
    read_table(places[0])
    u = ptr32(places[1])
    v = ptr32(places[2])
    p = ptr32(places[3])
    losses = ptr32(places[4])
    size = places[6]
    unit = int(self.unit)
    narrow = 262144 >> unit
    half = (1 << unit) >> 1
    level = size >> 1
    n = 1
    a = 0
    b = 0
    lower = -536870912
    positive = lower
    negative = lower
    upper = lower
    turns = 3
    while turns == 3:  # a level of the tree; a fourth turn: behind the last level
        if level:
            next_a = a + losses[n]
            next_b = b + losses[n + size]
            n <<= 1
            right = k & level
            at = 0
            if right:
                if n < size:
                    at = n
                x = positive
                y = p[at] - a - b
                second = lower + v[at] - b
                z = lower
                third = u[at] - a
                a = next_a
                b = next_b
                n += 1
            else:
                if n < size:
                    at = n + 1
                x = negative
                y = p[at] - next_a - next_b
                second = upper + u[at] - next_a
                z = upper
                third = v[at] - next_b
        else:
            turns = 4
            x = lower
            y = 0 - a
        turn = 0
        while turn < turns:
            x = log_add(x, y)
            if level:
                if turn == 0:
                    y = second
                elif turn == 1:
                    second = x
                    x = z
                    y = third
            elif turn == 0:
                upper += x
                y = x - b
                x = positive
            elif turn == 1:
                positive = x
                y = negative
            elif turn == 2:
                y = upper
            turn += 1
        if level:
            if right:
                positive = second
                lower = x
            else:
                negative = second
                upper = x
            level >>= 1
    self.local = 1 if positive > negative else 0
    n = x - upper
    y = int(exp2(n, unit))
    self.chance = y
    a = y + 8192 >> 14
    n = x - positive
    y = int(exp2(n, unit))
    y = y + 8192 >> 14
    if a + y > 32768:
        y = 32768 - a
    self.offload = a
    self.positive = y
    self.negative = 32768 - a - y
    return x
