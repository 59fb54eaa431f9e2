"""The dashboard's server: the pages, and who may see them."""

from __future__ import annotations

import html
import secrets
from dataclasses import dataclass
from typing import Any

from nicegui import app, ui
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from .answering import Answering
from .pages import Pages, Send
from .watcher import Watcher

LOGIN = "/login"
COOKIE = "h2t2"
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>h2t2</title>
<form method="post" style="font-family: sans-serif; margin: 2em"><p>{}</p>
<label>token <input name="token" type="password" autofocus></label> <button>Open</button></form>"""


@dataclass(frozen=True)
class Options:
    """host, port: to listen on. token: what a visitor must know, "" for nothing. show: open a browser."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str = ""
    show: bool = False


def serve(watcher: Watcher, options: Options, send: Send | None, answering: Answering | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C. send, answering: None for a dashboard that only looks."""
    Pages(watcher, send, answering).declare()
    if options.token:
        app.add_middleware(_guard(options.token))
    app.on_shutdown(watcher.close)
    ui.run(
        host=options.host,
        port=options.port,
        title="h2t2",
        show=options.show,
        reload=False,
        show_welcome_message=False,
        message_history_length=50,
    )


def _guard(token: str) -> type[BaseHTTPMiddleware]:
    """Lets in who knows the token: by ?token= or by the form that asks for it. From then on a cookie of this start says so."""
    known = secrets.token_urlsafe(24)

    def entered(address: str) -> Response:
        made = RedirectResponse(address, 303)
        made.set_cookie(COOKIE, known, httponly=True, samesite="strict")
        return made

    class Guard(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: Any) -> Response:
            path = request.url.path
            if path == LOGIN:
                given = (await request.form()).get("token") if request.method == "POST" else None
                if isinstance(given, str) and _same(given, token):
                    return entered("/")
                return HTMLResponse(FORM.format(html.escape("" if given is None else "that is not it")), 401)
            if _same(request.query_params.get("token", ""), token):
                return entered("/" + path.lstrip("/"))  # two slashes would lead to another machine
            if not _same(request.cookies.get(COOKIE, ""), known) and not path.startswith("/_nicegui"):
                return RedirectResponse(LOGIN, 303)
            made: Response = await call_next(request)
            return made

    return Guard


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())
