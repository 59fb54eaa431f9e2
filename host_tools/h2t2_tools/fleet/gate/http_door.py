"""A gate's door to HTTP: `POST /v1/decide`, described by OpenAPI at /openapi.json and /docs."""

import asyncio
import json
import re
import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...common.errors import UserError
from ..visitors import LOCAL, host_of
from . import paths
from .config import GateConfig
from .detection import LONGEST_KEY, LONGEST_TEXT, Decision, Detection, Payload
from .gate import Gate
from .message import TENSOR, Reader, picture

TICKETS = 10000  # decisions that a visitor may fetch later
JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json\s*(;|$)", re.I)  # a page of another site cannot send it unasked


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        host, port: to listen on.
        token: that a request carries as `Authorization: Bearer TOKEN`; "": none, and only this machine may ask.
    """

    host: str
    port: int
    token: str


class Sample(BaseModel):
    """A score to decide about, and what the remote model would see."""

    model_config = ConfigDict(extra="forbid")

    score: Annotated[float | list[float], Field(description="of class 1, or of all classes; 0 to score_max")]
    key: Annotated[str, Field(max_length=LONGEST_KEY, description="the stream: a camera, a room")] = "all"
    identity: Annotated[str, Field(max_length=LONGEST_TEXT, description="the gate decides each identity once")] = ""
    label: Annotated[str, Field(max_length=LONGEST_TEXT, description="the detector's name for it")] = ""
    picture: Annotated[str, Field(description="a picture or clip as base64, or its URL on an allowed host")] = ""
    text: Annotated[str, Field(description="a text that the remote model reads instead")] = ""
    tensor: Annotated[list[float], Field(max_length=TENSOR, description="numbers that it reads instead")] = []
    features: Annotated[list[float], Field(description="numbers that a head learns from")] = []
    wait: Annotated[bool, Field(description="false: answer at once with a ticket")] = True


class Ticket(BaseModel):
    """Names a decision that is not there yet; GET /v1/decisions/TICKET."""

    ticket: str


class HttpDoor:
    """Serves a gate until close().

    Args:
        gate: the gate.
        config: its configuration.
        access: who may ask.

    Raises:
        UserError: another program listens on the port, or this user may not.
    """

    def __init__(self, gate: Gate, config: GateConfig, access: Access) -> None:
        self._gate, self._config, self._reader, self._access = gate, config, Reader(config), access
        self._decisions: OrderedDict[str, Decision | None] = OrderedDict()
        self._lock = threading.Lock()
        self._socket = _listening(access)
        self.port = int(self._socket.getsockname()[1])
        limit = Limit(self._application(), config.picture_limit * 4 // 3 + (1 << 20))
        self._server = uvicorn.Server(uvicorn.Config(limit, log_config=None, access_log=False, lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer what has begun, and take no more."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def _application(self) -> FastAPI:
        application = FastAPI(title="h2t2 gate", version="1", dependencies=[Depends(self._check_visitor)])
        application.exception_handler(RequestValidationError)(_refusal)
        answers: dict[int | str, dict[str, Any]] = {202: {"model": Ticket}}
        application.router.add_api_route(
            "/v1/decide",
            self._decide,
            methods=["POST"],
            response_model=None,
            responses={**answers, 200: {"model": Decision}},
            route_class_override=self._route_class(),
        )
        application.get("/v1/decisions/{ticket}", response_model=None, responses={**answers, 200: {"model": Decision}})(
            self._fetch
        )
        return application

    def _route_class(self) -> type[APIRoute]:
        """A route that FastAPI describes and whose requests we read: its own way to a decision takes twice the time."""
        door = self

        class Route(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                return door._handle

        return Route

    async def _handle(self, request: Request) -> Response:
        """Answer POST /v1/decide as FastAPI would: a body that is no JSON by its type is no sample."""
        headers = request.headers
        await self._check_visitor(headers.get("host", ""), headers.get("authorization", ""))
        if not JSON_TYPE.match(headers.get("content-type", "")):
            raise HTTPException(422, "want Content-Type: application/json")
        try:
            sample = Sample.model_validate_json(await request.body())
        except ValidationError as error:
            return _refusal(request, error)
        return await self._decide(sample)

    async def _check_visitor(self, host: Annotated[str, Header()] = "", authorization: Annotated[str, Header()] = "") -> None:
        """Refuse a visitor without the token; without a token, a page of another site whose name leads here."""
        if self._access.token:
            if not secrets.compare_digest(authorization.encode(), f"Bearer {self._access.token}".encode()):
                raise HTTPException(401, "want the header Authorization: Bearer TOKEN")
        elif host_of(f"//{host}") not in LOCAL:
            raise HTTPException(421, "without a token the gate answers to localhost alone")

    async def _decide(self, sample: Sample) -> Response:
        """Decide a sample, within the configuration's deadline."""
        loop, decided = asyncio.get_running_loop(), asyncio.Event()
        ticket, thread = secrets.token_urlsafe(12), threading.get_ident()

        def act(decision: Decision) -> None:
            with self._lock:
                self._decisions[ticket] = decision
            if threading.get_ident() == thread:  # decided at once
                decided.set()
                return
            with suppress(RuntimeError):  # the door is closed
                loop.call_soon_threadsafe(decided.set)

        with self._lock:
            self._decisions[ticket] = None
            while len(self._decisions) > TICKETS:
                self._decisions.popitem(last=False)
        try:
            self._gate.submit(self._detection(sample), act)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        if sample.wait:
            await decided.wait()
        return await self._fetch(ticket)

    async def _fetch(self, ticket: str) -> Response:
        """The decision of a ticket; status 202 while it is not there."""
        with self._lock:
            if ticket not in self._decisions:
                raise HTTPException(404, f"no such ticket; the gate keeps the last {TICKETS}")
            decision = self._decisions[ticket]
        if decision is None:
            return Response(json.dumps({"ticket": ticket}), 202, media_type="application/json")
        return Response(decision.as_json(), media_type="application/json")

    def _detection(self, sample: Sample) -> Detection:
        if sum(map(bool, (sample.picture, sample.text, sample.tensor))) > 1:
            raise ValueError("picture, text, tensor: give one of them")
        if sample.picture:
            payload = picture(sample.picture)
        elif sample.text:
            payload = Payload(data=sample.text.encode(), media="text/plain")
        else:
            payload = Payload(tensor=paths.numbers(sample.tensor, TENSOR) if sample.tensor else ())
        return Detection(
            sample.key,
            self._reader.scores(sample.score),
            identity=sample.identity,
            label=sample.label,
            payload=payload,
            features=self._reader.features(sample.features) if self._config.feature_count else (),
        )


