# An app for a board: an accelerometer with a FIFO (MPU-6050) on I2C, whose interrupt says that there is a reading, and a relay
# on a pin. The pair's window makes a sample of the last readings.
from struct import unpack
from time import ticks_diff, ticks_ms

from machine import I2C, Pin

ADDRESS = 0x68
RATE = 100  # readings per second, of three numbers each
BLOCK = 16  # readings of a block, at least
SIZE, HOLDS = 6, 1024  # bytes of a reading; bytes that the FIFO holds
QUIET_MS = 1000  # without an interrupt
RATE_DIVIDER, LOW_PASS, FIFO_ENABLE, INTERRUPT_ENABLE, STATUS = 0x19, 0x1A, 0x23, 0x38, 0x3A
CONTROL, POWER, COUNT, FIFO = 0x6A, 0x6B, 0x72, 0x74
OVERFLOW = 16  # bit of STATUS
ACCELERATION = 8  # bit of FIFO_ENABLE


def setup(config):
    """Once, before the first sample."""
    global bus, interrupt, relay, running, ready, read_at
    bus = I2C(0, scl=Pin(5), sda=Pin(4), freq=400000)
    interrupt = Pin(6, Pin.IN)
    interrupt.irq(count, Pin.IRQ_RISING)
    relay = Pin(15, Pin.OUT)
    running = False
    ready = 0  # readings since the last block
    read_at = ticks_ms()


def count(_):
    """The interrupt: nothing is allocated here."""
    global ready
    ready += 1


def write(register, value):
    bus.writeto_mem(ADDRESS, register, bytes([value]))


def start():
    """Wake the sensor, which may have lost its power, and begin with an empty FIFO."""
    global running, ready
    write(POWER, 1)
    write(LOW_PASS, 3)  # 44 Hz, and 1,000 readings per second to divide
    write(RATE_DIVIDER, 1000 // RATE - 1)
    write(FIFO_ENABLE, ACCELERATION)
    write(CONTROL, 4)  # empties the FIFO
    write(CONTROL, 64)
    write(INTERRUPT_ENABLE, 1)
    ready = 0
    running = True


def sense():
    """A block of readings, None while there are few, "gap" after the FIFO has overflowed; OSError without the sensor."""
    global running, ready, read_at
    if not running:
        start()
    if ready < BLOCK and ticks_diff(ticks_ms(), read_at) < QUIET_MS:
        return None
    read_at = ticks_ms()
    running = False  # unless all of it succeeds
    ready = 0
    if bus.readfrom_mem(ADDRESS, FIFO_ENABLE, 1)[0] != ACCELERATION:
        raise OSError("the accelerometer has lost its power")
    readings = unpack(">H", bus.readfrom_mem(ADDRESS, COUNT, 2))[0] // SIZE
    if bus.readfrom_mem(ADDRESS, STATUS, 1)[0] & OVERFLOW or SIZE * readings + SIZE > HOLDS:
        start()  # what is left begins in the middle of a reading
        return "gap"
    block = unpack(">%dh" % (3 * readings), bus.readfrom_mem(ADDRESS, FIFO, SIZE * readings)) if readings else None
    running = True
    return block


def act(decision):
    """Close the relay during the event."""
    relay.value(decision.label)
