# What takes an LSTM's time, a sum of products, as machine code by MicroPython's viper emitter.
import micropython


@micropython.viper
def dot(arena, x: int, zero: int, blob, w: int, n: int) -> int:
    a = ptr8(int(ptr8(arena)) + x)
    b = ptr8(int(ptr8(blob)) + w)
    acc = 0
    i = 0
    while i < n:
        acc += (int(a[i]) - zero) * (int(b[i]) - 128)
        i += 1
    return acc
