"""MicroPython's raw REPL over any line: run source on a board, move its files. Works from MicroPython 1.9.2 on."""

from __future__ import annotations

import binascii
import time
from typing import Any

import serial

from ..errors import Failure, UserError

CHUNK, PAUSE = 16, 0.004  # bytes at a time, and seconds between: a slow UART loses more
PIECE = 48  # bytes of a file in one command


def open_line(port: str, baud: int) -> Any:
    """pyserial's object for a serial device, a pty or socket://host:port. UserError where it cannot be opened."""
    try:
        return serial.serial_for_url(port, baudrate=baud, timeout=0.002, write_timeout=5)
    except (serial.SerialException, ValueError, OSError) as error:
        raise UserError(f"{port}: cannot open this line: {error}") from None


def write_paced(line: Any, data: bytes, pace: bool) -> None:
    """Write all of it; pace: with pauses, for UARTs without flow control."""
    for start in range(0, len(data), CHUNK):
        line.write(data[start : start + CHUNK])
        if pace:
            time.sleep(PAUSE)


class RawRepl:
    """A board at the end of a line, its REPL in raw mode while the context lasts.

    port: a serial device, a pty or `socket://host:port` (pyserial's names). pace: slow down for UARTs without flow control.
    line: pyserial's own object, for whoever goes on talking.
    """

    def __init__(self, port: str, pace: bool = True, baud: int = 115200) -> None:
        """UserError where the line cannot be opened."""
        self.port = port
        self._pace = pace
        self._seen = b""
        self.line = open_line(port, baud)

    def __enter__(self) -> RawRepl:
        self.interrupt()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.line.close()

    def interrupt(self, seconds: float = 30) -> None:
        """Stop what runs and enter the raw REPL, asking again while a board may still boot; Failure after so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(100):  # a micro:bit's node listens to this only between two offloads
                self._send(b"\x03")
                self._seen += self.line.read(4096)
                if self._seen.endswith(b">>> "):
                    break
            self._seen = b""
            self._send(b"\r\x01")
            try:
                self.until(b"raw REPL; CTRL-B to exit\r\n>", 0.03)
            except Failure:
                continue
            while self.line.read(4096):  # later answers to the same question
                pass
            self._seen = b""
            self._send(b"\x04")  # a soft reset from here runs no main.py: what was interrupted gives its memory back
            self.until(b"raw REPL; CTRL-B to exit\r\n>", 10)
            return
        raise Failure(f"{self.port}: no MicroPython prompt in {seconds:g} s")

    def _send(self, data: bytes) -> None:
        try:
            write_paced(self.line, data, self._pace)
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None

    def until(self, mark: bytes, seconds: float) -> bytes:
        """Everything up to a mark. Failure, with what came instead, after so many seconds."""
        end = time.monotonic() + seconds
        while mark not in self._seen:
            try:
                more = self.line.read(4096)
            except (serial.SerialException, OSError) as error:
                raise Failure(f"{self.port}: the board is gone: {error}") from None
            self._seen += more
            if not more and time.monotonic() > end:
                raise Failure(f"{self.port}: no {mark!r} in {seconds:g} s, only {self._seen[-200:]!r}")
        before, self._seen = self._seen.split(mark, 1)
        return before

    def read(self) -> bytes:
        """What came since, without waiting long: for a board that runs a program."""
        try:
            seen, self._seen = self._seen + bytes(self.line.read(4096)), b""
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None
        return seen

    def start(self, source: str) -> None:
        """Begin to run source and return: what it prints is for others."""
        self._send(source.encode() + b"\x04")
        self.until(b"OK", 30)

    def run(self, source: str, seconds: float = 60) -> str:
        """What a piece of source prints. Failure, with the board's words, when it raises."""
        self.start(source)
        out = self.until(b"\x04", seconds)
        trouble = self.until(b"\x04>", 10)
        if trouble:
            raise Failure(f"{self.port}: {trouble.decode(errors='replace').strip()}")
        return out.decode(errors="replace").replace("\r\n", "\n")

    def files(self) -> list[str]:
        """Names in the board's root."""
        return [str(name) for name in self.run("import os;print('\\n'.join(os.listdir()))").split("\n") if name]

    def read_file(self, path: str) -> bytes:
        """Content of a file; Failure where there is none."""
        source = f"f=open({path!r},'rb')\nwhile 1:\n b=f.read({PIECE})\n if not b:break\n print(b)\nf.close()\nf=b=None"
        pieces = self.run(source).split("\n")
        return b"".join(_literal(piece) for piece in pieces if piece)

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file and read it back. Failure where the board does not hold the same bytes then."""
        self.run(f"f=open({path!r},'wb')")
        for start in range(0, len(data), PIECE):
            self.run(f"f.write({data[start : start + PIECE]!r})and 0")
        self.run("f.close()\nf=None")
        if self.read_file(path) != data:
            raise Failure(f"{self.port}: {path} reads back differently; the line loses bytes")

    def remove(self, path: str) -> None:
        self.run(f"import os;os.remove({path!r})")

    def reset(self) -> None:
        """Soft reset: leaves the raw REPL, so that the board runs its main.py."""
        self._send(b"\x02\x04")


def _literal(text: str) -> bytes:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, binascii.Error):
        raise Failure(f"the board said {text[:80]!r} where the bytes of a file were wanted") from None
    return bytes(value)
