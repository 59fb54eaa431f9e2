"""`h2t2 emulate`: a process with a Pico's serial port, which takes commands as text, for use without Python."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import Failure, UserError, as_user_error, file_errors
from ...common.places import cache
from .pico import CUTS, Pico

WORDS = "pin N LEVEL | watch N | reset | power on|off | cut N before|middle|after | time"


@dataclass(frozen=True)
class Out:
    """Receivers of a session's output.

    Attributes:
        log: Receives a line of text.
        event: Receives an event of the board.
    """

    log: Callable[[str], None]
    event: Callable[[dict[str, Any]], None]


def analogue(text: str) -> tuple[int, list[int]]:
    """Parse PIN=FILE and return the pin and the values in the file. Raise UserError for other text or values."""
    pin, mark, name = text.partition("=")
    if not mark or pin not in ("26", "27", "28", "29"):
        raise UserError(f"--adc {text}: give PIN=FILE, the pin 26 to 29")
    with file_errors(name), as_user_error(name):
        values = [int(word) for word in Path(name).read_text().replace(",", " ").split()]
    if not values or not all(0 <= value < 4096 for value in values):
        raise UserError(f"{name}: want one or more values of 0 to 4095")
    return int(pin), values


def run(
    flash: Path | None, link: Path | None, fed: list[tuple[int, list[int]]], watched: list[int], words: Iterable[str], out: Out
) -> None:
    """Emulate a Pico until Ctrl-C or SIGTERM.

    Args:
        flash: File of its flash; None: a temporary one.
        link: Symbolic link to create for its port, or None.
        fed: Analogue pins and their values.
        watched: Pins whose changes are reported.
        words: Commands as they come, lines of WORDS.
        out: Receivers of the output.

    Raises:
        UserError: The Pico cannot run here, or `link` is another file.
        Failure: The emulator ended by itself.
    """
    if link and (link.exists() and not link.is_symlink()):
        raise UserError(f"{link}: this file exists and is not a symbolic link")
    note = cache() / "emulated" / str(os.getpid())  # `h2t2 boards` reads it
    pico = Pico(flash, out.event)
    try:
        for pin, values in fed:
            pico.feed_adc(pin, values)
        for pin in watched:
            pico.watch(pin)
        if link:
            link.unlink(missing_ok=True)
            link.symlink_to(pico.port)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(link.absolute() if link else pico.port))
        pico.power()
        out.log(f"an emulated Pico is at {link or pico.port}; Ctrl-C ends it; say {WORDS}")
        threading.Thread(target=_listen, args=(pico, words, out), daemon=True).start()
        while pico.alive():
            time.sleep(0.2)
        raise Failure("the emulated Pico has ended by itself")
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        pico.stop()
        note.unlink(missing_ok=True)
        if link:
            link.unlink(missing_ok=True)


def ports() -> list[str]:
    """Return the ports of all Picos that this machine emulates now."""
    notes = {int(path.name): path for path in (cache() / "emulated").glob("[0-9]*")}
    return [path.read_text() for pid, path in sorted(notes.items()) if Path(f"/proc/{pid}").exists()]


def _listen(pico: Pico, words: Iterable[str], out: Out) -> None:
    for line in words:
        if line.strip():
            try:
                obey(pico, line.split(), out)
            except (ValueError, IndexError, KeyError):
                out.log(f"{line.strip()!r}: say {WORDS}")
            except Failure as error:
                out.log(str(error))


def obey(pico: Pico, words: list[str], out: Out) -> None:
    """Execute a line of WORDS. Raise ValueError, IndexError or KeyError for any other line."""
    verb, *arguments = words
    if verb == "pin":
        pico.set_pin(_pin(arguments[0]), {"0": 0, "1": 1}[arguments[1]])
    elif verb == "watch":
        out.event({"event": "pin", "pin": _pin(arguments[0]), "level": pico.watch(_pin(arguments[0]))})
    elif verb == "reset":
        pico.reset()
    elif verb == "power":
        pico.power({"on": True, "off": False}[arguments[0]])
    elif verb == "cut":
        pico.cut(int(arguments[0]), CUTS[CUTS.index(arguments[1])])
    elif verb == "time":
        out.event({"event": "time", **pico.time()})
    else:
        raise ValueError(verb)


def _pin(text: str) -> int:
    """Return a pin's number. Raise ValueError if the chip does not have it."""
    if not 0 <= int(text) < 30:
        raise ValueError(text)
    return int(text)
