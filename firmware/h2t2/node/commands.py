# Commands from outside: what one may say, how often, and until when. Untrusted bytes in, one checked instruction out.
import json

from ..clock import ticks_diff, ticks_ms, unix_now
from ..core.numbers import ONE

LARGEST = 224  # bytes of a command
BURST, EVERY_MS = 4, 15000  # so many at once, and one more each 15 s
LONGEST_PAUSE = 86400  # seconds
LONGEST_ID = 32  # characters
REMEMBERED = 8  # ids
COSTS = "beta", "delta_fp", "delta_fn"


class Command:
    """what: "set", "prior", "snapshot", "reset" or "pause"; value: its argument; id: the sender's, or ""; until: Unix seconds,
    or 0."""

    def __init__(self, what, value, *, id, until):
        self.what = what
        self.value = value
        self.id = id
        self.until = until


def parse(payload: bytes) -> Command:
    """The Command in a JSON object. ValueError (what is wrong, the id where there is one) for anything else.

    One of: {"set": {cost: Q15, ...}} with costs beta, delta_fp, delta_fn in 0..32768, or, of more classes than two, "costs":
    [[true, said, Q15], ...], said -1 for all; {"prior": [Q15, ...]}, a number a bin;
    {"snapshot": true}; {"reset": true}; {"pause": seconds, 0 to 86400; 0 ends a pause}. Beside it, if one wishes: "id", a text
    of 1 to 32 characters, which the answer bears, and under which it is carried out once; "until", Unix seconds after which it
    is not carried out.
    """
    if len(payload) > LARGEST:
        raise ValueError("command of %d bytes, at most %d" % (len(payload), LARGEST), "")
    try:
        content = json.loads(bytes(payload).decode())
    except (ValueError, RuntimeError):  # MicroPython: RuntimeError for nesting too deep
        raise ValueError("command is not JSON", "") from None
    if type(content) is not dict:
        raise ValueError("command is no JSON object", "")
    id = content.pop("id", "")
    if type(id) is not str or len(id) > LONGEST_ID or [c for c in id if not " " <= c <= "~"]:
        raise ValueError("command: id is not a text of 1 to %d printable ASCII characters" % LONGEST_ID, "")
    try:
        until = _checked("until", content.pop("until", 0), 1 << 40)
        if len(content) != 1:
            raise ValueError("command is not one name with its value")
        what = list(content)[0]
        return Command(what, _value(what, content[what]), id=id, until=until)
    except ValueError as error:
        raise ValueError(error.args[0], id) from None


def _value(what, value):
    if what in ("snapshot", "reset"):
        if value is not True:
            raise ValueError("command %s: want true" % what)
    elif what == "prior":
        if type(value) is not list:
            raise ValueError("command prior: want a list")
        for number in value:
            _checked(what, number, ONE)
    elif what == "pause":
        _checked(what, value, LONGEST_PAUSE)
    elif what == "set":
        if type(value) is not dict or not value:
            raise ValueError("command set: want costs")
        for name in value:
            if name == "costs":
                _matrix(value[name])
            elif name not in COSTS:
                raise ValueError("command set: there is no such cost")
            else:
                _checked(name, value[name], ONE)
    else:
        raise ValueError("no such command")
    return value


def _matrix(value):
    if type(value) is not list or not value:
        raise ValueError("command costs: want a list")
    for entry in value:
        if type(entry) is not list or len(entry) != 3 or type(entry[1]) is not int:
            raise ValueError("command costs: want [true, said, cost]")
        _checked("costs", entry[0], 15)
        _checked("costs", entry[2], ONE)


def _checked(name, value, high):
    if type(value) is not int or not 0 <= value <= high:
        raise ValueError("command %s: want an integer in 0..%d" % (name, high))
    return value


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


class Desk:
    """Takes commands, has each carried out once, and answers. act(command): carries one out; log: told of every one.

    Counters: `carried_out`, `refused` (malformed, expired, or more than Limit lets through).
    """

    def __init__(self, act, log):
        self.act = act
        self.log = log
        self.limit = Limit()
        self.answers = []  # (id, answer) of the last
        self.carried_out = self.refused = 0

    def take(self, payload) -> str:
        """The answer, JSON, to a command's payload: {"id", "ok", "why"}; why: of a refusal, or what should be known."""
        id = why = ""
        try:
            command = parse(payload)
            id = command.id
            for known, answer in self.answers:
                if id and id == known:
                    return answer
            now = unix_now()
            if command.until and now > command.until:
                raise ValueError("it came %d s after its time; is the clock right?" % (now - command.until), id)
            if not self.limit.passes():
                raise ValueError("more commands than one each %d s" % (EVERY_MS // 1000), id)
        except ValueError as error:
            self.refused += 1
            if self.refused < 20 or not self.refused & 1023:  # a stranger must not fill the log
                self.log("command refused: %s" % error.args[0])
            return json.dumps({"id": error.args[1], "ok": False, "why": error.args[0]})
        if command.until and not now:
            why = "the clock is not set: its expiry was not looked at"
        try:
            why = self.act(command) or why
        except ValueError as error:  # this node cannot
            self.refused += 1
            self.log("command refused: %s" % error.args[0])
            return json.dumps({"id": id, "ok": False, "why": error.args[0]})
        self.carried_out += 1
        self.log("command: %s" % command.what)
        answer = json.dumps({"id": id, "ok": True, "why": why})
        if id:
            self.answers = self.answers[1 - REMEMBERED :] + [(id, answer)]
        return answer
