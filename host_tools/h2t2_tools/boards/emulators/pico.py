"""The emulated Raspberry Pi Pico: the chip (npm's rp2040js) runs its own MicroPython firmware, its USB serial line is a pty of
this machine, its flash a file. Not a real board: what the emulation leaves out is in firmware/boards/pico/README.md."""

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
from .built import PICO, Built, rp2040js

CLOCK_HZ = 125_000_000
ANSWER_S = 60  # for a command's answer: a busy machine may take long
CUTS = ("before", "middle", "after")
FOLDER = Path(__file__).parent


class Pico:
    """One emulated board, powered from start() to stop(), or for as long as the context lasts. `port`: its line, a pty.

    flash: the file with its flash chip's content, made where there is none; None: one of its own, gone at the end.
    event: called with what happens to the board, from a thread of ours: {"event": "reset" | "cut" | "pin" | ...}.
    board: whose firmware it runs. UserError, saying what to install, where it cannot run.
    """

    def __init__(
        self, flash: Path | None = None, event: Callable[[dict[str, Any]], None] | None = None, board: Built = PICO
    ) -> None:
        reason = board.missing()
        if reason:
            raise UserError(f"{board.name}: {reason}")
        self._own = None if flash else tempfile.TemporaryDirectory(prefix="h2t2-pico-")
        self.flash = flash or Path(self._own.name) / "flash.bin"  # type: ignore[union-attr]
        self.events: Queue[dict[str, Any]] = Queue()
        self._event = event or (lambda event: None)
        self._answers: Queue[dict[str, Any]] = Queue()
        self._asking = threading.Lock()
        self._requests = 0
        self._master, slave = os.openpty()
        tty.setraw(slave)  # stays so for as long as this end is open
        self.port = os.ttyname(slave)
        os.close(slave)
        ours, chips = socket.socketpair()
        self._line = ours
        command = ["node", str(FOLDER / "pico.mjs"), str(rp2040js()), str(board.firmware()), str(self.flash.resolve())]
        command.append(str(chips.fileno()))
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  what the emulator has to say of itself
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
        """End the emulator; the flash stays as it is at this moment."""
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
        """Whether the emulator runs, powered or not."""
        return self._process.poll() is None

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """A command of pico.mjs, and its answer. Failure where the emulator has ended."""
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
        """Plug it in, and wait until its USB is up; or pull the plug."""
        self.ask("power", on=on)
        if on:
            self.wait("ready")

    def reset(self) -> None:
        """As its RUN pin does."""
        self.ask("reset")
        self.wait("ready")

    def cut(self, after: int, when: str) -> None:
        """Cut the power at the n-th flash operation from now (1: the next), before it, in its middle, or after it."""
        self.ask("cut", after=after, when=when)

    def watch(self, pin: int) -> int:
        """Tell of a pin's level from now on, as events; the level now."""
        return int(self.ask("watch", pin=pin)["level"])

    def set_pin(self, pin: int, level: int) -> None:
        """Drive a pin from outside: a button."""
        self.ask("pin", pin=pin, level=level)

    def feed_adc(self, pin: int, values: list[int]) -> None:
        """What the analogue pins 26 to 29 measure (4: the chip's temperature): 0..4095, one a conversion, the last for good."""
        self.ask("adc", channel=pin - 26 if pin >= 26 else pin, values=values)

    def time(self) -> dict[str, Any]:
        """What has passed: {"cycles", "operations" (of the flash), both since the emulator began; "seconds" of this start;
        "slower", times, than the chip; "on"}."""
        state = self.ask("time")
        return {name: state[name] for name in ("cycles", "seconds", "slower", "operations", "on")}

    def wait(self, name: str, seconds: float = 120) -> dict[str, Any]:
        """The next event of that name; those before it are passed over. Failure where none comes."""
        end = time.monotonic() + seconds
        while True:
            try:
                event = self.events.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise Failure(f"the emulated Pico told of no {name} in {seconds:g} s") from None
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
        """Carry bytes between the pty and the chip. Nobody at the pty is as no program at a USB line: the chip is told."""
        os.set_blocking(self._master, False)
        opened = False
        waiting = b""  # for the program at the pty, which reads when it likes
        while not self._ended.is_set():
            state = _poll({self._master: select.POLLIN | (select.POLLOUT if waiting else 0)} if opened else {self._master: 0},
                          {} if waiting else {self._line.fileno(): select.POLLIN}, opened)  # fmt: skip
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


def _poll(pty: dict[int, int], line: dict[int, int], opened: bool) -> dict[int, int]:
    """What is to be done at either end, after a tenth of a second at most. A pty that nobody has open is always ready."""
    options = {**(pty if opened else {}), **line}
    poller = select.poll()
    for number, events in options.items():
        poller.register(number, events)
    state = dict(poller.poll(100 if opened else 10))
    if not opened:
        closed = select.poll()
        for number, events in pty.items():
            closed.register(number, events)
        state.update(closed.poll(0))
    return state
