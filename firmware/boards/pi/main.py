# A node with a sensor of your own on a Pi: what `h2t2 node` does with recorded samples, with yours instead.
import os

from h2t2.core.h2t2 import H2T2
from h2t2.ldl.open import open_ldl
from h2t2.ldl.tflite import quantise
from h2t2.link.paho import PahoLink
from h2t2.node.node import Node
from h2t2.node.service import Service
from h2t2.node.snapshot import file_store

ldl = open_ldl("ldl.tflite", event=1)


def sensor():
    """Your measurement: (LDL input, remote tensor, a tag of yours), int8, or None when there will be no more."""
    measured = [0.0] * 30
    x = memoryview(quantise(ldl, measured).ravel())
    return x, bytes(x), None


def act(tag, k, decision, source):
    """Your actuator. source: 0 decided here, 1 by the remote model, 2 here because no answer came."""
    print(k, decision, source)


policy = H2T2(bits=4, beta=6554, feedback="all", exploration="anytime")  # costs in units of 2^-15
link = PahoLink("localhost", 1883, "pi-1")
node = Node(policy, ldl, link, act, model=1, boot=int.from_bytes(os.urandom(4), "little") >> 2)
Service(node, sensor, (30,), file_store("/var/lib/h2t2/node")).run()
