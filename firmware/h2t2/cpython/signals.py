# Signals of the operating system that end a program.
import signal
from collections.abc import Callable


def on_stop(stop: Callable[[], object]) -> None:
    """Have SIGTERM and SIGINT call stop(); a second one ends the program as usual."""

    def handle(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
