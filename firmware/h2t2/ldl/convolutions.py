# The convolutions in plain code; conv.py chooses another form where there is one. kernels.py explains p and k.
from .kernels import requantise, store_byte

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def conv_2d(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """CONV_2D; filters lie as output channel, row, column, input channel. Padding is what stands before the input."""
    (
        x, y, zero, offset, low, high, weights, height, width, depth, out_height, out_width, channels, kernel_height,
        kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, w_zero,
    ) = p  # fmt: skip
    bias, limbs, shifts = k
    for oy in range(out_height):
        for ox in range(out_width):
            w = weights
            for o in range(channels):
                acc = bias[o]
                iy = oy * stride_y - pad_y
                for _ in range(kernel_height):
                    ix = ox * stride_x - pad_x
                    for _ in range(kernel_width):
                        if 0 <= iy < height and 0 <= ix < width:
                            at = x + (iy * width + ix) * depth
                            for i in range(depth):
                                acc += (arena[at + i] - zero) * (blob[w + i] - w_zero)
                        w += depth
                        ix += dilation_x
                    iy += dilation_y
                store_byte(arena, y, requantise(acc, o, limbs, shifts) + offset, low, high)
                y += 1


def depthwise_conv_2d(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """DEPTHWISE_CONV_2D; filters lie as row, column, output channel; depth_multiplier outputs per input channel."""
    (
        x, y, zero, offset, low, high, weights, height, width, depth, out_height, out_width, channels, kernel_height,
        kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, w_zero, depth_multiplier,
    ) = p  # fmt: skip
    bias, limbs, shifts = k
    for oy in range(out_height):
        for ox in range(out_width):
            for o in range(channels):
                acc = bias[o]
                w = weights + o
                iy = oy * stride_y - pad_y
                for _ in range(kernel_height):
                    ix = ox * stride_x - pad_x
                    for _ in range(kernel_width):
                        if 0 <= iy < height and 0 <= ix < width:
                            acc += (arena[x + (iy * width + ix) * depth + o // depth_multiplier] - zero) * (blob[w] - w_zero)
                        w += channels
                        ix += dilation_x
                    iy += dilation_y
                store_byte(arena, y, requantise(acc, o, limbs, shifts) + offset, low, high)
                y += 1
