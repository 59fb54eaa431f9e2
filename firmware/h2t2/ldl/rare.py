# More operators of the integer LDL, which fewer models have: a board loads them for a bundle that needs one. kernels.py
# explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def view(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """Bytes in another order, or some of them: n numbers along each of five axes, s bytes apart in the input, from `start` on.

    TRANSPOSE, SLICE, STRIDED_SLICE, SPLIT, UNPACK, DEPTH_TO_SPACE, SPACE_TO_DEPTH, TILE, RESIZE_NEAREST_NEIGHBOR.
    """
    x, y, _, _, _, _, _, start, n0, n1, n2, n3, n4, s0, s1, s2, s3, s4 = p
    x += start
    for a in range(n0):
        for b in range(n1):
            for c in range(n2):
                at = x + a * s0 + b * s1 + c * s2
                for _ in range(n3):
                    from_ = at
                    for _ in range(n4):
                        arena[y] = arena[from_]
                        y += 1
                        from_ += s4
                    at += s3


def extreme(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """MAXIMUM (is_minimum 0) and MINIMUM (1) of two inputs of the output's quantisation; the second input as arithmetic()'s."""
    x, y, _, _, _, _, second, constant, outer, repeat, inner, is_minimum = p
    memory = blob if constant else arena
    for row in range(outer * repeat):
        at = second + row // repeat * inner
        for i in range(inner):
            u = arena[x]
            v = memory[at + i]
            arena[y] = u if (u < v) == is_minimum else v
            x += 1
            y += 1


def prelu(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """PRELU by a factor of the bundle for each of the last `inner` numbers. Multipliers: of x, of x times the factor."""
    x, y, zero, offset, low, high, w, w_zero, outer, inner = p
    _, limbs, shifts = k
    for _ in range(outer):
        for i in range(inner):
            acc = arena[x] - zero
            if acc >= 0:
                acc = requantise(acc, 0, limbs, shifts)
            else:
                acc = requantise(acc * (blob[w + i] - w_zero), 1, limbs, shifts)
            store_byte(arena, y, acc + offset, low, high)
            x += 1
            y += 1


def resize_bilinear(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """RESIZE_BILINEAR: output n lies at n * step, in 1024ths.

    mode: 1 where the centres of pixels are what lies there, and 2 more where halves are rounded up, as of uint8.
    """
    x, y, _, _, _, _, _, height, width, depth, out_height, out_width, step_y, step_x, mode = p
    half = mode & 1
    for oy in range(out_height):
        at_y = oy * step_y + half * (step_y // 2 - 512)
        top = max(at_y, 0) >> 10
        bottom = min(at_y + 1023 >> 10, height - 1)
        fy = at_y - (top << 10)
        for ox in range(out_width):
            at_x = ox * step_x + half * (step_x // 2 - 512)
            west = max(at_x, 0) >> 10
            east = min(at_x + 1023 >> 10, width - 1)
            fx = at_x - (west << 10)
            a = x + (top * width + west) * depth
            b = x + (top * width + east) * depth
            c = x + (bottom * width + west) * depth
            d = x + (bottom * width + east) * depth
            for i in range(depth):
                acc = ((arena[a + i] - 128) * (1024 - fx) + (arena[b + i] - 128) * fx) * (1024 - fy)
                acc += ((arena[c + i] - 128) * (1024 - fx) + (arena[d + i] - 128) * fx) * fy
                acc = acc + 524288 >> 20 if acc > 0 or mode > 1 else -(524288 - acc >> 20)
                arena[y] = acc + 128
                y += 1


def batch_matmul(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """BATCH_MATMUL: `batches` times rows x inner by inner x columns of another tensor; its steps say whether it lies turned."""
    x, y, zero, offset, low, high, second, second_zero, batches, rows, inner, columns, step_row, step_inner = p
    _, limbs, shifts = k
    for _ in range(batches):
        for _ in range(rows):
            for j in range(columns):
                acc = 0
                at = second + j * step_row
                for i in range(inner):
                    acc += (arena[x + i] - zero) * (arena[at] - second_zero)
                    at += step_inner
                store_byte(arena, y, requantise(acc, 0, limbs, shifts) + offset, low, high)
                y += 1
            x += inner
        second += inner * columns
