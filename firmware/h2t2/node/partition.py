# A firmware that came by update to an ESP32 with two partitions for one. Its bootloader starts the new one once, and returns
# to the one before at the next reset, unless the new one is kept.
from esp32 import Partition

from . import board, package

if 0:  # for type checkers
    from ..annotations import Any, BinaryIO

BLOCK = 4096
CHIP = 12  # offset of the chip's number, u16, in an image


def running() -> str:
    """Return the label of the partition whose firmware runs."""
    label: str = Partition(Partition.RUNNING).info()[4]
    return label


def spare() -> "Any":
    """Return the partition for another firmware."""
    return Partition(Partition.RUNNING).get_next_update()


def check(number: int, size: int) -> None:
    """Raise ValueError unless the board takes a firmware of `size` bytes for the chip of that number."""
    try:
        room = spare().info()[3]
        Partition.mark_app_valid_cancel_rollback()
    except OSError as error:
        raise ValueError("this board has no second partition, or a bootloader that does not return: %s" % error) from None
    if size > room:
        raise ValueError("a firmware of %d bytes; the partition has %d" % (size, room))
    block = bytearray(BLOCK)
    Partition(Partition.RUNNING).readblocks(0, block)
    ours = block[CHIP] | block[CHIP + 1] << 8
    if number != ours:
        raise ValueError("a firmware for chip %d; this is chip %d" % (number, ours))


def install(file: "BinaryIO") -> "tuple[str, dict[str, Any]]":
    """Write a package's firmware into the spare partition; return its label and the package's part MORE."""
    from .runtime import part_with_details  # here, so that this module does not keep the other in memory

    offset, size, details = part_with_details(file, package.IMAGE)
    file.seek(offset)
    block = bytearray(BLOCK)
    partition = spare()
    for n in range((size + BLOCK - 1) // BLOCK):
        board.feed()
        count = file.readinto(memoryview(block)[: min(BLOCK, size - n * BLOCK)])
        block[count:] = b"\xff" * (BLOCK - count)
        partition.writeblocks(n, block)
    return partition.info()[4], details


def select(label: str) -> None:
    """Let the next start run the firmware of that partition; OSError if it holds none."""
    Partition(label).set_boot()


def keep() -> None:
    """Let later starts run this firmware, too."""
    Partition.mark_app_valid_cancel_rollback()
