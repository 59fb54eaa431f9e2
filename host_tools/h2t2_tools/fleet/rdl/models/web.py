"""Calls to a model's server over HTTP: a time-out, a size limit, a back-off, and a token that no message shows."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from h2t2.link.backoff import Backoff

from ....common.errors import UserError
from ....common.untrusted import parse_integer, parse_json
from ...endpoint import secret
from .source import Source

TIMEOUT_S = 5.0  # less than a worker may hang
CONNECTIONS = 64  # at once: as many as a chat model's parallel requests
IDLE_S = 4.0  # for which an idle connection stays open: servers close theirs after five seconds and more
LARGEST = 1 << 24  # bytes of an answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OVERLOADED = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may answer later
QUOTED = 200  # characters of a server's error text


class Later(OSError):
    """A server that may answer later. retry_s: seconds that it asks for; 0: none."""

    def __init__(self, why: str, retry_s: float = 0.0) -> None:
        super().__init__(why)
        self.retry_s = retry_s


class Web:
    """A client of one server, for several threads. It keeps connections open.

    After a failure of the server it makes no calls for a while, which doubles: other requests of a worker fail at once instead
    of waiting for a time-out each.
    """

    def __init__(self, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._token, self._timeout = token, timeout_s
        # a redirect is an error: following it would send the token to another address
        self._http = httpx.Client(
            follow_redirects=False,
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S),
            headers={"Accept-Encoding": "identity", "User-Agent": "h2t2"},  # a compressed answer may expand without limit
        )
        self._backoff = Backoff(random.SystemRandom().randrange(2**28))
        self._until = 0.0

    @classmethod
    def of(cls, source: Source) -> Web:
        """The client of a source, with the token of its file or of the environment."""
        return cls(token(source.path, source.secret, source.variable))

    def json(self, url: str, content: Any, timeout_s: float | None = None) -> dict[str, Any]:
        """POST JSON and return the answer, a JSON object."""
        body, _ = self.call(url, json.dumps(content).encode(), {"Content-Type": "application/json"}, timeout_s)
        return as_object(url, body)

    def call(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        """(body, headers) of the answer to a POST; without a body, to a GET.

        Raises:
            Later: the server does not answer, or is overloaded.
            ValueError: the server refuses, or its answer is invalid.
        """
        wait_s = self._until - time.monotonic()
        if wait_s > 0:
            raise Later(f"{url}: it failed; asked again in {wait_s:.1f} s", wait_s)
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        seconds = timeout_s or self._timeout
        try:
            try:
                answer = self._answer(url, body, sent, seconds)
            except httpx.RemoteProtocolError:  # it closed an idle connection and has not read the request
                answer = self._answer(url, body, sent, seconds)
        except httpx.InvalidURL as error:
            raise ValueError(f"{url}: {error}") from None
        except (httpx.HTTPError, OSError) as error:
            raise self._failed(f"{url}: {error or type(error).__name__}") from None
        if not answer.is_success:
            words = answer.content[:QUOTED].decode(errors="replace").strip()
            why = f"{url}: status {answer.status_code} {answer.reason_phrase}: {words}"
            if answer.status_code in OVERLOADED:
                raise self._failed(why, _seconds(answer.headers.get("Retry-After", "")))
            raise ValueError(why)
        self._backoff.reset()
        return answer.content, answer.headers

    def _answer(self, url: str, body: bytes | None, headers: Mapping[str, str], seconds: float) -> httpx.Response:
        """The answer, read to its end. ValueError for one that is too long or compressed."""
        end = time.monotonic() + seconds
        content = bytearray()
        method = "GET" if body is None else "POST"
        stream = self._http.stream(method, url, content=body, headers=headers, timeout=seconds)
        with stream as answer:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise ValueError(f"{url}: its answer is compressed, which the request forbids")
            for chunk in answer.iter_raw():
                content += chunk
                if len(content) > LARGEST:
                    raise ValueError(f"{url}: an answer of more than {LARGEST:,} bytes")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout(f"no whole answer in {seconds:g} s")
            return httpx.Response(
                answer.status_code, headers=answer.headers, content=bytes(content), extensions=dict(answer.extensions)
            )

    def _failed(self, why: str, retry_s: float = 0.0) -> Later:
        wait = max(self._backoff.draw() / 1000, retry_s)
        self._until = time.monotonic() + wait
        return Later(why, wait)


def as_object(url: str, body: bytes) -> dict[str, Any]:
    """The JSON object in an answer. ValueError for anything else."""
    try:
        content = parse_json(body)
    except ValueError:
        raise ValueError(f"{url}: its answer is not JSON") from None
    if not isinstance(content, dict):
        raise ValueError(f"{url}: its answer is no JSON object")
    return content


def token(url: str, file: str, variable: str) -> str:
    """The token for a server, from a file or the environment; "" for none. UserError where others may read the file, or could
    read the token on the network."""
    text = secret(Path(file)).read_text().strip() if file else os.environ.get(variable, "").strip()
    if not text:
        return ""
    if not text.isascii() or not text.isprintable():
        raise UserError(f"{file or variable}: a token is one line of ASCII")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise UserError(f"{url}: the network could read the token; want https")
    return text


def _seconds(text: str) -> float:
    """The seconds of a Retry-After header: at most a minute; 0 for a date."""
    seconds = parse_integer(text, 10**18)
    return min(float(seconds), 60.0) if seconds is not None else 0.0
