"""The emulated Raspberry Pi Pico: npm's rp2040js runs its MicroPython firmware.

Its USB serial line is a pty, its flash a file. firmware/boards/pico/README.md lists what the emulation omits.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from ...common.errors import Failure, UserError
from ...common.places import temporary_folder
from .catalogue import PICO, Rp2040, rp2040js

CLOCK_HZ = 125_000_000
ANSWER_S = 60  # longest wait for a command's answer on a busy machine
CUTS = ("before", "middle", "after")
FOLDER = Path(__file__).parent


class Pico:
    """One emulated board, powered from start() to stop() or inside the context. `port`: its serial line, a pty.

    Args:
        flash: File with the content of its flash chip, created if missing; None: a temporary one.
        event: Called from another thread with each event of the board: {"event": "reset" | "cut" | "pin" | ...}.
        board: The board whose firmware it runs.

    Raises:
        UserError: It cannot run here; the message says what to install.
    """

    def __init__(
        self, flash: Path | None = None, event: Callable[[dict[str, Any]], None] | None = None, board: Rp2040 = PICO
    ) -> None:
        reason = board.missing()
        if reason:
            raise UserError(f"{board.name}: {reason}")
        self._own = None if flash else temporary_folder("pico")
        self.flash = flash or Path(self._own.name) / "flash.bin"  # type: ignore[union-attr]
        self.events: Queue[dict[str, Any]] = Queue()
        self._event = event or (lambda event: None)
        self._answers: Queue[dict[str, Any]] = Queue()
        self._asking = threading.Lock()
        self._requests = 0
        self._master, slave = os.openpty()
        tty.setraw(slave)  # the mode lasts while this end is open
        self.port = os.ttyname(slave)
        os.close(slave)
        ours, chips = socket.socketpair()
        self._line = ours
        command = ["node", str(FOLDER / "pico.mjs"), str(rp2040js()), str(board.content()), str(self.flash.resolve())]
        command.append(str(chips.fileno()))
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  the emulator's own messages
        self._process = subprocess.Popen(
            command,
            text=True, bufsize=1, pass_fds=(chips.fileno(),), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        chips.close()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._listen, self._bridge)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Pico:
        self.power()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the emulator. The flash file keeps its present content."""
        self._ended.set()
        self._process.kill()
        self._process.communicate()
        for thread in self._threads:
            thread.join(10)
        self._line.close()
        self._log.close()
        os.close(self._master)
        if self._own:
            self._own.cleanup()

    def alive(self) -> bool:
        """Return whether the emulator runs, whether the board is powered or not."""
        return self._process.poll() is None

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to pico.mjs and return its answer. Raise Failure if the emulator has ended."""
        with self._asking:
            self._requests += 1
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps({"do": do, "id": self._requests, **arguments}) + "\n")
                self._process.stdin.flush()
                answer = self._answers.get(timeout=ANSWER_S)
                if not answer:
                    raise ValueError("it has ended")
                return answer
            except (OSError, ValueError, Empty):
                self._log.seek(0)
                raise Failure(f"the emulated Pico has ended ({do}): {self._log.read()[-500:].strip()}") from None

    def power(self, on: bool = True) -> None:
        """Switch the power on and wait for the USB, or switch it off."""
        self.ask("power", on=on)
        if on:
            self.wait("ready")

    def reset(self) -> None:
        """Reset the chip as its RUN pin does."""
        self.ask("reset")
        self.wait("ready")

    def cut(self, after: int, when: str) -> None:
        """Cut the power before, in the middle of, or after the n-th flash operation from now (1: the next)."""
        self.ask("cut", after=after, when=when)

    def watch(self, pin: int) -> int:
        """Return a pin's level, and report its changes as events from now on."""
        return int(self.ask("watch", pin=pin)["level"])

    def set_pin(self, pin: int, level: int) -> None:
        """Drive a pin from outside, as a button does."""
        self.ask("pin", pin=pin, level=level)

    def feed_adc(self, pin: int, values: list[int]) -> None:
        """Set the readings of an analogue pin 26 to 29 (4: temperature): 0..4095, one a conversion; the last one repeats."""
        self.ask("adc", channel=pin - 26 if pin >= 26 else pin, values=values)

    def time(self) -> dict[str, Any]:
        """Return the board's counters.

        Returns:
            cycles and flash operations since the emulator began, seconds since the board started, how many times slower than
            the chip it runs, and whether its power is on.
        """
        state = self.ask("time")
        return {name: state[name] for name in ("cycles", "seconds", "slower", "operations", "on")}

    def wait(self, name: str, seconds: float = 120) -> dict[str, Any]:
        """Return the next event of this name and skip those before it. Raise Failure if none comes in time."""
        end = time.monotonic() + seconds
        while True:
            try:
                event = self.events.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise Failure(f"the emulated Pico reported no {name} in {seconds:g} s") from None
            if event["event"] == name:
                return event

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "event" in message:
                self.events.put(message)
                self._event(message)
            else:
                self._answers.put(message)
        self._answers.put({})

    def _bridge(self) -> None:
        """Carry bytes between the pty and the chip. Tell the chip whether a program has the pty open, as a USB line would."""
        os.set_blocking(self._master, False)
        opened = False
        waiting = b""  # bytes that the program at the pty has not read yet
        while not self._ended.is_set():
            line = {} if waiting else {self._line.fileno(): select.POLLIN}
            if opened:
                state = _poll({self._master: select.POLLIN | (select.POLLOUT if waiting else 0), **line}, 100)
            else:  # a pty that no program has open is always ready
                state = _poll(line, 10) | _poll({self._master: 0}, 0)
            at_pty = state.get(self._master, 0)
            try:
                if at_pty & select.POLLIN:
                    self._line.sendall(os.read(self._master, 4096))
                elif bool(at_pty & select.POLLHUP) == opened:
                    opened, waiting = not opened, b""
                    self.ask("open", on=opened)
                if state.get(self._line.fileno(), 0):
                    came = self._line.recv(4096)
                    waiting = came if opened else b""
                if waiting:
                    waiting = waiting[os.write(self._master, waiting) :]
            except BlockingIOError:
                continue
            except (OSError, Failure):
                if self._ended.is_set():
                    return


def _poll(wanted: dict[int, int], milliseconds: int) -> dict[int, int]:
    """Wait for events, by descriptor."""
    poller = select.poll()
    for number, events in wanted.items():
        poller.register(number, events)
    return dict(poller.poll(milliseconds))
