# An app for a board with a temperature sensor on I2C (TMP102, LM75 or similar) and a relay on a pin. It measures every two
# seconds. The model reads the last eight temperatures in degrees Celsius, oldest first.
from machine import I2C, Pin

try:
    from time import ticks_diff, ticks_ms
except ImportError:  # CPython
    from h2t2.clock import ticks_diff, ticks_ms

ADDRESS, REGISTER = 0x48, 0
EVERY_MS = 2000
WINDOW = 8


def setup(config):
    """Prepare, once before the first sample."""
    global bus, relay, last, values
    bus = I2C(0, scl=Pin(5), sda=Pin(4))
    relay = Pin(15, Pin.OUT)
    values = []
    last = None


def temperature():
    """Return degrees Celsius, from twelve bits of a sixteenth of a degree each."""
    high, low = bus.readfrom_mem(ADDRESS, REGISTER, 2)
    raw = high << 4 | low >> 4
    return (raw - 4096 if raw & 2048 else raw) / 16


def sense():
    """Return the last eight temperatures if there is a new one, else None."""
    global last
    time_ms = ticks_ms()
    if last is not None and ticks_diff(time_ms, last) < EVERY_MS:
        return None
    last = time_ms
    values.append(temperature())
    if len(values) < WINDOW:
        return None
    del values[:-WINDOW]
    return values[:]


def act(decision):
    """Close the relay during the event and open it afterwards."""
    relay.value(decision.label)
