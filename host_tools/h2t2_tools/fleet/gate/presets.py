"""Presets: configurations for detectors that many people run, by the messages of their own documentation."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...common import places, toml_file
from ...common.errors import UserError
from .gate_config import GateConfig, load
from .remote import source_of

DETECTOR = "DETECTOR"  # in a preset: the address of the detector's web server
COLUMN = 40  # where comments begin
SUGGESTED = ("beta", "delta_fp", "delta_fn", "deadline", "budget", "queue_mb", "queue_age", "streams")


@dataclass(frozen=True)
class Preset:
    """A preset.

    Attributes:
        title: what it is for.
        source: where the messages are documented.
        web: the usual address of the detector's web server; "": it needs none.
        entries: of the configuration.
    """

    title: str
    source: str
    web: str
    entries: dict[str, Any]


_LISTED = toml_file.read_entries(places.PACKAGE / "fleet/gate/presets.toml")
PRESETS = {name: Preset(**preset) for name, preset in _LISTED.items()}


def write(name: str, remote: str, detector: str, broker: str, path: Path) -> GateConfig:
    """Write the configuration of a preset, and check it.

    Args:
        name: of the preset.
        remote: the remote model, as `remote` has it.
        detector: address of the detector's web server; "": the usual one.
        broker: "": the profile's.
        path: a new file.

    Raises:
        UserError: the file exists, or an entry is wrong.
    """
    preset = PRESETS[name]
    if path.exists():
        raise UserError(f"{path}: it exists; remove it, or name another file with --out")
    web = (detector or preset.web).rstrip("/")
    if web and (urlsplit(web).scheme not in ("http", "https") or not urlsplit(web).hostname):
        raise UserError(f"--detector {web}: want http://HOST:PORT")
    entries = {key: value.replace(DETECTOR, web) if isinstance(value, str) else value for key, value in preset.entries.items()}
    entries |= {"remote": remote, **({"broker": broker} if broker else {}), "device": name, "state": f"{name}-state"}
    path.write_text(render(preset, entries))
    try:
        config = load(path)
        file = source_of(config).file
        if config.worker is None and "://" not in remote and not file.is_file():
            raise UserError(f"--remote {remote}: there is no {file}")
    except UserError:
        path.unlink()
        raise
    return config


def render(preset: Preset, entries: dict[str, Any]) -> str:
    """The text of a configuration: its entries, then common ones with their defaults."""
    lines = [f"# {preset.title}.", f"# The messages: {preset.source}"]
    lines += ["# Run: h2t2 gate FILE. docs/gate.md explains the rest.", ""]
    lines += [_line(name, value) for name, value in entries.items()]
    lines += ["", "# Defaults. Delete the # of a line to change it; docs/configuration.md lists every entry."]
    lines += ["# " + _line(name, GateConfig.model_fields[name].default) for name in SUGGESTED]
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any) -> str:
    """An entry with its meaning."""
    if isinstance(value, dict):
        text = "{ " + ", ".join(f"{json.dumps(key)} = {json.dumps(entry)}" for key, entry in value.items()) + " }"
    else:
        text = json.dumps(value)
    return f"{name} = {text}  ".ljust(COLUMN) + f"# {GateConfig.model_fields[name].description}"
