# Frames over datagrams, such as ESP-NOW's: small, lost at times, and not always in order. A datagram is its number u8, then
# bytes of one frame (frames.py), whose checksum covers them all. The first datagram of a frame begins with zero, as it does.
SIZE = 250  # bytes of a datagram: what every version of ESP-NOW carries
AT_ONCE = 8  # datagrams that one read() takes
VIA = 86  # V, a frame on a gateway board's line: the address of the board that has sent a datagram or shall get it, then that
ADDRESS = 6  # bytes of that address


class Datagrams:
    """A Stream of SerialLink: cuts frames into datagrams, and joins those that come. A radio overrides send() and receive().

    A frame of one datagram may overtake others. A longer frame is lost unless its datagrams come in their order; what it asked
    is then decided at its deadline.

    Attributes:
        lost: datagrams that were dropped, because the one before them had not come.
    """

    def __init__(self) -> None:
        self.number = self.lost = 0
        self.following = -1  # number of the datagram that may continue a frame
        self.waiting: "bytes | None" = None

    def send(self, datagram: bytes) -> None:
        """Send a datagram. OSError: it did not arrive."""
        raise NotImplementedError

    def receive(self, wait_ms: int) -> bytes | None:
        """The next datagram, b"" for one of somebody else, or None when none has come after wait_ms (0: do not wait)."""
        raise NotImplementedError

    def write(self, data: "bytes | bytearray") -> None:
        """Send bytes of a frame. OSError: a part of them did not arrive."""
        for at in range(0, len(data), SIZE - 1):
            self.send(bytes([self.number]) + data[at : at + SIZE - 1])
            self.number = self.number + 1 & 255

    def wait(self, ms: int) -> None:
        if not self.waiting:
            self.waiting = self.receive(ms)

    def read(self) -> bytes:
        data = b""
        for _ in range(AT_ONCE):
            datagram = self.waiting or self.receive(0)
            self.waiting = None
            if datagram is None:
                break
            data += self.join(datagram)
        return data

    def join(self, datagram: bytes) -> bytes:
        """Return the bytes of a datagram that has come, for a frames.Decoder; none of one that continues nothing."""
        if not 2 <= len(datagram) <= SIZE:
            return b""
        if datagram[1] and datagram[0] != self.following:
            self.lost += 1
            return b""
        self.following = datagram[0] + 1 & 255
        return datagram[1:]

    def close(self) -> None:
        """End the use of the radio."""
