"""The options of the policy, for every command that runs one."""

from __future__ import annotations

import argparse
from typing import Any

from . import units
from .cli_parts import positive
from .errors import UserError


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """What `demo` and `node` take for the policy."""
    group = parser.add_argument_group("policy")
    group.add_argument("--window", type=int, choices=range(1, 9), default=1, metavar="W", help="offloads in flight, 1..8 (1)")
    group.add_argument("--policy", choices=["h2t2", "calibrating"], default="h2t2", help="which one decides (h2t2)")
    group.add_argument("--bits", type=int, choices=range(1, 9), default=4, metavar="b", help="score bits, 1..8 (4)")
    group.add_argument("--beta", type=float, help="cost of an offload, 0..1 (the pair's)")
    group.add_argument("--delta-fp", type=float, default=0.7, help="cost of a false alarm, 0..1 (0.7)")
    group.add_argument("--delta-fn", type=float, default=1.0, help="cost of a missed event, 0..1 (1)")
    group.add_argument("--eta", type=float, default=1.0, help="learning rate, to 5.5 (1)")
    group.add_argument("--epsilon", type=float, default=0.0625, help="fixed exploration rate (0.0625)")
    group.add_argument("--feedback", choices=["all", "explored"], default="all", help="which offloads teach (all)")
    group.add_argument(
        "--exploration", choices=["anytime", "epsilon"], default="anytime", help="falling or fixed rate (anytime)"
    )
    group.add_argument(
        "--corollary",
        type=positive,
        metavar="T",
        help="epsilon* and eta* of the paper's Corollary 1 for T rounds, with its fixed exploration and explored feedback",
    )
    group.add_argument("--half-life", type=int, default=0, help="rounds after which losses are halved (0: never)")
    group.add_argument("--seed", type=int, default=1, help="of the policy's draws and of the sample stream (1)")


def policy_numbers(args: argparse.Namespace, beta: float) -> dict[str, Any]:
    """People's numbers of those options, as units.policy_arguments takes them. beta: where none is given."""
    names = ("bits", "delta_fp", "delta_fn", "eta", "epsilon", "feedback", "exploration", "half_life", "seed")
    numbers = {"beta": beta if args.beta is None else args.beta, **{name: getattr(args, name) for name in names}}
    if args.corollary:
        if not 0 < numbers["beta"] <= 1:
            raise UserError(f"--corollary needs a beta in (0, 1], not {numbers['beta']:g}")
        epsilon, eta = units.corollary(args.bits, args.corollary, numbers["beta"])
        numbers.update(epsilon=epsilon, eta=eta, feedback="explored", exploration="epsilon")
    return numbers
