"""`h2t2-lab bench native`: bytes of the native modules on a board."""

from pathlib import Path

from h2t2_tools.boards import cross, native
from h2t2_tools.common import places
from h2t2_tools.common.report import Report

from ..boards import native_build
from ..pages.page_parts import between, markdown
from . import Progress, Row, cell, table

TITLE = "The native modules"
BEGIN = "<!-- table: h2t2-lab bench native -->"
VIPER = "h2t2/ldl/conv_viper.py"  # in place of the kernels
COLUMNS = {native.KERNELS: "kernels", "viper": "`conv_viper.mpy`", "h2t2": "H2T2", "adaptive": "adaptive",
           "ordered": "adaptive with its past"}  # fmt: skip


def measure(progress: Progress, out: Path | None = None) -> list[Row]:
    """Build the native modules, and compare their sizes with that of the convolutions in machine code by the viper emitter.

    Args:
        out: a page whose table is written anew

    Examples:
        h2t2-lab bench native --out docs/native.md

    Returns:
        Rows {"processor", and bytes of a module: "kernels", "viper" (MicroPython's emitter), "h2t2", "adaptive", "ordered"}.
    """
    native_build.build(progress)
    source = (places.RUNTIME.parent / VIPER).read_bytes()
    rows: list[Row] = []
    for arch in native.ARCHITECTURES:
        sizes = {name: native.built(arch, name).stat().st_size for name in native.NAMES}
        rows.append({"processor": arch, **sizes, "viper": len(cross.compiled(VIPER, source, arch))})
    if out:
        out.write_text(between(out.read_text(), BEGIN, "\n" + markdown(report(rows))))
    return rows


def report(rows: list[Row]) -> Report:
    """Return a line for each processor."""
    columns = {"processor": cell("processor"), **{title: cell(name, ",") for name, title in COLUMNS.items()}}
    return [table("Bytes of the native modules", rows, columns)]
