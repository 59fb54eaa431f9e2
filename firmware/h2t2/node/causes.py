# Names of the causes of a start. A board forgets this module at once.
if 0:  # for type checkers
    from typing import Any

CAUSES = ("PWRON_RESET", "HARD_RESET", "WDT_RESET", "DEEPSLEEP_RESET", "SOFT_RESET", "BROWNOUT_RESET")


def name_of(machine: "Any", cause: int) -> str:
    """Return the name of a cause of the module `machine`, "wdt" for its WDT_RESET; "code 99" for one without a name."""
    for name in CAUSES:
        if getattr(machine, name, None) == cause:
            return name[:-6].lower()
    return "code %d" % cause
