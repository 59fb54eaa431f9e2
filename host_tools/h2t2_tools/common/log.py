"""The logs of daemons: one line per record on standard error, as text or as JSON, with time, level and command.

Modules log through logging.getLogger(__name__). A command that runs for long calls start() once.
"""

import json
import logging
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, TextIO

from .untrusted import parse_json, printable

FORMATS = ("text", "json")
PACKAGE = "h2t2_tools"  # the loggers of this package


class Formatter(logging.Formatter):
    """Formats a record that bears the name of a command.

    "text": one printable line, TIME LEVEL h2t2 COMMAND: text | traceback. "json": an object with time, level, command, text,
    and the traceback of an exception.
    """

    converter = time.gmtime  # type: ignore[assignment]

    def __init__(self, command: str, form: str) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%SZ")
        self._command, self._form = command, form

    def format(self, record: logging.LogRecord) -> str:
        at, text = self.formatTime(record, self.datefmt), record.getMessage()
        traceback = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
        if self._form == "json":
            entry = {"time": at, "level": record.levelname.lower(), "command": self._command, "text": text}
            return json.dumps({**entry, "traceback": traceback} if traceback else entry)
        line = " | ".join(line for line in (text, *traceback.splitlines()) if line.strip())
        return f"{at} {record.levelname} h2t2 {self._command}: {printable(line)}"


def start(command: str, form: str = "text", verbose: bool = False, stream: TextIO | None = None) -> None:
    """Start to log this package, warnings of libraries, and exceptions that end threads.

    Args:
        command: its name appears in each record.
        form: "text" or "json".
        verbose: log details, too.
        stream: receives the records; standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Formatter(command, form))
    logging.raiseExceptions = False  # the reader of standard error may be gone
    stop()
    root = logging.getLogger()
    root.addHandler(handler)
    verbose = verbose or root.level == logging.DEBUG  # a program around this one may have asked for details
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG if verbose else logging.INFO)
    threading.excepthook = _log_thread_end


def stop() -> None:
    """Undo start()."""
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler.formatter, Formatter)]
    threading.excepthook = threading.__excepthook__


def is_logged(count: int) -> bool:
    """Whether a log names a failure, by its number: the first 20 of a kind, then each 1024th, as strangers must not fill it."""
    return count <= 20 or not count & 1023


def is_active() -> bool:
    """Whether start() is in force."""
    return any(isinstance(handler.formatter, Formatter) for handler in logging.getLogger().handlers)


def _log_thread_end(args: Any) -> None:
    """Log the exception that ended a thread."""
    name = args.thread.name if args.thread else "?"
    error = (args.exc_type, args.exc_value, args.exc_traceback)
    logging.getLogger(PACKAGE).critical("the thread %s has ended", name, exc_info=error)


@dataclass(frozen=True)
class Entry:
    """A record of another process.

    Attributes:
        level: a level of `logging`.
        text: the message.
        traceback: "" without an exception.
    """

    level: int
    text: str
    traceback: str


def parse_entry(line: str) -> Entry | None:
    """Read a record from a line of JSON; None for any other line."""
    try:
        content = parse_json(line)
    except ValueError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    level = logging.getLevelName(str(content.get("level")).upper())
    return Entry(level if isinstance(level, int) else logging.WARNING, content["text"], str(content.get("traceback") or ""))


def relay(logger: logging.Logger, entry: Entry | None, line: str) -> None:
    """Log a line of another process again: as its record, or as a warning if it holds none."""
    if entry is None:
        logger.warning("%s", line)
    else:
        logger.log(entry.level, "%s", " | ".join(filter(str.strip, [entry.text, *entry.traceback.splitlines()])))
