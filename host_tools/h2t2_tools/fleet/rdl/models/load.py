"""Loads the remote model that a source names."""

from collections.abc import Callable

import numpy as np

from h2t2.link import wire

from ....common.errors import UserError
from ....common.functions import is_user_function
from ....common.pairs import Pair
from .source import INFERENCE, Source, is_url, of_pair
from .tensors import Model, as_batch


def load(source: Source, log: Callable[[str], None] = lambda _: None) -> Model:
    """The remote model of a source. Each kind is imported when it is needed.

    Args:
        log: is called with failures that the model survives.

    Raises:
        UserError, ValueError: the file holds no such model.
    """
    if source.second:
        from .chain import Chain

        return Chain(_load_single(source), load(source.second, log), source, log)
    return _load_single(source)


def _load_single(source: Source) -> Model:
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
    """The scores of a pair's remote model for the payloads of all test samples, (n,) or (n, K)."""
    remote = pair.info.remote
    sent = [pair.test_payload(n) for n in range(len(pair.x))]
    return load(of_pair(pair)).scores(as_batch(sent, wire.DTYPES.index(remote.dtype), tuple(remote.shape)))
