"""Calls to a model's server over HTTP: one time-out, one limit, one back-off, and a token that stays out of sight."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from h2t2.link.backoff import Backoff

from ....common.errors import UserError
from ....common.untrusted import parse_integer, parse_json
from ...endpoint import secret
from .source import Source

TIMEOUT_S = 5.0  # less than a worker may hang
CONNECTIONS = 64  # at once: as many as a chat model asks in parallel
KEPT_S = 4.0  # an unused connection is kept for: servers close theirs after five seconds and more
LARGEST = 1 << 24  # bytes of an answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OVERLOADED = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may do better later
SAID = 200  # characters of a server's own words


class Later(OSError):
    """A server that may do better later. after: seconds that it asks for, 0 where it says nothing."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class Web:
    """One server, over connections that are kept for the next request. After a failure that is the server's it is left alone
    for a while, which doubles: a worker's other requests are refused at once instead of waiting for a time-out each.

    For several threads.
    """

    def __init__(self, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._token, self._timeout = token, timeout_s
        # a redirect is an error: what follows it would carry the token to wherever the answer points
        self._http = httpx.Client(
            follow_redirects=False,
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEPT_S),
            headers={"Accept-Encoding": "identity", "User-Agent": "h2t2"},  # what is packed may burst
        )
        self._backoff = Backoff(random.SystemRandom().randrange(2**28))
        self._until = 0.0

    @classmethod
    def of(cls, source: Source) -> Web:
        """That of a URL, with the token of the environment or of the source's file."""
        return cls(token(source.path, source.secret, source.variable))

    def json(self, url: str, content: Any, timeout_s: float | None = None) -> dict[str, Any]:
        """POST it, as JSON: what is answered, a JSON object."""
        body, _ = self.call(url, json.dumps(content).encode(), {"Content-Type": "application/json"}, timeout_s)
        return as_object(url, body)

    def call(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        """(body, headers) of the answer to a POST, to a GET without a body.

        Raises:
            Later: the server does not answer, or says that it cannot now.
            ValueError: it refuses, or its answer cannot be used.
        """
        left = self._until - time.monotonic()
        if left > 0:
            raise Later(f"{url}: it failed; asked again in {left:.1f} s", left)
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        request = Request(url, body, sent, timeout_s or self._timeout)
        try:
            try:
                answer = self._answer(request)
            except httpx.RemoteProtocolError:  # it closed a kept connection while it was asked: that request it has not seen
                answer = self._answer(request)
        except httpx.InvalidURL as error:
            raise ValueError(f"{url}: {error}") from None
        except (httpx.HTTPError, OSError) as error:
            raise self._failed(f"{url}: {error or type(error).__name__}") from None
        if not answer.is_success:
            words = answer.content[:SAID].decode(errors="replace").strip()
            why = f"{url}: status {answer.status_code} {answer.reason_phrase}: {words}"
            if answer.status_code in OVERLOADED:
                raise self._failed(why, _seconds(answer.headers.get("Retry-After", "")))
            raise ValueError(why)
        self._backoff.reset()
        return answer.content, answer.headers

    def _answer(self, request: Request) -> httpx.Response:
        """The answer, read to its end. ValueError for one that is too long or packed."""
        end = time.monotonic() + request.seconds
        content = bytearray()
        method = "GET" if request.body is None else "POST"
        stream = self._http.stream(method, request.url, content=request.body, headers=request.headers, timeout=request.seconds)
        with stream as answer:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise ValueError(f"{request.url}: its answer is packed, which nobody has asked for")
            for piece in answer.iter_raw():
                content += piece
                if len(content) > LARGEST:
                    raise ValueError(f"{request.url}: an answer of more than {LARGEST:,} bytes")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout(f"no whole answer in {request.seconds:g} s")
            return httpx.Response(
                answer.status_code, headers=answer.headers, content=bytes(content), extensions=dict(answer.extensions)
            )

    def _failed(self, why: str, after: float = 0.0) -> Later:
        wait = max(self._backoff.draw() / 1000, after)
        self._until = time.monotonic() + wait
        return Later(why, wait)


@dataclass(frozen=True)
class Request:
    """body: None for a GET. seconds: for the whole of it."""

    url: str
    body: bytes | None
    headers: Mapping[str, str]
    seconds: float


def as_object(url: str, body: bytes) -> dict[str, Any]:
    """A JSON object. ValueError for bytes that are none."""
    try:
        told = parse_json(body)
    except ValueError:
        raise ValueError(f"{url}: its answer is not JSON") from None
    if not isinstance(told, dict):
        raise ValueError(f"{url}: its answer is no JSON object")
    return told


def token(url: str, file: str, variable: str) -> str:
    """The token for a server, of that file or of the environment; "" for none. UserError where others may read the file, or
    would read the token on its way."""
    made = secret(Path(file)).read_text().strip() if file else os.environ.get(variable, "").strip()
    if not made:
        return ""
    if not made.isascii() or not made.isprintable():
        raise UserError(f"{file or variable}: a token is one line of ASCII")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise UserError(f"{url}: a token would be readable on its way; want https")
    return made


def _seconds(text: str) -> float:
    """What a Retry-After asks for: at most a minute, 0 for a date."""
    seconds = parse_integer(text, 10**18)
    return min(float(seconds), 60.0) if seconds is not None else 0.0
