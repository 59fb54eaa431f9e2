"""The dashboard's server: the pages behind their guard."""

from dataclasses import dataclass

from nicegui import app, ui

from ...common.collector import spare_collections
from .answer_page import AnswerPage
from .command_panel import Send
from .guard import Guard
from .pages import Pages
from .unit import Unit
from .watcher import Watcher


@dataclass(frozen=True)
class Options:
    """Options of the server.

    Args:
        host, port: to listen on.
        token: that visitors must know; "": none.
        show: open a browser.
        unit: of daily costs.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: str = ""
    show: bool = False
    unit: Unit = Unit()  # noqa: RUF009


def serve(watcher: Watcher, options: Options, send: Send | None, answer_page: AnswerPage | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C. The arguments are those of Pages."""
    Pages(watcher, send, answer_page, options.unit).declare()
    app.add_middleware(Guard, token=options.token, unwell=lambda: watcher.trouble, note=lambda: watcher.refused_text)
    app.on_startup(spare_collections)
    app.on_shutdown(watcher.close)
    ui.run(
        host=options.host,
        port=options.port,
        title="h2t2",
        language="en-US",
        show=options.show,
        reload=False,
        show_welcome_message=False,
        message_history_length=50,
    )
