"""An emulated Pico for whoever has no use for Python: a process with a serial port, told what to do in words."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import Failure, UserError
from ...common.places import cache
from .pico import CUTS, Pico

WORDS = "pin N LEVEL | watch N | reset | power on|off | cut N before|middle|after | time"


@dataclass(frozen=True)
class Out:
    """Where a session's words go: log, a line of text; event, what happened to the board."""

    log: Callable[[str], None]
    event: Callable[[dict[str, Any]], None]


def analogue(text: str) -> tuple[int, list[int]]:
    """(pin, values) of PIN=FILE. UserError where it is none, or the file holds something else."""
    pin, mark, name = text.partition("=")
    if not mark or pin not in ("26", "27", "28", "29"):
        raise UserError(f"--adc {text}: give PIN=FILE, the pin 26 to 29")
    try:
        values = [int(word) for word in Path(name).read_text().replace(",", " ").split()]
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None
    if not values or not all(0 <= value < 4096 for value in values):
        raise UserError(f"{name}: values of 0 to 4095 are wanted, one or more")
    return int(pin), values


def run(
    flash: Path | None, link: Path | None, fed: list[tuple[int, list[int]]], watched: list[int], words: Iterable[str], out: Out
) -> None:
    """Run one until Ctrl-C or SIGTERM. words: lines of WORDS, as they come. UserError where it cannot run."""
    if link and (link.exists() and not link.is_symlink()):
        raise UserError(f"{link}: there is a file of that name")
    note = cache() / "emulated" / str(os.getpid())  # for `h2t2 boards`
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
    """The ports of the Picos that are emulated on this machine now."""
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
    """Do what a line of WORDS says. ValueError, IndexError or KeyError for any other line."""
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
    """ValueError for a pin that the chip has not."""
    if not 0 <= int(text) < 30:
        raise ValueError(text)
    return int(text)
