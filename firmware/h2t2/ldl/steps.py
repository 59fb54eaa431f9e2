# The steps of a bundle: their bytes, the name of each by its code, and the function that does it. A board loads an operator's
# code when a bundle asks for it.
import sys

from ..modules import load

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Kernel

HEADER_SIZE = 48
STEP = "<HHIIII"  # code, parameters; offsets of bias, limbs, shifts (0: none); channels
STEP_SIZE = 20
ARENA_MAX = 67108864  # bytes; no board has as much, and a stranger's bundle may not ask for more
# a step's code in a bundle is its place here; 0 does nothing. One text, since a board would keep an object for each word
NAMES = (
    "- fully_connected conv_2d depthwise_conv_2d pool_2d mean arithmetic rescale pad concatenate look_up softmax view extreme "
    "prelu resize_bilinear batch_matmul variable lstm log_softmax trees features"
)
# the module of each, in the same order
MODULES = (
    "- dense conv conv windows windows numbers numbers windows numbers look_up softmax rare rare rare rare rare - lstm "
    "log_softmax trees -"
)
DENSE, NATIVE = 1, "h2t2_native"  # the module that conv.py may have loaded has the dense layer as well
VARIABLE = 17  # no step, but a place in the arena whose numbers persist between inferences, and their initial values
FEATURES = 21  # no step, but the place in the arena of the features that a head learns from
in_bytecode: "dict[str, Exception]" = {}  # operators whose machine code this board's compiler cannot make: name -> why


def name_of(code: int) -> str:
    """The name of a step's operator. ValueError for a code that is not known here."""
    names = NAMES.split()
    if not 0 < code < len(names):
        raise ValueError("bundle: step %d is not known here" % code)
    return names[code]


def function(code: int) -> "Kernel":
    """The kernel for the steps of a code. ValueError for a code that is not known here."""
    name = name_of(code)
    if code == DENSE and NATIVE in sys.modules:
        kernel: "Kernel" = getattr(sys.modules[NATIVE], name)
    else:
        kernel = load("ldl.%s.%s" % (MODULES.split()[code], name))
    return kernel


def is_machine_code(kernel: "Any") -> bool:
    """Whether a kernel is machine code, which reads constants as bytes where they are in the bundle."""
    return type(kernel) is not type(name_of)
