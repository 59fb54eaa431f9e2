# Serial link: the node's requests, replies and decisions as frames over a line, for a board without a network; `h2t2 gateway`
# is at the other end. The interface of the other links.
from struct import pack

from ..clock import remaining, ticks_add, ticks_ms
from . import frames
from .link import Link

QUEUE = 16


class SerialLink(Link):
    """stream: `read()` gives what has come (bytes, or None), without waiting; `wait(ms)` waits for more, so long at most;
    `write(bytes)` sends; `close()` ends its use. device: told in hello. boot: this start's number.

    Who serves the model, the gateway knows: it answers wire.NOBODY at once where it is nobody.
    """

    def __init__(self, stream, device, boot=0, limit=256):
        Link.__init__(self, boot)
        self.stream = stream
        self.device = device
        self.decoder = frames.Decoder(limit)
        self.queue = []
        self.commands = []
        self.connections = 1
        self._send(frames.HELLO, device.encode())

    def _send(self, kind, payload):
        try:
            self.stream.write(frames.encode(kind, payload))
        except OSError:
            return False
        return True

    def send(self, payload: bytes) -> bool:
        """Send a request; False when the line is gone."""
        return self._send(frames.REQUEST, payload)

    def receive(self, wait_ms: int) -> bytes | None:
        """The next reply payload, or None when none has come after wait_ms milliseconds (0: do not wait)."""
        end = ticks_add(ticks_ms(), wait_ms)
        while True:
            for kind, payload in self.decoder.feed(self.stream.read() or b""):
                if kind == frames.ASK:
                    self._send(frames.HELLO, self.device.encode())
                elif kind in (frames.REPLY, frames.COMMAND):
                    waiting = self.queue if kind == frames.REPLY else self.commands
                    if len(waiting) >= QUEUE:
                        waiting.pop(0)
                        self.dropped += 1
                    waiting.append(payload)
            if self.queue:
                return self.queue.pop(0)
            left = remaining(end, wait_ms)
            if not left:
                return None
            self.stream.wait(left)

    def command(self) -> bytes | None:
        """The next command payload (JSON, not checked), or None."""
        return self.commands.pop(0) if self.commands else None

    def report(self, message: str) -> None:
        """Send telemetry (JSON text)."""
        self._send(frames.STATE, message.encode())

    def answer(self, message: str) -> None:
        """Send the answer to a command (JSON text)."""
        self._send(frames.ANSWER, message.encode())

    def show(self, n: int, k: int, decision: int, source: int) -> None:
        """Tell of the n-th decision; its bin k is 255 where the local model failed."""
        self._send(frames.DECISION, pack("<HBBB", n & 65535, k & 255, decision, source))

    def ended(self, message: str) -> None:
        """Tell that the node has come to its end, with its summary (JSON text)."""
        self._send(frames.END, message.encode())

    def close(self) -> None:
        self.stream.close()
