# The convolutions in machine code: of the native module where there is one (firmware/native/kernels.c), else of the viper
# emitter where a board can have that, else in plain code.
#
# Compilers before MicroPython 1.26 take no branch as long as conv_viper.py has. On ARMv6-M they say so. On Xtensa they write it
# cut off: it ends the board with an illegal instruction, which nothing can catch. A .mpy file and a frozen module, which is no
# file, are of another compiler.
import sys

from .bounds import CONVOLUTIONS, VERSION
from .steps import NATIVE, in_bytecode

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
    import h2t2_native as _native  # a board has it as .mpy, or in its firmware

    conv_2d, depthwise_conv_2d = _native.conv_2d, _native.depthwise_conv_2d
    if _native.FORMAT != VERSION:
        sys.modules.pop(NATIVE, None)
        raise ImportError("h2t2_native is of another release")
    sys.modules[NATIVE] = _native  # MicroPython does not list those of its firmware
except (ImportError, ValueError):  # there is none, or it is for another processor
    try:
        if (
            _implementation.version[:2] < OLDEST
            and getattr(_implementation, "_mpy", 0) >> 10 & 15 in SHORT
            and _is_compiled_here()
        ):
            raise NotImplementedError("the compiler of MicroPython %d.%d cannot make it" % _implementation.version[:2])
        from .conv_viper import conv_2d, depthwise_conv_2d
    except (ImportError, SyntaxError):  # no MicroPython, or a port without the viper emitter
        from .convolutions import conv_2d, depthwise_conv_2d
    except (NotImplementedError, ValueError) as error:  # it cannot be compiled here, or is for another processor
        from .convolutions import conv_2d, depthwise_conv_2d  # noqa: F401

        for _name in CONVOLUTIONS:
            in_bytecode[_name] = error
