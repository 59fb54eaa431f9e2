# What a model that keeps state has seen so far, saved beside what its policy has learned: a stream goes on where it was.
from struct import pack


class Memory:
    """ldl: an Int8Model whose bundle has variables. store: a store.Store of its own.

    ValueError for a model without state, or one whose state is not ours to read.
    """

    def __init__(self, ldl, store, log=print):
        if not getattr(ldl, "state_size", 0):
            raise ValueError("snapshot_ldl: the local model keeps no state, or is no bundle (.h2m)")
        self.ldl = ldl
        self.store = store
        self.key = pack("<I", ldl.checksum)  # a state is of one bundle
        try:
            blob = store.load()
            if blob and blob[:4] == self.key:
                ldl.restore(blob[4:])
        except (ValueError, OSError) as error:
            log("the local model's state is not taken up: %s" % error)

    def save(self) -> None:
        """Write it over the older of two; OSError where it cannot be written."""
        ldl = self.ldl
        self.store.write(4 + ldl.state_size, (self.key, memoryview(ldl.arena)[: ldl.state_size]))
