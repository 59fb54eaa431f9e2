"""Host tools of H2T2 Edge: everything that runs on a desktop. Imports `h2t2`; `h2t2` never imports it.

In Python: `from h2t2_tools import Router`. On the command line: `h2t2 --help`.
"""

from typing import TYPE_CHECKING, Any

from h2t2 import __version__ as __version__

if TYPE_CHECKING:
    from .router import Decision as Decision
    from .router import Router as Router

LAZY = ("Decision", "Router")  # imported at their first use, since NumPy and the rest take their time


def __getattr__(name: str) -> Any:
    if name in LAZY:
        from . import router

        return getattr(router, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *LAZY]
