"""`h2t2-lab bench all`: every benchmark in one run, as the page docs/benchmarks.md."""

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from h2t2_tools import __version__
from h2t2_tools.common import places, policies
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import OneOf
from h2t2_tools.common.report import Report
from h2t2_tools.demo.demo import LINES

from ..networks import NETWORKS
from ..pages.page_parts import between, inside, markdown
from . import Progress, Row, memory

NAMES = tuple(
    (
        "saving worth fidelity policy device signals tls memory ldl kernels cuts offload overload gate presets dashboard fleet "
        "install"
    ).split()
)
Name = Annotated[str, AfterValidator(OneOf(NAMES))]
SHORT = "In short"  # the first section of the page
BEGIN = "<!-- figures: h2t2-lab bench all -->"
BEGIN_HOOK = "<!-- hook: h2t2-lab bench all -->"
PAIRS = ("breast_cancer", "digits", "chest_xray")  # the benchmark `ldl` times their local models beside the known networks
VERSIONS = ("numpy", "tflite-runtime", "ai-edge-litert", "paho-mqtt", "numba")


def measure(
    progress: Progress, only: tuple[Name, ...] = (), readme: Path | None = None, out: Path | None = None
) -> dict[str, Any]:
    """Run every benchmark and write docs/benchmarks.md. This takes some ten minutes.

    Args:
        only: run these alone; the page and the README keep the others' figures; default: all
        readme: a README whose table of figures is written anew
        out: the page; default: standard output

    Examples:
        h2t2-lab bench all --out docs/benchmarks.md --readme README.md
        h2t2-lab bench all --only memory device --out docs/benchmarks.md --readme README.md

    Returns:
        The measurements by name, and "machine".
    """
    if only and not (out and out.is_file()):
        raise UserError("--only: needs the page whose other sections stay: --out docs/benchmarks.md")
    measured = run(progress, [name for name in NAMES if not only or name in only])
    if readme:
        readme.write_text(quote(readme.read_text(), measured))
    if out:
        out.write_text(renew(out.read_text(), measured) if only else page(measured))
    return measured


def report(measured: dict[str, Any], out: Path | None) -> Report:
    """Return the page, unless a file got it."""
    return [] if out else [page(measured).rstrip()]


def run(progress: Progress, names: Sequence[str]) -> dict[str, Any]:
    """Run these benchmarks. Return the measurements by name, and "machine"."""
    measured: dict[str, Any] = {"machine": machine()}
    for name in names:

        def progress_of(step: str, name: str = name) -> None:
            progress(f"{name}: {step}")

        bench = import_module(f".{name}", __package__)
        if name == "ldl":
            measured[name] = {}
            for model in (*PAIRS, *NETWORKS):
                label = f"models/{model}/ldl.tflite" if model in PAIRS else model
                path = str(places.models() / model / "ldl.tflite") if model in PAIRS else model
                measured[name][label] = bench.measure(progress_of, path)
        else:
            measured[name] = bench.measure(progress_of)
    return measured


def machine() -> dict[str, str]:
    """Describe what is measured and where: version and commit of this program, date, processor, cores, system, versions."""
    try:
        processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        processor = None
    versions = {}
    for name in VERSIONS:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "h2t2": f"{__version__}{commit()}",
        "date": datetime.date.today().isoformat(),
        "processor": processor.group(1) if processor else platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **versions,
    }


