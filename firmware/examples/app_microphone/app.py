# An app for a board: a microphone on an analogue pin, a lamp on another. A timer's interrupt takes a reading every millisecond
# into one half of a buffer, while the node reads the other. The pair's window makes a sample of the last readings.
from array import array

from machine import ADC, Pin, Timer

RATE = 1000  # readings per second
BLOCK = 64  # readings of a block


def setup(config):
    """Once, before the first sample."""
    global microphone, lamp, halves, count, written, read, held, missed, timer
    microphone = ADC(26)
    lamp = Pin(15, Pin.OUT)
    halves = array("H", [0] * BLOCK), array("H", [0] * BLOCK)
    count = written = read = 0  # readings in the half that fills; halves that are full, and that the node has used
    held = missed = False  # whether the node uses a half now; whether a reading found both halves full
    timer = Timer(-1)
    timer.init(freq=RATE, mode=Timer.PERIODIC, callback=take)


def take(_):
    """The interrupt: nothing is allocated here."""
    global count, written, missed
    if written - read == 2:
        missed = True
        return
    halves[written & 1][count] = microphone.read_u16() >> 1  # within 16 bits, for machine code
    count += 1
    if count == BLOCK:
        count = 0
        written += 1


def sense():
    """A block of readings, None while none is full, or "gap" after readings were missed. The last block is free again."""
    global read, held, missed
    if missed:
        read = written
        held = missed = False
        return "gap"
    if held:
        read += 1
        held = False
    if written == read:
        return None
    held = True
    return halves[read & 1]


def act(decision):
    """Light the lamp during the event."""
    lamp.value(decision.label)
