"""The dashboard's server: the pages behind their guard."""

from collections.abc import Callable

from nicegui import app, ui

from ...common.collector import spare_collections
from .. import http_server
from .guard import Guard
from .pages import Pages
from .watcher import Watcher


def serve(
    pages: Pages,
    watcher: Watcher,
    *,
    host: str,
    port: int,
    token: str,
    show: bool,
    is_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        pages: what to serve.
        watcher: their source.
        host, port: to listen on.
        token: that visitors must know; "": none.
        show: open a browser.
        is_ended: whether a signal has ended the command before. What its handler raises is lost in the end of an object.
    """
    pages.declare()
    app.add_middleware(Guard, token=token, unwell=lambda: watcher.trouble, note=lambda: watcher.refused_text)
    app.on_startup(spare_collections)
    app.on_startup(lambda: app.shutdown() if is_ended() else None)
    app.on_shutdown(watcher.close)
    ui.run(
        host=host, port=port, title="h2t2", language="en-US", show=show, reload=False, show_welcome_message=False,
        message_history_length=50, **http_server.OPTIONS,
    )  # fmt: skip
