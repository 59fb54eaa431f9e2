# An app for a board: a temperature sensor on I2C (TMP102, LM75 and their like), a relay on a pin. The model reads the last
# eight temperatures, oldest first, in degrees Celsius; one is measured every two seconds.
from machine import I2C, Pin

try:
    from time import ticks_diff, ticks_ms
except ImportError:  # CPython
    from h2t2.clock import ticks_diff, ticks_ms

ADDRESS, REGISTER = 0x48, 0
EVERY_MS = 2000
WINDOW = 8


def setup(config):
    """Once, before the first sample."""
    global bus, relay, last, values
    bus = I2C(0, scl=Pin(5), sda=Pin(4))
    relay = Pin(15, Pin.OUT)
    values = []
    last = None


def temperature():
    """Degrees Celsius: twelve bits, a sixteenth of a degree each."""
    high, low = bus.readfrom_mem(ADDRESS, REGISTER, 2)
    raw = high << 4 | low >> 4
    return (raw - 4096 if raw & 2048 else raw) / 16


def sense():
    """The last eight temperatures, when there is a new one; None between."""
    global last
    now = ticks_ms()
    if last is not None and ticks_diff(now, last) < EVERY_MS:
        return None
    last = now
    values.append(temperature())
    if len(values) < WINDOW:
        return None
    del values[:-WINDOW]
    return values[:]


def act(decision):
    """The relay closes for the event and opens again when it is over."""
    relay.value(decision.label)
