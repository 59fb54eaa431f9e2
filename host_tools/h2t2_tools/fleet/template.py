"""The commented config.toml of a board or a Pi, from the declaration of a node's configuration. `make pages` writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from ..common import places
from ..common.cost_table import CostTable
from ..common.fields import about, default_text, domain
from .config import NodeConfig, described

if TYPE_CHECKING:
    from ..common import pairs

TITLES = {"network": "the network", "models": "the models", "policy": "the policy", "operation": "in operation"}
COLUMN = 27  # where comments begin
WIFI = {"wifi_name", "wifi_password", "wifi_power_save"}
NETWORK = {name for name, field in NodeConfig.model_fields.items() if about(field, "group") == "network"} - {"device"}
BOARD_ONLY = {name for name, field in NodeConfig.model_fields.items() if about(field, "hidden")}
EXAMPLE = {"event": 1, "remote_shape": [30], "model_id": 1, "beta": 0.2}  # breast_cancer's
MICROBIT = (
    "device", "event", "remote_shape", "model_id", "records", "pair", "policy", "bits", "beta", "delta_fp", "delta_fn", "eta",
    "epsilon", "feedback", "exploration", "seed", "deadline_ms", "snapshot", "snapshot_every",
)  # fmt: skip
FLASHED = "`h2t2 flash` copies it to the board as config.json, in integers. Only remote_shape and model_id must stand here."


@dataclass(frozen=True)
class Template:
    """What the config.toml of a kind of board says.

    Attributes:
        header: its first lines.
        entries: values that are not the defaults.
        absent: entries that are of no use there.
        notes: what to add to the comment of an entry.
    """

    header: str
    entries: dict[str, Any]
    absent: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)


NETWORKED = {"broker": "192.168.1.10", "wifi_name": "network", "watchdog_ms": 8000}
TEMPLATES = {
    "unix": Template(f"MicroPython's unix port: {FLASHED}", {"device": "unix-1"}, WIFI),
    "esp32": Template(f"ESP32: {FLASHED}", {"device": "esp32-1", **NETWORKED}),
    "pico_w": Template(
        f"Raspberry Pi Pico W and Pico 2 W: {FLASHED}",
        {"device": "pico-1", **NETWORKED},
        notes={"watchdog_ms": "at most 8388, on a Pico 2 W 16777"},
    ),
    "pico": Template(
        "Raspberry Pi Pico, and any other board with MicroPython's rp2 port, at a USB line: it has no network, `h2t2 gateway` "
        f"relays.\n{FLASHED}",
        {"device": "pico-1", "watchdog_ms": 8000},
        NETWORK | {"report_decisions"},
        {"watchdog_ms": "at most 8388, on a Pico 2 16777"},
    ),
    "microbit": Template(
        "BBC micro:bit: `h2t2 flash` builds its program from this. It has no network; `h2t2 gateway` knows the broker.",
        {"device": "microbit-1", "policy": "h2t2", "exploration": "epsilon"},
        NodeConfig.model_fields.keys() - {*MICROBIT},
        {
            "policy": "the only one here", "bits": "the only number here", "exploration": "the only one here",
            "eta": "here at most 4", "epsilon": "here from 1/128 on", "snapshot": "in two files here, learned0 and learned1",
        },
    ),
    "pi": Template(
        "Raspberry Pi, or any computer: h2t2 node --config FILE. Options of that command override these entries.",
        {
            "device": "pi-1", "pair": "pair", "app": "app.py", "every": "2s", "snapshot": "/var/lib/h2t2/node", "hold": 256,
        },
        BOARD_ONLY | {"event", "model_id", "ldl"},
    ),
}  # fmt: skip


def render(board: str, info: pairs.PairInfo | None = None, entries: dict[str, Any] | None = None) -> str:
    """The text of a config.toml.

    Args:
        board: a name of TEMPLATES.
        info: the pair that it is for; None: an example.
        entries: a user's own values; those that the board does not have are left out.
    """
    template = TEMPLATES[board]
    values = {
        **({} if "pair" in template.entries else EXAMPLE),
        **template.entries,
        **(described(info) if info else {}),
        **(entries or {}),
    }
    lines = [f"# {line}" for line in template.header.splitlines()]
    for group, title in TITLES.items():
        fields = {name: field for name, field in NodeConfig.model_fields.items() if about(field, "group") == group}
        rows = [_line(name, field, values, template) for name, field in fields.items() if name not in template.absent]
        lines += ["", f"# {title}", *rows]
    if "offload_cost" not in template.absent:
        lines += [
            "",
            "# beta measured from what offloads cost, in place of `beta`: give one scale at least",
            "# [offload_cost]",
        ]
        for name, field in CostTable.model_fields.items():
            lines.append(_padded(f"# {name} = {about(field, 'example')}", str(field.description)))
    return "\n".join(lines) + "\n"


def _line(name: str, field: FieldInfo, values: dict[str, Any], template: Template) -> str:
    """An entry with its comment; commented out where it has neither a value nor a default."""
    example, value = about(field, "example"), values.get(name, field.default)
    if name == "offload_cost":
        return "# offload_cost: the table at the end"
    unset = about(field, "unset")
    if value in (None, "") and example:
        entry = f"# {name} = {json.dumps(example)}"
    else:  # a default must not override what the pair says
        entry = f"{'# ' if unset and value and name not in values else ''}{name} = {json.dumps(value)}"
    empty = f"empty: {unset}" if unset and field.default == "" else unset
    notes = [domain(field).text, empty or (default_text(field) if value != field.default else "")]
    if name in template.notes:
        notes.append(template.notes[name])
    text = "; ".join(note for note in notes if note)
    return _padded(entry, f"{field.description} ({text})" if text else str(field.description))


def _padded(entry: str, comment: str) -> str:
    return f"{entry}  ".ljust(COLUMN) + f"# {comment}"


if __name__ == "__main__":
    for name in TEMPLATES:
        (places.boards() / name / "config.toml").write_text(render(name))
