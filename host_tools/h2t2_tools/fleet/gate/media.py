"""The media types of pictures and clips, by their first bytes."""

SIGNATURES = (
    ("image/jpeg", 0, b"\xff\xd8\xff"),
    ("image/png", 0, b"\x89PNG\r\n\x1a\n"),
    ("image/webp", 8, b"WEBP"),
    ("audio/wav", 8, b"WAVE"),
    ("audio/flac", 0, b"fLaC"),
    ("audio/ogg", 0, b"OggS"),
    ("audio/mpeg", 0, b"ID3"),
    *(("audio/mpeg", 0, bytes([0xFF, second])) for second in (0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2)),  # a frame without a tag
    ("audio/mp4", 4, b"ftyp"),
)  # media type, and the bytes at a place of the data by which we know it


def media_of(data: bytes) -> str:
    """The type of a picture or a clip by its bytes. ValueError for another kind of data."""
    for media, at, signature in SIGNATURES:
        if data[at : at + len(signature)] == signature:
            return media
    raise ValueError("want a picture (JPEG, PNG, WebP) or a clip (WAV, FLAC, Ogg, MP3, M4A)")