def commit() -> str:
    """Return the commit of this clone, " (9e6011e8)" or with changes " (9e6011e8-dirty)"; "" without git."""
    command = ["git", "-C", str(places.SOURCE_TREE), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return f" ({subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()})"
    except (OSError, subprocess.CalledProcessError):
        return ""


HEADLINES: dict[str, Callable[[Any], tuple[str, str]]] = {  # benchmark -> what the README quotes of it, and the figure
    "saving": lambda rows: ("average cost of a sample on the demo's stream", _saving(rows[0]["policies"])),
    "fidelity": lambda rows: ("decisions of the integer core that differ from float64", _fidelity(rows)),
    "policy": lambda measured: (
        "a step of the dense matrix in NumPy against the core in plain Python, b = 10",
        _policy(measured["rows"]),
    ),
    "device": lambda measured: (
        "code and state on an emulated micro:bit, Algorithm 1",
        f"{measured['microbit'][0]['heap_bytes']:,} bytes of heap",
    ),
    "memory": lambda measured: _memory(measured["boards"]),
    "install": lambda measured: ("the base install", f"{sum(row['bytes'] for row in measured['libraries']) / 1e6:.0f} MB"),
}


def headlines(measured: dict[str, Any]) -> dict[str, str]:
    """Return benchmark -> its line in the README's table of figures, of those that were run."""
    quoted = {name: headline(measured[name]) for name, headline in HEADLINES.items() if name in measured}
    return {name: f"| {label} | {figure} | `h2t2-lab bench {name}` |" for name, (label, figure) in quoted.items()}


def _saving(rows: dict[str, Row]) -> str:
    own, _, replayed = LINES[policies.NAMES[0]]  # the policy that runs, and the policy that is replayed on its samples
    names = {
        "": own,
        replayed: replayed,
        "never asking": "no offload",
        "always asking": "full offload",
        "best thresholds in hindsight": "best thresholds (offline)",
    }
    first, *following = (f"{words} {rows[name]['cost']:.4f}".strip() for words, name in names.items())
    return f"{first}; {', '.join(following)}"


def _fidelity(rows: list[Row]) -> str:
    return f"{sum(row['differ'] for row in rows)} of {sum(row['rounds'] for row in rows):,}"


def _policy(rows: list[Row]) -> str:
    times = {(row["where"], row["kind"], row["bits"]): row["us"] for row in rows}
    return f"{times['CPython', 'dense NumPy matrix', 10] / times['CPython', 'tree core', 10]:.1f} times as long"


def _memory(rows: list[Row]) -> tuple[str, str]:
    board = next(row for row in rows if row["form"] == memory.MPY)
    heap = f"{board['rest_bytes']:,} bytes of heap, {board['heap_bytes']:,} at its peak, " if board["heap_bytes"] else ""
    label = f"runtime and a small model on a board such as {board['board']} (emulated ARM)"
    return label, f"{heap}{board['flash_bytes']:,} of flash"


def hook(rows: dict[str, Row]) -> str:
    """Return the README's first sentence: the savings of the policy on the demo's stream.

    Args:
        rows: Policy to its cost, fn and offload, as cost and shares of a sample.
    """
    own, never, always = (rows[name] for name in (LINES[policies.NAMES[0]][0], "no offload", "full offload"))
    return (
        f"**In the demo, misses fall from {never['fn']:.1%} to {own['fn']:.1%}, asking the big model about "
        f"{own['offload']:.0%} of the samples: {1 - own['cost'] / always['cost']:.0%} cheaper than always asking.**"
    )


def quote(readme: str, measured: dict[str, Any]) -> str:
    """Return the text of a README with the first sentence and the lines of figures of the benchmarks that were run."""
    if "saving" in measured:
        readme = between(readme, BEGIN_HOOK, hook(measured["saving"][0]["policies"]))
    return between(readme, BEGIN, _figures(inside(readme, BEGIN), measured))


def _figures(table: str, measured: dict[str, Any]) -> str:
    """A table of figures, in which the lines of the benchmarks that were run are new."""
    lines = {name: line for line in table.splitlines() for name in HEADLINES if line.endswith(f"`h2t2-lab bench {name}` |")}
    lines |= headlines(measured)
    return "\n".join(["| what | figure | command |", "|---|---|---|", *(lines[name] for name in HEADLINES if name in lines)])


def page(measured: dict[str, Any]) -> str:
    """Return the page docs/benchmarks.md."""
    lines = [
        "# Benchmarks",
        "",
        "`h2t2-lab bench all --out docs/benchmarks.md` writes this page; nobody edits it by hand. One run measures both sides",
        "of a ratio. Boards are emulated: they count instructions and bytes as real ones do, but take other times.",
        "",
        f"## {SHORT}",
        "",
        _figures("", measured),
    ]
    return "\n".join([*lines, *(f"\n{_section(name, measured)}" for name in NAMES)]) + "\n"


def renew(text: str, measured: dict[str, Any]) -> str:
    """Return a page with the sections of the benchmarks that were run; the others as they were.

    Args:
        text: A page that page() wrote.
        measured: As measure() returned it.
    """
    head, *parts = text.rstrip("\n").split("\n## ")
    sections = {part.partition("\n")[0]: part.rstrip("\n") + "\n" for part in parts}
    sections[SHORT] = f"{SHORT}\n\n{_figures(sections.get(SHORT, ''), measured)}\n"
    titles = {name: import_module(f".{name}", __package__).TITLE for name in NAMES}
    for name in NAMES:
        if name in measured:
            sections[titles[name]] = _section(name, measured).removeprefix("## ") + "\n"
    ordered = [sections[title] for title in (SHORT, *titles.values()) if title in sections]
    return "\n## ".join([head, *ordered]).rstrip("\n") + "\n"


def _conditions(measured: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in measured["machine"].items())


def _section(name: str, measured: dict[str, Any]) -> str:
    """A benchmark's part of the page, which names the version that it measured."""
    bench = import_module(f".{name}", __package__)
    if name == "ldl":
        reports = [bench.report(rows, model) for model, rows in measured[name].items()]
    else:
        reports = [bench.report(measured[name])]
    command = f"`h2t2-lab bench {name}{' MODEL.tflite' if name == 'ldl' else ''}`, measured: {_conditions(measured)}"
    return "\n\n".join([f"## {bench.TITLE}", command, *(markdown(report) for report in reports)])
