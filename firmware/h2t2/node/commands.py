# Commands from outside: their syntax, whether they are carried out, and what a service does for each. Untrusted bytes become a
# checked Command. A board has this module in memory only while commands come (service.py).
import json

from ..clock import unix_now
from ..core.numbers import ONE
from .limit import EVERY_MS, Limit

if 0:  # for type checkers
    from ..annotations import Any, Callable, Service

LARGEST = 224  # bytes of a command
LONGEST_PAUSE = 86400  # seconds
LONGEST_ID = 32  # characters
COSTS = "beta", "delta_fp", "delta_fn"
ANSWERS = 8  # that are remembered


class Command:
    """A command that is well formed.

    Attributes:
        name: "set", "prior", "snapshot", "reset" or "pause".
        value: Its argument.
        id: The sender's, or "".
        until: Unix seconds, or 0.
    """

    def __init__(self, name: str, value: "Any", *, id: str, until: int):
        self.name = name
        self.value = value
        self.id = id
        self.until = until


def parse(payload: bytes) -> Command:
    """Parse a command, a JSON object with one of these entries:

    {"set": {cost: Q15, ...}}: the costs beta, delta_fp, delta_fn in 0..32768; for more classes than two "costs": [[label,
    answer, Q15], ...], with the answer -1 for all. {"prior": [Q15, ...]}: a number for each bin. {"snapshot": true}.
    {"reset": true}. {"pause": seconds}: 0 to 86400; 0 ends a pause.

    It may also have "id", a text of 1 to 32 characters, which the answer repeats, and under which it is carried out once; and
    "until", Unix seconds after which it is not carried out.

    Raises:
        ValueError: (reason, the id or "") for anything else.
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
        name = list(content)[0]
        return Command(name, _checked_value(name, content[name]), id=id, until=until)
    except ValueError as error:
        raise ValueError(error.args[0], id) from None


def _checked_value(name: str, value: "Any") -> "Any":
    if name in ("snapshot", "reset"):
        if value is not True:
            raise ValueError("command %s: want true" % name)
    elif name == "prior":
        if type(value) is not list:
            raise ValueError("command prior: want a list")
        for number in value:
            _checked(name, number, ONE)
    elif name == "pause":
        _checked(name, value, LONGEST_PAUSE)
    elif name == "set":
        if type(value) is not dict or not value:
            raise ValueError("command set: want costs")
        for cost in value:
            if cost == "costs":
                _check_matrix(value[cost])
            elif cost not in COSTS:
                raise ValueError("command set: there is no such cost")
            else:
                _checked(cost, value[cost], ONE)
    else:
        raise ValueError("no such command")
    return value


def _check_matrix(value: "Any") -> None:
    if type(value) is not list or not value:
        raise ValueError("command costs: want a list")
    for entry in value:
        if type(entry) is not list or len(entry) != 3 or type(entry[1]) is not int:
            raise ValueError("command costs: want [label, answer, cost]")
        _checked("costs", entry[0], 15)
        _checked("costs", entry[2], ONE)


def _checked(name: str, value: "Any", high: int) -> int:
    if type(value) is not int or not 0 <= value <= high:
        raise ValueError("command %s: want an integer in 0..%d" % (name, high))
    return value


def take(service: "Any", payload: bytes, act: "Callable[[Any, Command], str | None]") -> str:
    """Have a command carried out once; return the answer, JSON: {"id", "ok", "why"}; why: the reason of a refusal, or a note.

    Args:
        service: Whose command it is: a Service, or another object with its `limit` (None before the first command), `answers`
            (id and answer of the last commands), counters `carried_out` and `refused`, and `log`.
        payload: The command.
        act: Called with the service and the Command; it returns a note or None, or raises ValueError.
    """
    id = note = ""
    try:
        command = parse(payload)
        id = command.id
        for answered, answer in service.answers:
            if id and id == answered:
                return str(answer)
        seconds = unix_now()
        if command.until and seconds > command.until:
            raise ValueError("it came %d s after its time; is the clock right?" % (seconds - command.until), id)
        service.limit = service.limit or Limit()
        if not service.limit.passes():
            raise ValueError("more commands than one each %d s" % (EVERY_MS // 1000), id)
    except ValueError as error:
        service.refused += 1
        if service.refused < 20 or not service.refused & 1023:  # a stranger must not fill the log
            service.log("command refused: %s" % error.args[0])
        return json.dumps({"id": error.args[1], "ok": False, "why": error.args[0]})
    if command.until and not seconds:
        note = "the clock is not set: its expiry was not looked at"
    try:
        note = act(service, command) or note
    except ValueError as error:  # this node cannot
        service.refused += 1
        service.log("command refused: %s" % error.args[0])
        return json.dumps({"id": id, "ok": False, "why": error.args[0]})
    service.carried_out += 1
    service.log("command: %s" % command.name)
    answer = json.dumps({"id": id, "ok": True, "why": note})
    if id:
        service.answers = service.answers[1 - ANSWERS :] + [(id, answer)]
    return answer


def carry_out(service: "Service", command: Command) -> "str | None":
    """Carry out a command; return a note for its sender, or None. The policy is torn if a change fails halfway."""
    node = service.node
    value = command.value
    if command.name == "pause":
        service.pause_end = service.watch.seconds() + value if value else -1
        node.paused = value > 0
        return None
    if command.name == "reset":
        node.give_up_all()
    node.policy_torn = True
    try:
        note = change(node, command.name, value)
    except ValueError:  # it refuses before anything changes
        node.policy_torn = False
        raise
    node.policy_torn = False
    unsaved = service.keeper.unsaved
    service.save()
    if service.keeper.unsaved > unsaved:
        return "done, and not saved"
    return note


def change(node: "Any", name: str, value: "Any") -> "str | None":
    """Change the policy of a node, or of another object with `policy` and `cost`; return a note for the sender, or None."""
    policy = node.policy
    note = None
    if name == "set":
        if "costs" in value and policy.classes == 2:
            raise ValueError("policy %s decides between two classes: set delta_fp and delta_fn" % policy.name)
        policy.set_deltas(value.get("delta_fp", policy.delta_fp), value.get("delta_fn", policy.delta_fn))
        if "costs" in value:
            policy.change_costs(value["costs"])
        if "beta" in value and node.cost:
            note = "beta follows what offloads cost: it will not stay"
        policy.set_beta(value.get("beta", policy.beta))
    elif name == "prior":
        policy.set_prior(value)
    elif name == "reset":
        policy.reset()
    return note
