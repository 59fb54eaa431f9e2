# Measures convolutions on a board, in every way that it has. The host defines T(), ticks of the board's clock, and MODELS:
# (name, code of its step) each. FOLDER holds their bundles. Lines: "way name ticks CRC-32-of-the-arena"; the arena is random.
import gc
from binascii import crc32

from h2t2.core.numbers import Rng
from h2t2.ldl import conv_viper
from h2t2.ldl.open import open_ldl
from h2t2.ldl.steps import NAMES

modules = {"viper": conv_viper}
try:
    import h2t2_native

    modules["native"] = h2t2_native
except ImportError:
    pass
# the first measurement after the start takes some 40,000 cycles more; it is repeated, and the host takes the last
for name, code in MODELS[:1] + MODELS:  # noqa: F821
    for way in sorted(modules):
        model = None
        gc.collect()
        model = open_ldl(FOLDER + name, 0)  # noqa: F821
        rng = Rng(9)
        for n in range(len(model.arena)):
            model.arena[n] = rng.draw() >> 7
        _, p, k = model.steps[0]
        step = getattr(modules[way], NAMES.split()[code])
        start = T()  # noqa: F821
        step(model.arena, model.blob, p, k)
        print(way, name, T() - start & 0x3FFFFFFF, crc32(model.arena) & 0xFFFFFFFF)  # noqa: F821
