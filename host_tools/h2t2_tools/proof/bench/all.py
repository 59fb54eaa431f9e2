"""`h2t2 bench all`: every benchmark in one run, as the page docs/benchmarks.md."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from ... import __version__
from ...common import places, policies
from ...common.report import markdown
from ..demo import LINES
from ..networks import NETWORKS

NAMES = (
    "saving",
    "fidelity",
    "policy",
    "device",
    "tls",
    "memory",
    "ldl",
    "kernels",
    "cuts",
    "offload",
    "overload",
    "dashboard",
    "fleet",
    "simulate",
    "install",
)
BEGIN, END = "<!-- figures: h2t2 bench all -->", "<!-- end -->"
PAIRS = ("breast_cancer", "digits", "chest_xray")  # whose local models are timed, beside the known networks
VERSIONS = ("numpy", "tflite-runtime", "ai-edge-litert", "paho-mqtt", "numba")


def measure(progress: Callable[[str], None]) -> dict[str, Any]:
    """{"machine": ..., name: what that benchmark measured}."""
    made: dict[str, Any] = {"machine": machine()}
    for name in NAMES:

        def doing(what: str, name: str = name) -> None:
            progress(f"{name}: {what}")

        bench = import_module(f".{name}", __package__)
        if name == "ldl":
            made[name] = {}
            for model in (*PAIRS, *NETWORKS):
                with bench.made(str(places.models() / model / "ldl.tflite") if model in PAIRS else model) as path:
                    made[name][f"models/{model}/ldl.tflite" if model in PAIRS else model] = bench.measure(doing, path)
        else:
            made[name] = bench.measure(doing)
    return made


def machine() -> dict[str, str]:
    """What it was measured on: processor, cores, system, versions, date."""
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "processor": found.group(1) if found else platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "h2t2": __version__,
        **versions,
    }


def headlines(measured: dict[str, Any]) -> list[str]:
    """The figures that the README quotes, as a Markdown table."""
    saved = measured["saving"][0]["policies"]
    own, _, other = LINES[policies.NAMES[0]]  # the policy that runs, and the one replayed beside it
    rows = measured["fidelity"]
    times = {(row["where"], row["kind"], row["bits"]): row["us"] for row in measured["policy"]["rows"]}
    ratio = times["CPython", "dense NumPy matrix", 10] / times["CPython", "tree core", 10]
    device = measured["device"]["microbit"][0]
    board = next(row for row in measured["memory"]["boards"] if row["mpy"])
    heap = (
        "" if board["heap_bytes"] is None else f"{board['rest_bytes']:,} bytes of heap, {board['heap_bytes']:,} at its peak, "
    )
    size = sum(row["bytes"] for row in measured["install"]["libraries"]) / 1e6
    cells = [
        (
            "average cost of a sample on the demo's stream",
            f"{saved[own]['cost']:.4f}; {other} {saved[other]['cost']:.4f}, "
            f"never asking {saved['no offload']['cost']:.4f}, always asking {saved['full offload']['cost']:.4f}, "
            f"best pair in hindsight {saved['best pair (offline)']['cost']:.4f}",
            "saving",
        ),
        (
            "decisions of the integer core that differ from float64",
            f"{sum(row['differ'] for row in rows)} of {sum(row['rounds'] for row in rows):,}",
            "fidelity",
        ),
        (
            "a step of the dense matrix in NumPy against the core in plain Python, b = 10",
            f"{ratio:.1f} times as long",
            "policy",
        ),
        ("code and state on an emulated micro:bit, Algorithm 1", f"{device['heap_bytes']:,} bytes of heap", "device"),
        (
            f"runtime and a small model on a board such as {board['board']} (emulated ARM)",
            f"{heap}{board['flash_bytes']:,} of flash",
            "memory",
        ),
        ("the base install", f"{size:.0f} MB", "install"),
    ]
    lines = ["| what | figure | command |", "|---|---|---|"]
    return lines + [f"| {what} | {figure} | `h2t2 bench {name}` |" for what, figure, name in cells]


def quote(readme: str, measured: dict[str, Any]) -> str:
    """A README with the table between its marks written anew."""
    before, rest = readme.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(headlines(measured)) + "\n" + END + rest.split(END)[1]


def page(measured: dict[str, Any]) -> str:
    """The page."""
    about = measured["machine"]
    lines = [
        "# Benchmarks",
        "",
        "Written by `h2t2 bench all --out docs/benchmarks.md`; nothing here is written by hand. Both sides of a ratio were",
        "measured in one run. Boards are emulated: instructions and bytes are theirs, times are not.",
        "",
        "Measured on " + ", ".join(f"{key} {value}" for key, value in about.items()) + ".",
        "",
        "## In short",
        "",
        "\n".join(headlines(measured)),
    ]
    for name in NAMES:
        bench = import_module(f".{name}", __package__)
        lines += ["", f"## {bench.TITLE}", "", f"`h2t2 bench {name}{' MODEL.tflite' if name == 'ldl' else ''}`", ""]
        if name == "ldl":
            parts = [bench.report(rows, model) for model, rows in measured[name].items()]
        else:
            parts = [bench.report(measured[name])]
        lines.append("\n\n".join(markdown(part) for part in parts))
    return "\n".join(lines) + "\n"
