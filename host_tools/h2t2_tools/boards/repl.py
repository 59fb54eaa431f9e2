"""MicroPython's raw REPL over any line: runs source on a board and moves its files. It supports MicroPython 1.9.2 and newer."""

from __future__ import annotations

import binascii
import os
import time
from binascii import b2a_base64
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import serial

from ..common.errors import Failure, UserError
from .kinds import BAUD

CHUNK, PAUSE = 16, 0.004  # bytes of a write, and seconds between two: a slow UART loses bytes at a higher rate
IN_FLIGHT = 60  # unanswered bytes for a board without flow control, whose buffer holds 63 while it is busy
PIECE = 1536  # bytes of a file in one exchange with other boards; they need some times as much memory in one piece
PROMPT = b"raw REPL; CTRL-B to exit\r\n>"


def open_line(port: str, baud: int) -> Any:
    """Open a serial device, a pty or socket://host:port with pyserial, for this program alone.

    Raises:
        UserError: It cannot be opened, or another program has it; two programs would take each other's bytes.
    """
    try:
        return serial.serial_for_url(port, baudrate=baud, timeout=0.002, write_timeout=5, exclusive=True)
    except (serial.SerialException, ValueError, OSError) as error:
        holders = [f"{name} (process {process})" for process, name in _holders(port)]
        if holders:
            raise UserError(f"{port}: this line belongs to {' and '.join(holders)}; stop that first") from None
        raise UserError(f"{port}: cannot open this line: {error}") from None


