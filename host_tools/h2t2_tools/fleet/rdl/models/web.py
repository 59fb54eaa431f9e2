"""Calls to a model's server over HTTP: a back-off, and a token that no message shows. calls.py bounds them."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.link import wire
from h2t2.link.backoff import Backoff

from ....common.errors import UserError
from ....common.untrusted import parse_json
from ...calls import Calls, Limits
from ...endpoint import secret
from ...failures import Later, Misconfigured, describe, is_of_sample
from .model_source import Source
from .pictures import BLANK_PNG
from .tensors import NUMBERS, Batch, Model

TIMEOUT_S = 5.0  # less than a worker may hang
LATE_S = 300.0  # for which a worker's request goes on after that: a model that the server loads for it takes minutes
LARGEST = 1 << 24  # bytes of an answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Web:
    """A client of one server, for several threads. It keeps connections open.

    After a failure of the server a worker's client makes no calls for a while, which doubles: other requests fail at once
    instead of waiting for a time-out each. One late request goes on: some servers load a model only while somebody waits.

    Args:
        timeout_s: of a call.
        count: is called before each request and each repetition: a server may charge for it. Its exception ends the call.
        pauses: whether it makes no calls after a failure; a gate spaces them itself.
    """

    def __init__(
        self, token: str = "", timeout_s: float = TIMEOUT_S, count: Callable[[], None] | None = None, *, pauses: bool = True
    ) -> None:
        self._token, self._timeout, self._count, self._pauses = token, timeout_s, count, pauses
        self._calls = Calls()
        self._backoff = Backoff(random.SystemRandom().randrange(2**28))
        self._until = 0.0

    @classmethod
    def of(cls, source: Source) -> Web:
        """The client of a source, with the token of its file or of the environment."""
        seconds = source.patience_s or TIMEOUT_S
        return cls(token(source.path, source), seconds, pauses=not source.patience_s)

    def json(self, url: str, content: Any, **options: float) -> dict[str, Any]:
        """POST JSON and return the answer, a JSON object. options: repeat_s and timeout_s of call()."""
        body, _ = self.call(url, json.dumps(content).encode(), {"Content-Type": "application/json"}, **options)
        return as_object(url, body)

    def call(
        self,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeat_s: float = 0.0,
        timeout_s: float = 0.0,
    ) -> tuple[bytes, Mapping[str, str]]:
        """(body, headers) of the answer to a POST; without a body, to a GET.

        Args:
            repeat_s: seconds in which the request is repeated where the server may answer later.
            timeout_s: another one than the client's.

        Raises:
            Later, Misconfigured, Refused: as failures.py says. `count` raises what it likes.
        """
        wait_s = self._until - time.monotonic()
        if wait_s > 0:
            raise Later(f"{url}: it failed; asked again in {wait_s:.1f} s", wait_s, untaken=True)
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        request = self._calls.request("GET" if body is None else "POST", url, content=body, headers=sent)
        late_s = LATE_S if self._pauses else 0.0  # a gate's patience is that long
        limits = Limits(seconds=timeout_s or self._timeout, size=LARGEST, repeat_s=repeat_s, late_s=late_s)
        try:
            answer = self._calls.call(request, limits, self._count)
        except Later as error:
            raise error if error.of_sample or not self._pauses else self._failed(error) from None
        self._backoff.reset()
        return answer.content, answer.headers

    def close(self) -> None:
        """End the connections, and the calls under way."""
        self._calls.close()

    def _failed(self, error: Later) -> Later:
        wait_s = max(self._backoff.draw() / 1000, error.retry_s)
        self._until = time.monotonic() + wait_s
        return Later(str(error), wait_s, untaken=error.untaken)


class WebModel(Model):
    """A model that Web asks."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        self._source, self._web = source, Web.of(source)

    def test(self, timeout_s: float) -> None:
        """As OnServer.test: ask about a blank sample.

        Where nobody knows the shape of samples, the server may refuse the blank one, or fail on it: it answers.
        """
        shape = self._shape()
        try:
            self.scores(self._blank(shape), timeout_s)
        except Exception as error:  # the conversion of an invalid answer raises several types
            if not is_of_sample(error):
                raise
            if shape:
                raise Misconfigured(f"about a sample of zeros, shape {shape}: {describe(error)}") from None

    def scores(self, batch: Batch, timeout_s: float = 0.0) -> np.ndarray:
        """As Model.scores(). timeout_s: another one than the client's."""
        raise NotImplementedError

    def _shape(self) -> tuple[int, ...]:
        """The shape of a sample of numbers; () where nobody knows it, and for RAW bytes."""
        return self._source.shape

    def _blank(self, shape: tuple[int, ...]) -> Batch:
        """A batch of one sample without content: zeros, a grey picture, also of an unknown media type, or a zero byte."""
        dtype = self._source.dtype
        if shape:
            return np.zeros((1, *shape), NUMBERS.get(wire.FLOAT32 if dtype is None else dtype))
        if dtype not in (None, wire.RAW):
            return np.zeros((1, 1), NUMBERS[dtype])
        return [BLANK_PNG if (self._source.media or "image/").startswith("image/") else b"\0"]

    def close(self) -> None:
        """As Model.close()."""
        self._web.close()


def as_object(url: str, body: bytes) -> dict[str, Any]:
    """The JSON object in an answer. Misconfigured for anything else: this is no such server."""
    try:
        content = parse_json(body)
    except ValueError:
        raise Misconfigured(f"{url}: its answer is not JSON") from None
    if not isinstance(content, dict):
        raise Misconfigured(f"{url}: its answer is no JSON object")
    return content


def token(url: str, source: Source, file: str = "") -> str:
    """The token for a server; "" for none.

    Its text is TOKEN or HOST TOKEN; without a host it is for a server that the user named, not for one that a pair names.

    Args:
        url: the server's.
        source: the model's, which says where its token is.
        file: another file with the token.

    Raises:
        UserError: others may read the file, or could read the token on the network; the token is for another host.
    """
    file = file or source.secret
    text = secret(Path(file)).read_text().strip() if file else os.environ.get(source.variable, "").strip()
    if not text:
        return ""
    origin = file or source.variable
    if not text.isascii() or not text.isprintable():
        raise UserError(f"{origin}: a token is one line of ASCII")
    host, _, token = text.rpartition(" ")
    parts = urllib.parse.urlsplit(url)
    if host and host not in (parts.hostname, parts.netloc):
        raise UserError(f"{origin}: this token is for {host}; the model's server is {parts.netloc}")
    if not host and not source.named:
        raise UserError(
            f"{origin}: the pair names the server {parts.netloc}; to send it this token, write '{parts.netloc} TOKEN'"
        )
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise UserError(f"{url}: the network could read the token; want https")
    return token
