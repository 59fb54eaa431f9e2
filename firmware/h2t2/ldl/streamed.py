# A bundle whose weights stay in its file: each layer's are read when its turn comes, into a buffer as large as the largest.
from .buffers import collect, take
from .bundle import Int8Model

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any


class FileBytes:
    """An open file that is sliced and indexed like bytes; each access reads from the file."""

    def __init__(self, file: "Any") -> None:
        self.file = file
        self.size: int = file.seek(0, 2)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: "Any") -> "Any":
        if isinstance(key, int):
            self.file.seek(key)
            return self.file.read(1)[0]
        start = key.start or 0
        stop = self.size if key.stop is None else min(key.stop, self.size)
        self.file.seek(start)
        return self.file.read(max(0, stop - start))


class StreamedModel(Int8Model):
    """An Int8Model of an open file, which stays open. run() raises OSError where the file cannot be read any more."""

    def __init__(self, file: "Any", event: int = 1) -> None:
        # of each step: where its weights begin in the file, and how many bytes there are
        self.places: "list[tuple[int, int]]" = []
        Int8Model.__init__(self, FileBytes(file), event)
        self.file = file
        self.weights = memoryview(take(max([0] + [size for _, size in self.places])))
        self.views = [self.weights[:size] for _, size in self.places]

    def _add_step(self, step: "tuple[Any, Any, Any]", weights_size: int) -> None:
        p = step[1]
        self.places.append((p[6], weights_size))
        if weights_size:
            p[6] = 0  # in the buffer
        self.steps.append(step)
        collect()  # garbage of this step would leave holes too small for the next step's numbers

    def run_step(self, n: int) -> None:
        at, size = self.places[n]
        if size:
            self.file.seek(at)
            if self.file.readinto(self.views[n]) != size:
                raise OSError("the bundle's file has become shorter")
        kernel, p, k = self.steps[n]
        kernel(self.arena, self.weights, p, k)
