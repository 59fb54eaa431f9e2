# Sleep and watchdogs of the MicroPython ports (sys.platform), from the sources of MicroPython 1.22 to 1.28. `h2t2 flash`
# checks a configuration against this table, and a board sleeps by it.
from . import board


class Port:
    """What a port can do.

    Attributes:
        watchdog_ms: Longest limit that its watchdog takes. Once started, it runs until the chip is reset, also in sleep.
        splits_sleep: Whether the node replaces a deep sleep by light ones, each shorter than the watchdog's limit, and a reset.
            The port's own deep sleep does the same, but a watchdog that ends in it locks an RP2040 up (micropython issue
            17228), and the radio may end it at once.
        radio: Whether its Wi-Fi connection survives a light sleep.
        clock: Whether the time of day continues in deep sleep.
        names_waking: Whether its reset_cause() reports the end of a deep sleep; else a scratch register does (board.restart).
    """

    def __init__(self, *, watchdog_ms: int, splits_sleep: bool, radio: bool, clock: bool, names_waking: bool):
        self.watchdog_ms = watchdog_ms
        self.splits_sleep = splits_sleep
        self.radio = radio
        self.clock = clock
        self.names_waking = names_waking


PORTS = {
    "rp2": Port(watchdog_ms=8388, splits_sleep=True, radio=True, clock=False, names_waking=False),  # RP2040 and RP2350
    "esp32": Port(watchdog_ms=1 << 29, splits_sleep=False, radio=False, clock=True, names_waking=True),
}


def this_port() -> "Port | None":
    """Return the Port of this machine, None if the table lacks it."""
    return PORTS.get(board.PLATFORM)
