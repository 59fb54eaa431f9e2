# The checksum of slots before snapshot version 5: CRC-24 of RFC 4880, section 6.1. It is only read, after an upgrade.
START = 0xB704CE

# what four bits more do to it
_NIBBLES = (
    0x000000, 0x864CFB, 0x8AD50D, 0x0C99F6, 0x93E6E1, 0x15AA1A, 0x1933EC, 0x9F7F17,
    0xA18139, 0x27CDC2, 0x2B5434, 0xAD18CF, 0x3267D8, 0xB42B23, 0xB8B2D5, 0x3EFE2E,
)  # fmt: skip


def crc24(data, crc: int = START) -> int:
    """The checksum of more bytes, after those whose checksum is `crc` (polynomial 0x864CFB): it fits a 31-bit small int."""
    for byte in data:
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte >> 4]
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte & 15]
    return crc
