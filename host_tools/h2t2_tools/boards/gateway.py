"""`h2t2 gateway`: relays between boards on serial lines and an MQTT broker, with a thread and an MQTT client a board."""

import json
import logging
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
from h2t2.link import frames, wire
from h2t2.node import start
from h2t2.node.service import DECISION_S, SOURCES

from ..common.errors import Failure, UserError
from ..common.untrusted import parse_json, printable
from ..fleet.endpoint import Endpoint
from .repl import RawRepl, open_line, write_paced

LOG = logging.getLogger(__name__)
PAUSE_S = 0.1  # pause after an unforeseen exception
TELL_S = 10.0  # time between two states that the gateway reports for a board without states of its own
QUIET_S = 1.0  # silence after which bytes outside frames count as text, such as the traceback of a stopped board
UNFINISHED_S = 10.0  # the same where a long frame has begun: a board sends it piece by piece
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

    baud: int = 115200
    pace: bool = True
    restart: bool = False


@dataclass(kw_only=True)
class Counters:
    """Counters of one line.

    Attributes:
        frames, noise: Frames, and bytes outside frames, from the board.
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
    decisions: int = 0
    missed: int = 0
    requests: int = 0
    states: int = 0
    replies: int = 0
    refused: int = 0
    reopened: int = 0
    errors: int = 0


class Line:
    """Relays one serial line and its device until stop(). It reopens a line that went away."""

    def __init__(self, port: str, device: str, endpoint: Endpoint, options: LineOptions, out: Out):
        self.port, self.device, self.options, self.out = port, device, options, out
        self.counters = Counters()
        self.decoder = frames.Decoder()
        self._quoted = 0  # bytes of the decoder's block that the log has as text
        boot = start.boot_number()
        self._link = PahoLink(endpoint.host, endpoint.port, device, None, boot, seed=boot >> 2, **endpoint.login)
        self._next: int | None = None  # expected number of the board's next decision
        self._sources = [0] * len(SOURCES)  # decisions by their source
        self._last: list[int] | None = None
        self._reported = -1  # number of the decision in the last state
        self._boot, self._began = boot, time.monotonic()
        self._due = self._began
        self._namesake = False
        try:
            self._link.open()
        except OSError as error:
            out.log(f"{error}; requests are refused until it answers")
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

    def stop(self) -> Counters:
        self._stopped.set()
        self._thread.join(10)
        self._link.close()
        self._serial.close()
        self.counters.frames, self.counters.noise = self.decoder.frames, self.decoder.noise
        return self.counters

    def alive(self) -> bool:
        return self._thread.is_alive()

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
                reply = self._link.receive(0)
                if reply is not None:
                    self.counters.replies += 1
                    self._down(frames.REPLY, reply)
                command = self._link.command()
                if command is not None:
                    self._down(frames.COMMAND, command)
                if not self.counters.states and self._last and self._state_is_due(self._last[1]):
                    self._tell()
                if self._link.has_namesake() and not self._namesake:
                    self._namesake = True
                    self.out.log(f"{self.device}: another device of this name is on the broker; rename one")
            except (serial.SerialException, OSError) as error:
                self.out.log(f"{self.port}: {error}; waiting for it to come back")
                self._reopen()
            except Exception:  # no message of a board may stop this line
                self._failed("a turn of the line")
                self._stopped.wait(PAUSE_S)

    def _take(self, kind: int, payload: bytes) -> None:
        """Handle a frame of the board. A bad frame does not stop the line."""
        try:
            self._up(kind, payload)
        except (serial.SerialException, OSError):  # the line went away
            raise
        except Exception:
            self._failed(f"a frame of kind {kind}")

    def _failed(self, at: str) -> None:
        """Log the 1st, 2nd, 4th, 8th ... unforeseen exception, so that the log shows it and does not fill."""
        self.counters.errors += 1
        n = self.counters.errors
        if not n & (n - 1):
            LOG.exception("%s: %s (%d times so far)", self.port, at, n)

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
        self._link.report(json.dumps(state))

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
            self.counters.reopened += 1
            self.out.log(f"{self.port}: the line is back")
            return

    def _up(self, kind: int, payload: bytes) -> None:
        if kind == frames.REQUEST:
            self._request(payload)
        elif kind == frames.STATE:
            self.counters.states += 1
            self._link.report(payload.decode(errors="replace"))
        elif kind == frames.ANSWER:
            self._link.answer(payload.decode(errors="replace"))
        elif kind == frames.DECISION and len(payload) == 5 and payload[4] < len(SOURCES):
            number, k, decision, source = unpack("<HBBB", payload)
            missed = (number - self._next) % 65536 if self._next is not None else 0
            self._next = (number + 1) % 65536
            self.counters.decisions += 1
            self.counters.missed += missed
            self._sources[source] += 1
            self._last = [k, decision, source]
            line = {"device": self.device, "n": number, "missed": missed, "bin": k, "decision": decision}
            self.out.decision({**line, "source": SOURCES[source]})
        elif kind == frames.END:
            self._end(payload)
        elif kind == frames.HELLO:
            self._next = None  # a restarted board counts from 0
            self.out.log(f"{self.port}: hello from {printable(payload[:64].decode(errors='replace'))}")

    def _end(self, payload: bytes) -> None:
        try:
            summary = parse_json(payload)
        except ValueError:
            return
        self.out.ended({"device": self.device, "summary": summary})

    def _request(self, payload: bytes) -> None:
        """Relay a request, or answer at once that no worker can serve it."""
        request = worker_wire.peek_request(payload)
        if request is None:
            self.counters.refused += 1
        elif len(payload) <= wire.MAX_REQUEST and self._link.workers(wire.model_of(payload)) and self._link.send(payload):
            self.counters.requests += 1
        else:
            self.counters.refused += 1
            self._down(frames.REPLY, worker_wire.encode_reply(wire.NOBODY, request[0], request[1], -1, 0))

    def _down(self, kind: int, payload: bytes) -> None:
        write_paced(self._serial, encode(kind, payload), self.options.pace)


def parse(port: str) -> tuple[str, str]:
    """Split LINE or LINE=DEVICE into line and device. The default device is the last part of the line.

    Raises:
        UserError: The device's name is not valid.
    """
    line, mark, device = port.rpartition("=")
    if not mark or set(device) & set("/:?&"):  # this "=" belongs to the address of the line
        line, device = port, ""
    device = device or "".join(c if c.isalnum() or c in "-_" else "-" for c in line.rsplit("/", 1)[-1])
    try:
        return line, device_names.checked_device(device)
    except ValueError as error:
        raise UserError(f"--port {port}: {error}") from None


def relay(
    ports: list[str], endpoint: Endpoint, options: LineOptions, seconds: float | None, out: Out
) -> dict[str, dict[str, int]]:
    """Relay until Ctrl-C, SIGTERM or the given time.

    Args:
        ports: LINE or LINE=DEVICE, one for each board.
        endpoint: The broker.
        options: Settings of the lines.
        seconds: Duration; None: no limit.
        out: Receivers of the output.

    Returns:
        The counters of every line, by device.

    Raises:
        Failure: The thread of a line ended. The other lines went on until the end.
    """
    lines: list[Line] = []
    named = [parse(port) for port in ports]
    for _, device in named:
        namesakes = [port for port, name in named if name == device]
        if len(namesakes) > 1:
            raise UserError(f"--port: {' and '.join(namesakes)} have the same name {device}; name them as LINE=DEVICE")
    try:
        for line, device in named:
            lines.append(Line(line, device, endpoint, options, out))
            out.log(f"{line} is device {device}")
        out.log("ready")
        end = None if seconds is None else time.monotonic() + seconds
        while (end is None or time.monotonic() < end) and any(line.alive() for line in lines):
            time.sleep(0.1)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        dead = [line.port for line in lines if not line.alive()]
        counters = {line.device: asdict(line.stop()) for line in lines}
    if dead:
        raise Failure(f"{' and '.join(dead)}: the thread of this line ended; the log shows why")
    return counters
