# The operators that are a table: many small models end with one, and need no other code. kernels.py explains p and k.

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Constants, Int32s, UInt8s


def look_up(arena: bytearray, blob: "UInt8s", p: "Int32s", k: "Constants") -> None:
    """Every function of one number (LOGISTIC, TANH, LEAKY_RELU, HARD_SWISH, ...): a table of 256 bytes."""
    x, y, _, _, _, _, table, count = p
    for i in range(count):
        arena[y + i] = blob[table + arena[x + i]]
