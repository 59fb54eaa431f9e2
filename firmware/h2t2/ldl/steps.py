# The steps of a bundle: the name of each by its code, and the function that does it. An operator's code is loaded when a bundle
# asks for it: the machine code where there is some and the port can run it, else kernels.py or kernels_rare.py.

# a step's code in a bundle is its place here; 0 does nothing; those from RARE on are of kernels_rare.py, or of a module of
# their own. One text, since a board would keep an object of each word
NAMES = (
    "- fully_connected conv_2d depthwise_conv_2d pool_2d mean arithmetic rescale pad concatenate look_up softmax view extreme "
    "prelu resize_bilinear batch_matmul variable lstm"
)
# the module with the machine code of each, in the same order
FAST = (
    "- dense_viper conv conv windows_viper windows_viper numbers_viper numbers_viper windows_viper numbers_viper numbers_viper "
    "softmax_viper rare_viper rare_viper rare_viper rare_viper rare_viper - -"
)
RARE = 12
VARIABLE = 17  # no step, but where in the arena numbers are kept from one inference to the next, and what they are at first
machine_code = True  # until it turns out that it cannot be run here
in_bytecode = {}  # type: dict  # operators whose machine code this board's compiler cannot make: name -> why


def name_of(code):
    """The name of a step's operator. ValueError for a code that is not known here."""
    names = NAMES.split()
    if not 0 < code < len(names):
        raise ValueError("bundle: step %d is not known here" % code)
    return names[code]


def function(code):
    """What does the step of such a code: kernel(arena, blob, p, k). ValueError for a code that is not known here."""
    global machine_code
    name = name_of(code)
    if in_machine_code(code):
        try:
            return _of(FAST.split()[code], name)
        except (ImportError, SyntaxError):  # no MicroPython, or a port without the viper emitter
            machine_code = False
        except (NotImplementedError, ValueError) as error:  # it cannot be compiled here; it is of another processor
            in_bytecode[name] = error
    return _of(name if name == "lstm" else "kernels" if code < RARE else "kernels_rare", name)


def in_machine_code(code):
    """Whether function() gives machine code for such a step: that reads constants where they are, of bytes."""
    return machine_code and FAST.split()[code] != "-" and name_of(code) not in in_bytecode


def _of(module, name):
    return getattr(__import__("h2t2.ldl." + module, None, None, (name,)), name)
