"""The source of a remote model: where it is, and how it is read."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from h2t2.link import wire

from ....common.fields import EVENT, KERNELS
from ....common.pairs import InputScaling, Pair, is_url
from ....common.user_function import is_user_function

# environment variables: tokens of a model's server, and of the second model's
TOKEN, SECOND_TOKEN = "H2T2_REMOTE_TOKEN", "H2T2_THEN_TOKEN"


@dataclass(frozen=True)
class Source:
    """Where a model is and how it is read.

    Args:
        path: .tflite, .onnx, FILE.py:FUNCTION, .toml of a language model's server, or a URL.
        event: index of class 1 among its outputs; None: each output is a class.
        scale, zero_point, prepared: how int8 becomes the input of a float model, scale (q - zero_point) and then the inverse of
            `prepared`; and how floats become the input of an int8 model.
        floats: a function takes floats, not a tensor as sent.
        limit: bytes of data a request may have.
        media: type of RAW bytes.
        dtype, shape: of samples, the dtype as a code of the wire; None and () where nobody knows them before the first sample.
        output: of an .onnx, the name of the output that holds the scores; "": the only one beside labels.
        secret: a file with the server's token.
        variable: the environment variable with the token, if there is no such file.
        named: whether the user named the model; a pair that names its own may be a stranger's.
        second: the model that is asked where this one is unsure.
        second_beta: the cost of that, 0 to 1.
        costs: [true class][decision], of wrong decisions; None: the defaults of two classes.
        patience_s: seconds for which a gate waits for a server's answer; it spaces its questions itself. 0: of a worker, whose
            calls take less time than it may hang, and pause after a failure of the server.
    """

    path: str
    event: int | None = EVENT
    _: KW_ONLY
    resolver: str = KERNELS
    scale: float = 1.0
    zero_point: int = 0
    prepared: InputScaling | None = None
    floats: bool = False
    limit: int = wire.MAX_DATA
    media: str = ""
    dtype: int | None = None
    shape: tuple[int, ...] = ()
    output: str = ""
    secret: str = ""
    variable: str = TOKEN
    named: bool = True
    second: Source | None = None
    second_beta: float = 0.0
    costs: list[list[float]] | None = None
    patience_s: float = 0.0

    @property
    def file(self) -> Path:
        return Path(self.path.rpartition(":")[0] if is_user_function(self.path) else self.path)

    def version(self) -> tuple[int, ...]:
        """A value that changes with the model's files; () while there is none."""
        try:
            status = os.stat(self.file)
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_size, *(self.second.version() if self.second else ())


INFERENCE = "/v2/models/"  # in URLs of the open inference protocol
ALL_OUTPUTS = "all"  # each output of the model is a class


def of_pair(pair: Pair, path: str | None = None, event: int | str | None = None, **entries: Any) -> Source:
    """The remote model of a pair.

    Args:
        path: another model in its place, with the same input.
        event: the output that is class 1, or ALL_OUTPUTS; None: as the pair says.
        entries: further ones of Source: resolver, output, secret, variable, second, second_beta.
    """
    about, remote = pair.info, pair.info.remote
    if event is None:
        event = ALL_OUTPUTS if about.costs else about.event_output("rdl")
    column = None if event == ALL_OUTPUTS else int(event)
    own = remote.model if is_url(remote.model) else str(pair.rdl)
    return Source(
        path=path or own,
        event=column,
        scale=remote.scale,
        zero_point=remote.zero_point,
        prepared=about.prepared.get("rdl"),
        floats=remote.floats and path is None,
        limit=remote.limit,
        media=remote.media,
        dtype=wire.DTYPES.index(remote.dtype),
        shape=() if remote.dtype == "raw" else tuple(remote.shape),
        named=path is not None,
        costs=about.costs,
        **entries,
    )
