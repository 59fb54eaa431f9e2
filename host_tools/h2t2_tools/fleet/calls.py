"""Bounded HTTP calls: one deadline from the look-up of the name to the last byte, a size limit, one rule for repetitions."""

import asyncio
import concurrent.futures
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import httpx

from ..common.untrusted import parse_integer
from . import failures
from .failures import Cause, Later, Misconfigured, Refused

CONNECTIONS = 64  # at once: as many as a chat model's parallel requests
IDLE_S = 4.0  # for which an idle connection stays open: servers close theirs after five seconds and more
PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0  # before the first repetition, which doubles; and at most
LEAST_S = 0.2  # that must remain for a repetition
TRIES = 4  # of a request that a server may charge for
CLOSE_S = 1.0
LONGEST_RETRY_S = 60.0  # that a server may ask for
QUOTED = 200  # characters of a server's error text
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a call.

    Attributes:
        seconds: of a request, until the last byte of its answer.
        size: bytes of an answer.
        repeat_s: seconds in which the call repeats a request that may be answered later; 0: one request.
        late_s: seconds for which one request at a time goes on, although its caller has its exception: a server may load its
            model only while somebody waits.
    """

    seconds: float
    size: int
    repeat_s: float = 0.0
    late_s: float = 0.0


class Calls:
    """A client, for several threads. It keeps connections, follows no redirect, and takes no compressed answer, which may
    expand without limit.

    Args:
        of_status: the cause behind a status.
        trust_env: use the proxies of the environment.
    """

    def __init__(self, of_status: Callable[[int], Cause] = failures.of_status, *, trust_env: bool = True) -> None:
        self._of_status = of_status
        self._http = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=trust_env,
            timeout=None,
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S),
            headers={"Accept-Encoding": "identity", "User-Agent": "h2t2"},
        )
        self._running: set[asyncio.Task[Any] | None] = set()  # of the loop's thread alone
        self._late: asyncio.Task[Any] | None = None  # the request that goes on
        self._closed = threading.Event()

    def request(self, method: str, url: str | httpx.URL, **options: Any) -> httpx.Request:
        """A request. Misconfigured for an invalid URL. options: as of httpx.Client.build_request()."""
        try:
            return self._http.build_request(method, url, **options)
        except httpx.InvalidURL as error:
            raise Misconfigured(f"{url}: {error}") from None

    def call(self, request: httpx.Request, limits: Limits, before: Callable[[], None] | None = None) -> httpx.Response:
        """The answer to a request, with a status of 2xx and a body.

        Within `limits.repeat_s` a GET is repeated where its failure is Later, and another request up to TRIES times where the
        server has not begun with it. Any request is repeated once where the server has closed a connection that was kept from
        an earlier request.

        Args:
            before: is called before the request and before each repetition: a server may charge for each.

        Raises:
            Later, Misconfigured, Refused: there is no answer; failures.py says which is what.
        """
        began = time.monotonic()
        end = began + max(limits.seconds, limits.repeat_s)
        tried = 0
        while True:
            tried += 1
            seconds = min(limits.seconds, end - time.monotonic())
            try:
                answer = self._answer(request, limits.size, before)
                return self._checked(self._run(answer, seconds, _address(request), limits.late_s))
            except Later as error:
                wait_s = max(min(PAUSE_S * 2 ** (tried - 1), LONGEST_PAUSE_S), error.retry_s)
                repeats = request.method == "GET" or (error.untaken and tried < TRIES)
                in_time = time.monotonic() + wait_s + LEAST_S <= began + limits.repeat_s
                if not (repeats and in_time) or self._closed.wait(wait_s):
                    raise

    def addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """The addresses of a name, [] where nobody knows it. Later: the look-up takes too long."""

        async def look_up() -> list[str]:
            with suppress(OSError, UnicodeError):
                infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
                return [str(info[4][0]) for info in infos]
            return []

        return self._run(look_up(), seconds, host)

    def close(self) -> None:
        """End the connections, and every call under way with Later."""
        self._closed.set()

        async def end() -> None:
            for task in (*self._running, self._late):
                if task:
                    task.cancel()
            await self._http.aclose()

        with suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), _loop()).result(CLOSE_S)

    def _run(self, action: Coroutine[Any, Any, Result], seconds: float, name: str, late_s: float = 0.0) -> Result:
        """The result of an action within a time. Later without one. late_s: as of Limits."""

        async def bounded() -> Result:
            if self._closed.is_set():
                action.close()
                raise Later(f"{name}: the client is closed")
            task = asyncio.ensure_future(action)
            call = asyncio.current_task()
            self._running.add(call)
            try:
                await asyncio.wait([task], timeout=seconds)
                if task.done():
                    return task.result()
                if late_s and not self._late:
                    self._go_on(task, late_s)
                raise Later(f"{name}: no whole answer in {seconds:.3g} s")
            finally:
                self._running.discard(call)
                if task is not self._late:
                    task.cancel()

        try:
            return asyncio.run_coroutine_threadsafe(bounded(), _loop()).result()
        except concurrent.futures.CancelledError:
            raise Later(f"{name}: the client is closed") from None

    def _go_on(self, task: asyncio.Task[Any], seconds: float) -> None:
        """Let a request go on. Nobody reads its answer."""

        def ended(_task: asyncio.Task[Any]) -> None:
            limit.cancel()
            self._late = None
            if not task.cancelled():
                task.exception()

        self._late = task
        limit = asyncio.get_running_loop().call_later(seconds, task.cancel)
        task.add_done_callback(ended)

    async def _answer(self, request: httpx.Request, size: int, before: Callable[[], None] | None) -> httpx.Response:
        """The answer of any status, read to its end."""
        fresh = False

        async def trace(event: str, _info: dict[str, Any]) -> None:
            nonlocal fresh
            fresh = fresh or event == "connection.connect_tcp.started"

        request.extensions = {**request.extensions, "trace": trace}
        try:
            try:
                return await self._read(request, size, before)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                if fresh:  # the server may have read the request
                    raise
                return await self._read(request, size, before)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            if isinstance(error, Later):
                raise
            if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
                raise Misconfigured(f"{_address(request)}: {error}") from None
            origin = _origin(error)
            if isinstance(origin, ssl.SSLCertVerificationError):
                raise Misconfigured(f"{_address(request)}: {origin.verify_message}") from None
            raise Later(f"{_address(request)}: {_words(origin)}", untaken=isinstance(error, httpx.ConnectError)) from None

    async def _read(self, request: httpx.Request, size: int, before: Callable[[], None] | None) -> httpx.Response:
        if before:
            await asyncio.to_thread(before)  # it may wait for a disk
        answer = await self._http.send(request, stream=True)
        try:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise Refused(f"{_address(request)}: its answer is compressed, which the request forbids")
            content = bytearray()
            async for chunk in answer.aiter_raw():
                content += chunk
                if len(content) > size:
                    raise Refused(f"{_address(request)}: an answer of more than {size:,} bytes")
        finally:
            await answer.aclose()
        extensions = {name: value for name, value in answer.extensions.items() if name in ("http_version", "reason_phrase")}
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=bytes(content), extensions=extensions, request=request
        )

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success and answer.content:
            return answer
        if answer.is_success:
            raise Later(f"{_address(answer.request)}: an empty answer", of_sample=True)
        words = answer.content[:QUOTED].decode(errors="replace").strip()
        why = f"{_address(answer.request)}: status {answer.status_code} {answer.reason_phrase}: {words}".rstrip(": ")
        retry_s = _seconds(answer.headers.get("Retry-After", ""))
        raise failures.status_error(answer.status_code, why, retry_s, self._of_status)


_starting = threading.Lock()  # of one thread at a time: two first calls at once would start two loops, and share connections


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all clients of this process, in a thread of its own: only a task can be ended at any time."""
    with _starting:
        return _started_loop()


@cache
def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="http", daemon=True).start()
    return loop


def _forget_loop() -> None:
    """A forked child has none of its parent's threads."""
    _started_loop.cache_clear()
    _starting.release()


os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_forget_loop)


def _address(request: httpx.Request) -> str:
    """The address of a request in messages: without its query, which may hold a key."""
    return str(request.url.copy_with(query=None))


def _origin(error: BaseException) -> BaseException:
    """The system's own exception about a connection, which lies behind several others."""
    deeper: BaseException | None = error
    while deeper:
        if isinstance(deeper, OSError) and deeper.strerror and deeper.errno:
            return deeper
        group = getattr(deeper, "exceptions", None)
        deeper = group[0] if group else deeper.__cause__ or deeper.__context__
    return error


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _seconds(text: str) -> float:
    """The seconds of a Retry-After header: at most a minute; 0 for a date."""
    seconds = parse_integer(text, 10**18)
    return min(float(seconds), LONGEST_RETRY_S) if seconds is not None else 0.0
