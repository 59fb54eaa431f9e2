"""A small HTTP server for tests: answers by a function, keeps what it was asked."""

import contextlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def serving(answer):
    """The server's address, and as .asked the (path, headers, body) of all that came.

    answer(path, body, headers) -> bytes, (status, bytes) or (status, bytes, headers).
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append((self.path, dict(self.headers), body))
            made = answer(self.path, body, self.headers)
            status, content, *more = made if isinstance(made, tuple) else (200, made)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(more[0] if more else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # who asked may be gone
                self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield Served(f"http://127.0.0.1:{made.server_port}", asked)
        made.shutdown()


class Served(str):
    """Its address, with what it was asked."""

    def __new__(cls, url, asked):
        made = super().__new__(cls, url)
        made.asked = asked
        return made


@contextlib.contextmanager
def serving_folder(folder):
    """The address of a server that serves a folder's files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
