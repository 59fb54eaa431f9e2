"""A small HTTP server for tests: a function answers, and the server keeps the requests."""

import contextlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def serving(answer):
    """Serve HTTP and yield the server's address, with its requests as .requests: (path, headers, body).

    answer(path, body, headers) returns bytes, (status, bytes) or (status, bytes, headers).
    """
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append((self.path, dict(self.headers), body))
            reply = answer(self.path, body, self.headers)
            status, content, *extra = reply if isinstance(reply, tuple) else (200, reply)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(extra[0] if extra else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may have gone
                self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Served(f"http://127.0.0.1:{server.server_port}", requests)
        server.shutdown()


class Served(str):
    """The address of a server, with its requests."""

    def __new__(cls, url, requests):
        address = super().__new__(cls, url)
        address.requests = requests
        return address


@contextlib.contextmanager
def serving_folder(folder):
    """Serve a folder's files and yield the server's address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
