"""Who may see the dashboard: the guard before its pages, alone and before the real ones."""

import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pages import dashboard
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from support import children

from h2t2_tools.fleet import visitors
from h2t2_tools.fleet.dashboard import guard
from h2t2_tools.fleet.dashboard.guard import Guard
from h2t2_tools.fleet.visitors import FREE, LONGEST_S, Guesses

TOKEN = "open sesame, 16 or more"
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


async def page(request):
    return PlainTextResponse(f"inside {request.url.path}")


async def socket(connection):
    await connection.accept()
    await connection.send_text("inside")
    await connection.close()


def visitor(token=TOKEN, unwell="", clock=None, base="http://localhost", note=""):
    inside = Starlette(routes=[WebSocketRoute("/_nicegui_ws/x", socket), Route("/{path:path}", page)])
    guarded = Guard(inside, token, lambda: unwell, lambda: note, Guesses(clock or Clock()))
    return TestClient(guarded, base_url=base, follow_redirects=False)


def test_without_the_token_there_is_a_form_and_the_health_check():
    alone = visitor(unwell="the broker: gone")
    for path in ("/", "/device/kitchen", "/_nicegui/3/static/x.js", "/_nicegui_ws/socket.io", "//elsewhere"):
        answer = alone.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert alone.get("/login").status_code == 401 and "token" in alone.get("/login").text
    answer = alone.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "the broker: gone\n") and visitor().get("/healthz").text == "ok\n"
    assert visitor(note="3 messages were refused").get("/healthz").text == "ok\n3 messages were refused\n"
    with pytest.raises(WebSocketDisconnect), alone.websocket_connect("ws://localhost/_nicegui_ws/x") as connection:
        connection.receive_text()


@pytest.mark.parametrize("way", ["form", "address"])
def test_who_knows_the_token_enters(way):
    known = visitor()
    answer = (
        known.post("/login", data={"token": TOKEN})
        if way == "form"
        else known.get("http://localhost//device/x", params={"token": TOKEN})
    )
    assert answer.status_code == 303 and answer.headers["location"] in ("/", "/device/x")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    assert known.get("/device/x").text == "inside /device/x"
    with known.websocket_connect("ws://localhost/_nicegui_ws/x") as connection:
        assert connection.receive_text() == "inside"


def test_guesses_are_slowed_down_whichever_way_they_come():
    clock = Clock()
    thief = visitor(clock=clock)
    for n in range(FREE):
        guess = thief.post("/login", data={"token": f"wrong {n}"}) if n % 2 else thief.get("/", params={"token": "wrong"})
        assert guess.status_code == 401
    waits = []
    for _ in range(10):
        answer = thief.post("/login", data={"token": TOKEN})  # not even the right one is looked at
        assert answer.status_code == 429
        waits.append(int(answer.headers["retry-after"]))
        clock.now += waits[-1]
        assert thief.post("/login", data={"token": "wrong"}).status_code == 401
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60] and max(waits) == LONGEST_S
    clock.now += LONGEST_S
    assert thief.post("/login", data={"token": TOKEN}).status_code == 303
    for _ in range(FREE):  # who knows the token begins anew
        assert thief.post("/login", data={"token": "wrong"}).status_code == 401


def test_guesses_of_many_addresses_take_no_memory():
    guesses = Guesses(Clock())
    for n in range(3 * visitors.ADDRESSES):
        for _ in range(FREE):
            guesses.add_wrong(str(n))
    known = [n for n in range(3 * visitors.ADDRESSES) if guesses.wait(str(n))]
    assert known == [*range(2 * visitors.ADDRESSES, 3 * visitors.ADDRESSES)]


def test_a_large_form_is_not_read():
    alone = visitor()
    assert alone.post("/login", content=b"token=" + b"x" * 100_000).status_code == 413
    assert alone.post("/login", content=b"\xff%ff=%00&token=%ff").status_code == 401


@pytest.mark.parametrize("path", ["/", "/login", "/healthz", "/_nicegui/x"])
def test_every_answer_forbids_frames_and_content_of_others(path):
    headers = visitor().get(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"] and headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer" and headers["x-content-type-options"] == "nosniff"


def test_without_a_token_only_this_machines_own_addresses_are_answered():
    assert visitor("").get("/").text == "inside /" and visitor("", base="http://127.0.0.1:8080").get("/").status_code == 200
    assert visitor("", base="http://rebound.example").get("/").status_code == 421
    for origin, enters in (("http://localhost:8080", True), ("http://elsewhere.example", False), ("null", False)):
        here = visitor("")
        if enters:
            with here.websocket_connect("ws://localhost/_nicegui_ws/x", headers={"origin": origin}) as connection:
                assert connection.receive_text() == "inside"
        else:
            with (
                pytest.raises(WebSocketDisconnect),
                here.websocket_connect("ws://localhost/_nicegui_ws/x", headers={"origin": origin}) as connection,
            ):
                connection.receive_text()


def test_too_many_open_pages_are_refused(monkeypatch):
    monkeypatch.setattr(guard.Client, "instances", dict.fromkeys(range(guard.PAGES)))
    assert visitor("").get("/").status_code == 503 and visitor("").get("/healthz").status_code == 200


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


@pytest.mark.whole
@pytest.mark.parametrize("token", [True, False])
def test_requests_without_the_token_take_no_memory(token, broker, tmp_path):
    """3,000 of each kind: the dashboard grows by less than 20 MB (by 200 MB in half a minute before)."""
    options = ["--command"] if token else []
    with dashboard(broker.url, tmp_path, *options) as address:
        (pid,) = [pid for pid in children(os.getpid()) if b"dashboard" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        base = address.partition("?")[0]

        def ask(path, data=None):
            try:
                urllib.request.urlopen(base + path, data, timeout=30).read()
            except urllib.error.HTTPError as error:
                error.read()

        def flood(count):
            for n in range(count):
                ask("")
                ask(f"_nicegui/{n}")
                ask("login", b"token=" + b"x" * 4000)
                ask("_nicegui_ws/socket.io/?EIO=4&transport=polling")

        flood(300 if token else 250)
        before = resident(pid)
        flood(700)
        assert resident(pid) - before < 20 << 20
