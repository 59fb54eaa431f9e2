# Frames on a serial line: kind byte, payload, CRC-16 (CCITT, from 0xffff), little-endian; COBS (Cheshire and Baker, 1999) keeps
# zeros out, a zero ends each. After noise the next zero puts both ends back in step.
REQUEST, REPLY, STATE, COMMAND, ANSWER, HELLO, ASK = 81, 65, 83, 67, 82, 72, 63  # the letters Q A S C R H ?
DECISION = 68  # D: number u16, bin, decision, source (0 local, 1 remote, 2 fallback), a byte each
END = 69  # E: the summary of a node that has ended, JSON text
LONGEST = 65536  # bytes of a frame, unless its reader sets a lower limit


def crc16(data: bytes | memoryview, crc: int = 65535) -> int:
    """CRC-16-CCITT (polynomial 0x1021) of bytes."""
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 65535 if crc & 32768 else crc << 1
    return crc


def encode(kind: int, payload: bytes) -> bytes:
    """The bytes of a frame: zero, COBS block, zero. The first zero ends any noise before it."""
    data = bytes([kind]) + bytes(payload)
    crc = crc16(data)
    data += bytes([crc & 255, crc >> 8])
    out = bytearray(1)
    start = 0
    while True:
        end = data.find(b"\0", start)
        run = (end if end >= 0 else len(data)) - start
        if run >= 254:
            out.append(255)
            out += data[start : start + 254]
            start += 254
            continue
        out.append(run + 1)
        out += data[start : start + run]
        if end < 0:
            break
        start = end + 1
    out.append(0)
    return bytes(out)


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
