"""Our web servers: a thread that serves an application; how many connections there may be, how long one waits for a visitor.

A visitor who opens many, sends a byte a minute, or reads no answer, keeps nobody out: the oldest such connection makes room.
"""

import asyncio
import os
import resource
import socket
import threading
from itertools import count
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..common.errors import UserError

# Connections at a time, WebSockets too, and at most a quarter of the files that this process may open: the state needs some.
MOST = 128
# A request comes so fast, from the connection or its first byte to its last; a visitor reads some of an answer so often.
REQUEST_S = 20.0
LONGEST_HEADER = 1 << 16  # bytes
# Whose X-Forwarded-For counts: nobody's, unless uvicorn's own variable names proxies. Otherwise a visitor is whoever he says.
IS_PROXIED = "FORWARDED_ALLOW_IPS" in os.environ
NUMBERS = count()  # of connections, in their order: a clock may tell two the same time


def limit() -> int:
    """The number of connections that a server may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(4, min(MOST, soft // 4))


class Bounded(H11Protocol):
    """Uvicorn's protocol of a connection, with bounds. It reads one request at a time, while it answers none.

    `connections` holds uvicorn's WebSockets, too. They have passed the application's guard, so none makes room for a newcomer;
    where every connection is one, or waits for us, the newcomer goes.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's
        """As asyncio.Protocol has it."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._unread = 0  # bytes when the timer started
        self._has_read = False  # since then
        self.is_aborted = False
        self.number = next(NUMBERS)
        self._watch()
        bounded = [connection for connection in self.connections if isinstance(connection, Bounded)]
        aborted = [connection for connection in bounded if connection.is_aborted]  # they leave `connections` a moment later
        if len(self.connections) - len(aborted) > limit():
            waiting = [connection for connection in bounded if connection.awaits_visitor and not connection.is_aborted]
            min(waiting, key=lambda connection: connection.number, default=self).abort()

    def data_received(self, data: bytes) -> None:
        """As asyncio.Protocol has it."""
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """As asyncio.Protocol has it: much of the answer is unread."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """As asyncio.Protocol has it."""
        super().resume_writing()
        self._has_read = True

    def on_response_complete(self) -> None:
        """As uvicorn's protocol has it: the answer is written, as far as the visitor reads."""
        super().on_response_complete()
        self._stop_timer()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio.Protocol has it."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def is_upgraded(self) -> bool:
        """Whether it has become a WebSocket."""
        return self.transport.get_protocol() is not self

    @property
    def is_incomplete(self) -> bool:
        """Whether no request has come whole that waits for its answer."""
        return bool(self.cycle is None or self.cycle.response_complete or self.cycle.more_body)

    @property
    def awaits_visitor(self) -> bool:
        """Whether the visitor has to send a request, or to read an answer, or asks again before he can have read one."""
        return self.is_incomplete or self.transport.get_write_buffer_size() > 0 or bool(self.conn.trailing_data[0])

    def abort(self) -> None:
        """End the connection at once, with what is unread."""
        self.is_aborted = True
        if self.cycle:
            self.cycle.disconnected = True  # it writes no more
        self.transport.abort()

    def _watch(self) -> None:
        """Bound the time for which the connection awaits its visitor."""
        if self.is_upgraded or not self.awaits_visitor:
            self._stop_timer()
        elif self._timer is None:
            self._unread, self._has_read = self.transport.get_write_buffer_size(), False
            self._timer = self.loop.call_later(REQUEST_S, self._expire)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        unread = self.transport.get_write_buffer_size()
        if unread and (self._has_read or unread < self._unread):  # slowly
            self._watch()
        elif self.awaits_visitor and not self.is_upgraded:
            self.abort()


# of uvicorn
OPTIONS: dict[str, Any] = {"http": Bounded, "proxy_headers": IS_PROXIED, "h11_max_incomplete_event_size": LONGEST_HEADER}


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
