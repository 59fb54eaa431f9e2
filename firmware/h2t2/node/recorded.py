# A sensor that plays back a file of records, for tests and demonstrations of a board without a real sensor.


class Recorded:
    """Returns (LDL input, remote tensor, number of the sample) of the next record when called; StopIteration after the last.

    Args:
        path: File of records of `local` + `remote` bytes, both int8 tensors.
        local, remote: Bytes of the tensors.

    Raises:
        ValueError: The file cannot be read or does not consist of complete records.
    """

    def __init__(self, path: str, local: int, remote: int):
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

    def __call__(self) -> "tuple[memoryview, memoryview, int]":
        if self.n == self.records:
            raise StopIteration
        record = memoryview(self.file.read(self.size))
        self.n += 1
        return record[: self.local], record[self.local :], self.n - 1
