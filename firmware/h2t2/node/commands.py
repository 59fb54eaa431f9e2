# Commands from outside: what one may say, and how often. Untrusted bytes in, one checked instruction out.
import json

from ..clock import ticks_diff, ticks_ms
from ..core.numbers import ONE

LARGEST = 192  # bytes of a command
BURST, EVERY_MS = 4, 15000  # so many at once, and one more each 15 s
LONGEST_PAUSE = 86400  # seconds
COSTS = "beta", "delta_fp", "delta_fn"


def parse(payload: bytes) -> tuple:
    """(what, value) of a command's JSON. ValueError, saying what is wrong, for anything else.

    {"set": {cost: Q15, ...}} with costs beta, delta_fp, delta_fn in 0..32768; {"snapshot": true}; {"reset": true};
    {"pause": seconds, 0 to 86400; 0 ends a pause}.
    """
    if len(payload) > LARGEST:
        raise ValueError("command of %d bytes, at most %d" % (len(payload), LARGEST))
    try:
        content = json.loads(bytes(payload).decode())
    except (ValueError, RuntimeError):  # MicroPython: RuntimeError for nesting too deep
        raise ValueError("command is not JSON") from None
    if type(content) is not dict or len(content) != 1:
        raise ValueError("command is not one name with its value")
    what = list(content)[0]
    value = content[what]
    if what in ("snapshot", "reset"):
        if value is not True:
            raise ValueError("command %s: want true" % what)
    elif what == "pause":
        _checked(what, value, LONGEST_PAUSE)
    elif what == "set":
        if type(value) is not dict or not value:
            raise ValueError("command set: want costs")
        for name in value:
            if name not in COSTS:
                raise ValueError("command set: there is no such cost")
            _checked(name, value[name], ONE)
    else:
        raise ValueError("no such command")
    return what, value


def _checked(name, value, high):
    if type(value) is not int or not 0 <= value <= high:
        raise ValueError("command %s: want an integer in 0..%d" % (name, high))


class Limit:
    """Lets BURST commands through at once, then one each EVERY_MS."""

    def __init__(self):
        self.left = BURST
        self.since = ticks_ms()

    def passes(self) -> bool:
        now = ticks_ms()
        waited = ticks_diff(now, self.since)
        if waited < 0 or self.left == BURST:  # the clock has jumped, or nothing to refill
            self.since = now
        elif waited >= EVERY_MS:
            self.left = min(BURST, self.left + waited // EVERY_MS)
            self.since = now
        if not self.left:
            return False
        self.left -= 1
        return True
