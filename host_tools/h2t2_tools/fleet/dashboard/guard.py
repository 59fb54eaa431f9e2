"""Who may see the dashboard, as ASGI middleware before everything else: HTTP and WebSockets, pages, scripts and health check.

A visitor without the token reaches a form of plain HTML and the health check, and nothing of NiceGUI, which keeps memory for
each page and each connection.
"""

from __future__ import annotations

import html
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nicegui import Client
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

LOGIN, HEALTH = "/login", "/healthz"
SOCKET = "/_nicegui_ws/"
COOKIE = "h2t2"
LOCAL = ("127.0.0.1", "localhost", "::1")
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>h2t2</title>
<form method="post" action="/login" style="font-family: sans-serif; margin: 2em"><p>{}</p>
<label>token <input name="token" type="password" autofocus></label> <button>Open</button></form>"""
ELSEWHERE = "without a token this page answers to localhost alone; behind another server, give it a --token-file\n"
LARGEST = 4096  # bytes of a form
PAGES = 200  # open at once; NiceGUI forgets one that no browser came back for after a minute
FREE, LONGEST_S = 5, 60.0  # wrong guesses of an address without a wait; the longest wait, to which it doubles from a second
ADDRESSES = 1000  # whose wrong guesses are remembered
# NiceGUI compiles its templates in the browser, hence eval; everything comes from this server, and nobody frames it
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


class Guesses:
    """Slows down whoever guesses the token: after FREE wrong ones of an address it waits for each, up to a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._missed: OrderedDict[str, tuple[int, float]] = OrderedDict()  # address -> wrong guesses, when the next may come

    def wait(self, address: str) -> float:
        """Seconds until a guess of that address is looked at, 0: now."""
        return max(0.0, self._missed.get(address, (0, 0.0))[1] - self._clock())

    def missed(self, address: str) -> None:
        """A wrong one."""
        count = self._missed.pop(address, (0, 0.0))[0] + 1
        wait = min(LONGEST_S, 2.0 ** min(count - FREE, 10)) if count >= FREE else 0.0
        self._missed[address] = count, self._clock() + wait
        if len(self._missed) > ADDRESSES:
            self._missed.popitem(last=False)

    def hit(self, address: str) -> None:
        """The right one."""
        self._missed.pop(address, None)


class Guard:
    """token: what a visitor must know, by ?token= or by the form; from then on a cookie of this start says so. "": nothing, for
    a page that this machine alone sees; then its address must be one of this machine (a page of another site, whose name leads
    here, must not read it). unwell, note: what is wrong, and what else to know, for the health check; "" for nothing."""

    def __init__(
        self,
        app: Any,
        token: str,
        unwell: Callable[[], str],
        note: Callable[[], str] = lambda: "",
        guesses: Guesses | None = None,
    ) -> None:
        self._app, self._token, self._unwell, self._note = app, token, unwell, note
        self._known = secrets.token_urlsafe(24)
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
        """What is answered here; None: the page answers."""
        path = request.url.path
        if path == HEALTH:
            trouble, note = self._unwell(), self._note()
            return PlainTextResponse(f"{trouble or 'ok'}\n{note and note + chr(10)}", 503 if trouble else 200)
        if self._token and path == LOGIN:
            return await self._login(request)
        if self._token and "token" in request.query_params:
            return self._guessed(request, request.query_params["token"], "/" + path.lstrip("/"))  # // leads elsewhere
        if not self._may_enter(request.scope):
            return RedirectResponse(LOGIN, 303) if self._token else PlainTextResponse(ELSEWHERE, 421)
        if len(Client.instances) >= PAGES and not path.startswith(SOCKET):
            return PlainTextResponse("too many pages are open; try again in a minute\n", 503, {"Retry-After": "60"})
        return None

    def _may_enter(self, scope: Any) -> bool:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if self._token:
            return _same(_cookie(headers.get("cookie", "")), self._known)
        host, origin = headers.get("host", ""), headers.get("origin")
        return _host(f"//{host}") in LOCAL and (origin is None or _host(origin) in LOCAL)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(FORM.format(""), 401)
        content = b""
        async for piece in request.stream():
            content += piece
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
            self._guesses.missed(who)
            return HTMLResponse(FORM.format("that is not it"), 401)
        self._guesses.hit(who)
        answer = RedirectResponse(address, 303)
        answer.set_cookie(COOKIE, self._known, httponly=True, samesite="strict")
        return answer


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), wanted.encode())


def _cookie(header: str) -> str:
    """Our cookie's value, "" where there is none."""
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _host(address: str) -> str:
    """The host in an address, "" where there is none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
