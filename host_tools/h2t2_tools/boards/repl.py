"""MicroPython's raw REPL over any line: run source on a board, move its files. Works from MicroPython 1.9.2 on."""

from __future__ import annotations

import binascii
import time
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any

import serial

from ..common.errors import Failure, UserError

CHUNK, PAUSE = 16, 0.004  # bytes of a frame at a time, and seconds between: a slow UART loses more
IN_FLIGHT = 60  # bytes a board without flow control is sent before it has answered: its ring holds 63, and it may be busy
PIECE = 1536  # bytes of a file that any other is sent or sends at once: it must find some times as much memory in one piece


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
        self._piece = 48 if pace else PIECE
        self._received = b""
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
            # ends a frame that was cut short: a node on this line looks for Ctrl-C after it (link/stdio.py, microbit/node.py)
            self._send(b"\0" if self._pace else b"\0\r\3")
            for _ in range(100):
                self._send(b"\x03")
                self._received += self.line.read(4096)
                if self._received.endswith(b">>> "):
                    break
            self._received = b""
            self._send(b"\r\x01")
            try:
                self.until(b"raw REPL; CTRL-B to exit\r\n>", 0.03)
            except Failure:
                continue
            while self.line.read(4096):  # later answers to the same question
                pass
            self._received = b""
            self._send(b"\x04")  # a soft reset from here runs no main.py: what was interrupted gives its memory back
            self.until(b"soft reboot", 10)
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
        while mark not in self._received:
            try:
                data = self.line.read(4096)
            except (serial.SerialException, OSError) as error:
                raise Failure(f"{self.port}: the board is gone: {error}") from None
            self._received += data
            if not data and time.monotonic() > end:
                raise Failure(f"{self.port}: no {mark!r} in {seconds:g} s, only {self._received[-200:]!r}")
        before, self._received = self._received.split(mark, 1)
        return before

    def read(self) -> bytes:
        """What came since, without waiting long: for a board that runs a program."""
        try:
            received, self._received = self._received + bytes(self.line.read(4096)), b""
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None
        return received

    def start(self, source: str) -> None:
        """Begin to run source and return: what it prints is for others.

        A board without flow control gets longer source in pieces, and each once it has taken the last one, however slow it
        is: waiting so many milliseconds instead loses bytes wherever the machine that emulates a board is busy.
        """
        data = source.encode()
        if self._pace and len(data) >= IN_FLIGHT:
            self._exchange(b"_=b''")
            for piece in cut(data, len("_+=")):
                self._exchange(b"_+=" + piece)
            data = b"exec(_)"
        self._send(data + b"\x04")
        self.until(b"OK", 30)

    def _exchange(self, source: bytes) -> None:
        """Run a source that fits the board's ring and prints nothing."""
        self._send(source + b"\x04")
        self.until(b"OK", 30)
        output = self.until(b"\x04>", 30)
        if output != b"\x04":
            raise Failure(f"{self.port}: {output.decode(errors='replace').strip()}")

    def run(self, source: str, seconds: float = 60) -> str:
        """What a piece of source prints. Failure, with the board's words, when it raises."""
        self.start(source)
        out = self.until(b"\x04", seconds)
        trouble = self.until(b"\x04>", 10)
        if trouble:
            raise Failure(f"{self.port}: {trouble.decode(errors='replace').strip()}")
        if self._pace and len(source) >= IN_FLIGHT:
            self._exchange(b"_=0")
        return out.decode(errors="replace").replace("\r\n", "\n")

    def files(self) -> list[str]:
        """Names in the board's root."""
        return [str(name) for name in self.run("import os;print('\\n'.join(os.listdir()))").split("\n") if name]

    def read_file(self, path: str) -> bytes:
        """Content of a file; Failure where there is none."""
        self.run(f"f=open({path!r},'rb')")
        content = b""
        while piece := _literal(self.run(f"print(f.read({self._piece}))")):
            content += piece
        self.run("f.close()\nf=None")
        return content

    def write_file(self, path: str, data: bytes, check: bool = True) -> None:
        """Write a file and read it back. Failure where the board does not hold the same bytes then.

        check: False for whoever compares its digest anyway.
        """
        self.run(f"f=open({path!r},'wb')")
        if self._pace:
            for piece in cut(data, len("f.write()")):
                self._exchange(b"f.write(" + piece + b")")
        else:
            self._exchange(b"from binascii import a2b_base64 as d")
            for start in range(0, len(data), PIECE):
                self._exchange(b"f.write(d(b'" + b2a_base64(data[start : start + PIECE], newline=False) + b"'))")
        self.run("f.close()\nf=None")
        if check and self.read_file(path) != data:
            raise Failure(f"{self.port}: {path} reads back differently; the line loses bytes")

    def remove(self, path: str) -> None:
        self.run(f"import os;os.remove({path!r})")

    def reset(self) -> None:
        """Soft reset: leaves the raw REPL, so that the board runs its main.py."""
        self._send(b"\x02\x04")


def cut(data: bytes, around: int) -> Iterator[bytes]:
    """The data as literals in parts, each as long as fits IN_FLIGHT bytes of source with so many around it and a control byte.

    MicroPython's parser is 8-bit clean, so that only control characters, quotes and backslashes are escaped. A part holds
    more than ten bytes, but for the last one: shorter literals are interned, and never leave a board's heap again.
    """
    room = IN_FLIGHT - around - len("b''") - 1
    literal = b""
    for byte in data:
        escaped = bytes([byte]) if byte >= 32 and byte not in b"'\\\x7f" else b"\\x%02x" % byte
        if len(literal) + len(escaped) > room:
            yield b"b'" + literal + b"'"
            literal = b""
        literal += escaped
    if literal:
        yield b"b'" + literal + b"'"


def _literal(text: str) -> bytes:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, binascii.Error):
        raise Failure(f"the board said {text[:80]!r} where the bytes of a file were wanted") from None
    return bytes(value)
