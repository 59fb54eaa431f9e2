# Policies by the names that a configuration gives them. Only the one in use is imported, as a board has no room for the others.
if 0:  # for type checkers
    from typing import Any

    from .policy import Policy

NAMES = ("adaptive", "h2t2")


def kind(name: str, arguments: "Any" = ()) -> "type[Policy]":
    """Return the class of a policy.

    Args:
        name: One of NAMES.
        arguments: Names of its arguments. With `miss_rate` the policy limits missed events, with
            `confidence` as well the limit holds with that confidence; with `costs` it decides between
            more than two classes; with `features` it learns from features of the local model as well,
            with or without `costs`.

    Raises:
        ValueError: No policy has this name, or the policy does not take these arguments.
    """
    for argument, reason in (
        ("miss_rate", "keeps no such limit"),
        ("costs", "decides between two classes"),
        ("features", "learns from the score alone"),
    ):
        if argument in arguments and name in NAMES and name != "adaptive":
            raise ValueError("%s: policy %s %s; adaptive does more" % (argument, name, reason))
    if "features" in arguments:
        if "miss_rate" in arguments:
            raise ValueError("features: not with miss_rate")
        if "costs" in arguments:
            from .adaptive_class_head import AdaptiveClassHead

            return AdaptiveClassHead
        from .adaptive_head import AdaptiveHead

        return AdaptiveHead
    if "costs" in arguments:
        if "miss_rate" in arguments:
            raise ValueError("miss_rate: of two classes only; with more, `costs` say what each mistake costs")
        from .adaptive_classes import AdaptiveClasses

        return AdaptiveClasses
    if "confidence" in arguments:
        if "miss_rate" not in arguments:
            raise ValueError("confidence: of a miss_rate")
        from .miss_guarantee import MissGuaranteed

        return MissGuaranteed
    if "miss_rate" in arguments:
        from .miss_rate import MissLimited

        return MissLimited
    if name == "adaptive":
        from .adaptive import Adaptive

        return Adaptive
    if name == "h2t2":
        from .h2t2 import H2T2

        return H2T2
    raise ValueError("policy %r is not one of %s" % (name, ", ".join(NAMES)))


def make(name: str, arguments: "dict[str, Any]") -> "Policy":
    """Return the policy of that name, made with those arguments."""
    return kind(name, arguments)(**arguments)
