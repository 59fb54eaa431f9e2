# A runtime that came by update. It lies in one of two folders beside the flashed runtime, which remains. A mark tells
# selector.py, which runs before any runtime, the folder in force and the one on trial. A board has this module in memory only
# at a start and while it installs.
import json
import os
import sys
from struct import unpack_from

from . import board, package
from .arrival import remove
from .store import exists

if 0:  # for type checkers
    from ..annotations import Any, BinaryIO

FLASHED = "."  # in place of a folder
FOLDERS = "h2t2_1", "h2t2_2"
MARK = "h2t2.runtime"
STATE, ASIDE = (".0", ".1", ".ldl.0", ".ldl.1"), ".aside"  # ends of the names of a snapshot's files, and of their copies


def running_folder() -> str:
    """Return the folder whose runtime runs."""
    folder = __file__.rpartition("/h2t2/node/")[0].rpartition("/")[2]
    return folder if folder in FOLDERS else FLASHED


def is_used(folder: str) -> bool:
    """Return whether an update has brought a runtime, which may be in force (folder) or on trial, or of which files remain."""
    return folder != FLASHED or any(exists(name) for name in (MARK,) + FOLDERS)


def mark() -> "tuple[str, str, int] | None":
    """Return the folders before and on trial, and the remaining starts of the trial; 0: the first folder is in force. None: no
    mark, the flashed runtime is in force."""
    try:
        with open(MARK) as file:
            before, trial, starts = file.read().split()
        return before, trial, int(starts)
    except (OSError, ValueError):
        return None


def select(before: str, trial: str = FLASHED, starts: int = 0) -> None:
    """Write the mark, as mark() returns it. A power cut leaves the old or the new one."""
    if (before, starts) == (FLASHED, 0):
        remove(MARK)
        return
    with open(MARK + ".new", "w") as file:
        file.write("%s %s %d" % (before, trial, starts))
        package.sync(file)
    os.rename(MARK + ".new", MARK)


def check(number: int) -> None:
    """Raise ValueError unless this board loads .mpy files of that number, the lower 16 bits of sys.implementation._mpy.

    0: sources; without an architecture (bits 10 to 15): bytecode alone.
    """
    ours = getattr(sys.implementation, "_mpy", 0) & 0xFFFF
    if not ours:
        raise ValueError("this node's runtime is an installed package: update it with pip")
    if number not in (0, ours & 0xFF, ours):
        raise ValueError("a runtime for .mpy %d.%d, processor %d; this board loads %d.%d, %d" % (_parts(number) + _parts(ours)))


def _parts(number: int) -> "tuple[int, int, int]":
    return number & 255, number >> 8 & 3, number >> 10


def part_with_details(file: "BinaryIO", tag: bytes) -> "tuple[int, int, dict[str, Any]]":
    """Return offset and size of a package's part `tag`, and the object in its part MORE; ValueError for a wrong package."""
    places = {}
    for name, offset, size in package.parts(file):
        places[name] = offset, size
    if package.DETAILS not in places or tag not in places:
        raise ValueError("the package lacks a %s, or what belongs to it" % ("firmware" if tag == package.IMAGE else "runtime"))
    offset, size = places[package.DETAILS]
    file.seek(offset)
    details = json.loads(file.read(size))
    if type(details) is not dict or type(details.get("seconds")) is not int or details["seconds"] < 0:
        raise ValueError("part MORE of a runtime lacks its seconds")
    return places[tag] + (details,)


def install(file: "BinaryIO", folder: str) -> "dict[str, Any]":
    """Unpack a package's runtime into a folder and return the object in its part MORE; ValueError for a wrong package."""
    offset, size, details = part_with_details(file, package.FILES)
    clear(folder)
    end = offset + size
    while offset < end:
        file.seek(offset)
        head = file.read(5)
        length, size = unpack_from("<BI", head, 0)
        path = file.read(length).decode()
        if path[:5] != "h2t2/" or ".." in path:
            raise ValueError("%s is no file of a runtime" % path)
        board.feed()  # a board takes some seconds for all of them
        _make_folders(folder, path)
        package.copy(file, offset + 5 + length, size, folder + "/" + path)
        offset += 5 + length + size
    return details


def _make_folders(folder: str, path: str) -> None:
    for name in path.split("/"):
        if not exists(folder):
            os.mkdir(folder)
        folder += "/" + name


def set_state_aside(base: str) -> None:
    """Copy what a node has learned: a runtime on trial may save it in a form that the one before does not read.

    base: how the names of its files begin. A file that does not exist gets an empty copy, which a store takes for none.
    """
    for suffix in STATE:
        path = base + suffix
        if exists(path):
            with open(path, "rb") as file:
                package.copy(file, 0, file.seek(0, 2), path + ASIDE)
        else:
            open(path + ASIDE, "wb").close()


def settle_state(base: str, back: bool) -> None:
    """Remove the copies of set_state_aside(); back: put them into their places."""
    for suffix in STATE:
        path = base + suffix
        if not back:
            remove(path + ASIDE)
        elif exists(path + ASIDE):
            os.rename(path + ASIDE, path)


def spare(folder: str) -> str:
    """Return the folder for a package beside the runtime in that folder."""
    return FOLDERS[folder == FOLDERS[0]]


def clear_others(folder: str) -> None:
    """Remove the folders of all runtimes but one."""
    for name in FOLDERS:
        if name != folder:
            clear(name)


def clear(folder: str) -> None:
    """Remove a folder with what it holds."""
    if not exists(folder):
        return
    for name in os.listdir(folder):
        board.feed()
        path = folder + "/" + name
        if os.stat(path)[0] & 0x4000:
            clear(path)
        else:
            os.remove(path)
    os.rmdir(folder)
