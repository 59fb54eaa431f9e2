"""Tells our own main.py on a board from a program of the user's, which may import h2t2 as well."""

import hashlib
import re

from .microbit.microbit_program import MAIN

# SHA-256 of every main.py in firmware/boards since 1.0.0, the present ones too. A program that was changed is the user's.
DIGESTS = frozenset(
    """
    8b8d6b6b37b1b88a02db748896a63f49ae74c6f23ece878cc83f52da6197bac9
    64c75b4fd68e2c7cf0619d70272efd9ed60398be580660b4473615b7a9f1a3e6
    93d3f8dde1bbaeec95ccc91a212b9b72963e860745f3bbc3ea40c4dcba90f59f
    1f041d80e67d0906ef2cdcc343b9d382ad5688b760be03fcfdbd2ae57e478d4a
    15fc7426e6ffc3744e66a6e77882c032a7b21cb4567f68c73186a6a93535f6d0
    824f3561772ad6f0ec9b30ac41ef493e3a12dccbdcc3fb196326800bfeb65e73
    1237497e47eb89615d3d35bd11d2550de3662dc85f7ad1851c3b97e4462f7173
    95fd06a78862cdf26310f27dfbf3a23d3e6b75f1fb1bd00ef2a027d777fefccb
    4565ec1653f14e9916c7d211b9388203393412b4961d2867215c5d2db423aa1f
    39ec4d01eeec311cafdcd13aee85729d37db6a2a6f0fd5eae4367a736d6369ba
    """.split()
)
# That of a micro:bit is a filled template, the same since 1.0.0.
MICROBIT = re.compile(re.escape(MAIN.strip()).replace(r"\{digest\}", "[0-9a-f]{4}").replace(r"\{options\}", r"[^\n]*") + r"\s*")


def is_ours(content: bytes) -> bool:
    """Return whether a main.py is one that h2t2 or mip has written, unchanged."""
    return hashlib.sha256(content).hexdigest() in DIGESTS or bool(MICROBIT.fullmatch(content.decode(errors="replace")))
