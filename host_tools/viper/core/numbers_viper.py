# Functions of numbers.py, and the methods of rng.Rng and tickets.Tickets, in machine code.
import sys
from array import array

import micropython

from . import curves

if sys.maxsize >> 32:
    raise ImportError("machine code of the policies is for words of 32 bits")

TABLE = array("i", curves.CURVE)  # then SLOPE from byte 272 on, two bytes each, then BEND from byte 408 on
TABLE.extend(array("i", bytes(array("H", curves.SLOPE)) + bytes(curves.BEND)))
del curves  # a board forgets it


@micropython.viper
def exp2(x: int, unit: int) -> int:
    read_table(TABLE)
    look_up_exp2(y, x, unit)
    return y


@micropython.viper
def times(x: int, q15: int) -> int:
    return scaled(x, q15)


@micropython.viper
def divide(x: int, p: int, loss: ptr32, at: int):
    a = x
    if a < 0:
        a = 0 - a
    shift = 0
    while p < 268435456:
        p <<= 1
        shift += 1
    p >>= 9
    c = a // p
    b = a - c * p << 10
    a = c
    c = b // p
    b = b - c * p << 10
    a = a << 8 | c >> 2
    i = b // p
    b = (c & 3) << 12 | i << 2 | (b - i * p << 2) // p
    if a >> 26 - shift:
        a = 67108863
        b = 16383
        shift = 0
    i = a << shift | b >> 14 - shift
    b = b << shift & 16383
    if x < 0:
        i = 0 - i
        if b:
            i -= 1
            b = 16384 - b
    loss[at] = i
    loss[at + 1] = b


@micropython.viper
def draw(self) -> int:
    x = 171 * int(self.x) % 30269
    y = 172 * int(self.y) % 30307
    z = 170 * int(self.z) % 30323
    self.x = x
    self.y = y
    self.z = z
    return (x << 15) // 30269 + (y << 15) // 30307 + (z << 15) // 30323 & 32767


@micropython.viper
def open_ticket(self, k: int, beta: int, local: int, chance: int) -> int:
    ticket = int(self.last) % 268435455 + 1
    self.last = ticket
    slots = ptr32(self.slots)
    at = ticket % int(self.window) * 5
    if slots[at]:
        self.lost = int(self.lost) + 1
    slots[at] = ticket
    slots[at + 1] = k
    slots[at + 2] = beta
    slots[at + 3] = local
    slots[at + 4] = chance
    return ticket


@micropython.viper
def take(self, ticket: int) -> int:
    slots = ptr32(self.slots)
    at = ticket % int(self.window) * 5
    if ticket < 1 or slots[at] != ticket:
        self.refused = int(self.refused) + 1
        return -1
    slots[at] = 0
    return at
