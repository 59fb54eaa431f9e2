"""Remote models a worker can serve, by where they are; a worker replaces one by the next while it serves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from h2t2.link import wire

from ....common.errors import UserError
from ....common.functions import is_user_function
from ....common.pairs import Pair
from .source import INFERENCE, Source, is_url, of_pair
from .tensors import Model, as_batch


def load(source: Source, log: Callable[[str], None] = lambda _: None) -> Model:
    """UserError or ValueError, naming the file, for one that is not such a model. Each kind is imported where it is wanted.

    log: told what goes wrong while it answers all the same.
    """
    if source.then:
        from .chain import Chain

        return Chain(_one(source), load(source.then, log), source, log)
    return _one(source)


def _one(source: Source) -> Model:
    if is_url(source.path):
        from .inference import Inference
        from .instances import Instances

        return Inference(source) if INFERENCE in source.path else Instances(source)
    if not source.file.is_file():
        raise UserError(f"{source.file}: no such file")
    if is_user_function(source.path):
        from .function import Function

        return Function(source)
    if source.path.endswith(".toml"):
        from .chat import Chat

        return Chat(source)
    if source.path.endswith(".onnx"):
        from .onnx import Onnx

        return Onnx(source)
    from .tflite import TFLite

    return TFLite(source)


def answers(pair: Pair) -> np.ndarray:
    """What the remote model of a pair makes of what an offload of every test sample sends: scores, (n,) or (n, K)."""
    remote = pair.info.remote
    sent = [pair.test_payload(n) for n in range(len(pair.x))]
    return load(of_pair(pair)).scores(as_batch(sent, wire.DTYPES.index(remote.dtype), tuple(remote.shape)))
