# Lets heads that no label has taught begin with the mean of other devices' heads, which `h2t2 head` writes into a file. Host
# tools read and write these files by the same definitions. A board forgets this module once its node runs.
from binascii import crc32
from struct import calcsize, unpack_from

from ..core.head import FRESH_ROOT, LAST_ROOT, LIMIT, RATES

if 0:  # for type checkers
    from ..annotations import Any, BinaryIO, Callable, Sequence
    from ..core.head import Heads

MAGIC = b"H2HS"
VERSION = 1
HEADER = "<4sBBBBI"  # magic, version, classes, features, learning rates, number of the local model (of Heads.model)
SIZE = calcsize(HEADER)
# then, for each class (of two: for class 1), the weights and the roots of its heads, int32 each; then the CRC-32 of all bytes


def begin(policy: "Any", path: str, log: "Callable[[str], object]") -> None:
    """Let a policy's heads begin with those of a file, unless a label has taught them.

    A file that cannot be read, or is of other heads, changes nothing; the node logs the reason.

    Args:
        policy: AdaptiveHead or AdaptiveClassHead, which has adopted its local model.
        path: The file.
        log: Called with a line of text.
    """
    heads = policy.forecaster.heads
    learners = heads.of_class if policy.classes > 2 else (heads,)
    if learners[0].taught:
        return
    try:
        with open(path, "rb") as file:
            fill(learners, file, heads.model)
        log("%s: the head begins with what other devices have learned" % path)
    except (OSError, ValueError) as error:
        log("%s: %s; the head begins anew" % (path, error))


def fill(learners: "Sequence[Heads]", file: "BinaryIO", model: int) -> None:
    """Put the weights and roots of a file into heads.

    Args:
        learners: The Heads of each class; of two classes one.
        file: From its first byte on.
        model: Number of the local model that gives the features.

    Raises:
        ValueError: The file is damaged, or is of other heads. The heads are unchanged then.
    """
    header = file.read(SIZE)
    classes, features, number = of_header(header)
    own = max(2, len(learners)), learners[0].features
    if (classes, features) != own:
        raise ValueError("it is of %d classes and %d features, the policy of %d and %d" % (classes, features, own[0], own[1]))
    if number != model:
        raise ValueError("it is of another local model")
    crc = _read(learners, file, crc32(header), False)
    end = file.read(5)
    if len(end) != 4 or unpack_from("<I", end, 0)[0] != crc:
        raise ValueError("it is damaged: the checksum does not match")
    file.seek(SIZE)
    _read(learners, file, 0, True)


def of_header(header: bytes) -> "tuple[int, int, int]":
    """Return the numbers of classes, of features and of the local model. ValueError for bytes of another kind or version."""
    if len(header) < SIZE or header[:4] != MAGIC:
        raise ValueError("it is no file of `h2t2 head`")
    _, version, classes, features, rates, model = unpack_from(HEADER, header, 0)
    if version != VERSION or rates != len(RATES):
        raise ValueError("it has version %d, this runtime reads %d" % (version, VERSION))
    return classes, features, model


def _read(learners: "Sequence[Heads]", file: "BinaryIO", crc: int, store: bool) -> int:
    """Check the numbers of a file; store them, too, if `store`. Return the CRC-32 of their bytes after those of `crc`."""
    word = bytearray(4)
    for heads in learners:
        for values, lower, upper in ((heads.weights, -LIMIT, LIMIT), (heads.roots, FRESH_ROOT, LAST_ROOT)):
            for n in range(len(values)):
                if file.readinto(word) != 4:
                    raise ValueError("it is damaged: bytes are missing")
                value = unpack_from("<i", word, 0)[0]
                if not lower <= value <= upper:
                    raise ValueError("it is damaged: %d is not in %d..%d" % (value, lower, upper))
                if store:
                    values[n] = value
                crc = crc32(word, crc)
    return crc & 0xFFFFFFFF
