"""H2T2 Edge: a small model on the device decides, and asks a big one where that is worth the price. Integers only.

What a program of your own needs (docs/your-program.md):

from h2t2 import Adaptive     the policy: decide(), learn()
from h2t2 import open_ldl     opens a local model
from h2t2 import MqttLink     the way to the remote model
from h2t2 import Node         puts the three together: step(), poll()
from h2t2 import service      a Node with a loop of its own, from a dict of entries: run(), or arun() beside tasks of asyncio
                              On a Pi: h2t2.cpython.pair.service(folder, sense, act), of a pair

h2t2.units.policy(beta=0.2)                         a policy's arguments in people's numbers
h2t2.node.run.main("config.json")                   a board

Nothing is imported here before somebody asks for it: a microcontroller loads only what it runs.
"""

__version__ = "1.0.0"


def __getattr__(name: str) -> object:
    return __import__("h2t2.exports", None, None, ("find",)).find(name)