def _refusal(_request: Request, error: Exception) -> Response:
    """The answer to a request that is no sample. It quotes no values: JSON cannot hold NaN, nor UTF-8 half a character."""
    assert isinstance(error, (RequestValidationError, ValidationError))
    detail = [{"loc": entry["loc"], "msg": entry["msg"], "type": entry["type"]} for entry in error.errors()]
    return Response(json.dumps({"detail": detail}), 422, media_type="application/json")


class Limit:
    """ASGI middleware that refuses a body larger than `largest` bytes before it is read as a whole."""

    def __init__(self, application: Any, largest: int) -> None:
        self._application, self._largest = application, largest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = dict(scope.get("headers", ())).get(b"content-length", b"")
        if not length.isdigit() and scope.get("method") == "POST" or length.isdigit() and int(length) > self._largest:
            await send({"type": "http.response.start", "status": 413, "headers": [(b"content-type", b"text/plain")]})
            await send(
                {"type": "http.response.body", "body": f"a body has a length of at most {self._largest} bytes\n".encode()}
            )
            return
        await self._application(scope, receive, send)


def _listening(access: Access) -> socket.socket:
    """A socket that takes connections. It names its protocol: of others asyncio does not switch Nagle's delay off (40 ms)."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((access.host, access.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UserError(f"--http {access.port}: {error.strerror or error}") from None
    return listening
