"""The commented h2t2.toml of a project, and the section of a board in it, from the declaration of a node's configuration.

`make pages` writes an example with every section, firmware/boards/h2t2.toml.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic.fields import FieldInfo

from ..common import durations
from ..common.cost_table import CostTable
from ..common.fields import about, default_text, domain
from .config import FORMAT, NETWORK_ENTRIES, NodeConfig

TITLES = {"network": "the network", "models": "the models", "policy": "the policy", "operation": "in operation"}
COLUMN = 29  # where comments begin
HEADER = """{name}: a project of H2T2 Edge. `h2t2 run`, `h2t2 node` and `h2t2 flash` read it.
Paths are relative to this folder. A line such as `# bits = 4` shows a default: delete the # and change it.
A section [boards.NAME] is for one board; its entries override those above it. `h2t2 new FOLDER --board NAME` adds one."""
WIFI = {name for name in NodeConfig.model_fields if name.startswith(("wifi_", "provision"))}
PAIR = {"event", "model_id", "remote_shape", "remote_dtype", "remote_media", "remote_limit"}  # what a pair describes
OF_BOARDS = {name for name, field in NodeConfig.model_fields.items() if about(field, "hidden")} - PAIR - {"password", "folder"}
SECTION = (*(name for name in NodeConfig.model_fields if name in OF_BOARDS), "ldl")
MICROBIT = ("app", "records", "prior", "policy", "exploration", "deadline", "snapshot")


@dataclass(frozen=True)
class Section:
    """The section of a kind of board.

    Attributes:
        title: its first line.
        entries: values that are not the defaults.
        names: the entries that it shows, commented out where `entries` has none.
        notes: what to add to the comment of an entry.
    """

    title: str
    entries: dict[str, Any]
    names: tuple[str, ...]
    notes: dict[str, str] = field(default_factory=dict)


NETWORKED = {"wifi_name": "network", "watchdog": "8s"}
WITHOUT_NETWORK = tuple(name for name in SECTION if name not in NETWORK_ENTRIES)
SECTIONS = {
    "unix": Section("MicroPython's unix port", {}, tuple(name for name in SECTION if name not in WIFI)),
    "esp32": Section("ESP32", NETWORKED, SECTION),
    "pico_w": Section("Raspberry Pi Pico W and Pico 2 W", NETWORKED, SECTION, {"watchdog": "at most 8388ms"}),
    "pico": Section(
        "Raspberry Pi Pico, and any other board with MicroPython's rp2 port, at a USB line: `h2t2 gateway` knows the broker",
        {"watchdog": "8s"}, WITHOUT_NETWORK, {"watchdog": "at most 8388ms"},
    ),
    "microbit": Section(
        "BBC micro:bit: it has no room for an app and replays recorded samples; `h2t2 gateway` knows the broker",
        {"app": "", "records": "samples.bin", "prior": "", "policy": "h2t2", "exploration": "epsilon"},
        MICROBIT,
        {
            "app": "none here", "prior": "none here", "policy": "the only one here", "exploration": "the only one here",
            "snapshot": "in two files here, learned0 and learned1",
        },
    ),
    "pi": Section(
        "Raspberry Pi, or any computer: `h2t2 node FOLDER`", {"snapshot": "/var/lib/h2t2/node", "hold": 256},
        ("snapshot", "hold"),
    ),
}  # fmt: skip


def render(name: str, entries: dict[str, Any]) -> str:
    """The text of an h2t2.toml without sections.

    Args:
        name: the project's.
        entries: what it says; every other entry is shown with its default.
    """
    lines = [f"# {line}" for line in HEADER.format(name=name).splitlines()]
    lines += ["", _padded(f"format = {FORMAT}", "of this file")]
    names = NodeConfig.model_fields.keys() - {*SECTION, *PAIR} | entries.keys()
    for group, title in TITLES.items():
        fields = {name: field for name, field in NodeConfig.model_fields.items() if about(field, "group") == group}
        rows = [_line(name, field, entries) for name, field in fields.items() if name in names]
        lines += ["", f"# {title}", *rows]
    lines += ["", "# beta measured from what offloads cost, in place of `beta`: give one scale at least", "# [offload_cost]"]
    for name, field_info in CostTable.model_fields.items():
        lines.append(_padded(f"# {name} = {about(field_info, 'example')}", str(field_info.description)))
    return "\n".join(lines) + "\n"


def section(board: str, like: str = "", entries: dict[str, Any] | None = None) -> str:
    """The text of the section of a board.

    Args:
        board: its name.
        like: the kind of SECTIONS that it resembles, if another.
        entries: what it says beside the entries of its kind.
    """
    chosen = SECTIONS[like or board]
    values = {**(entries or {}), **chosen.entries}
    names = dict.fromkeys((*values, *chosen.names))
    fields = {name: NodeConfig.model_fields[name] for name in names if name in NodeConfig.model_fields}
    rows = [_line(name, field, values, chosen.notes) for name, field in fields.items()]
    return "\n".join(["", f"# {chosen.title}", f"[boards.{board}]", *rows]) + "\n"


def _line(name: str, field: FieldInfo, values: dict[str, Any], notes: dict[str, str] | None = None) -> str:
    """An entry with its comment; commented out where it has no value of its own."""
    if name == "offload_cost":
        return "# offload_cost: the table at the end of these entries"
    example, unset = about(field, "example"), about(field, "unset")
    default = field.get_default() if not field.is_required() else None
    if domain(field).duration and default is not None:
        default = durations.text(default) if default or not example else ""
    if name in values:
        entry = f"{name} = {json.dumps(values[name])}"
    else:
        value = example if default in (None, "", []) else default
        entry = f"# {name} = {json.dumps('' if value is None else value)}"
    empty = f"empty: {unset}" if unset and default == "" else unset
    texts = [domain(field).text, empty or (default_text(field) if name in values and values[name] != default else "")]
    text = "; ".join(text for text in (*texts, (notes or {}).get(name)) if text)
    return _padded(entry, f"{field.description} ({text})" if text else str(field.description))


def _padded(entry: str, comment: str) -> str:
    return f"{entry}  ".ljust(COLUMN) + f"# {comment}"
