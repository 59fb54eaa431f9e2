"""How daemons log: a line a record on standard error, with time, level and command; as JSON where that is asked for.

Modules log through logging.getLogger(__name__). A command that runs for long calls begin() once.
"""

from __future__ import annotations

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


class _Formatter(logging.Formatter):
    """What both forms have in common. command: whose records they are."""

    converter = time.gmtime  # type: ignore[assignment]

    def __init__(self, command: str) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%SZ")
        self._command = command

    def traceback(self, record: logging.LogRecord) -> str:
        """That of the exception that is logged, "" where there is none."""
        if not record.exc_info or not record.exc_info[0]:
            return ""
        return self.formatException(record.exc_info)


class TextFormatter(_Formatter):
    """TIME LEVEL h2t2 COMMAND: text | traceback, always one line that a terminal shows as it is."""

    def format(self, record: logging.LogRecord) -> str:
        lines = [record.getMessage(), *self.traceback(record).splitlines()]
        text = printable(" | ".join(line for line in lines if line.strip()))
        return f"{self.formatTime(record, self.datefmt)} {record.levelname} h2t2 {self._command}: {text}"


class JsonFormatter(_Formatter):
    """An object with time, level, command, text, and of an exception its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, self.datefmt),
            "level": record.levelname.lower(),
            "command": self._command,
            "text": record.getMessage(),
        }
        traceback = self.traceback(record)
        return json.dumps({**entry, "traceback": traceback} if traceback else entry)


def start(command: str, form: str = "text", verbose: bool = False, stream: TextIO | None = None) -> None:
    """Log from now on: of this package everything that matters (verbose: everything), of libraries their warnings.

    An exception that ends a thread is logged, with its traceback.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(command) if form == "json" else TextFormatter(command))
    logging.raiseExceptions = False  # whoever read standard error may be gone: then there is nobody to tell
    stop()
    root = logging.getLogger()
    root.addHandler(handler)
    verbose = verbose or root.level == logging.DEBUG  # whoever runs this as a part of theirs wants everything
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG if verbose else logging.INFO)
    threading.excepthook = _log_thread_end


def stop() -> None:
    """Log no more by begin()."""
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler.formatter, _Formatter)]
    threading.excepthook = threading.__excepthook__


def is_active() -> bool:
    """Whether this process logs by begin()."""
    return any(isinstance(handler.formatter, _Formatter) for handler in logging.getLogger().handlers)


def _log_thread_end(args: Any) -> None:
    """A thread of ours or of a library has ended by an exception."""
    name = args.thread.name if args.thread else "?"
    error = (args.exc_type, args.exc_value, args.exc_traceback)
    logging.getLogger(PACKAGE).critical("the thread %s has ended", name, exc_info=error)


@dataclass(frozen=True)
class Entry:
    """A record that another process has logged. level: of logging. traceback: "" where there is none."""

    level: int
    text: str
    traceback: str


def parse_entry(line: str) -> Entry | None:
    """The record in a line of JSON; None where the line is none."""
    try:
        content = parse_json(line)
    except ValueError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    level = logging.getLevelName(str(content.get("level")).upper())
    return Entry(level if isinstance(level, int) else logging.WARNING, content["text"], str(content.get("traceback") or ""))


def relay(logger: logging.Logger, entry: Entry | None, line: str) -> None:
    """Log a line of another process once more: its record where it has one, else as a warning."""
    if entry is None:
        logger.warning("%s", line)
    else:
        logger.log(entry.level, "%s", " | ".join(filter(str.strip, [entry.text, *entry.traceback.splitlines()])))
