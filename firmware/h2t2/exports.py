# What `from h2t2 import NAME` loads. Only programs of your own need it.
from .modules import load

PATHS = "core.adaptive.Adaptive", "ldl.open.open_ldl", "link.mqtt.MqttLink", "node.node.Node", "node.start.service"


def find(name: str) -> object:
    """Return what has this name, or the module of the package. AttributeError if there is none."""
    for path in PATHS:
        if path.endswith("." + name):
            return load(path)
    if name[:1] != "_":
        try:
            return __import__("h2t2." + name, None, None, (name,))
        except ImportError:
            pass
    raise AttributeError("h2t2 has no %s" % name)
