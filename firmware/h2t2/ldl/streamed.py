# A bundle whose weights stay in its file: each layer's are read when its turn comes, into a buffer as large as the largest.
from .bundle import Int8Model
from .room import collect, take


class FileBytes:
    """An open file, sliced and indexed as bytes are; what is asked for is read."""

    def __init__(self, file):
        self.file = file
        self.size = file.seek(0, 2)

    def __len__(self):
        return self.size

    def __getitem__(self, key):
        if isinstance(key, int):
            self.file.seek(key)
            return self.file.read(1)[0]
        start = key.start or 0
        stop = self.size if key.stop is None else min(key.stop, self.size)
        self.file.seek(start)
        return self.file.read(max(0, stop - start))


class Streamed(Int8Model):
    """As Int8Model, of an open file, which stays open. OSError of run() where it cannot be read any more."""

    def __init__(self, file, event=1, bits=4):
        # of each step: where its weights begin in the file, and how many bytes there are
        self.places = []  # type: list[tuple[int, int]]
        Int8Model.__init__(self, FileBytes(file), event, bits)
        self.file = file
        self.weights = memoryview(take(max([0] + [size for _, size in self.places])))
        self.views = [self.weights[:size] for _, size in self.places]

    def _keep(self, p, size):
        self.places.append((p[6], size))
        if size:
            p[6] = 0  # in the buffer
        collect()  # what was read on the way would leave holes too small for the next step's numbers

    def _infer(self):
        for n in range(len(self.steps)):
            at, size = self.places[n]
            if size:
                self.file.seek(at)
                if self.file.readinto(self.views[n]) != size:
                    raise OSError("the bundle's file has become shorter")
            step, p, k = self.steps[n]
            step(self.arena, self.weights, p, k)
