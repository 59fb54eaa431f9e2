# Policies by the names a configuration gives them. Only the one asked for is imported: a board has no room for the others.
NAMES = ("adaptive", "h2t2")


def kind(name: str):
    """The class of a policy. ValueError for a name that is none of NAMES."""
    if name == "adaptive":
        from .adaptive import Adaptive

        return Adaptive
    if name == "h2t2":
        from .h2t2 import H2T2

        return H2T2
    raise ValueError("policy %r is not one of %s" % (name, ", ".join(NAMES)))
