# A sensor that plays back a file of records: what a board without a real sensor is tested and shown with.


class Recorded:
    """Calling it gives (LDL input, remote tensor, number of the sample) of the next record; StopIteration after the last.

    path: records of `local` + `remote` bytes, int8 tensors as they are.
    Raises ValueError where it cannot be read or is not whole records.
    """

    def __init__(self, path, local, remote):
        self.local = local
        self.size = local + remote
        try:
            self.file = open(path, "rb")
        except OSError as error:
            raise ValueError("%s: no recorded samples: %s" % (path, error)) from None
        length = self.file.seek(0, 2)
        if not length or length % self.size:
            raise ValueError("%s: %d bytes are not whole records of %d + %d" % (path, length, local, remote))
        self.file.seek(0)
        self.records = length // self.size
        self.n = 0

    def __call__(self):
        if self.n == self.records:
            raise StopIteration
        record = memoryview(self.file.read(self.size))
        self.n += 1
        return record[: self.local], record[self.local :], self.n - 1
