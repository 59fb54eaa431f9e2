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
APART = (("ordered", "features"), ("ordered", "costs"))
LIMITS = "miss_rate", "confidence", "normal"


def kind(name: str, arguments: "Any" = ()) -> "type[Policy]":
    """Return the class of a policy.

    Args:
        name: One of NAMES.
        arguments: Names of its arguments. With `costs` the policy decides between more than two classes; with `features` it
            learns from features of the local model as well, with or without `costs`; with `ordered` it reads its past. With
            `miss_rate` it limits missed events, with `confidence` as well the limit holds with that confidence. Of more than
            two classes `normal` is then the one that is no event.

    Raises:
        ValueError: No policy has this name, or the policy does not take these arguments.
    """
    for argument, reason in ADAPTIVE:
        if argument in arguments and name in NAMES and name != "adaptive":
            raise ValueError("%s: policy %s %s; adaptive does more" % (argument, name, reason))
    for option, other in APART:
        if option in arguments and other in arguments:
            raise ValueError("%s: not with %s" % (option, other))
    for option in LIMITS[1:]:
        if option in arguments and "miss_rate" not in arguments:
            raise ValueError("%s: of a miss_rate" % option)
    if "normal" in arguments and "costs" not in arguments:
        raise ValueError("normal: of three classes or more; of two, 0 is no event")
    if "miss_rate" in arguments and "costs" in arguments and "normal" not in arguments:
        raise ValueError("miss_rate: three classes or more want `normal`, the class that is no event")
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
        from .adaptive_classes import AdaptiveClasses

        return AdaptiveClasses
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
    policy_class = kind(name, arguments)
    options = {option: value for option, value in arguments.items() if option != "ordered" and option not in LIMITS}
    if "miss_rate" not in arguments:
        return in_c(policy_class)(**options)
    if "confidence" in arguments:
        from .miss_guarantee import MissGuarantee as Limit
    else:
        from .miss_rate import MissRate as Limit  # type: ignore[assignment]

    limit = Limit(**{option: arguments[option] for option in LIMITS if option in arguments})
    return policy_class(limit=limit, **options)  # type: ignore[call-arg]
