"""The open inference protocol, version 2 (KServe, Triton, MLServer): http(s)://HOST/v2/models/NAME[#OUTPUT].

https://github.com/kserve/open-inference-protocol, required_api and extension_binary_data.
"""

import base64
import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from h2t2.link import wire

from ....common.fields import COMPLEMENT
from ....common.untrusted import parse_integer
from ...failures import Misconfigured
from .model_source import INFERENCE, Source
from .tensors import Batch, floats, gathered, integers, one_by_one, picked
from .web import WebModel, as_object

BINARY = "binary_tensor_data"  # the extension of servers that take tensors as bytes
LENGTH = "Inference-Header-Content-Length"
DATATYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2", "INT32": "<i4",
    "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
UNNAMED = {"name": "input-0", "datatype": "FP32"}  # for servers that do not describe the input


class Inference(WebModel):
    """A server's model, asked a batch at a time. The server describes its input at the first request."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._model, _, self._output = source.path.partition("#")
        self._server = self._model.partition(INFERENCE)[0]
        self._binary = False
        self._input: dict[str, Any] = {}  # of the model: name, datatype, perhaps shape

    def test(self, timeout_s: float) -> None:
        """As OnServer.test: read the model's description, and ask about a blank sample."""
        self._read_metadata(timeout_s)
        super().test(timeout_s)

    def scores(self, batch: Batch, timeout_s: float = 0.0) -> np.ndarray:
        if not self._input:
            self._read_metadata()
        if list(self._input.get("shape") or ())[:1] == [1]:  # one sample at a time
            return gathered(one_by_one(lambda n: self._scores(batch[n : n + 1], timeout_s), len(batch)))
        return self._scores(batch, timeout_s)

    def _shape(self) -> tuple[int, ...]:
        """As WebModel._shape(): the shape that the server describes, where nobody else knows it."""
        if self._source.shape or self._source.dtype == wire.RAW or self._datatype() not in DATATYPES:
            return self._source.shape
        described = self._input.get("shape")
        sides = described[1:] if isinstance(described, list) else []
        return tuple(sides) if all(isinstance(n, int) and n > 0 for n in sides) else ()

    def _read_metadata(self, timeout_s: float = 0.0) -> None:
        """Read what the server says about itself and about its model."""
        server = as_object(self._server, self._web.call(f"{self._server}/v2", timeout_s=timeout_s)[0])
        model = as_object(self._model, self._web.call(self._model, timeout_s=timeout_s)[0])
        inputs = model.get("inputs") or [UNNAMED]
        if len(inputs) != 1 or not isinstance(inputs[0], dict) or "name" not in inputs[0]:
            raise Misconfigured(f"{self._model}: {len(inputs)} inputs, want one")
        self._binary = BINARY in (server.get("extensions") or [])
        self._input = inputs[0]

    def _scores(self, batch: Batch, timeout_s: float) -> np.ndarray:
        header = {"name": self._input["name"], "datatype": "BYTES", "shape": [len(batch), 1]}
        request: dict[str, Any] = {"inputs": [header]}
        if self._output:
            request["outputs"] = [{"name": self._output}]
        data = b""
        if not isinstance(batch, list):
            x = self._tensor(batch)
            header.update(datatype=self._datatype(), shape=list(x.shape))
            data, items = x.tobytes(), x.ravel().tolist()
        elif self._binary:
            data = b"".join(len(item).to_bytes(4, "little") + item for item in batch)
        else:
            items = [base64.b64encode(item).decode() for item in batch]
            header["parameters"] = {"content_type": "base64"}
        if not self._binary:
            header["data"] = items
            content, headers = _json(request), {"Content-Type": "application/json"}
        else:
            header["parameters"] = {"binary_data_size": len(data)}
            request["parameters"] = {"binary_data_output": True}
            head = _json(request)
            content, headers = head + data, {"Content-Type": "application/octet-stream", LENGTH: str(len(head))}
        answer, headers_in = self._web.call(f"{self._model}/infer", content, headers, timeout_s=timeout_s)
        values, labels = self._read(answer, headers_in)
        if values.shape[:1] != (len(batch),):
            raise Misconfigured(f"{self._model}: an output of shape {values.shape} for {len(batch)} samples")
        rows, event = values.reshape(len(batch), -1), self._source.event
        return _of_labels(rows, 0 if event == COMPLEMENT else event) if labels else picked(rows, event)

    def _datatype(self) -> str:
        return str(self._input.get("datatype", "FP32"))

    def _tensor(self, batch: np.ndarray) -> np.ndarray:
        """A batch in the datatype and shape of the model's input."""
        name = self._datatype()
        if name not in DATATYPES:
            raise Misconfigured(f"{self._model}: it takes {name}; offloads of this pair are numbers")
        if name == "INT8":
            x = integers(batch, self._source)
        elif name == "UINT8":
            x = batch if batch.dtype == np.uint8 else (integers(batch, self._source).astype(np.int16) + 128)
        else:
            x = floats(batch, self._source)
        x = np.ascontiguousarray(x, DATATYPES[name])
        shape = [abs(int(n)) for n in self._input.get("shape", [])[1:]]
        if not shape and "shape" not in self._input:
            return x.reshape(len(x), -1)  # rows, as scikit-learn's models take them
        return x.reshape(len(x), *shape) if prod(shape) == prod(x.shape[1:]) else x

    def _read(self, answer: bytes, headers_in: Mapping[str, str]) -> tuple[np.ndarray, bool]:
        """(the output, whether it holds labels). Misconfigured for an invalid answer."""
        size = headers_in.get(LENGTH)
        length = parse_integer(size, len(answer)) if size else None
        head = len(answer) if length is None else length
        outputs = as_object(self._model, answer[:head]).get("outputs")
        if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
            raise Misconfigured(f'{self._model}: no "outputs" in its answer')
        at = head
        for output in outputs:
            size = (output.get("parameters") or {}).get("binary_data_size")
            length = size if isinstance(size, int) and size >= 0 else 0
            if not self._output or output.get("name") == self._output:
                return self._values(output, answer[at : at + length] if size is not None else None)
            at += length
        raise Misconfigured(f"{self._model}: no output {self._output or 'at all'} in its answer")

    def _values(self, output: dict[str, Any], data: bytes | None) -> tuple[np.ndarray, bool]:
        numpy_type, shape = DATATYPES.get(str(output.get("datatype"))), output.get("shape")
        if numpy_type is None or not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
            raise Misconfigured(f"{self._model}: an output of {output.get('datatype')}, shape {shape}; want numbers")
        values = np.asarray(output.get("data"), float).ravel() if data is None else np.frombuffer(data, numpy_type)
        if values.size != prod(shape):
            raise Misconfigured(f"{self._model}: {values.size} numbers for an output of shape {shape}")
        return values.reshape(shape).astype(float), "f" not in numpy_type


def _json(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


def _of_labels(values: np.ndarray, event: int | None) -> np.ndarray:
    """Scores of a model that answers with the class itself, without a probability."""
    if event is None or values.shape[1] != 1:
        raise Misconfigured("its output is a class; want its probabilities: name that output, URL#OUTPUT")
    return np.asarray(values[:, 0] == event, float)
