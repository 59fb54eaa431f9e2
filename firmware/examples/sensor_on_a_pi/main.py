# A node with a sensor and an actuator of your own on a Raspberry Pi, or on any Linux machine.
import argparse
import csv
import sys
import time

from h2t2.cpython import pair, signals

parser = argparse.ArgumentParser()
parser.add_argument("--pair", default="mypair", help="the folder that `h2t2 pair` wrote")
parser.add_argument("--measurements", default="measurements.csv", help="readings of the simulated sensor, a row a sample")
parser.add_argument("--broker", default="localhost")
parser.add_argument("--port", type=int, default=1883)
options = parser.parse_args()
rows = csv.reader(open(options.measurements))


def sense():
    """Read your sensor: return the next measurement. It may take its time; StopIteration ends the node."""
    time.sleep(0.03)
    return [float(number) for number in next(rows)]


def act(decision):
    """Your actuator. decision.source: local, remote, or fallback because no answer came."""
    print("event" if decision.label else "no event", decision.source, flush=True)


node = pair.service(
    options.pair, sense, act, broker=options.broker, port=options.port, device="pi-1", threaded=True,
    snapshot="learned",  # the files learned.0 and learned.1 hold what the node has learned
    log=lambda text: print(text, file=sys.stderr),
)  # fmt: skip
signals.on_stop(node.stop)  # systemctl stop, Ctrl-C: the node saves what it has learned
node.run()
node.node.link.close()
