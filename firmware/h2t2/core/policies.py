# Policies by the names a configuration gives them. Only the one asked for is imported: a board has no room for the others.
NAMES = ("adaptive", "h2t2")


def kind(name: str, given=()):
    """The class of a policy; given: names of its arguments. With `miss_rate` it keeps a limit for missed events, with `costs`
    it decides between more classes than two.

    ValueError for a name that is none of NAMES, or a policy that does not do so.
    """
    for what, does in (("miss_rate", "keeps no such limit"), ("costs", "decides between two classes")):
        if what in given and name in NAMES and name != "adaptive":
            raise ValueError("%s: policy %s %s; adaptive does more" % (what, name, does))
    if "costs" in given:
        if "miss_rate" in given:
            raise ValueError("miss_rate: of two classes only; with more, `costs` say what each mistake costs")
        from .adaptive_classes import AdaptiveClasses

        return AdaptiveClasses
    if "miss_rate" in given:
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
    """The policy of that name and those arguments."""
    return kind(name, arguments)(**arguments)
