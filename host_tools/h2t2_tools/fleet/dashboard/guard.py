"""Who may see the dashboard, as ASGI middleware before everything else: HTTP and WebSockets, pages, scripts and health check.

A visitor without the token reaches a form of plain HTML and the health check, and nothing of NiceGUI, which takes memory for
each page and each connection.
"""

import html
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from nicegui import Client
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from ...common import places
from ..visitors import LOCAL, Guesses, host_of

LOGIN, HEALTH = "/login", "/healthz"
SOCKET = "/_nicegui_ws/"
COOKIE = "h2t2"
FORM = places.text("fleet/dashboard/login.html")
ELSEWHERE = "without a token this page answers to localhost alone; behind another server, give it a --token-file\n"
LARGEST = 4096  # bytes of a form
PAGES = 200  # open at once; NiceGUI closes one that no browser has returned to for a minute
# NiceGUI compiles its templates in the browser, hence eval; everything comes from this server, and no page may frame it
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # an address may hold the token
]


class Guard:
    """The middleware.

    Args:
        app: the ASGI application behind it.
        token: a visitor sends it by ?token= or by the form, and then has a cookie of this start. "": no token, for a page that
            only this machine sees; its address must then be one of this machine, so that no page of another site, whose name
            resolves to this address, can read it.
        unwell: says what is wrong, for the health check; "" for nothing.
        note: says what else there is to know, for the health check; "" for nothing.
        guesses: of the token.
    """

    def __init__(
        self, app: Any, token: str, unwell: Callable[[], str], note: Callable[[], str], guesses: Guesses | None = None
    ) -> None:
        self._app, self._token, self._unwell, self._note = app, token, unwell, note
        self._cookie_value = secrets.token_urlsafe(24)
        self._guesses = guesses or Guesses()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            if self._may_enter(scope):
                await self._app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        answer = await self._answer(Request(scope, receive))
        await (answer or self._app)(scope, receive, guarded)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request; None: the application answers."""
        path = request.url.path
        if path == HEALTH:
            trouble, note = self._unwell(), self._note()
            return PlainTextResponse(f"{trouble or 'ok'}\n{note and note + chr(10)}", 503 if trouble else 200)
        if self._token and path == LOGIN:
            return await self._login(request)
        if self._token and "token" in request.query_params:
            return self._guessed(request, request.query_params["token"], "/" + path.lstrip("/"))  # // names another host
        if not self._may_enter(request.scope):
            return RedirectResponse(LOGIN, 303) if self._token else PlainTextResponse(ELSEWHERE, 421)
        if len(Client.instances) >= PAGES and not path.startswith(SOCKET):
            return PlainTextResponse("too many pages are open; try again in a minute\n", 503, {"Retry-After": "60"})
        return None

    def _may_enter(self, scope: Any) -> bool:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if self._token:
            return _same(_cookie(headers.get("cookie", "")), self._cookie_value)
        host, origin = headers.get("host", ""), headers.get("origin")
        return host_of(f"//{host}") in LOCAL and (origin is None or host_of(origin) in LOCAL)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(FORM.format(""), 401)
        content = b""
        async for chunk in request.stream():
            content += chunk
            if len(content) > LARGEST:
                return PlainTextResponse("too large\n", 413)
        guess = parse_qs(content.decode("latin-1"), encoding="utf-8", errors="replace").get("token", [""])[0]
        return self._guessed(request, guess, "/")

    def _guessed(self, request: Request, guess: str, address: str) -> Response:
        who = request.client.host if request.client else ""
        wait = self._guesses.wait(who)
        if wait:
            text = f"too many wrong tokens; try again in {wait:.0f} s"
            return HTMLResponse(FORM.format(html.escape(text)), 429, {"Retry-After": f"{wait:.0f}"})
        if not _same(guess, self._token):
            self._guesses.add_wrong(who)
            return HTMLResponse(FORM.format("that is not it"), 401)
        self._guesses.clear(who)
        answer = RedirectResponse(address, 303)
        answer.set_cookie(COOKIE, self._cookie_value, httponly=True, samesite="strict")
        return answer


def _same(a: str, b: str) -> bool:
    return secrets.compare_digest(a.encode(errors="replace"), b.encode())


def _cookie(header: str) -> str:
    """The value of our cookie, "" without one."""
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""
