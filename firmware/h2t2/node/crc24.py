# The checksum of slots before snapshot version 5: CRC-24 of RFC 4880, section 6.1. It is only read, after an upgrade.
START = 0xB704CE

# CRC-24 table: the remainder of each 4-bit value
_NIBBLES = (
    0x000000, 0x864CFB, 0x8AD50D, 0x0C99F6, 0x93E6E1, 0x15AA1A, 0x1933EC, 0x9F7F17,
    0xA18139, 0x27CDC2, 0x2B5434, 0xAD18CF, 0x3267D8, 0xB42B23, 0xB8B2D5, 0x3EFE2E,
)  # fmt: skip


def crc24(data: "bytes | bytearray | memoryview", crc: int = START) -> int:
    """Return the checksum (polynomial 0x864CFB) of bytes after those with the checksum `crc`. It fits a small int."""
    for byte in data:
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte >> 4]
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte & 15]
    return crc
