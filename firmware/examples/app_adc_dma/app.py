# An app for a board with an RP2040 or RP2350: an analogue signal at pin 26, which the converter's own clock reads and DMA
# writes into a ring, without the processor; a lamp on a pin. The pair's window makes a sample of the last readings.
import sys
from array import array

from machine import ADC, Pin, mem32
from rp2 import DMA
from uctypes import addressof

RATE = 10000  # readings per second; the converter makes 733 to 500,000
BLOCK = 256  # readings of a block
RING_BITS = 12  # the ring has 2^12 bytes, 2048 readings
RING = 1 << RING_BITS - 1
TRANSFERS = 1 << 27  # that DMA makes before it is started again, after 3.7 hours
RP2350 = "RP2350" in sys.implementation._machine
BASE, REQUEST = (0x400A0000, 48) if RP2350 else (0x4004C000, 36)  # of the converter: its registers, its data request
CONTROL, FIFO_CONTROL, FIFO, DIVIDER = BASE, BASE + 8, BASE + 12, BASE + 16


def setup(config):
    """Once, before the first sample."""
    global lamp, ring, offset, block, dma
    lamp = Pin(15, Pin.OUT)
    ADC(Pin(26))  # the pin becomes an input of the converter
    space = array("H", bytes(4 * RING))  # twice the ring, which must begin at a multiple of its size
    offset = (-addressof(space) & 2 * RING - 1) // 2
    ring = memoryview(space)[offset : offset + RING]
    block = array("H", bytes(2 * BLOCK))
    dma = DMA()
    start()


def start():
    """Begin with an empty ring."""
    global taken
    mem32[CONTROL] = 1  # it stops after the reading that it makes
    dma.active(0)
    mem32[FIFO_CONTROL] = 1 << 24 | 1 << 11 | 1 << 10 | 1 << 3 | 1  # a request at each reading; clears overflow and underflow
    while mem32[FIFO_CONTROL] >> 16 & 15:
        mem32[FIFO]
    mem32[DIVIDER] = (48000000 // RATE - 1) << 8
    control = dma.pack_ctrl(size=1, inc_read=False, ring_size=RING_BITS, ring_sel=True, treq_sel=REQUEST)
    dma.config(read=FIFO, write=addressof(ring), count=TRANSFERS, ctrl=control, trigger=True)
    taken = 0
    mem32[CONTROL] = 1 << 3 | 1  # again and again, input 0


def sense():
    """A block of readings, None while there are too few, or "gap" after DMA has overtaken the node."""
    global taken
    if TRANSFERS - dma.count - taken < BLOCK and dma.active():
        return None
    begin = taken % RING
    block[:] = ring[begin : begin + BLOCK]
    if TRANSFERS - dma.count - taken > RING or not dma.active() or mem32[FIFO_CONTROL] >> 11 & 1:  # also while it was copied
        start()
        return "gap"
    taken += BLOCK
    return block


def act(decision):
    """Light the lamp during the event."""
    lamp.value(decision.label)
