# The operators that are a table, such as GELU: many small models end with one and need no code of numbers_viper.
import micropython


@micropython.viper
def look_up(arena, blob, p, k):
    a = ptr8(arena)
    table = ptr8(blob)
    q = ptr32(p)
    x = int(q.x)
    to = int(q.y)
    at = int(q.table)
    end = x + int(q.count)
    while x < end:
        a[to] = table[at + a[x]]
        x += 1
        to += 1
