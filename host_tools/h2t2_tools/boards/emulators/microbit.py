"""The emulated micro:bit: QEMU's nRF51822 (Cortex-M0, 16 KB RAM) runs real MicroPython 1.9.2, driven through its raw REPL."""

from __future__ import annotations

from ...common.errors import UserError
from .catalogue import MICROBIT
from .on_qemu import OnQemu


class Microbit(OnQemu):
    """One emulated board inside the context. `port`: its serial line, a pty."""

    def __init__(self, *options: str) -> None:
        """Start the board. options: further ones of QEMU. Raise UserError if it cannot run here."""
        reason = MICROBIT.missing()
        if reason:
            raise UserError(f"micro:bit: {reason}")
        command = ["qemu-system-arm", "-M", "microbit", "-device", f"loader,file={MICROBIT.content()}"]
        super().__init__("micro:bit", [*command, *options], True)

    def __enter__(self) -> Microbit:
        self.until(b">>> ", 30)  # no program runs on a new board
        self._send(b"\x03\x01")
        self.until(b"raw REPL; CTRL-B to exit\r\n>", 10)
        return self
