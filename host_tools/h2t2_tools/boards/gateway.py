"""`h2t2 gateway`: relays between boards and an MQTT broker, with a thread a serial line and an MQTT client a board.

The board on a line may be a gateway board, which passes on the datagrams of boards that it hears by radio (docs/links.md).
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from struct import unpack
from typing import Any

import serial

from h2t2.cpython import device_names, worker_wire
from h2t2.cpython.paho import PahoLink
from h2t2.cpython.whole_frames import encode
from h2t2.link import datagrams, frames, presence, wire
from h2t2.node import start
from h2t2.node.service import DECISION_S, SOURCES

from ..common.errors import Failure, UserError
from ..common.untrusted import parse_json, printable
from ..fleet.endpoint import Endpoint
from .kinds import BAUD
from .repl import RawRepl, open_line, write_paced

LOG = logging.getLogger(__name__)
PAUSE_S = 0.1  # pause after an unforeseen exception
TELL_S = 10.0  # time between two states that the gateway reports for a board without states of its own
QUIET_S = 1.0  # silence after which bytes outside frames count as text, such as the traceback of a stopped board
UNFINISHED_S = 10.0  # the same where a long frame has begun: a board sends it piece by piece
ADDRESS = re.compile("((?:[0-9a-f]{2}:){5}[0-9a-f]{2})@(.+)", re.I)  # of a board by radio, and the line of its gateway board
ON_LINE = b""  # address of the board on the line itself
LONG = 255  # first byte of a frame of more than 254 bytes; no text in UTF-8 has it


@dataclass(frozen=True)
class Out:
    """Receivers of a gateway's output.

    Attributes:
        log: Receives a line of text.
        decision: Receives a board's decision.
        ended: Receives a board's summary when it ends.
    """

    log: Callable[[str], None]
    decision: Callable[[dict[str, Any]], None]
    ended: Callable[[dict[str, Any]], None] = lambda line: None


@dataclass(frozen=True)
class LineOptions:
    """Settings of the lines.

    Attributes:
        baud: Baud rate.
        pace: Pause between short writes, for boards without flow control.
        restart: Stop the boards' programs and boot them again, so that the gateway misses nothing.
    """

    baud: int = BAUD
    pace: bool = True
    restart: bool = False


@dataclass(kw_only=True)
class Counters:
    """Counters of one board.

    Attributes:
        frames, noise: Frames, and bytes outside frames, from the board.
        lost: Datagrams by radio that the gateway dropped, because the one before them had not come.
        decisions: Decisions that the gateway received.
        missed: Decisions that the board numbered and the gateway did not receive.
        requests, states: Messages relayed to the broker.
        replies: Replies relayed to the board.
        refused: Requests that the gateway refused: no worker serves the model, the broker is away, or the request is too large.
        reopened: How often the line came back.
        errors: Unforeseen exceptions; the gateway logs them.
    """

    frames: int = 0
    noise: int = 0
    lost: int = 0
    decisions: int = 0
    missed: int = 0
    requests: int = 0
    states: int = 0
    replies: int = 0
    refused: int = 0
    reopened: int = 0
    errors: int = 0


class ByRadio(datagrams.Datagrams):
    """Sends the frames for a board by radio as datagrams, each in a frame for its gateway board."""

    def __init__(self, line: "Line", address: bytes) -> None:
        datagrams.Datagrams.__init__(self)
        self._line, self._address = line, address

    def send(self, datagram: bytes) -> None:
        self._line.write(encode(datagrams.VIA, self._address + datagram))


class Board:
    """Relays the frames of one board to the broker, and back."""

    def __init__(self, device: str, line: "Line", address: bytes, endpoint: Endpoint):
        self.device, self.decoder, self.counters = device, frames.Decoder(), Counters()
        self.datagrams = ByRadio(line, address)
        self._line, self._out = line, line.out
        self._write = self.datagrams.write if address else line.write
        boot = start.boot_number()
        self.link = PahoLink(endpoint.host, endpoint.port, device, None, boot, seed=boot >> 2, **endpoint.login)
        self._next: int | None = None  # expected number of the board's next decision
        self._sources = [0] * len(SOURCES)  # decisions by their source
        self._last: list[int] | None = None
        self._reported = -1  # number of the decision in the last state
        self._boot, self._began = boot, time.monotonic()
        self._due = self._began
        self._namesake = False
        try:
            self.link.open()
        except OSError as error:
            self._out.log(f"{error}; requests are refused until it answers")

    def stop(self) -> Counters:
        self.link.close()
        counters = self.counters
        counters.frames, counters.noise, counters.lost = self.decoder.frames, self.decoder.noise, self.datagrams.lost
        return counters

    def advance(self) -> None:
        """Send what has come from the broker, and report the state of a board that reports none."""
        reply = self.link.receive(0)
        if reply is not None:
            self.counters.replies += 1
            self._down(frames.REPLY, reply)
        command = self.link.command()
        if command is not None:
            self._down(frames.COMMAND, command)
        if not self.counters.states and self._last and self._state_is_due(self._last[1]):
            self._tell()
        if self.link.has_namesake() != self._namesake:
            self._namesake = not self._namesake
            if self._namesake:
                self._out.log(f"{self.device}: another device of this name is on the broker; rename one")

    def take(self, kind: int, payload: bytes) -> None:
        """Handle a frame of the board. A bad frame does not stop the line."""
        try:
            self._up(kind, payload)
        except (serial.SerialException, OSError):  # the line went away
            raise
        except Exception:
            self.failed(f"a frame of kind {kind}")

    def failed(self, at: str) -> None:
        """Log the 1st, 2nd, 4th, 8th ... unforeseen exception, so that the log shows it and does not fill."""
        self.counters.errors += 1
        n = self.counters.errors
        if not n & (n - 1):
            LOG.exception("%s: %s (%d times so far)", self._line.port, at, n)

    def _state_is_due(self, decision: int) -> bool:
        changed = decision != self._reported
        return time.monotonic() >= self._due - (TELL_S - DECISION_S if changed else 0)

    def _tell(self) -> None:
        """Report the state of a board that reports none (a micro:bit), as its decisions show it."""
        moment = time.monotonic()
        self._due = moment + TELL_S
        local, remote, fallback = self._sources
        state: dict[str, Any] = {"samples": sum(self._sources), "offloads": remote + fallback}
        state.update(replies=remote, fallbacks=fallback)
        state.update(last=self._last, boot=self._boot, uptime_s=int(moment - self._began), time=int(time.time()))
        state.update(namesakes=self._namesake, missed=self.counters.missed)
        self._reported = self._last[1] if self._last else -1
        self.link.report(json.dumps(state))

    def _up(self, kind: int, payload: bytes) -> None:
        if kind == frames.REQUEST:
            self._request(payload)
        elif kind == frames.STATE:
            self.counters.states += 1
            self.link.report(payload.decode(errors="replace"))
        elif kind == frames.ANSWER:
            self.link.answer(payload.decode(errors="replace"))
        elif kind == frames.DECISION and len(payload) == 5 and payload[4] < len(SOURCES):
            number, k, decision, source = unpack("<HBBB", payload)
            missed = (number - self._next) % 65536 if self._next is not None else 0
            missed = missed if missed < 32768 else 0  # by radio, one that others have overtaken
            self._next = (number + 1) % 65536
            self.counters.decisions += 1
            self.counters.missed += missed
            self._sources[source] += 1
            self._last = [k, decision, source]
            line = {"device": self.device, "n": number, "missed": missed, "bin": k, "decision": decision}
            self._out.decision({**line, "source": SOURCES[source]})
        elif kind == frames.END:
            self._end(payload)
        elif kind == frames.HELLO:
            self._next = None  # a restarted board counts from 0
            self._out.log(f"{self._line.port}: hello from {printable(payload[:64].decode(errors='replace'))}")

    def _end(self, payload: bytes) -> None:
        try:
            summary = parse_json(payload)
        except ValueError:
            return
        self._out.ended({"device": self.device, "summary": summary})

    def _request(self, payload: bytes) -> None:
        """Relay a request, or answer at once that no worker can serve it."""
        request = worker_wire.peek_request(payload)
        if request is None:
            self.counters.refused += 1
        elif len(payload) <= wire.MAX_REQUEST and self.link.workers(presence.model_of(payload)) and self.link.send(payload):
            self.counters.requests += 1
        else:
            self.counters.refused += 1
            self._down(frames.REPLY, worker_wire.encode_reply(wire.NOBODY, request[0], request[1], -1, 0))

    def _down(self, kind: int, payload: bytes) -> None:
        self._write(encode(kind, payload))


class Line:
    """Relays one serial line and its boards until stop(). It reopens a line that went away."""

    def __init__(self, port: str, devices: dict[bytes, str], endpoint: Endpoint, options: LineOptions, out: Out):
        """devices: Names of the boards by their address: that of a radio, or ON_LINE."""
        self.port, self.options, self.out = port, options, out
        self.boards = {address: Board(device, self, address, endpoint) for address, device in devices.items()}
        self.decoder = self.boards[ON_LINE].decoder if ON_LINE in self.boards else frames.Decoder()
        self.strangers = 0  # datagrams of boards that no option names
        self._quoted = 0  # bytes of the decoder's block that the log has as text
        self._stopped = threading.Event()
        if options.restart:
            repl = RawRepl(port, options.pace, options.baud)
            repl.interrupt()
            repl.reset()
            self._serial = repl.line
        else:
            self._serial = open_line(port, options.baud)
        self._thread = threading.Thread(target=self._run, name=f"gateway {port}", daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, Counters]:
        """End. Return the counters of every board, by device."""
        self._stopped.set()
        self._thread.join(10)
        counters = {board.device: board.stop() for board in self.boards.values()}
        self._serial.close()
        return counters

    def alive(self) -> bool:
        return self._thread.is_alive()

    def write(self, data: bytes) -> None:
        """Write a frame to the line."""
        write_paced(self._serial, data, self.options.pace)

    def _run(self) -> None:
        heard_at = time.monotonic()
        while not self._stopped.is_set():
            try:
                data = self._serial.read(max(1, self._serial.in_waiting))
                for kind, payload in self.decoder.feed(data):
                    self._take(kind, payload)
                if 0 in data:
                    self._quoted = 0
                if data:
                    heard_at = time.monotonic()
                elif len(self.decoder.block) > self._quoted:
                    self._words(time.monotonic() - heard_at)
                for board in self.boards.values():
                    board.advance()
            except (serial.SerialException, OSError) as error:
                self.out.log(f"{self.port}: {error}; waiting for it to come back")
                self._reopen()
            except Exception:  # no message of a board may stop this line
                next(iter(self.boards.values())).failed("a turn of the line")
                self._stopped.wait(PAUSE_S)

    def _take(self, kind: int, payload: bytes) -> None:
        """Hand a frame of the line to its board, or a datagram to the board that has sent it."""
        if kind == datagrams.VIA:
            board = self.boards.get(payload[: datagrams.ADDRESS])
            if not board:
                self._count_stranger(payload[: datagrams.ADDRESS])
                return
            for inner, content in board.decoder.feed(board.datagrams.join(payload[datagrams.ADDRESS :])):
                board.take(inner, content)
        elif ON_LINE in self.boards:
            self.boards[ON_LINE].take(kind, payload)

    def _count_stranger(self, address: bytes) -> None:
        """Log the 1st, 2nd, 4th, 8th ... datagram of boards that no option names."""
        self.strangers += 1
        if not self.strangers & (self.strangers - 1):
            name = address.hex(":")
            self.out.log(f"{self.port}: no --port names {name}@{self.port}, which sends datagrams ({self.strangers} so far)")

    def _words(self, silence_s: float) -> None:
        """Log what the board printed outside frames before it fell silent, such as the exception that ended its program.

        The decoder keeps it while it may be a frame whose end is late.
        """
        block = self.decoder.block
        if silence_s < (UNFINISHED_S if block[0] == LONG else QUIET_S):
            return
        words = "".join(c if c.isprintable() else " " for c in block[self._quoted :].decode(errors="replace"))
        self.out.log(f"{self.port}: the board printed {' '.join(words.split())[-400:]!r} and is silent since then")
        if len(block) == self.decoder.limit:
            self.decoder.block = bytearray()
        self._quoted = len(self.decoder.block)

    def _reopen(self) -> None:
        while not self._stopped.wait(0.5):
            try:
                self._serial = open_line(self.port, self.options.baud)
            except (UserError, OSError):
                continue
            for board in self.boards.values():
                board.counters.reopened += 1
            self.out.log(f"{self.port}: the line is back")
            return


def parse(port: str) -> tuple[str, bytes, str]:
    """Split [ADDRESS@]LINE[=DEVICE] into line, address (ON_LINE: none) and device.

    The default device is the last part of the line, or the digits of the address.

    Raises:
        UserError: The device's name is not valid.
    """
    line, mark, device = port.rpartition("=")
    if not mark or set(device) & set("/:?&"):  # this "=" belongs to the address of the line
        line, device = port, ""
    by_radio = ADDRESS.fullmatch(line)
    address, line = (bytes.fromhex(by_radio[1].replace(":", "")), by_radio[2]) if by_radio else (ON_LINE, line)
    device = device or address.hex() or "".join(c if c.isalnum() or c in "-_" else "-" for c in line.rsplit("/", 1)[-1])
    try:
        return line, address, device_names.checked_device(device)
    except ValueError as error:
        raise UserError(f"--port {port}: {error}") from None


def relay(
    ports: list[str], endpoint: Endpoint, options: LineOptions, seconds: float | None, out: Out
) -> dict[str, dict[str, int]]:
    """Relay until Ctrl-C, SIGTERM or the given time.

    Args:
        ports: [ADDRESS@]LINE[=DEVICE], one for each board.
        endpoint: The broker.
        options: Settings of the lines.
        seconds: Duration; None: no limit.
        out: Receivers of the output.

    Returns:
        The counters of every board, by device.

    Raises:
        Failure: The thread of a line ended. The other lines went on until the end.
    """
    lines: list[Line] = []
    devices: dict[str, dict[bytes, str]] = {}  # by line
    ports_of: dict[str, str] = {}  # by device
    for port in ports:
        name, address, device = parse(port)
        if device in ports_of:
            raise UserError(f"--port: {ports_of[device]} and {port} have the same name {device}; name them as LINE=DEVICE")
        if address in devices.setdefault(name, {}):
            raise UserError(f"--port {port}: {devices[name][address]} is the same board")
        ports_of[device] = port
        devices[name][address] = device
    try:
        for name, boards in devices.items():
            lines.append(Line(name, boards, endpoint, options, out))
            for address, device in boards.items():
                out.log(f"{address.hex(':')}{'@' if address else ''}{name} is device {device}")
        out.log("ready")
        end = None if seconds is None else time.monotonic() + seconds
        while (end is None or time.monotonic() < end) and any(line.alive() for line in lines):
            time.sleep(0.1)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        dead = [line.port for line in lines if not line.alive()]
        counters = {device: asdict(counts) for line in lines for device, counts in line.stop().items()}
    if dead:
        raise Failure(f"{' and '.join(dead)}: the thread of this line ended; the log shows why")
    return counters
