# An app for a board: a microphone on an analogue pin, a lamp on another. A timer's interrupt takes a reading every millisecond;
# every 256 of them make a sample of three numbers: mean level, loudness (mean distance from it), loudest. No number is a float.
from array import array

from machine import ADC, Pin, Timer

READINGS = 256


def setup(config):
    """Once, before the first sample."""
    global microphone, lamp, readings, count, timer
    microphone = ADC(26)
    lamp = Pin(15, Pin.OUT)
    readings = array("i", [0] * READINGS)
    count = 0
    timer = Timer(-1)
    timer.init(freq=1000, mode=Timer.PERIODIC, callback=take)


def take(_):
    """The interrupt: nothing is allocated here."""
    global count
    if count < READINGS:
        readings[count] = microphone.read_u16()
        count += 1


def sense():
    """Three integers when 256 readings are there, else None."""
    global count
    if count < READINGS:
        return None
    mean = sum(readings) // READINGS
    loudness = sum(abs(x - mean) for x in readings) // READINGS
    loudest = max(abs(x - mean) for x in readings)
    count = 0  # the interrupt goes on
    return [mean, loudness, loudest]


def act(decision):
    """The lamp shines while there is the event."""
    lamp.value(decision.label)
