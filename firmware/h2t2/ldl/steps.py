# The steps of a bundle: the name of each by its code, and the function that does it. An operator's code is loaded when a bundle
# asks for it: the machine code where there is some and the port can run it, else kernels.py or kernels_rare.py.
import sys

from ..modules import load

if 0:  # for type checkers: MicroPython compiles nothing here
    from collections.abc import Callable

    Kernel = Callable[..., None]  # kernel(arena, blob, p, k), see kernels.py

# a step's code in a bundle is its place here; 0 does nothing; those from RARE on are in kernels_rare.py, those from ALONE
# on each in a module of its own name. One text, since a board would keep an object for each word
NAMES = (
    "- fully_connected conv_2d depthwise_conv_2d pool_2d mean arithmetic rescale pad concatenate look_up softmax view extreme "
    "prelu resize_bilinear batch_matmul variable lstm log_softmax trees features"
)
# the module with the machine code of each, in the same order
FAST = (
    "- dense_viper conv conv windows_viper windows_viper numbers_viper numbers_viper windows_viper numbers_viper look_up_viper "
    "softmax_viper rare_viper rare_viper rare_viper rare_viper rare_viper - - - "
    "trees_viper -"
)
RARE, ALONE = 12, 18
DENSE, NATIVE = 1, "h2t2_native"  # the module that conv.py may have loaded has the dense layer as well
VARIABLE = 17  # no step, but a place in the arena whose numbers persist between inferences, and their initial values
FEATURES = 21  # no step, but the place in the arena of the features that a head learns from
machine_code = True  # until this port turns out to have none
in_bytecode: "dict[str, Exception]" = {}  # operators whose machine code this board's compiler cannot make: name -> why


def name_of(code: int) -> str:
    """The name of a step's operator. ValueError for a code that is not known here."""
    names = NAMES.split()
    if not 0 < code < len(names):
        raise ValueError("bundle: step %d is not known here" % code)
    return names[code]


def function(code: int) -> "Kernel":
    """The kernel for the steps of a code. ValueError for a code that is not known here."""
    global machine_code
    name = name_of(code)
    if in_machine_code(code):
        try:
            if code == DENSE and NATIVE in sys.modules:
                return getattr(sys.modules[NATIVE], name)  # type: ignore[no-any-return]
            return load("ldl.%s.%s" % (FAST.split()[code], name))  # type: ignore[no-any-return]
        except (ImportError, SyntaxError):  # no MicroPython, or a port without the viper emitter
            machine_code = False
        except (NotImplementedError, ValueError) as error:  # it cannot be compiled here, or is for another processor
            in_bytecode[name] = error
    return load("ldl.%s.%s" % (name if code >= ALONE else "kernels" if code < RARE else "kernels_rare", name))  # type: ignore[no-any-return]


def in_machine_code(code: int) -> bool:
    """Whether function() gives machine code for such a step, which reads constants as bytes where they are."""
    return machine_code and FAST.split()[code] != "-" and name_of(code) not in in_bytecode
