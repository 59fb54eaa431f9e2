"""Loads the remote model that a source names."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from h2t2.link import wire

from ....common.errors import UserError, as_user_error
from ....common.pairs import Pair, is_url
from ....common.user_function import is_user_function
from .model_source import INFERENCE, Source, of_pair
from .tensors import Model, as_batch


def load(source: Source, log: Callable[[str], None] = lambda _: None, separate_s: float | None = None) -> Model:
    """The remote model of a source. Each kind is imported when it is needed.

    Args:
        log: is called with failures that the model survives.
        separate_s: run a local model in a process of its own, which ends where it does not answer for so many seconds; None: in
            this one.

    Raises:
        UserError: the file holds no such model.
    """
    with as_user_error():
        if source.second:
            from .chain import Chain

            first = _load_single(replace(source, second=None), separate_s)
            return Chain(first, load(source.second, log, separate_s), source, log)
        return _load_single(source, separate_s)


def _load_single(source: Source, separate_s: float | None) -> Model:
    if source.output and not source.path.endswith(".onnx"):
        raise UserError(f"{source.path}: --output is of an .onnx; a server of the open inference protocol takes URL#OUTPUT")
    if is_url(source.path):
        from .inference import Inference
        from .instances import Instances

        return Inference(source) if INFERENCE in source.path else Instances(source)
    if not source.file.is_file():
        raise UserError(f"{source.file}: no such file")
    if source.path.endswith(".toml"):
        from .chat import Chat

        return Chat(source)
    if separate_s is not None:
        from .separate import Separate

        return Separate(source, separate_s)
    if is_user_function(source.path):
        from .function import Function

        return Function(source)
    if source.path.endswith(".onnx"):
        from .onnx import Onnx

        return Onnx(source)
    from .tflite_model import TFLite

    return TFLite(source)


def answers(pair: Pair) -> np.ndarray:
    """The scores of a pair's remote model for the payloads of all test samples, (n,) or (n, K)."""
    remote = pair.info.remote
    sent = [pair.test_payload(n) for n in range(len(pair.x))]
    return load(of_pair(pair)).scores(as_batch(sent, wire.DTYPES.index(remote.dtype), tuple(remote.shape)))
