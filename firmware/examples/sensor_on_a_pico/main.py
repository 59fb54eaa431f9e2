# A node with a sensor and an actuator of your own on a board: five analogue channels in, one pin out.
import json

from machine import ADC, Pin

from h2t2.node import start

SAMPLES = 0  # how many; 0: for ever
channels = [ADC(26 + n % 3) for n in range(5)]
alarm = Pin(15, Pin.OUT)


def measure():
    """Your sensor: five numbers of 16 bits."""
    return [channel.read_u16() for channel in channels]


def sense():
    """What a node is fed: (local model's input, remote model's tensor, a tag of yours), int8."""
    local = bytes([(value >> 8) ^ 128 for value in measure()])  # 0..65535 as -128..127
    return memoryview(local), local + bytes(25), None


def act(tag, k, decision, source):
    """Your actuator. source: 0 decided here, 1 by the remote model, 2 here because no answer came."""
    alarm.value(decision)


with open("config.json") as file:
    config = json.load(file)
config["every_us"] = 100000  # ten samples a second
link = start.mqtt_link(config)
node = start.service(config, link, act, sense)
node.run(SAMPLES)
link.close()
