# Measures the heap that an update takes. The host defines FOLDER (with ldl.h2m and a package new.h2u for it), KEY (a modulus,
# hexadecimal) and LEAVE, the bytes in one piece that are free when it comes; 0: all. It prints "code state coming", bytes
# of each, or with LEAVE "whole" if that was enough.
import gc
import json
import os
from binascii import crc32
from struct import pack

from h2t2.node.asking import Asking
from h2t2.node.limit import Limit
from h2t2.node.node import Complaints, Node
from h2t2.node.store import file_store


def used():
    gc.collect()
    return gc.mem_alloc()


class Running(Asking):
    """The part of a service that an update reads."""

    def __init__(self):
        Asking.__init__(self, 4)
        self.node = self.sensing = self
        self.errors = self.every_ms = self.every_us = 0
        self.complain = Complaints(print)


def bring(look):
    """Take every chunk. Return the largest value that look() returned after one."""
    with open("new.h2u", "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        number = package.id_of(file.read(package.SIGNED))
        peak = at = 0
        file.seek(0)
        while at < size:
            data = file.read(package.MOST_DATA)
            chunk = pack("<4sIIII", package.CHUNK, number, size, at, crc32(data)) + data
            answer, complete = updates.take(chunk, running)
            if not complete and not json.loads(answer)["ok"]:
                raise MemoryError(answer)
            at += len(data)
            peak = max(peak, look())
        return peak


def filled(leave):
    """Fill the heap except for `leave` bytes in one piece."""
    hole = bytearray(leave)
    blocks = None
    size = 4096
    while size >= 16:
        gc.collect()
        if gc.mem_free() < size + 256:
            size //= 2
            continue
        try:
            blocks = blocks, bytearray(size)
        except MemoryError:
            size //= 2
    hole = None
    return blocks or hole


os.chdir(FOLDER)  # noqa: F821
running, loaded_modules = Running(), (Limit, Node, file_store)  # a node has loaded these anyway
empty = used()
from h2t2.node import package  # noqa: E402
from h2t2.node.update import Updates  # noqa: E402

code = used() - empty
config = {"ldl": "ldl.h2m", "snapshot": "state", "event": 1, "model_id": 2, "policy": "adaptive", "arguments": {"bits": 4}}
config["update"] = {"key": KEY, "max_bytes": 1 << 20, "app": False}  # noqa: F821
before = used()
updates = Updates(config, lambda line: None)
updates.begin()
state = used() - before
if LEAVE:  # noqa: F821
    ballast = filled(LEAVE)  # noqa: F821
    try:
        bring(lambda: 0)
        print("whole")
    except MemoryError:
        ballast = None
        print("short")
else:
    base = used()
    print(code, state, bring(lambda: used() - base))
