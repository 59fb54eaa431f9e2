# Modules of this package that a board needs only for a while: it unloads their code, so that the memory is free.
import sys

if 0:  # for type checkers
    from .annotations import Any

IS_BOARD = sys.implementation.name == "micropython"


def forget(name: str) -> None:
    """Unload a module of this package ("link.ntp") until it is imported again. No importer may keep a name for it."""
    package, _, leaf = ("h2t2." + name).rpartition(".")
    if sys.modules.pop(package + "." + leaf, None):
        delattr(sys.modules[package], leaf)


def load(path: str) -> "Any":
    """Return what a module of this package defines ("core.budget.Budget"), and import the module if nobody has."""
    module, _, name = path.rpartition(".")
    return getattr(__import__("h2t2." + module, None, None, (name,)), name)


def call_once(path: str, *arguments: "Any") -> "Any":
    """Return what a function of this package returns ("node.causes.last"); a board then forgets its module."""
    try:
        return load(path)(*arguments)
    finally:
        if IS_BOARD:
            forget(path.rpartition(".")[0])


def text(path: str, number: int) -> str:
    """Return a text of a tuple ("node.remarks.TEXTS"), whose module a board then forgets; without memory for it the path."""
    try:
        words: str = load(path)[number]
    except MemoryError:
        words = "%s %d" % (path, number)
    if IS_BOARD:
        forget(path.rpartition(".")[0])
    return words
