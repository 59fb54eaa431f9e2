"""`h2t2-lab emulators`: fetches and builds emulated boards into the cache folder."""

from collections.abc import Callable, Sequence
from typing import Any

from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.catalogue import Emulator, Rp2040
from h2t2_tools.common.errors import Failure, UserError

from . import built, source
from .lwip import LWIP

ALL = "all"
BUILT: list[Emulator] = [
    built.PICO_NEXT, built.CORTEX_M3, built.CORTEX_M33, built.RV32, built.XTENSA, built.XTENSA_NEXT, built.PICO_FROZEN, LWIP,
    built.PICO_TLS,
]  # fmt: skip
EMULATORS: list[Emulator] = [*catalogue.EMULATORS, built.ARM32_NEXT, built.WASM, built.PI, *BUILT]


def measure(progress: Callable[[str], None], names: list[str], needs: bool = False) -> dict[str, str | None]:
    """Fetch and build emulated boards. They go into ~/.cache/h2t2; no root needed.

    Args:
        names: Names of boards, or `all`.
        needs: Fetch and build nothing: tell only the Debian packages that are still needed for it.

    Returns:
        For each board, why it is missing, or None. With `needs`: for each package, None.

    Examples:
        h2t2-lab emulators all
        h2t2-lab emulators unix arm32
        sudo apt-get install $(h2t2-lab emulators all --needs)
    """
    known = [board.name for board in EMULATORS]
    if unknown := {*names} - {*known, ALL}:
        raise UserError(f"{', '.join(sorted(unknown))}: no such emulator; want {ALL} or some of {', '.join(known)}")
    boards = [board for board in EMULATORS if board.name in names or ALL in names]
    if needs:
        absent = [board.name for board in boards if board.name in source.RECIPES and not board.content().exists()]
        return {package: None for name in absent for package in source.packages(name)}
    trouble = install(boards, progress)
    missing = {board.name: board.missing() for board in boards}
    return {name: reason and trouble.get(name, reason) for name, reason in missing.items()}


def report(measured: dict[str, str | None], needs: bool) -> list[str]:
    """Return a line for each board, or one line of packages."""
    if needs:
        return [" ".join(measured)]
    return [f"{name:12} {reason or 'ready'}" for name, reason in measured.items()]


def broken(measured: dict[str, Any]) -> list[str]:
    """Return a sentence if a board is missing."""
    names = [name for name, reason in measured.items() if reason]
    return [f"not there: {', '.join(names)}; the list above says why"] if names else []


def install(boards: Sequence[Emulator], progress: Callable[[str], None]) -> dict[str, str]:
    """Fetch and build the missing boards. Return the reason for each that failed."""
    absent = [name for name in _names(boards) if name in source.RECIPES and not source.firmware(name).exists()]
    reasons = {name: reason for name in absent if (reason := source.lacking(name))}
    reasons |= source.build([name for name in absent if name not in reasons], progress)
    if built.PICO_FROZEN in boards:
        try:
            built.PICO_FROZEN.build(progress)
        except Failure as error:
            reasons[built.PICO_FROZEN.name] = str(error)
    groups: list[list[Emulator]] = [[board] for board in boards if isinstance(board, Rp2040)]  # because all need rp2040js
    for group in ([board for board in boards if not isinstance(board, Rp2040)], *groups):
        reasons = catalogue.install(group, progress) | reasons
    return reasons


def _names(boards: Sequence[Emulator]) -> list[str]:
    """Return the names of boards whose firmware source.build() can write: not the frozen one, which needs the Pico's."""
    return [board.name for board in boards if board is not built.PICO_FROZEN]
