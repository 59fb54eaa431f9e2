# Names of devices in topics, as hosts check them.
from ..link import wire

MAX_DEVICE = 64  # bytes of a device's name


def device_of(name: str) -> str | None:
    """The device in a topic(), or None for another topic."""
    levels = name.split("/", 3)
    return levels[2] if len(levels) == 4 and is_device(levels[2]) and name == wire.topic(levels[2], levels[3]) else None


def is_device(name: str) -> bool:
    """Whether a device may have this name: 1 to MAX_DEVICE bytes of UTF-8 without the special characters of topics."""
    return 0 < len(name.encode()) <= MAX_DEVICE and not [c for c in name if c in "/+#\0"]


def checked_device(name: str) -> str:
    """The name of a device, or ValueError for one that is_device() refuses."""
    if not is_device(name):
        raise ValueError("device name %r: want 1 to %d bytes without / + #" % (name, MAX_DEVICE))
    return name
