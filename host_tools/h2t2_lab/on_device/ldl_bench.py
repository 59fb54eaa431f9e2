# Times a bundle's inference on MicroPython. The host defines BUNDLE and RUNS. The script prints the line "kind microseconds
# CRC-32-of-the-outputs bytes-of-heap microseconds-of-each-step...", with the best times of the runs; kind: viper (machine code)
# or plain (bytecode). The heap is locked during an inference, so the heap after loading is the peak.
import gc
from binascii import crc32
from time import ticks_diff, ticks_us

from micropython import heap_lock, heap_unlock

from h2t2.core.numbers import Rng
from h2t2.ldl import bundle as ldl
from h2t2.ldl import steps


def opened():
    with open(BUNDLE, "rb") as file:  # noqa: F821
        return ldl.Int8Model(file.read(), 0)


def timed(runs):
    kind = "viper" if steps.is_machine_code(opened().steps[0][0]) else "plain"  # loads the code of the operators
    gc.collect()
    before = gc.mem_alloc()
    model = opened()
    gc.collect()
    heap = gc.mem_alloc() - before - len(model.blob)
    rng = Rng(9)
    inputs = [bytes([rng.draw() >> 7 for _ in range(model.input_size)]) for _ in range(runs)]
    crc = 0
    best = [1 << 29] * (1 + len(model.steps))
    for x in inputs:
        start = ticks_us()
        heap_lock()
        model.run(x)
        heap_unlock()
        best[0] = min(best[0], ticks_diff(ticks_us(), start))
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc) & 0xFFFFFFFF
    for _ in range(runs):
        for n, (step, p, k) in enumerate(model.steps, 1):
            start = ticks_us()
            step(model.arena, model.blob, p, k)
            best[n] = min(best[n], ticks_diff(ticks_us(), start))
    print(kind, best[0], crc, heap, *best[1:])


timed(RUNS)  # noqa: F821
