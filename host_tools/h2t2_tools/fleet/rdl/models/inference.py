"""The open inference protocol, version 2 (KServe, Triton, MLServer): http(s)://HOST/v2/models/NAME[#OUTPUT].

https://github.com/kserve/open-inference-protocol, required_api and extension_binary_data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ....common.untrusted import parse_integer
from .source import INFERENCE, Source
from .tensors import Batch, floats, integers, picked
from .web import Web, as_object

BINARY = "binary_tensor_data"  # the extension of a server that takes tensors as bytes
LENGTH = "Inference-Header-Content-Length"
DATATYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2", "INT32": "<i4",
    "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
UNNAMED = {"name": "input-0", "datatype": "FP32"}  # of a server that does not say what its model takes


class Inference:
    """A server's model, asked a batch at a time; what it takes it says itself, when it is asked the first time."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        self._source, self._web = source, Web.of(source)
        self._model, _, self._output = source.path.partition("#")
        self._server = self._model.partition(INFERENCE)[0]
        self._binary = False
        self._given: dict[str, Any] = {}  # name, datatype, and where it says so shape, of the model's input

    def scores(self, batch: Batch) -> np.ndarray:
        if not self._given:
            self._ask()
        if self._one_by_one():
            return np.concatenate([self._scores(batch[n : n + 1]) for n in range(len(batch))])
        return self._scores(batch)

    def _ask(self) -> None:
        """What the server and its model are."""
        server = as_object(self._server, self._web.call(f"{self._server}/v2")[0])
        model = as_object(self._model, self._web.call(self._model)[0])
        inputs = model.get("inputs") or [UNNAMED]
        if len(inputs) != 1 or not isinstance(inputs[0], dict) or "name" not in inputs[0]:
            raise ValueError(f"{self._model}: {len(inputs)} inputs, want one")
        self._binary = BINARY in (server.get("extensions") or [])
        self._given = inputs[0]

    def _one_by_one(self) -> bool:
        return list(self._given.get("shape") or ())[:1] == [1]

    def _scores(self, batch: Batch) -> np.ndarray:
        header = {"name": self._given["name"], "datatype": "BYTES", "shape": [len(batch), 1]}
        request: dict[str, Any] = {"inputs": [header]}
        if self._output:
            request["outputs"] = [{"name": self._output}]
        data = b""
        if not isinstance(batch, list):
            x = self._tensor(batch)
            header.update(datatype=self._datatype(), shape=list(x.shape))
            data, items = x.tobytes(), x.ravel().tolist()
        elif self._binary:
            data = b"".join(len(one).to_bytes(4, "little") + one for one in batch)
        else:
            items = [base64.b64encode(one).decode() for one in batch]
            header["parameters"] = {"content_type": "base64"}
        if not self._binary:
            header["data"] = items
            answer, told = self._web.call(f"{self._model}/infer", _json(request), {"Content-Type": "application/json"})
        else:
            header["parameters"] = {"binary_data_size": len(data)}
            request["parameters"] = {"binary_data_output": True}
            head = _json(request)
            headers = {"Content-Type": "application/octet-stream", LENGTH: str(len(head))}
            answer, told = self._web.call(f"{self._model}/infer", head + data, headers)
        made, labels = self._read(answer, told)
        if made.shape[:1] != (len(batch),):
            raise ValueError(f"{self._model}: an output of shape {made.shape} for {len(batch)} samples")
        rows, event = made.reshape(len(batch), -1), self._source.event
        return _of_labels(rows, event) if labels else picked(rows, event)

    def _datatype(self) -> str:
        return str(self._given.get("datatype", "FP32"))

    def _tensor(self, batch: np.ndarray) -> np.ndarray:
        """A batch as the model takes it."""
        name = self._datatype()
        if name not in DATATYPES:
            raise ValueError(f"{self._model}: it takes {name}; offloads of this pair are numbers")
        if name == "INT8":
            x = integers(batch, self._source)
        elif name == "UINT8":
            x = batch if batch.dtype == np.uint8 else (integers(batch, self._source).astype(np.int16) + 128)
        else:
            x = floats(batch, self._source)
        x = np.ascontiguousarray(x, DATATYPES[name])
        wanted = [abs(int(n)) for n in self._given.get("shape", [])[1:]]
        if not wanted and "shape" not in self._given:
            return x.reshape(len(x), -1)  # rows, as scikit-learn and its like take them
        return x.reshape(len(x), *wanted) if prod(wanted) == prod(x.shape[1:]) else x

    def _read(self, answer: bytes, told: Mapping[str, str]) -> tuple[np.ndarray, bool]:
        """(the output, whether it holds labels). ValueError for what is no such answer."""
        size = told.get(LENGTH)
        length = parse_integer(size, len(answer)) if size else None
        head = len(answer) if length is None else length
        outputs = as_object(self._model, answer[:head]).get("outputs")
        if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
            raise ValueError(f'{self._model}: no "outputs" in its answer')
        at = head
        for one in outputs:
            size = (one.get("parameters") or {}).get("binary_data_size")
            length = size if isinstance(size, int) and size >= 0 else 0
            if not self._output or one.get("name") == self._output:
                return self._values(one, answer[at : at + length] if size is not None else None)
            at += length
        raise ValueError(f"{self._model}: no output {self._output or 'at all'} in its answer")

    def _values(self, one: dict[str, Any], data: bytes | None) -> tuple[np.ndarray, bool]:
        kind, shape = DATATYPES.get(str(one.get("datatype"))), one.get("shape")
        if kind is None or not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
            raise ValueError(f"{self._model}: an output of {one.get('datatype')}, shape {shape}; want numbers")
        made = np.asarray(one.get("data"), float).ravel() if data is None else np.frombuffer(data, kind)
        if made.size != prod(shape):
            raise ValueError(f"{self._model}: {made.size} numbers for an output of shape {shape}")
        return made.reshape(shape).astype(float), "f" not in kind


def _json(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


def _of_labels(made: np.ndarray, event: int | None) -> np.ndarray:
    """Scores of a model that answers with the class itself, and says nothing of how sure it is."""
    if event is None or made.shape[1] != 1:
        raise ValueError("its output is a class; want its probabilities: name that output, URL#OUTPUT")
    return (made[:, 0] == event).astype(float)
