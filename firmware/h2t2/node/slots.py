# The two slots of updates: the files of an update, which lie beside what was flashed, and what it changes in the configuration.
import json
import os
from binascii import crc32

from . import package
from .arrival import folder, remove

if 0:  # for type checkers
    from ..annotations import Any, BinaryIO

MAX_SECONDS = 1 << 22  # of a trial that a package may ask for: 48 days
KINDS = (("event", int), ("arguments", dict), ("measured", dict), ("app", bool), ("seconds", int))  # of entries in MORE
SUFFIXES = (".h2m", ".test", ".json", ".0", ".1", ".ldl.0", ".ldl.1")  # files of a slot, beside its program


class Slots:
    """Slots 1 and 2 of a node.

    Args:
        config: The configuration that was flashed, with `snapshot` and `update`.
    """

    def __init__(self, config: "dict[str, Any]"):
        self.config = config
        self.base = config["snapshot"]  # type: str
        self.takes_programs = config["update"]["app"]

    def name(self, slot: int) -> str:
        """Return how the names of a slot's files begin."""
        return "%s.u%d" % (self.base, slot)

    def install(self, slot: int, file: "BinaryIO", id: int) -> "dict[str, Any]":
        """Copy the parts of a package into a slot and return the object in its part MORE; ValueError for a wrong package."""
        parts = package.parts(file)
        tags = [tag for tag, _, _ in parts]
        if package.LDL not in tags or package.TEST not in tags or package.DETAILS not in tags:
            raise ValueError("the package lacks a model, its test, or what belongs to it")
        if package.APP in tags and not self.takes_programs:
            raise ValueError("the package brings a program; this node's configuration does not allow that")
        for tag, offset, size in parts:
            package.copy(file, offset, size, self._path(slot, tag, id))
        return checked(self.name(slot) + ".json", package.APP in tags)

    def configuration(self, slot: int, checksum: "int | None") -> "dict[str, Any]":
        """Return the flashed configuration with what the update in a slot replaces.

        Args:
            slot: 1 or 2.
            checksum: As checksum() returned it at the installation; None: a runtime installed it that knew no checksums.

        Raises:
            ValueError, OSError: A file is damaged or missing.
        """
        name = self.name(slot)
        config = dict(self.config)
        os.stat(name + ".h2m")
        config["ldl"] = name + ".h2m"
        config["snapshot"] = name
        if checksum is not None and checksum != self.checksum(slot):
            raise ValueError("they are damaged: the checksum does not match")
        with open(name + ".json") as file:
            changes = json.load(file)
        arguments = dict(config["arguments"])
        arguments.update(changes.get("arguments", {}))
        if config["policy"] != "adaptive":
            arguments.pop("prior", None)
        if "features" in arguments:  # a head learns from what this model gives
            arguments["features"] = changes.get("features", 0) + config.get("context", 0)
            if not arguments["features"]:
                del arguments["features"]
        config["arguments"] = arguments
        config["event"] = changes["event"]
        if "measured" in changes and "measured" in config:
            config["measured"] = changes["measured"]
        if self.takes_programs and changes.get("app"):
            program = self._program(slot)
            if not program:
                raise ValueError("its program is not there")
            config["app"] = program[:-3]
            _notice_new_modules()
        return config

    def checksum(self, slot: int) -> int:
        """Return the CRC-32 of the files of a slot that have no checksum of their own: the .json and the program."""
        crc = 0
        program = self._program(slot)
        for path in (self.name(slot) + ".json", program and folder(self.base) + program):
            if path:
                with open(path, "rb") as file:
                    while True:
                        data = file.read(package.PIECE)
                        if not data:
                            break
                        crc = crc32(data, crc)
        return crc & 0xFFFFFFFF

    def clear(self, slot: int) -> None:
        """Remove the files of a slot, which no record names; slot 0 has none."""
        if slot:
            for suffix in SUFFIXES:
                remove(self.name(slot) + suffix)
            for place in (folder(self.base), folder(self.base) + "__pycache__/"):
                for name in _named(place, "app_u%d" % slot):
                    remove(place + name)

    def _program(self, slot: int) -> str:
        """Return the name of a slot's program in the node's folder, "" for none."""
        names = _named(folder(self.base), "app_u%d" % slot)
        return names[0] if names else ""

    def _path(self, slot: int, tag: bytes, id: int) -> str:
        """Return the file for a part. The name of a program contains the package's id, as a process cannot import two programs
        by one name."""
        if tag == package.APP:
            return "%sapp_u%d_%08x.py" % (folder(self.base), slot, id)
        return self.name(slot) + SUFFIXES[package.TAGS.index(tag)]


def checked(path: str, program: bool) -> "dict[str, Any]":
    """Return the object in a package's part MORE, in a file.

    Args:
        path: The file.
        program: Whether the package brings a program.

    Raises:
        ValueError: No node could use it.
    """
    try:
        with open(path) as file:
            content = json.load(file)
    except RuntimeError:  # CPython's RecursionError
        raise ValueError("part MORE: nested too deep") from None
    if type(content) is not dict:
        raise ValueError("part MORE is no JSON object")
    for name, kind in KINDS:
        if name in content and type(content[name]) is not kind:
            raise ValueError("part MORE: %s is of another kind than %s" % (name, kind.__name__))
    scores = content.get("scores")
    if scores is not None and (type(scores) is not list or [n for n in scores if type(n) is not int or not 0 <= n <= 32768]):
        raise ValueError("part MORE: scores are no list of shares")
    if "event" not in content or not 0 <= content.get("seconds", 0) <= MAX_SECONDS:
        raise ValueError("part MORE: it lacks an event, or its seconds are out of range")
    if content.get("app") and not program:
        raise ValueError("part MORE: it names a program, and there is none")
    return content


def identity(path: str) -> "list[int]":
    """Return [size, CRC-32 of the first KB] of a file, by which a newly flashed model is recognised; [0, 0] without a file."""
    try:
        with open(path, "rb") as file:
            return [file.seek(0, 2), file.seek(0) or crc32(file.read(1024)) & 0xFFFFFFFF]
    except OSError:
        return [0, 0]


def _named(place: str, start: str) -> "list[str]":
    """Return the files in a folder ("" or with a slash at its end) whose names start so."""
    try:
        return [name for name in os.listdir(place or ".") if name.startswith(start)]
    except OSError:
        return []


def _notice_new_modules() -> None:
    """CPython remembers which modules a folder has."""
    try:
        from importlib import invalidate_caches
    except ImportError:  # MicroPython does not
        return
    invalidate_caches()
