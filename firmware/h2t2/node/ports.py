# What each MicroPython port can do about sleep and watchdogs. One table: `h2t2 flash` refuses by it, a board sleeps by it.
# Read from the ports' sources, MicroPython 1.22 to 1.28. What is not listed is not known to us.
from . import board


class Port:
    """watchdog_ms: the longest limit that its watchdog takes; once started, it runs until the chip is reset, also in sleep.
    pieces: a deep sleep is made of light ones, each over before the watchdog is, and a reset. The port's own is no more than
    that, but a watchdog that ends in it locks an RP2040 up (micropython issue 17228), and the radio may end it at once.
    radio: its Wi-Fi connection outlives a light sleep. clock: the time of day runs on in deep sleep. names_waking: its
    reset_cause() tells a deep sleep's end; else a scratch register does (board.restart).
    """

    def __init__(self, *, watchdog_ms, pieces, radio, clock, names_waking):
        self.watchdog_ms = watchdog_ms
        self.pieces = pieces
        self.radio = radio
        self.clock = clock
        self.names_waking = names_waking


PORTS = {
    "rp2040": Port(watchdog_ms=8388, pieces=True, radio=True, clock=False, names_waking=False),
    "rp2350": Port(watchdog_ms=16777, pieces=True, radio=True, clock=False, names_waking=False),
    "esp32": Port(watchdog_ms=1 << 29, pieces=False, radio=False, clock=True, names_waking=True),  # more than a configuration's
}


def here():
    """The Port of this machine, None for one that is not listed."""
    if board.PLATFORM == "rp2":
        return PORTS["rp2350" if "RP2350" in board.MACHINE else "rp2040"]
    return PORTS.get(board.PLATFORM)
