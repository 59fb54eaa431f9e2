# Times a bundle's inference on MicroPython: plain, and in machine code where the port has viper. BUNDLE and RUNS stand before.
# Prints "kind microseconds CRC-32-of-the-outputs bytes-of-heap" lines; the heap is locked while an inference runs, so what it
# uses after loading is the most it uses.
import gc
from binascii import crc32
from time import ticks_diff, ticks_us

from micropython import heap_lock, heap_unlock

from h2t2.core.rng import Rng
from h2t2.ldl import bundle as ldl
from h2t2.ldl import steps


def opened():
    with open(BUNDLE, "rb") as file:  # noqa: F821
        return ldl.Int8Model(file.read(), 0)


def timed(kind, runs):
    opened()  # loads the code of its operators
    if kind == "viper" and not steps.machine_code:
        return
    gc.collect()
    before = gc.mem_alloc()
    model = opened()
    gc.collect()
    heap = gc.mem_alloc() - before - len(model.blob)
    rng = Rng(9)
    inputs = [bytes([rng.draw() >> 7 for _ in range(model.input_size)]) for _ in range(runs)]
    crc = spent = 0
    for x in inputs:
        start = ticks_us()
        heap_lock()
        model.run(x)
        heap_unlock()
        spent += ticks_diff(ticks_us(), start)
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc) & 0xFFFFFFFF
    print(kind, spent / runs, crc, heap)


timed("viper", RUNS)  # noqa: F821
steps.machine_code = False
timed("plain", RUNS)  # noqa: F821
