"""Our web servers: a thread that serves an application; how many connections there may be, how long a request may take to come.

A visitor who opens many, or sends a byte a minute, keeps nobody out: the connection that has waited longest makes room.
"""

import asyncio
import os
import resource
import socket
import threading
from itertools import count
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ..common.errors import UserError

MOST = 128  # connections at a time, and at most a quarter of the files that this process may open: the state needs some
REQUEST_S = 20.0  # from a connection, or the first byte of a request, to its last
LONGEST_HEADER = 1 << 16  # bytes
# Whose X-Forwarded-For counts: nobody's, unless uvicorn's own variable names proxies. Otherwise a visitor is whoever he says.
IS_PROXIED = "FORWARDED_ALLOW_IPS" in os.environ
NUMBERS = count()  # of connections, in their order: a clock may tell two the same time


def limit() -> int:
    """The number of connections that a server may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(4, min(MOST, soft // 4))


class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's protocol of a connection, with bounds."""

    connections: "set[Any]"
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    cycle: Any

    def connection_made(self, transport: asyncio.Transport) -> None:
        """As asyncio.Protocol has it."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._header_size = 0
        self.number = next(NUMBERS)
        self._expect_request()
        present = [connection for connection in self.connections if not connection.transport.is_closing()]
        if len(present) > limit():
            incomplete = [connection for connection in present if connection.is_incomplete]
            min(incomplete, key=lambda connection: connection.number).transport.abort()

    def data_received(self, data: bytes) -> None:
        """As asyncio.Protocol has it."""
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self or not self.is_incomplete:
            self._stop_timer()
            self._header_size = 0
            return
        self._expect_request()
        if self.cycle is None or self.cycle.response_complete:
            self._header_size += len(data)
            if self._header_size > LONGEST_HEADER:
                self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio.Protocol has it."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def is_incomplete(self) -> bool:
        """Whether no request has come whole that waits for its answer."""
        return bool(self.cycle is None or self.cycle.response_complete or self.cycle.more_body)

    def _expect_request(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(REQUEST_S, self._expire)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self.transport.get_protocol() is self and self.is_incomplete:
            self.transport.abort()


OPTIONS: dict[str, Any] = {"http": Bounded, "proxy_headers": IS_PROXIED}  # of uvicorn


class Served:
    """Serves an ASGI application from a thread until close().

    Attributes:
        port: that it listens on.
    """

    def __init__(self, application: Any, host: str, port: int, name: str) -> None:
        """
        Args:
            port: to listen on; 0: any that is free.
            name: what the error of an address calls it.

        Raises:
            UserError: another program listens on the port, or this user may not.
        """
        self._socket = _listening(host, port, name)
        self.port = int(self._socket.getsockname()[1])
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none"}
        config = uvicorn.Config(application, interface="asgi3", **quiet, **OPTIONS)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer what has begun, and take no more."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening(host: str, port: int, name: str) -> socket.socket:
    """A socket that takes connections. It names its protocol: of others asyncio does not switch Nagle's delay off (40 ms)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UserError(f"{name}: {error.strerror or error}") from None
    return listening
