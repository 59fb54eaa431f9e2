"""The heap that a node takes on a board, measured on emulated 32-bit ARM."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..common import places
from ..common.errors import Failure
from ..common.places import temporary_folder
from . import in_place, mpy_file, native, rehearsal
from .emulators.catalogue import ARM32
from .kinds import ROM, Contents, Kind, payload
from .targets import Folder

MEASURE = places.text("boards/programs/measure.py.txt")
NAMES = re.compile(r"n_str_data_bytes=(\d+), n_total_bytes=(\d+)")  # texts of all names; these and the pools, which hold names
PARTS = ("runtime", "model", "app")
Progress = Callable[[str, int, int], None]


def needed(kind: Kind, contents: Contents, progress: Progress = lambda name, n, of: None) -> dict[str, int] | None:
    """Return the heap of a node on a board: bytes for each of PARTS, and `work`, the further ones at its peak in a rehearsal.

    A model in ROMFS takes no heap, because it stays in flash. A frozen runtime takes what the modules take when they run in
    place, without their constants and the pools of their names.
    """
    copied = contents.config.model_copy(update={"ldl": "ldl.h2m"})
    has_native = kind.arch in native.ARCHITECTURES and not contents.frozen
    taken = replace(contents, config=copied, records=None, frozen=False, native=has_native)
    files = payload(replace(kind, arch="armv6m"), taken)
    image = in_place.packed(files) if contents.frozen else files
    measured = resting(image, in_place.MOUNT if contents.frozen else in_place.FILES)
    if measured is None:
        return None
    heap, names, loaded = measured
    aside = 0
    if contents.frozen:
        in_firmware = in_place.constants(files, loaded) + names
        heap["runtime"] -= in_firmware
        aside = in_firmware + len(image[in_place.IMAGE])
    at_rest = sum(heap.values())
    peak = rehearsal.peak(files, contents.record_size, at_rest, lambda n, of: progress("heap", n, of), aside)
    heap["work"] = peak - at_rest
    if not contents.frozen:
        for part, folder in (("runtime", "core"), ("model", "ldl")):
            heap[part] += machine_code(files, [name for name in loaded if name.startswith(f"h2t2.{folder}.")])
    if contents.config.ldl.startswith(ROM) and not contents.config.stream:
        heap["model"] -= contents.model.stat().st_size
    return heap


def resting(files: dict[str, bytes], modules: str = in_place.FILES) -> tuple[dict[str, int], int, list[str]] | None:
    """Measure the heap of a node at rest on emulated 32-bit ARM.

    Of an app it measures the compiled program, not what the program allocates later.

    Args:
        files: As of measuring().
        modules: As of measuring().

    Returns:
        Bytes for each of PARTS, without machine code; bytes of the pools of names that they added; and the modules of the
        runtime that are still loaded, h2t2.core.numbers and so on. None if the emulation cannot run here.
    """
    output = measuring(files, modules)
    if output is None:
        return None
    before, after = (int(total) - int(texts) for texts, total in NAMES.findall(output))
    loaded = next(line.split()[1:] for line in output.splitlines() if line.startswith("loaded"))
    return dict(zip(PARTS, map(int, output.split()[-len(PARTS) :]))), after - before, loaded


def measuring(files: dict[str, bytes], modules: str = in_place.FILES, further: str = "") -> str | None:
    """Run MEASURE on emulated 32-bit ARM.

    Args:
        files: Files of payload(), with machine code that 32-bit ARM runs.
        modules: Lines that let it import the runtime.
        further: Lines that run after it, while the node is there.

    Returns:
        Its output; None if the emulation cannot run here.
    """
    if ARM32.missing():
        return None
    with temporary_folder("heap") as name:
        folder = Folder(Path(name))
        for path, data in files.items():
            folder.write(path, data)
        script = Path(name) / "measure.py"
        script.write_text(MEASURE.format(folder=name, modules=modules) + further)
        try:
            return ARM32.run(script, [], Path(name))
        except Failure:
            return None


def machine_code(files: dict[str, bytes], loaded: list[str]) -> int:
    """Return the bytes of the machine code of loaded modules. The emulation keeps it outside its heap, a Pico inside.

    Sources have none here, as the emulation compiles it for another processor.
    """
    return sum(map(mpy_file.machine_code, mpy_file.of_modules(files, loaded)))


def in_parts(heap: dict[str, int]) -> str:
    """Return the result of needed() as text."""
    return f"{sum(heap.values()):,} bytes ({', '.join(f'{name} {n:,}' for name, n in heap.items() if n)})"
