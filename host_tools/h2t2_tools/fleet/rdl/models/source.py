"""Where a remote model is, and how it is read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from h2t2.link import wire

from ....common.functions import is_user_function
from ....common.pairs import InputScaling, Pair

TOKEN, THEN_TOKEN = "H2T2_REMOTE_TOKEN", "H2T2_THEN_TOKEN"  # in the environment: of a model, and of the second of a chain


@dataclass(frozen=True)
class Source:
    """Where a model is and how it is read.

    path: .tflite, .onnx, FILE.py:FUNCTION, .toml of a language model's server, or a URL. event: index of class 1 among its
    outputs, None: each is a class. scale, zero_point, prepared: what a float model's input is restored with, scale (q -
    zero_point) and then `prepared` undone; and what floats become the int8 of an int8 model by. floats: a function wants
    floats, not a tensor as sent. limit: bytes of data a request may have. media: type that RAW bytes are of. secret: a file
    with the token of a server, variable: else what of the environment holds it. then: who is asked where this one is unsure,
    then_beta: what that costs, 0 to 1. costs: what saying the second class costs when it is the first, None: as two classes
    have it by default.
    """

    path: str
    event: int | None = 1
    resolver: str = "reference"
    scale: float = 1.0
    zero_point: int = 0
    prepared: InputScaling | None = None
    floats: bool = False
    limit: int = wire.MAX_DATA
    media: str = ""
    secret: str = ""
    variable: str = TOKEN
    then: Source | None = None
    then_beta: float = 0.0
    costs: list[list[float]] | None = None

    @property
    def file(self) -> Path:
        return Path(self.path.rpartition(":")[0] if is_user_function(self.path) else self.path)

    def version(self) -> tuple[int, ...]:
        """Changes when a file of it does; () while there is none."""
        try:
            found = os.stat(self.file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, *(self.then.version() if self.then else ())


INFERENCE = "/v2/models/"  # in the URL of a model that is asked by the open inference protocol
ALL = "all"  # of a model's outputs: each is a class


@dataclass(frozen=True)
class Then:
    """Who is asked where a remote model is unsure, and what that costs; secret: a file with a server's token."""

    path: str
    beta: float
    secret: str = ""


def of_pair(
    pair: Pair,
    path: str | None = None,
    event: int | str | None = None,
    resolver: str = "reference",
    secret: str = "",
    then: Then | None = None,
    variable: str = TOKEN,
) -> Source:
    """The remote model of a pair; path: another in its place, which is given the same input; event: the output that is class 1,
    or ALL, None: as the pair has it. secret, variable: where a server's token is. then: a second one, given the same."""
    about, remote = pair.info, pair.info.remote
    if event is None:
        event = ALL if about.costs else about.event_output("rdl")
    output = None if event == ALL else int(event)
    own = remote.model if is_url(remote.model) else str(pair.rdl)
    second = of_pair(pair, then.path, event, resolver, then.secret, None, THEN_TOKEN) if then else None
    return Source(
        path or own, output, resolver, remote.scale, remote.zero_point,
        about.prepared.get("rdl"), remote.floats and path is None, remote.limit, remote.media,
        secret, variable, second, then.beta if then else 0.0, about.costs,
    )  # fmt: skip


def is_url(path: str) -> bool:
    """Whether a remote model is a server's."""
    return path.startswith(("http://", "https://"))
