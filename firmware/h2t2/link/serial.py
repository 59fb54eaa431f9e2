# Serial link: the node's requests, replies and decisions as frames over a Stream, for a board without a network. The other end
# is `h2t2 gateway`. The Stream may be a line, or the datagrams of a radio (datagrams.py).
import json
from struct import pack

from ..clock import remaining, ticks_add, ticks_ms
from . import frames
from .link import Link

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Stream


class SerialLink(Link):
    """A link over a Stream. The gateway knows which workers there are: it answers wire.NOBODY at once where there is none.

    link = SerialLink(Stdio(), "porch", start.boot_number())
    """

    report_room = 0

    def __init__(self, stream: "Stream", device: str, boot: int = 0, limit: int = 256) -> None:
        """device: its name, which HELLO carries. boot: the number of this start. limit: bytes of a frame."""
        Link.__init__(self, boot)
        self.stream = stream
        self.device = device
        self.decoder = frames.Decoder(limit)
        self.connections = 1
        self._send(frames.HELLO, device)

    def _send(self, kind: int, payload: "bytes | str") -> bool:
        try:
            frames.send(self.stream, kind, payload)
        except OSError:
            return False
        return True

    def send(self, payload: bytes) -> bool:
        """Send a request; False when the line is gone."""
        return self._send(frames.REQUEST, payload)

    def receive(self, wait_ms: int) -> bytes | None:
        end = ticks_add(ticks_ms(), wait_ms)
        while True:
            for kind, payload in self.decoder.feed(self.stream.read() or b""):
                if kind == frames.ASK:
                    self._send(frames.HELLO, self.device)
                elif kind == frames.REPLY:
                    self._enqueue(self.replies, payload)
                elif kind == frames.COMMAND:
                    self._enqueue(self.commands, payload)
            if self.replies:
                return self.replies.pop(0)
            left_ms = remaining(end, wait_ms)
            if not left_ms:
                return None
            self.stream.wait(left_ms)

    def report_state(self, state: "dict[str, Any]", kind: int = frames.STATE) -> None:
        """Send a dict as JSON text, piece by piece: a heap in pieces has no room for the whole text."""
        try:
            frame = frames.Encoder(self.stream, kind)
            json.dump(state, frame)
            frame.end()
        except OSError:
            pass

    def answer(self, message: str) -> None:
        self._send(frames.ANSWER, message)

    def send_decision(self, n: int, k: int, decision: int, source: int) -> None:
        """Send the n-th decision; its bin k is 255 where the local model failed."""
        self._send(frames.DECISION, pack("<HBBB", n & 65535, k & 255, decision, source))

    def send_summary(self, summary: "dict[str, Any]") -> None:
        """Send the node's summary at its end."""
        self.report_state(summary, frames.END)

    def close(self) -> None:
        self.stream.close()
