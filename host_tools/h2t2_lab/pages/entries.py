"""The table by which a board checks its config.json, made from the declaration of the entries. `make pages` writes it."""

import re
import textwrap
from collections.abc import Iterator

from h2t2.link import wire
from h2t2.units import CONVERTERS
from h2t2_tools.common import places
from h2t2_tools.common.feature_limits import CONTEXT_NUMBERS, MODEL_FEATURES
from h2t2_tools.common.fields import domain
from h2t2_tools.fleet import profile
from h2t2_tools.fleet.config import LONGEST_US, RUNTIME, NodeConfig, PolicyConfig

FILE = places.RUNTIME / "node/entries.py"
# entry -> the field that it is made of, and units in one of it
DERIVED = {
    "deadline_ms": ("deadline", 1000), "watchdog_ms": ("watchdog", 1000), "every_ms": ("every", 1000),
    "telemetry_s": ("telemetry", 1), "keep_alive": ("keep_alive", 1), "context": ("context", 1),
    "remote_limit": ("remote_limit", 1),
}  # fmt: skip
# what NodeConfig.content(), the flashing of a board, its page for a network and tests add
ADDED = {
    "device": "name", "remote_shape": "numbers", "every_us": f"0..{LONGEST_US}", "remote_dtype": f"0..{len(wire.DTYPES) - 1}",
    **dict.fromkeys(("arguments", "budget", "offload_cost", "update", "sleep", "measured"), "object"),
    **dict.fromkeys((*profile.TLS, "provision", "head", "app", "resolver"), "text"),
    **dict.fromkeys(("awaitable", "patient", "untried"), "true|false"),
    "link": "app|serial", "samples": f"0..{10**9}",
}  # fmt: skip
OF_POLICY = {
    "prior": "numbers", "normal": "0..15", "ordered": "true|false", "window": "1..4096",
    **dict.fromkeys(("costs", "confusion"), "list"), "features": f"1..{MODEL_FEATURES + CONTEXT_NUMBERS}",
}  # fmt: skip


def _wants(name: str, scale: int = 1) -> str:
    """What an entry wants that is a field times a scale, or the policy's integer for it."""
    accepted = domain(NodeConfig.model_fields[name])
    if accepted.choices:
        return "|".join(accepted.choices)
    if accepted.kind is bool:
        return "true|false"
    if accepted.count != 1:
        return "list"
    if accepted.low is None or accepted.high is None:
        return "text"
    if name in CONVERTERS:
        return f"{1 if accepted.open_low else CONVERTERS[name](accepted.low, name)}..{CONVERTERS[name](accepted.high, name)}"
    return f"{round(accepted.low * scale)}..{round(accepted.high * scale) - accepted.open_high}"


def _rows() -> Iterator[tuple[str, str]]:
    """Each entry with what it wants."""
    yield from ADDED.items()
    yield from ((name, _wants(name)) for name in sorted(RUNTIME - ADDED.keys()))
    yield from ((name, _wants(*source)) for name, source in DERIVED.items())
    yield from ((f".{name}", wants) for name, wants in OF_POLICY.items())
    numbers = PolicyConfig.model_fields.keys() - OF_POLICY.keys() - {"policy", "in_flight", "class_costs", "rdl_confusion"}
    yield from ((f".{name}", _wants(name)) for name in sorted(numbers))


def source(before: str) -> str:
    """The source of the runtime's module with its table."""
    rows: dict[str, list[str]] = {}
    for name, wants in _rows():
        rows.setdefault(wants, []).append(name)
    text = "".join(f";{' '.join([wants, *names])} " for wants, names in rows.items())
    lines = textwrap.wrap(text, 122, drop_whitespace=False, break_on_hyphens=False)
    return re.sub(r"TABLE = \([^)]*\)", "TABLE = (\n" + "".join(f'    "{line}"\n' for line in lines) + ")", before)


if __name__ == "__main__":
    FILE.write_text(source(FILE.read_text()))
