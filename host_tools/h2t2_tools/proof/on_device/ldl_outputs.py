# Runs bundles on a board and prints the CRC-32 of their outputs. The host defines FOLDER and MODELS: (name, kinds, runs) each.
# Lines: "name kind crc bytes-of-heap"; kinds: viper, plain, streamed (weights stay in the file). The last is "bytecode" and
# the operators that this board could not run in machine code.
import gc
from binascii import crc32

import h2t2.ldl.streamed  # noqa: F401  not counted as the model's
from h2t2.ldl import steps
from h2t2.ldl.open import open_ldl

for name, kinds, runs in MODELS:  # noqa: F821
    for kind in kinds:
        model = x = None  # frees the previous model, because two do not fit
        gc.collect()
        steps.machine_code = kind != "plain"
        model = open_ldl(FOLDER + name, 0, 4)  # noqa: F821  loads the code of the operators
        if kind != "plain" and not steps.machine_code:
            print("no viper")
        size = model.input_size
        model = None
        gc.collect()
        x = bytearray(size)
        before = gc.mem_alloc()
        model = open_ldl(FOLDER + name, 0, 4, stream=kind == "streamed")  # noqa: F821
        gc.collect()
        heap = gc.mem_alloc() - before
        draw = 9  # pseudo-random numbers of our own: the policies' would take heap that the largest model needs
        crc = 0
        for _ in range(runs):
            for n in range(len(x)):
                draw = draw * 1103 + 12345 & 0xFFFF
                x[n] = draw >> 8
            model.run(x)
            crc = crc32(memoryview(model.arena)[model.output : model.output + model.classes], crc) & 0xFFFFFFFF
        print(name, kind, crc, heap)
print("bytecode", *sorted(steps.in_bytecode))
