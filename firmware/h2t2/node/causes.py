# The cause of a start, and resets that tell the next start theirs. A board forgets this module at once.
from . import board

if 0:  # for type checkers
    from typing import Any

CAUSES = ("PWRON_RESET", "HARD_RESET", "WDT_RESET", "DEEPSLEEP_RESET", "SOFT_RESET", "BROWNOUT_RESET")


def name_of(machine: "Any", cause: int) -> str:
    """Return the name of a cause of the module `machine`, "wdt" for its WDT_RESET; "code 99" for one without a name."""
    for name in CAUSES:
        if getattr(machine, name, None) == cause:
            return name[:-6].lower()
    return "code %d" % cause


def last() -> str:
    """As board.start_cause()."""
    try:
        import machine  # type: ignore[import-not-found]

        cause = machine.reset_cause()
    except (ImportError, AttributeError):
        return ""
    mark, forced = exchange_mark(machine, 0)
    return mark if forced else name_of(machine, cause)


def reset(cause: str) -> None:
    """As board.restart()."""
    try:
        import machine

        exchange_mark(machine, 1 if cause == board.WOKEN else 2)
        machine.reset()
    except (ImportError, AttributeError):
        pass


def exchange_mark(machine: "Any", value: int) -> "tuple[str, int]":
    """Exchange the mark of an RP2, whose reset_cause() attributes every start but the first to the watchdog.

    Args:
        machine: The module.
        value: For the next start, in a register of the watchdog that keeps it until the power goes: 1: WOKEN, 2: UPDATED.

    Returns:
        The cause that the program left at the last reset, and whether the program reset the chip.
    """
    if board.PLATFORM != "rp2":
        return "", 0
    reason = 0x400D8008 if "RP2350" in board.MACHINE else 0x40058008  # bit 1: the program did it
    memory = machine.mem32
    mark = memory[reason + 4]
    memory[reason + 4] = value
    return {1: board.WOKEN, 2: board.UPDATED}.get(mark, "hard"), memory[reason] & 2
