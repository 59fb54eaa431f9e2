# Frames on a serial line: kind byte, payload, CRC-16 (CCITT, from 0xffff), little-endian; COBS (Cheshire and Baker, 1999) keeps
# zeros out, a zero ends each. After noise the next zero puts both ends back in step.
from io import IOBase

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any

REQUEST, REPLY, STATE, COMMAND, ANSWER, HELLO, ASK = 81, 65, 83, 67, 82, 72, 63  # the letters Q A S C R H ?
DECISION = 68  # D: number u16, bin, decision, source (0 local, 1 remote, 2 fallback), a byte each
END = 69  # E: the summary of a node that has ended, JSON text. datagrams.py has V
PIECE = 256  # bytes of a frame, from which on they are sent
LONGEST = 65536  # bytes of a frame, unless its reader sets a lower limit


def crc16(data: bytes | memoryview, crc: int = 65535) -> int:
    """CRC-16-CCITT (polynomial 0x1021) of bytes."""
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 65535 if crc & 32768 else crc << 1
    return crc


class Encoder(IOBase):
    """A frame that goes out while its payload comes in: zero, COBS blocks, zero. The first zero ends any noise before it."""

    def __init__(self, line: "Any", kind: int) -> None:
        """line: has write(data), which gets pieces of 512 bytes at most. kind: of the frame."""
        self.line = line
        self.piece = bytearray(2)
        self.code = 1  # where the block begins
        self.crc = 65535
        self.write(bytes([kind]))

    def write(self, data: "bytes | str") -> int:
        """Append bytes, or a text as UTF-8, to the payload. Return its length."""
        if isinstance(data, str):
            data = data.encode()
        self.crc = crc16(data, self.crc)
        self._append(data)
        return len(data)

    def end(self) -> None:
        """Complete the frame."""
        self._append(bytes([self.crc & 255, self.crc >> 8]))
        self.piece[self.code] = len(self.piece) - self.code
        self.piece.append(0)
        self.line.write(self.piece)

    def _append(self, data: bytes) -> None:
        piece = self.piece
        for byte in data:
            if byte:
                piece.append(byte)
            if not byte or len(piece) - self.code == 255:
                piece[self.code] = len(piece) - self.code
                if len(piece) >= PIECE:
                    self.line.write(piece)
                    piece = self.piece = bytearray()
                self.code = len(piece)
                piece.append(0)


def send(line: "Any", kind: int, *parts: "bytes | str") -> None:
    """Write a frame to a line, as Encoder does; its payload is these parts."""
    frame = Encoder(line, kind)
    for part in parts:
        frame.write(part)
    frame.end()


class Decoder:
    """Bytes in, frames out.

    Attributes:
        frames: how many frames came.
        noise: how many blocks were no frame: a bad code, a bad checksum, too long.
    """

    def __init__(self, limit: int = LONGEST) -> None:
        """limit: bytes of a frame; the decoder skips a longer one and takes no memory for it."""
        self.limit = limit
        self.block = bytearray()
        self.overflow = False
        self.frames = self.noise = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """[(kind, payload)] of the frames that end in these bytes."""
        frames = []
        for byte in data:
            if byte:
                if len(self.block) < self.limit:
                    self.block.append(byte)
                else:
                    self.overflow = True
            elif self.block:
                frame = None if self.overflow else decode(self.block)
                if frame:
                    self.frames += 1
                    frames.append(frame)
                else:
                    self.noise += 1
                self.block = bytearray()
                self.overflow = False
        return frames


def decode(block: bytearray) -> tuple[int, bytes] | None:
    """(kind, payload) of a COBS block without its zeros, or None for noise."""
    out = bytearray()
    at = 0
    while at < len(block):
        code = block[at]
        if at + code > len(block):
            return None
        out += block[at + 1 : at + code]
        at += code
        if code < 255 and at < len(block):
            out.append(0)
    if len(out) < 3 or crc16(memoryview(out)[: len(out) - 2]) != out[len(out) - 2] | out[len(out) - 1] << 8:
        return None
    return out[0], bytes(memoryview(out)[1 : len(out) - 2])
