# Policies by the names that a configuration gives them. Only the one in use is imported, as a board has no room for the others.
if 0:  # for type checkers
    from ..annotations import Any
    from .policy import Policy

NAMES = ("adaptive", "h2t2")
ADAPTIVE = (  # what only this policy takes, and why h2t2 does not
    ("miss_rate", "keeps no such limit"),
    ("costs", "decides between two classes"),
    ("features", "learns from the score alone"),
    ("ordered", "has no past"),
)
APART = (("ordered", ("miss_rate", "confidence", "features", "costs")), ("features", ("miss_rate", "confidence")))


def kind(name: str, arguments: "Any" = ()) -> "type[Policy]":
    """Return the class of a policy.

    Args:
        name: One of NAMES.
        arguments: Names of its arguments. With `miss_rate` the policy limits missed events, with `confidence` as well the limit
            holds with that confidence; with `costs` it decides between more than two classes; with `features` it learns from
            features of the local model as well, with or without `costs`; with `ordered` it reads its past.

    Raises:
        ValueError: No policy has this name, or the policy does not take these arguments.
    """
    for argument, reason in ADAPTIVE:
        if argument in arguments and name in NAMES and name != "adaptive":
            raise ValueError("%s: policy %s %s; adaptive does more" % (argument, name, reason))
    for option, others in APART:
        for other in others:
            if option in arguments and other in arguments:
                raise ValueError("%s: not with %s" % (option, other))
    if "ordered" in arguments:
        from .ordered import Ordered

        return Ordered
    if "features" in arguments:
        if "costs" in arguments:
            from .adaptive_class_head import AdaptiveClassHead

            return AdaptiveClassHead
        from .adaptive_head import AdaptiveHead

        return AdaptiveHead
    if "costs" in arguments:
        for limit in ("miss_rate", "confidence"):
            if limit in arguments:
                raise ValueError("%s: of two classes only; with more, `costs` say what each mistake costs" % limit)
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


def in_c(policy_class: "type[Policy]") -> "type[Policy]":
    """Return the class with decide() and learn() in C, where the native module or the firmware of a board has them."""
    try:
        from . import native  # type: ignore[attr-defined]  # a board has it as .mpy, or in its firmware

        decide_in_c, learn_in_c = getattr(native, policy_class.__name__)
    except (AttributeError, ImportError, ValueError):  # it is of another policy, there is none, or it is for another processor
        return policy_class

    class InC(policy_class):  # type: ignore[misc, valid-type]
        plain_decide, plain_learn = policy_class.decide, policy_class.learn  # they say what is wrong with arguments
        decide, learn = decide_in_c, learn_in_c

    return InC


def make(name: str, arguments: "dict[str, Any]") -> "Policy":
    """Return the policy of that name, made with those arguments."""
    policy_class = in_c(kind(name, arguments))
    return policy_class(**{option: value for option, value in arguments.items() if option != "ordered"})
