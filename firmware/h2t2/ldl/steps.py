# The steps of a bundle: the name of each by its code, and the function that does it. An operator's code is loaded when a bundle
# asks for it: the machine code where there is some and the port can run it, else kernels.py or kernels_rare.py.

# a step's code in a bundle is its place here; 0 does nothing; those from RARE on are of kernels_rare.py, or of OWN
NAMES = (
    "", "fully_connected", "conv_2d", "depthwise_conv_2d", "pool_2d", "mean", "arithmetic", "rescale", "pad", "concatenate",
    "look_up", "softmax", "view", "extreme", "prelu", "resize_bilinear", "batch_matmul",
    "variable", "lstm",
)  # fmt: skip
RARE = 12
VARIABLE = 17  # no step, but where in the arena numbers are kept from one inference to the next, and what they are at first
OWN = {"lstm": "lstm"}
machine_code = True  # until it turns out that it cannot be run here
# where that of an operator is
FAST = {
    "fully_connected": "dense_viper", "conv_2d": "conv_viper", "depthwise_conv_2d": "conv_viper", "pool_2d": "windows_viper",
    "mean": "windows_viper", "pad": "windows_viper", "arithmetic": "numbers_viper", "rescale": "numbers_viper",
    "concatenate": "numbers_viper", "look_up": "numbers_viper", "softmax": "softmax_viper", "view": "rare_viper",
    "extreme": "rare_viper", "prelu": "rare_viper", "resize_bilinear": "rare_viper", "batch_matmul": "rare_viper",
}  # fmt: skip


def function(code):
    """What does the step of such a code: kernel(arena, blob, p, k). ValueError for a code that is not known here."""
    if not 0 < code < len(NAMES):
        raise ValueError("bundle: step %d is not known here" % code)
    global machine_code
    name = NAMES[code]
    if machine_code and name in FAST:
        try:
            return _of(FAST[name], name)
        except (ImportError, SyntaxError, ValueError):  # no MicroPython, no viper emitter, or a .mpy of another processor
            machine_code = False
    return _of(OWN.get(name, "kernels" if code < RARE else "kernels_rare"), name)


def in_machine_code(code):
    """Whether function() gives machine code for such a step: that reads constants where they are, of bytes."""
    return machine_code and NAMES[code] in FAST


def _of(module, name):
    return getattr(__import__("h2t2.ldl." + module, None, None, (name,)), name)
