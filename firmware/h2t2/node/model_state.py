# The state of a streaming model. A module of its own, which only nodes with `snapshot_ldl` load.
from struct import pack

if 0:  # for type checkers
    from ..annotations import Callable, Iterator
    from ..ldl.bundle import Int8Model
    from .store import Store


class ModelState:
    """Saves the state of a streaming model beside the policy, so that the stream continues after a restart.

    Args:
        ldl: An Int8Model whose bundle has variables.
        store: A store of its own.
        log: Called with a line of text.

    Raises:
        ValueError: The model keeps no state, or one that the runtime cannot read.
    """

    def __init__(self, ldl: "Int8Model", store: "Store", log: "Callable[[str], object]" = print):
        if not getattr(ldl, "state_size", 0):
            raise ValueError("snapshot_ldl: the local model keeps no state, or is no bundle (.h2m)")
        self.ldl = ldl
        self.store = store
        self.key = pack("<I", ldl.checksum)  # a state belongs to one bundle
        try:
            blob = store.load()
            if blob and blob[:4] == self.key:
                if len(blob) != 4 + ldl.state_size:
                    raise ValueError("%d bytes, this bundle has %d" % (len(blob) - 4, ldl.state_size))
                ldl.arena[: ldl.state_size] = bytes(blob[4:])
        except (ValueError, OSError) as error:
            log("the local model's state is not taken up: %s" % error)

    def saving(self) -> "Iterator[None]":
        """Write the state over the older of two in pieces; OSError where it cannot be written."""
        ldl = self.ldl
        return self.store.writing(4 + ldl.state_size, (self.key, memoryview(ldl.arena)[: ldl.state_size]))
