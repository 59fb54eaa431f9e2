# Joins a wireless network, on ports that have one (esp32, Pico W).
import network

from ..clock import remaining, ticks_add, ticks_ms


def join(name: str, password: str, feed, log, deadline_ms: int = 20000) -> bool:
    """Connect as a station; True when there is an address within the deadline. The radio goes on trying by itself.

    feed: called while it waits (a watchdog's). log: told when the network does not answer.
    """
    from time import sleep_ms  # type: ignore[attr-defined]

    station = network.WLAN(network.STA_IF)
    station.active(True)
    if not station.isconnected():
        station.connect(name, password)
    end = ticks_add(ticks_ms(), deadline_ms)
    while not station.isconnected():
        if not remaining(end, deadline_ms):
            log("no answer from the network yet; deciding locally")
            return False
        feed()
        sleep_ms(100)
    return True
