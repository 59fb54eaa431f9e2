# An app for a board: a digital microphone on I2S, a lamp on a pin. The port's driver fills one block while the node reads the
# other, so that sense() never waits. The pair's window makes a sample of the last readings.
from array import array
from time import ticks_add, ticks_diff, ticks_ms

from machine import I2S, Pin

RATE = 16000  # readings per second
BLOCK, BLOCK_MS = 128, 8  # readings of a block, and how long they take
BUFFER, BUFFER_MS = 16384, 120  # bytes of the driver, 8 a reading, and how long it may be left alone
microphone = None


def setup(config):
    """Once, before the first sample."""
    global lamp, blocks
    lamp = Pin(15, Pin.OUT)
    blocks = [array("i", bytes(4 * BLOCK)), array("i", bytes(4 * BLOCK))]
    start()


def start():
    """Begin with an empty driver."""
    global microphone, due
    if microphone:
        microphone.deinit()
    pins = {"sck": Pin(16), "ws": Pin(17), "sd": Pin(18)}
    microphone = I2S(0, mode=I2S.RX, bits=32, format=I2S.MONO, rate=RATE, ibuf=BUFFER, **pins)
    microphone.irq(filled)
    due = ticks_add(ticks_ms(), BLOCK_MS)
    listen()


def listen():
    """Let the driver fill the first block."""
    global full, since
    full = False
    since = ticks_ms()
    microphone.readinto(blocks[0])


def filled(_):
    """The driver has filled a block; nothing is allocated here."""
    global full
    full = True


def sense():
    """A block of readings, 16 bits each, None while none is full, or "gap" after the driver may have dropped some."""
    global due  # when the block would be full if the driver held nothing else
    now = ticks_ms()
    if ticks_diff(now, due) > BUFFER_MS or ticks_diff(now, since) > BUFFER_MS:  # or a port's queue has lost the callback
        start()
        return "gap"
    if not full:
        if ticks_diff(now, since) > BLOCK_MS:  # a port copies faster than it records: it holds nothing else
            due = now
        return None
    due = ticks_add(due, BLOCK_MS)
    blocks.reverse()
    listen()
    block = blocks[1]
    I2S.shift(buf=block, bits=32, shift=-16)  # a microphone has 18 to 24 bits; machine code reads 16
    if min(block) == max(block):
        raise OSError("no microphone at the pins")
    return block


def act(decision):
    """Light the lamp during the event."""
    lamp.value(decision.label)
