"""A small HTTP server for tests: a function answers, or a folder."""

import contextlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from h2t2_lab.http_server import Served, serving

__all__ = ["Served", "serving", "serving_folder"]


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
