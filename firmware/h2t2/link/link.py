# The interface of every link: what a node asks of it. All of ours derive from it; one of your own does too.
from ..clock import FAR_MS
from .presence import Namesakes, Presence


class Link:
    """Requests out, replies in, for one device.

    boot: the number of this start. workers: how many remote workers `presence` remembers at most.
    A link of your own overrides send() and receive() at least; every other member has the answer of a line that is always up.
    No member may wait, but receive() for at most its argument, open() and close().

    presence: what is known of the workers. namesakes: whether another device bears this name. trouble: why there is no
    connection, in words. outlives_ms: the longest light sleep that the connection outlives; before a longer one it is closed.
    lead_ms: what connecting anew takes then. Counters: `connections`; `oversize`, messages too large; `dropped`, replies never
    taken; `refused`, sends while down or full.
    """

    trouble = ""
    outlives_ms = FAR_MS
    lead_ms = connections = oversize = dropped = refused = 0

    def __init__(self, boot, workers=32):
        self.boot = boot
        self.presence = Presence(workers)
        self.namesakes = Namesakes(boot)

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: a time of its own). OSError, saying why, without one."""

    def is_connected(self) -> bool:
        """Whether a request can be sent now."""
        return True

    def is_connecting(self) -> bool:
        """Whether an attempt to connect is under way: a device that sleeps now would never end it."""
        return False

    def workers(self) -> int:
        """How many workers serve the model, as far as they have announced themselves."""
        return 1

    def send(self, payload: bytes) -> bool:
        """Send a request (wire.encode_request). False where it cannot be sent; nothing is queued then."""
        raise NotImplementedError

    def receive(self, wait_ms: int) -> bytes | None:
        """The next reply (wire.decode_reply reads it), or None when none has come after wait_ms (0: do not wait)."""
        raise NotImplementedError

    def command(self) -> bytes | None:
        """The next command's payload (JSON, not checked), or None."""

    def report(self, message: str) -> None:
        """Publish the device's state (JSON text), retained; left out where it cannot be published."""

    def answer(self, message: str) -> None:
        """Publish the answer to a command (JSON text); left out where it cannot be published."""

    def hold(self) -> None:
        """Begin no attempt to connect for half a minute: a device that sleeps at once again saves its battery."""

    def renew(self) -> None:
        """End the connection and make another."""

    def close(self) -> None:
        """Say farewell and end it for good."""
