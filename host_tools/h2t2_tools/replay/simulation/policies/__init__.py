"""The simulator's policies. make() creates them by name."""

from importlib import import_module
from typing import Any

from ....common.errors import UserError
from ..policy_names import FOR_CLASSES, POLICIES
from .base import Policy


def make(name: str, bits: int, half_life: int = 0, classes: int = 2, **settings: Any) -> Policy:
    """Create a policy by its name on the command line.

    It imports the chosen policy only, because the compiled learners need numba and the baselines do not.

    Args:
        name: One of NAMES. `h2t2` is the paper's setting, `h2t2-all` uses feedback "all" and exploration "anytime".
        bits: Score bits.
        half_life: Rounds after which losses count half; 0: never.
        classes: Classes of the streams.
        settings: Further options; a policy ignores those that it does not have.

    Raises:
        UserError: No policy has this name.
    """
    if name not in POLICIES:
        raise UserError(f"policy {name}: not one of {', '.join(POLICIES)}")
    file, kind, options = (FOR_CLASSES if classes > 2 and name in FOR_CLASSES else POLICIES)[name]
    policy_class: Any = getattr(import_module(f".{file}", __package__), kind)
    fields = policy_class.__dataclass_fields__
    arguments = {"bits": bits, "half_life": half_life, **settings, **options}
    policy: Policy = policy_class(**{key: value for key, value in arguments.items() if key in fields})
    return policy
