"""A small HTTP server in this process: a function answers. Days of a gate and tests play other people's servers with it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = bytes | tuple[int, bytes] | tuple[int, bytes, dict[str, str]]  # content, or status, content, headers
Reply = Callable[[str, bytes, Any], Answer]  # (path, body, headers) -> answer


class Served(str):
    """The address of a server.

    Attributes:
        requests: (path, headers, body) of each request.
    """

    requests: list[tuple[str, dict[str, str], bytes]]


@contextlib.contextmanager
def serving(reply: Reply) -> Iterator[Served]:
    """Serve HTTP on this machine and yield the server's address.

    Args:
        reply: answers a GET or a POST.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            address.requests.append((self.path, dict(self.headers), body))
            answer = reply(self.path, body, self.headers)
            status, content, *extra = answer if isinstance(answer, tuple) else (200, answer)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(extra[0] if extra else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may have gone
                self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = Served(f"http://127.0.0.1:{server.server_port}")
        address.requests = []
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield address
        server.shutdown()
