"""What h2t2.ldl.open.open_ldl allocates for a bundle on a board: MicroPython's blocks of 16 bytes, objects of 32 bits."""

from io import BytesIO

from h2t2.ldl.bounds import CONVOLUTIONS, room_size
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.steps import MODULES, NAMES
from h2t2.ldl.streamed import StreamedModel

BLOCK = 16
OBJECT = 32  # an instance, a tuple of three to seven
ARRAY = 16  # beside its numbers; a memoryview
MODEL = 240  # the Int8Model: itself, a table of its attributes, its lists and views
FILE = 1168  # open on littlefs as the Pico formats it: a cache of 1,024 bytes and the object around it

# the operators that have machine code
MACHINE_CODE = {name for name, module in zip(NAMES.split(), MODULES.split()) if module != "-"}


def footprint(content: bytes, mapped: bool = False, streamed: bool = False) -> int:
    """Bytes of heap; mapped: the bundle stays in flash (frozen, or a file in ROMFS); streamed: so do its weights, read a layer
    at a time; else it is read into RAM."""
    model = StreamedModel(BytesIO(content)) if streamed else Int8Model(content)
    return _allocated(model, 0 if mapped or streamed else len(content))


def _allocated(model: Int8Model, read: int) -> int:
    """Bytes of heap of an open model; read: of them those of its file."""
    total = _blocks(read)
    if isinstance(model, StreamedModel):
        lists = 2 * (BLOCK + _list(len(model.steps)))
        table = 256 + BLOCK  # of scores, which is read as well
        total += _blocks(len(model.weights)) + FILE + 3 * OBJECT + lists + 2 * BLOCK * len(model.steps) + table
    total += _blocks(len(model.arena)) + ARRAY + MODEL + _list(len(model.steps)) + BLOCK * len(model.steps)
    objects = sum(OBJECT + ARRAY + (4 * ARRAY if k and k[0] is not None else 3 * ARRAY if k else 0) for *_, k in model.steps)
    return total + objects + len(model.variables) * (OBJECT + ARRAY) + copied(model) + _room(model)


def _list(count: int) -> int:
    """Bytes of the places of a list that grew to so many: it doubles them, from 4 on."""
    return 16 << max(0, (count - 1).bit_length() - 2)


def _room(model: Int8Model) -> int:
    """Bytes in which the machine code of convolutions gathers its input, and the list that refers to them."""
    sizes = [room_size(step.__name__, p[7:]) for step, p, _ in model.steps if step.__name__ in CONVOLUTIONS]
    return 2 * BLOCK + ARRAY + _blocks(max(sizes)) if sizes else 0


def copied(model: Int8Model) -> int:
    """Bytes of parameters and constants that are copied out of the bundle: machine code reads constants where they are."""
    total = sum(_blocks(4 * len(numbers)) for numbers in model.variables)
    for step, numbers, constants in model.steps:
        total += _blocks(4 * len(numbers))
        if constants and (isinstance(model, StreamedModel) or step.__name__ not in MACHINE_CODE):
            biases, limbs, shifts = constants
            total += _blocks(2 * len(limbs)) + (_blocks(4 * len(biases)) if biases is not None else 0) + 3 * BLOCK
            if isinstance(model, StreamedModel):
                total += _blocks(len(shifts))
    return total


def on_a_board(content: bytes) -> dict[str, int]:
    """What a bundle takes there: flash; RAM for activations, of which for state that is kept; constants that are copied; all
    that opening it allocates, where the file is read, where it is executed from ROMFS, where its weights are streamed."""
    model = Int8Model(content)
    return {
        "bundle_bytes": len(content),
        "arena_bytes": len(model.arena),
        "state_bytes": model.state_size,
        "copied_bytes": copied(model),
        "steps": len(model.steps),
        "ram_bytes": _allocated(model, len(content)),
        "ram_bytes_mapped": _allocated(model, 0),
        "ram_bytes_streamed": footprint(content, streamed=True),
    }


def in_words(needs: dict[str, int]) -> str:
    """The figures of on_a_board() in a sentence."""
    state = f", {needs['state_bytes']:,} of them kept from one sample to the next" if needs["state_bytes"] else ""
    return (
        f"{needs['bundle_bytes']:,} bytes of flash, {needs['ram_bytes']:,} of RAM ({needs['ram_bytes_mapped']:,} from ROMFS, "
        f"{needs['ram_bytes_streamed']:,} streamed), of which {needs['arena_bytes']:,} for activations{state} and "
        f"{needs['copied_bytes']:,} for constants copied out of the bundle"
    )


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
