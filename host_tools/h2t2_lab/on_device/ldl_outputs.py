# Runs bundles on a board and prints the CRC-32 of their outputs. The host defines FOLDER and MODELS: (name, kinds, runs) each.
# Lines: "name kind crc bytes-of-heap"; kinds: whole, streamed (weights stay in the file). The last is "bytecode" and the
# operators that did not run in machine code.
import gc
from binascii import crc32
from struct import unpack_from

import h2t2.ldl.bundle  # noqa: F401  not counted as the model's
import h2t2.ldl.streamed  # noqa: F401
from h2t2.ldl import buffers, steps
from h2t2.ldl.open import open_ldl
from h2t2.modules import forget

in_bytecode = set()


def load_kernels(file):
    """Load the code of a bundle's operators, which is not counted as the model's either. A board has no constants to import."""
    count = unpack_from("<6xH", file.read(48), 0)[0]
    for _ in range(count):
        code, parameters = unpack_from("<HH", file.read(20), 0)
        file.read(4 * parameters)
        if code not in (17, 21) and not steps.is_machine_code(steps.function(code)):
            in_bytecode.add(steps.name_of(code))


def outputs(path, streamed, runs):
    """Return the CRC-32 of a model's outputs, and the heap that it takes: its buffers, which come first, and the rest."""
    with open(path, "rb") as file:
        gc.collect()
        empty = gc.mem_alloc()
        buffers.reserve(file, streamed)
        forget("ldl.bounds")
        gc.collect()
        reserved = gc.mem_alloc() - empty
        file.seek(0)
        load_kernels(file)
    gc.collect()
    before = gc.mem_alloc() - reserved
    model = open_ldl(path, 0, stream=streamed)
    gc.collect()
    heap = gc.mem_alloc() - before
    x = bytearray(model.input_size)
    draw = 9  # pseudo-random numbers of our own: the policies' would take heap that the largest model needs
    crc = 0
    for _ in range(runs):
        for n in range(len(x)):
            draw = draw * 1103 + 12345 & 0xFFFF
            x[n] = draw >> 8
        model.run(x)
        crc = crc32(memoryview(model.arena)[model.output : model.output + model.classes], crc) & 0xFFFFFFFF
    return crc, heap


for name, kinds, runs in MODELS:  # noqa: F821
    for kind in kinds:
        outputs(FOLDER + name, kind == "streamed", 0)  # noqa: F821  words of modules that a board forgets again stay
        print(name, kind, *outputs(FOLDER + name, kind == "streamed", runs))  # noqa: F821
print("bytecode", *sorted(in_bytecode))
