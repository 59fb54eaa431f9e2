# The interface of every link: what a node asks of it. All of ours derive from it; one of your own does too.
import json

from ..clock import FAR_MS


class Link:
    """Requests out, replies in, for one device.

    A link of your own overrides send() and receive() at least; every other member behaves as on a line that is always up.

        class RadioLink(Link):
            def send(self, payload):
                return radio.transmit(payload)

            def receive(self, wait_ms):
                return radio.listen(wait_ms)  # None without a reply

    Only open(), close() and receive(), for at most its argument, may wait.

    Attributes:
        boot: the number of this start.
        announcements: of workers that came or changed while the link listened.
        trouble: why there is no connection, in words.
        outlives_ms: the longest light sleep that the connection survives; before a longer one it is closed.
        lead_ms: how long reconnecting takes after a longer sleep.
        connections: connections so far.
        oversize: messages that were too large.
        dropped: messages that nobody took in time.
        refused: requests that send() refused.
        report_room: bytes of an unbroken block that a board keeps free for the next report_state(): the JSON text, and as it is
            sent.
        replies, commands: payloads that wait to be taken.
    """

    trouble = ""
    outlives_ms = FAR_MS
    report_room = 2048
    waiting_limit = 16
    lead_ms = announcements = connections = oversize = dropped = refused = 0

    def __init__(self, boot: int) -> None:
        """boot: the number of this start."""
        self.boot = boot
        self.replies: "list[bytes]" = []
        self.commands: "list[bytes]" = []

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the link's default). OSError, with the reason, without one."""

    def is_connected(self) -> bool:
        """Whether a request can be sent now."""
        return True

    def is_connecting(self) -> bool:
        """Whether an attempt to connect is under way, which a sleep would interrupt."""
        return False

    def workers(self) -> int:
        """How many workers serve the model, as far as they have announced themselves."""
        return 1

    def has_namesake(self) -> bool:
        """Whether another device has the same name."""
        return False

    if 0:  # what each link defines; boards have no room for these stubs

        def send(self, payload: bytes) -> bool:
            """Send a request (wire.encode_request). False where it cannot be sent; the link does not queue it then."""
            raise NotImplementedError

        def receive(self, wait_ms: int) -> bytes | None:
            """The next reply (wire.decode_reply reads it), or None when none has come after wait_ms (0: do not wait)."""
            raise NotImplementedError

    def command(self) -> bytes | None:
        """The next command's payload (JSON, not checked), or None."""
        return self.commands.pop(0) if self.commands else None

    def report_state(self, state: "dict[str, object]") -> None:
        """Publish the device's state with report(), as JSON text."""
        self.report(json.dumps(state))

    def report(self, message: str) -> None:
        """Publish the device's state (JSON text), retained; skip it where that is not possible now."""

    def answer(self, message: str) -> None:
        """Publish the answer to a command (JSON text); skip it where that is not possible now."""

    def is_deaf(self) -> bool:
        """Whether nothing passes any more and only a reset of the board may help."""
        return False

    def hold(self) -> None:
        """Begin no attempt to connect for half a minute: a device that sleeps at once again saves its battery."""

    def renew(self) -> None:
        """End the connection and make another."""

    def close(self) -> None:
        """End the connection for good."""

    def _enqueue(self, waiting: list[bytes], payload: bytes) -> None:
        """Append a payload to `replies` or `commands`; of more than waiting_limit the oldest is dropped."""
        if len(waiting) >= self.waiting_limit:
            waiting.pop(0)
            self.dropped += 1
        waiting.append(payload)
