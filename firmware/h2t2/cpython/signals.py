# What an operating system tells a program (CPython): that it is to end.
import signal


def on_stop(stop) -> None:
    """Have SIGTERM and SIGINT call stop(); a second one ends the program as usual."""

    def handle(number, _):
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
