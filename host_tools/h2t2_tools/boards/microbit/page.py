"""H2T2 on one page as the host's reference for the micro:bit, which runs the same page."""

from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from h2t2 import units
from h2t2.node.start import seed_of

from ...common import places
from ...common.errors import UserError

SOURCE = places.examples() / "one_page/h2t2.py"
FRACTIONS = ("beta", "delta_fp", "delta_fn", "epsilon")
OPTIONS = (*FRACTIONS, "eta", "seed", "feedback")
MAX_ETA, MIN_EPSILON = 4.0, 1 / 128


def load() -> ModuleType:
    """Load the page as a module. It gets another name, because `h2t2` is the runtime."""
    spec = spec_from_file_location("h2t2_one_page", SOURCE)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the page's integer arguments.

    Args:
        options: OPTIONS in people's numbers, and `device` and `model_id` for a seed of None; others are ignored.

    Raises:
        UserError: eta or epsilon exceeds the page's integers.
    """
    eta, epsilon = options["eta"], options["epsilon"]
    if not (eta <= MAX_ETA and epsilon >= MIN_EPSILON):
        raise UserError(f"eta = {eta}, epsilon = {epsilon}: H2T2 on one page takes eta up to 4 and epsilon from 1/128 on")
    fractions = {name: units.q15(options[name], name) for name in FRACTIONS}
    seed = options["seed"] if options["seed"] is not None else seed_of(options["device"], options["model_id"])
    return {**fractions, "eta": max(1, round(eta * 1024)), "seed": seed, "feedback": options["feedback"]}
