"""Calls to a model's server over HTTP: one time-out, one limit, one back-off, and a token that stays out of sight."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from h2t2.link.backoff import Backoff

from ....common.errors import UserError
from ....common.untrusted import json_value, whole
from ...endpoint import secret
from .source import Source

TIMEOUT_S = 5.0  # less than a worker may hang
LARGEST = 1 << 24  # bytes of an answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OVERLOADED = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may do better later
SAID = 200  # characters of a server's own words


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: what follows it would carry the token to wherever the answer points."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Later(OSError):
    """A server that may do better later. after: seconds that it asks for, 0 where it says nothing."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class Web:
    """One server. After a failure that is the server's it is left alone for a while, which doubles: a worker's other requests
    are refused at once instead of waiting for a time-out each."""

    def __init__(self, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._token, self._timeout = token, timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect)
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

        Later where the server does not answer, or says that it cannot now; ValueError for what it refuses.
        """
        left = self._until - time.monotonic()
        if left > 0:
            raise Later(f"{url}: it failed; asked again in {left:.1f} s", left)
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            request = urllib.request.Request(url, body, sent)
            with self._opener.open(request, timeout=timeout_s or self._timeout) as answer:
                content, told = answer.read(LARGEST + 1), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                words = error.read(LARGEST)[:SAID].decode(errors="replace").strip()
            why = f"{url}: status {error.code} {error.reason}: {words}"
            if error.code in OVERLOADED:
                raise self._failed(why, _seconds(error.headers.get("Retry-After", ""))) from None
            raise ValueError(why) from None
        except (OSError, HTTPException) as error:  # a URLError is an OSError
            raise self._failed(f"{url}: {getattr(error, 'reason', error)}") from None
        self._backoff.reset()
        if len(content) > LARGEST:
            raise ValueError(f"{url}: an answer of more than {LARGEST:,} bytes")
        return content, told

    def _failed(self, why: str, after: float = 0.0) -> Later:
        wait = max(self._backoff.draw() / 1000, after)
        self._until = time.monotonic() + wait
        return Later(why, wait)


def as_object(url: str, body: bytes) -> dict[str, Any]:
    """A JSON object. ValueError for bytes that are none."""
    try:
        told = json_value(body)
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
    seconds = whole(text, 10**9)
    return min(float(seconds), 60.0) if seconds is not None else 0.0
