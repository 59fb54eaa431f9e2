# The cause of a start, and resets that tell the next start theirs. A board forgets this module at once.
from . import board

if 0:  # for type checkers
    from ..annotations import Any

CAUSES = ("PWRON_RESET", "HARD_RESET", "WDT_RESET", "DEEPSLEEP_RESET", "SOFT_RESET", "BROWNOUT_RESET")
MARKS = board.WOKEN, board.UPDATED, board.DEAF  # causes that a program leaves to the next start: marks 1, 2, 3


def name_of(machine: "Any", cause: int) -> str:
    """Return the name of a cause of the module `machine`, "wdt" for its WDT_RESET; "code 99" for one without a name, "" for an
    ESP32's 0: MicroPython does not tell a reset through its USB from a reason that is unknown."""
    for name in CAUSES:
        if getattr(machine, name, None) == cause:
            return name[:-6].lower()
    return "code %d" % cause if cause else ""


def last() -> str:
    """Return the cause of this start by its name or by a mark, "" where the machine tells none. The mark is removed."""
    try:
        import machine

        cause = machine.reset_cause()
    except (ImportError, AttributeError):
        return ""
    mark, forced = exchange_mark(machine, 0)
    return mark if forced else name_of(machine, cause)


def reset(cause: str) -> None:
    """Reset a board; an RP2 keeps `cause`, of MARKS, as a mark for the next start. A computer does nothing."""
    try:
        import machine

        exchange_mark(machine, 1 + MARKS.index(cause))
        machine.reset()
    except (ImportError, AttributeError):
        pass


def exchange_mark(machine: "Any", value: int) -> "tuple[str, int]":
    """Exchange the mark of an RP2, whose reset_cause() attributes every start but the first to the watchdog.

    Args:
        machine: The module.
        value: For the next start, in a register of the watchdog that keeps it until the power goes: from 1 on one of
            MARKS.

    Returns:
        The cause that the program left at the last reset, and whether the program reset the chip.
    """
    if board.PLATFORM != "rp2":
        return "", 0
    # WATCHDOG REASON in the chips' datasheets; bit 1, FORCE: the program did it
    reason = 0x400D8008 if "RP2350" in board.MACHINE else 0x40058008
    memory = machine.mem32
    mark = memory[reason + 4]
    memory[reason + 4] = value
    return MARKS[mark - 1] if 0 < mark <= len(MARKS) else "hard", memory[reason] & 2
