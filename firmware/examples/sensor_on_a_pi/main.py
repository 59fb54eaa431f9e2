# A node with a sensor and an actuator of your own on a Raspberry Pi, or on any Linux machine.
import argparse
import csv
import sys
import time

from h2t2 import units
from h2t2.cpython import signals
from h2t2.cpython.paho import PahoLink
from h2t2.cpython.quantise import local_input, quantised
from h2t2.cpython.threaded_sensor import ThreadedSensor
from h2t2.node import start

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="ldl.tflite", help="the local model, int8")
parser.add_argument("--measurements", default="measurements.csv", help="what the made-up sensor measures, a row a sample")
parser.add_argument("--broker", default="localhost")
parser.add_argument("--port", type=int, default=1883)
given = parser.parse_args()

LOCAL = [1, 4, 8, 9, 11]  # which numbers of a measurement the local model reads: `columns` in its pair.json
REMOTE_SCALE, REMOTE_ZERO_POINT = 0.02663755975663662, -23  # of the remote model's input: `remote` in its pair.json
CONFIG = {
    "policy": "adaptive",
    "arguments": units.policy(bits=4, beta=0.2, delta_fp=0.7, delta_fn=1.0, window=256),  # 256 late labels
    "ldl": given.model,
    "event": 1,  # index of class 1 among its outputs
    "remote_shape": [30],
    "model_id": 1,
    "in_flight": 1,
    "deadline_ms": 2000,
    "snapshot": "learned",  # what it has learned, in learned.0 and learned.1
}

rows = csv.reader(open(given.measurements))


def measure():
    """Your sensor: the next measurement. It may take its time; StopIteration says that there will be no more."""
    time.sleep(0.03)
    return [float(number) for number in next(rows)]


def sense():
    """What a node is fed: (local model's input, remote model's tensor, a tag of yours), int8."""
    measured = measure()
    local = local_input(node.node.ldl, [measured[n] for n in LOCAL])
    return local.data, quantised(measured, REMOTE_SCALE, REMOTE_ZERO_POINT).tobytes(), measured


def act(tag, k, decision, source):
    """Your actuator. source: 0 decided here, 1 by the remote model, 2 here because no answer came."""
    print("event" if decision else "no event", ("here", "remote", "fallback")[source], flush=True)


link = PahoLink(given.broker, given.port, "pi-1", CONFIG["model_id"], start.boot_number())
node = start.service(CONFIG, link, act, sensor=ThreadedSensor(sense), log=lambda text: print(text, file=sys.stderr))
signals.on_stop(node.stop)  # systemctl stop, Ctrl-C: what was learned is saved
node.run()
link.close()
