# The convolutions in machine code: of the native module where there is one (firmware/native/kernels.c), else of the viper
# emitter. Importing this raises NotImplementedError where a board's own compiler cannot make the latter.
#
# Compilers before MicroPython 1.26 take no branch as long as conv_viper.py has. On ARMv6-M they say so. On Xtensa they write it
# cut off: it ends the board with an illegal instruction, which nothing can catch. A .mpy file and a frozen module, which is no
# file, are of another compiler.
import sys

from .bounds import VERSION

OLDEST = (1, 26)
SHORT = (4, 9, 10)  # armv6m, xtensa, xtensawin: where these compilers fail
_implementation = sys.implementation


def _is_compiled_here() -> bool:
    if __file__.endswith(".mpy"):
        return False
    try:
        open(__file__).close()  # a port may lack `os`
    except OSError:
        return False
    return True


try:
    from h2t2_native import FORMAT as _format  # type: ignore[import-not-found]  # a board has it as .mpy
    from h2t2_native import conv_2d, depthwise_conv_2d

    if _format != VERSION:
        del sys.modules["h2t2_native"]
        raise ImportError("h2t2_native.mpy is of another release")
except (ImportError, ValueError):  # there is none, or it is for another processor
    if _implementation.version[:2] < OLDEST and getattr(_implementation, "_mpy", 0) >> 10 & 15 in SHORT and _is_compiled_here():
        raise NotImplementedError("the compiler of MicroPython %d.%d cannot make it" % _implementation.version[:2]) from None
    from .conv_viper import conv_2d, depthwise_conv_2d  # noqa: F401
