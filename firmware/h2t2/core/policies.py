# Policies by the names a configuration gives them. Only the one asked for is imported: a board has no room for the others.
NAMES = ("adaptive", "h2t2")


LIMITING = ("adaptive",)  # those that keep a limit for missed events


def kind(name: str, limited: bool = False):
    """The class of a policy; limited: which keeps a limit for missed events, an argument `miss_rate`.

    ValueError for a name that is none of NAMES, or none of LIMITING.
    """
    if limited and name in NAMES and name not in LIMITING:
        raise ValueError("miss_rate: policy %s keeps no such limit; adaptive does" % name)
    if limited and name == "adaptive":
        from .miss_rate import MissLimited

        return MissLimited
    if name == "adaptive":
        from .adaptive import Adaptive

        return Adaptive
    if name == "h2t2":
        from .h2t2 import H2T2

        return H2T2
    raise ValueError("policy %r is not one of %s" % (name, ", ".join(NAMES)))


def make(name: str, arguments: dict):
    """The policy of that name and those arguments; with a limit for missed events where `miss_rate` is among them."""
    return kind(name, "miss_rate" in arguments)(**arguments)
