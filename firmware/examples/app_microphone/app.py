# An app for a board with a microphone on an analogue pin and a lamp on another. A timer's interrupt takes a reading every
# millisecond. 256 readings make a sample of three integers: mean level, loudness (mean distance from it) and peak.
from array import array

from machine import ADC, Pin, Timer

READINGS = 256


def setup(config):
    """Prepare, once before the first sample."""
    global microphone, lamp, readings, count, timer
    microphone = ADC(26)
    lamp = Pin(15, Pin.OUT)
    readings = array("i", [0] * READINGS)
    count = 0
    timer = Timer(-1)
    timer.init(freq=1000, mode=Timer.PERIODIC, callback=take)


def take(_):
    """Take a reading. An interrupt must not allocate memory."""
    global count
    if count < READINGS:
        readings[count] = microphone.read_u16()
        count += 1


def sense():
    """Return three integers after 256 readings, else None."""
    global count
    if count < READINGS:
        return None
    mean = sum(readings) // READINGS
    loudness = sum(abs(x - mean) for x in readings) // READINGS
    loudest = max(abs(x - mean) for x in readings)
    count = 0  # from here on the interrupt fills the array again
    return [mean, loudness, loudest]


def act(decision):
    """Light the lamp during the event."""
    lamp.value(decision.label)
