# Modules of this package that a board needs for a while only: it forgets their code, whose memory serves something else.
import sys

IS_BOARD = sys.implementation.name == "micropython"


def forget(name) -> None:
    """Take a module of this package, "link.ntp" for example, out of memory, until it is imported again. Its importers must not
    keep it under a name of theirs."""
    package, _, leaf = ("h2t2." + name).rpartition(".")
    if sys.modules.pop(package + "." + leaf, None):
        delattr(sys.modules[package], leaf)
