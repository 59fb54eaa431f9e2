# An app for an ESP32 on a battery: a PIR sensor wakes it from deep sleep, the model tells people from draughts by how long and
# how often the sensor sees something, and a lamp lights up. Between two movements the board sleeps.
from time import sleep_ms

import esp32
import machine
from machine import Pin

from h2t2.node.board import feed

PARTS, READINGS, READING_MS = 16, 25, 10  # a sample: 16 quarters of a second, of 25 readings each


def setup(config):
    """Measure at once after a movement, before the node joins its network; after another waking sleep on."""
    global sensor, lamp, sample
    sensor = Pin(27, Pin.IN)
    lamp = Pin(26, Pin.OUT)
    if machine.wake_reason() and not sensor.value():  # the timer, or the end of the last movement
        wait_for_movement()
        machine.deepsleep()
    sample = [quarter() for _ in range(PARTS)]  # also when power comes, so that the node has a sample and may sleep


def wait_for_movement():
    """Let the sensor end the next sleep. Its level does so, and not its edge: a movement that lasts must end first."""
    esp32.wake_on_ext0(sensor, esp32.WAKEUP_ALL_LOW if sensor.value() else esp32.WAKEUP_ANY_HIGH)


def quarter():
    """Return how many of 25 readings of a quarter of a second see something."""
    feed()
    count = 0
    for _ in range(READINGS):
        count += sensor.value()
        sleep_ms(READING_MS)
    return count


def sense():
    """The sample of a movement, once; then None, and the node sleeps until the next movement."""
    global sample
    measured, sample = sample, None
    wait_for_movement()
    return measured


def act(decision):
    """Light the lamp for people; it goes out as the board sleeps."""
    lamp.value(decision.label)
