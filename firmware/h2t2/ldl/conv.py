# The convolutions in machine code. Importing this raises NotImplementedError where a board's own compiler cannot make it.
#
# Compilers before MicroPython 1.26 take no branch as long as conv_viper.py has. On ARMv6-M they say so. On Xtensa they write it
# cut off: it ends the board with an illegal instruction, which nothing can catch. A .mpy file is of another compiler; a frozen
# module bears the name of its source, and is of its firmware's.
import sys

OLDEST = (1, 26)
SHORT = (4, 9, 10)  # armv6m, xtensa, xtensawin: where these compilers fail
_implementation = sys.implementation
if (
    not __file__.endswith(".mpy")
    and _implementation.version[:2] < OLDEST
    and getattr(_implementation, "_mpy", 0) >> 10 & 15 in SHORT
):
    raise NotImplementedError("the compiler of MicroPython %d.%d cannot make it" % _implementation.version[:2])

from .conv_viper import conv_2d, depthwise_conv_2d  # noqa: E402, F401