def _holders(port: str) -> Iterator[tuple[int, str]]:
    """Yield number and command of each other process that has a device open, as far as Linux shows it to this user."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) == os.getpid() or not any(os.path.samefile(file, port) for file in (folder / "fd").iterdir()):
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended, or belongs to another user
            continue
        yield int(folder.name), " ".join(Path(word).name for word in words[:4] if word)


def write_paced(line: Any, data: bytes, pace: bool) -> None:
    """Write all data; pace: with pauses, for UARTs without flow control."""
    for start in range(0, len(data), CHUNK):
        line.write(data[start : start + CHUNK])
        if pace:
            time.sleep(PAUSE)


class RawRepl:
    """A board on a line, whose REPL is in raw mode inside the context.

    Attributes:
        port: A serial device, a pty or socket://host:port, in pyserial's notation.
        line: pyserial's object.
    """

    def __init__(self, port: str, pace: bool = True, baud: int = BAUD) -> None:
        """Open the line.

        Args:
            port: The line.
            pace: Slow down for UARTs without flow control.
            baud: Baud rate.

        Raises:
            UserError: The line cannot be opened.
        """
        self.port = port
        self._pace = pace
        self._received = b""
        self._pastes = pace  # whether the board may have MicroPython's flow control, raw-paste mode (1.14 and newer)
        self.each = ""  # statement before each piece of a file, such as one that feeds a watchdog
        self.line = open_line(port, baud)

    def __enter__(self) -> RawRepl:
        try:
            self.interrupt()
        except BaseException:  # the program may have ended
            with suppress(Failure):
                self.reset()
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.line.close()

    def interrupt(self, seconds: float = 30) -> None:
        """Stop the running program and enter the raw REPL. Repeat while the board may still boot; then raise Failure."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # completes a truncated frame: a node checks for Ctrl-C between frames (link/stdio.py, microbit/node.py)
            self._send(b"\0" if self._pace else b"\0\r\3")
            for _ in range(100):
                self._send(b"\x03")
                self._received += self.line.read(4096)
                if self._received.endswith(b">>> "):
                    break
            self._received = b""
            self._send(b"\r\x01")
            try:
                self.until(PROMPT, 0.03)
            except Failure:
                continue
            while self.line.read(4096):  # answers to earlier attempts
                pass
            self._received = b""
            self._send(b"\x04")  # this soft reset frees the memory of the stopped program and does not run main.py
            self.until(b"soft reboot", 30)
            self.until(PROMPT, 30)
            return
        raise Failure(f"{self.port}: no MicroPython prompt in {seconds:g} s")

    def _send(self, data: bytes) -> None:
        try:
            write_paced(self.line, data, self._pace)
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None

    def _receive(self) -> bytes:
        try:
            return bytes(self.line.read(4096))
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None

    def until(self, mark: bytes, seconds: float) -> bytes:
        """Return everything up to a mark. After `seconds` raise Failure, which shows what came instead."""
        end = time.monotonic() + seconds
        while mark not in self._received:
            data = self._receive()
            self._received += data
            if not data and time.monotonic() > end:
                raise Failure(f"{self.port}: no {mark!r} in {seconds:g} s, only {self._received[-200:]!r}")
        before, self._received = self._received.split(mark, 1)
        return before

    def read(self) -> bytes:
        """Return what a running program printed since the last call, without waiting long."""
        received, self._received = self._received + self._receive(), b""
        return received

    def start(self, source: str) -> None:
        """Start source and return while it runs.

        A slow line's board controls the flow itself (raw-paste mode). One that cannot gets long source in pieces, each after it
        has taken the last one: fixed pauses would lose bytes if an emulated board runs on a busy machine.
        """
        data = source.encode()
        if self._pastes and self._paste(data):
            return
        if self._pace and len(data) >= IN_FLIGHT:
            self._exchange(b"_=b''")
            for piece in cut(data, len("_+=")):
                self._exchange(b"_+=" + piece)
            data = b"exec(_)"
        self._send(data + b"\x04")
        self.until(b"OK", 30)

    def _paste(self, data: bytes) -> bool:
        """Start source with the board's own flow control; return False where it has none."""
        self._send(b"\x05A\x01")
        if self._take(2) != b"R\x01":
            self._pastes = False
            self.until(PROMPT[2:], 10)  # an older MicroPython begins its raw REPL anew
            return False
        window = credit = int.from_bytes(self._take(2), "little")
        while data:
            if not credit:
                if self._take(1) == b"\x04":  # it has found an error already, which it reports once the source ends
                    self._write(b"\x04")
                    return True
                credit += window
                continue
            piece, data = data[:credit], data[credit:]
            credit -= len(piece)
            self._write(piece)
        self._write(b"\x04")
        self.until(b"\x04", 30)
        return True

    def _take(self, count: int) -> bytes:
        """Return the next bytes; Failure without them."""
        end = time.monotonic() + 30
        while len(self._received) < count:
            if time.monotonic() > end:
                raise Failure(f"{self.port}: no answer in 30 s, only {self._received[-200:]!r}")
            self._received += self._receive()
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def _write(self, data: bytes) -> None:
        try:
            self.line.write(data)
        except (serial.SerialException, OSError) as error:
            raise Failure(f"{self.port}: the board is gone: {error}") from None

    def _exchange(self, source: bytes) -> None:
        """Run source that prints nothing; a board without flow control has room for it in its buffer."""
        if self._pastes:
            self.start(source.decode())
        else:
            self._send(source + b"\x04")
            self.until(b"OK", 30)
        output = self.until(b"\x04>", 30)
        if output != b"\x04":
            raise Failure(f"{self.port}: {output.decode(errors='replace').strip()}")

    def run(self, source: str, seconds: float = 60) -> str:
        """Run source and return what it prints. Raise Failure with the board's traceback if it raises."""
        self.start(source)
        out = self.until(b"\x04", seconds)
        trouble = self.until(b"\x04>", 10)
        if trouble:
            raise Failure(f"{self.port}: {trouble.decode(errors='replace').strip()}")
        if self._pace and not self._pastes and len(source) >= IN_FLIGHT:
            self._exchange(b"_=0")
        return out.decode(errors="replace").replace("\r\n", "\n")

    def files(self) -> list[str]:
        """Return the names in the board's root."""
        return [str(name) for name in self.run("import os;print('\\n'.join(os.listdir()))").split("\n") if name]

    def read_file(self, path: str) -> bytes:
        """Return the content of a file. Raise Failure if it does not exist."""
        self.run(f"f=open({path!r},'rb')")
        content = b""
        size = 48 if self._pace and not self._pastes else PIECE
        while piece := _literal(self.run(f"print(f.read({size}))")):
            content += piece
        self.run("f.close()\nf=None")
        return content

    def write_file(self, path: str, data: bytes, check: bool = True) -> None:
        """Write a file and read it back.

        Args:
            path: Path on the board.
            data: Content.
            check: Read it back; False if the caller compares its digest.

        Raises:
            Failure: The board holds other bytes.
        """
        self.run(f"f=open({path!r},'wb')")
        if self._pace and not self._pastes:
            for piece in cut(data, len("f.write()")):
                self._exchange(b"f.write(" + piece + b")")
        else:
            self._exchange(b"from binascii import a2b_base64 as d")
            for start in range(0, len(data), PIECE):
                literal = b2a_base64(data[start : start + PIECE], newline=False).decode()
                self._exchange(f"{self.each}f.write(d(b'{literal}'))".encode())
        self.run("f.close()\nf=None")
        if check and self.read_file(path) != data:
            raise Failure(f"{self.port}: {path} reads back differently; the line loses bytes")

    def remove(self, path: str) -> None:
        self.run(f"import os;os.remove({path!r})")

    def reset(self) -> None:
        """Leave the raw REPL with a soft reset, so that the board runs its main.py."""
        self._send(b"\x02\x04")


def cut(data: bytes, around: int) -> Iterator[bytes]:
    """Cut data into bytes literals that fit IN_FLIGHT bytes of source, with `around` bytes of code and a control byte.

    MicroPython's parser is 8-bit clean, so only control characters, quotes and backslashes are escaped. Each literal except the
    last has more than ten bytes: MicroPython interns shorter ones, which then stay on the board's heap forever.
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
        raise Failure(f"the board sent {text[:80]!r} instead of the bytes of a file") from None
    return bytes(value)
