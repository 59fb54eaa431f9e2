"""A gate's door to HTTP, described by OpenAPI at /openapi.json and /docs.

`POST /v1/decide` lets the gate decide; `POST /v1/ask` asks the remote model for a node that decides itself.
"""

import asyncio
import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire

from .. import http_server
from ..failures import reply_status
from ..visitors import LOCAL, Guesses, host_of
from . import paths
from .detection import LONGEST_KEY, LONGEST_TEXT, Decision, Detection, Payload
from .gate import MAX_QUESTIONS, Gate
from .gate_config import GateConfig
from .message import TENSOR, Reader, picture
from .remote import Answer, Question

DISCARDED, DISCARD_S = 1 << 26, 10.0  # bytes of a body too large that are read before the answer, and the time for them
TICKETS = 10000  # decisions that a visitor may fetch later
OCTETS = "application/octet-stream"
JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json\s*(;|$)", re.I)  # a page of another site cannot send it unasked


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


class Truth(BaseModel):
    """What a person says of a decision whose source is "remote"."""

    model_config = ConfigDict(extra="forbid")

    answer: Annotated[str, Field(description="the label that the remote model gave it")]
    truth: Annotated[str, Field(description="the label that is right, also where this is the answer")]


class Ticket(BaseModel):
    """Names a decision that is not there yet; GET /v1/decisions/TICKET."""

    ticket: str


class HttpDoor(http_server.Served):
    """Serves a gate until close().

    Args:
        gate: the gate.
        config: its configuration.
        host, port: to listen on.
        token: that a request carries as `Authorization: Bearer TOKEN`; "": none, and only this machine may ask.

    Raises:
        UserError: another program listens on the port, or this user may not.
    """

    def __init__(self, gate: Gate, config: GateConfig, host: str, port: int, token: str) -> None:
        self._gate, self._config, self._reader, self._token = gate, config, Reader(config), token
        self._decisions: OrderedDict[str, Decision | None] = OrderedDict()
        self._asking = 0  # questions of nodes that have no answer
        self._lock, self._guesses = threading.Lock(), Guesses()
        limit = Limit(self._application(), config.picture_limit * 4 // 3 + (1 << 20))
        super().__init__(limit, host, port, f"--http {port}")

    def _application(self) -> FastAPI:
        application = FastAPI(title="h2t2 gate", version="1", dependencies=[Depends(self._check_visitor)])
        application.exception_handler(RequestValidationError)(_refusal)
        answers: dict[int | str, dict[str, Any]] = {202: {"model": Ticket}}
        decision: dict[str, Any] = {"response_model": None, "responses": {**answers, 200: {"model": Decision}}}
        add = application.router.add_api_route
        add("/v1/decide", self._decide, methods=["POST"], route_class_override=self._route_class(), **decision)
        content: dict[str, Any] = {"content": {OCTETS: {}}}
        bytes_only: dict[str, Any] = {"responses": {200: content}, "openapi_extra": {"requestBody": content}}
        add("/v1/ask", self._ask, methods=["POST"], response_model=None, **bytes_only)
        add("/v1/truth", self._judge, methods=["POST"])
        add("/v1/decisions/{ticket}", self._fetch, methods=["GET"], **decision)
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
        await self._check_visitor(request)
        if not JSON_TYPE.match(headers.get("content-type", "")):
            raise HTTPException(422, "want Content-Type: application/json")
        try:
            sample = Sample.model_validate_json(await request.body())
        except ValidationError as error:
            return _refusal(request, error)
        return await self._decide(sample)

    async def _check_visitor(self, request: Request) -> None:
        """Refuse a visitor without the token; without a token, a page of another site whose name leads here."""
        headers = request.headers
        if not self._token:
            if host_of(f"//{headers.get('host', '')}") not in LOCAL:
                raise HTTPException(421, "without a token the gate answers to localhost alone")
            return
        who = request.client.host if request.client else ""
        credential, wait = headers.get("authorization", ""), self._guesses.wait(who)
        if secrets.compare_digest(credential.encode(), f"Bearer {self._token}".encode()) and not wait:
            return
        if wait:
            raise HTTPException(429, f"too many wrong tokens; try again in {wait:.0f} s", {"Retry-After": f"{wait:.0f}"})
        if credential:
            self._guesses.add_wrong(who)
        raise HTTPException(401, "want the header Authorization: Bearer TOKEN")

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

    async def _judge(self, said: Truth, request: Request) -> dict[str, Any]:
        """Count an answer of the remote model as right or wrong. The error rates, which say what asking is worth."""
        if not JSON_TYPE.match(request.headers.get("content-type", "")):
            raise HTTPException(422, "want Content-Type: application/json")
        names = self._config.names
        try:
            return await asyncio.to_thread(self._gate.judge, names.index(said.answer), names.index(said.truth))
        except ValueError as error:
            raise HTTPException(422, f"{error}; the classes are {', '.join(names)}") from None

    async def _ask(self, request: Request) -> Response:
        """Answer a request of the wire format with a reply, within its remaining time and the configuration's deadline."""
        if request.headers.get("content-type") != OCTETS:  # a page of another site cannot send it unasked
            raise HTTPException(422, f"want Content-Type: {OCTETS}")
        try:
            asked = worker_wire.decode_request(await request.body())
            question = Question.of_node(asked, self._config.deadline)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        if self._config.worker not in (None, asked.model):
            return _reply(asked, wire.WRONG_MODEL)
        if self._asking >= MAX_QUESTIONS:
            return _reply(asked, wire.BUSY)
        loop, answers = asyncio.get_running_loop(), asyncio.Queue[Answer]()

        def deliver(answer: Answer) -> None:
            with suppress(RuntimeError):  # the door is closed
                loop.call_soon_threadsafe(self._take_answer, answers, answer)

        self._asking += 1
        self._gate.ask(question, deliver)
        try:
            answer = await asyncio.wait_for(answers.get(), question.seconds)
        except asyncio.TimeoutError:
            return _reply(asked, wire.BUSY)
        return _reply(asked, wire.OK if answer.label >= 0 else reply_status(answer.cause), answer.label)

    def _take_answer(self, answers: asyncio.Queue[Answer], answer: Answer) -> None:
        self._asking -= 1
        answers.put_nowait(answer)

    def _detection(self, sample: Sample) -> Detection:
        if sum(map(bool, (sample.picture, sample.text, sample.tensor))) > 1:
            raise ValueError("picture, text, tensor: give one of them")
        if sample.picture:
            payload = picture(sample.picture)
        elif sample.text:
            payload = Payload(data=sample.text.encode(), media="text/plain")
        else:
            payload = Payload(tensor=paths.numbers(sample.tensor, TENSOR) if sample.tensor else ())
        score = self._reader.scores(sample.score)
        features = self._reader.features(sample.features) if self._config.feature_count else ()
        return Detection(sample.key, score, identity=sample.identity, label=sample.label, payload=payload, features=features)


def _reply(request: worker_wire.Request, status: int, label: int = -1) -> Response:
    """A reply of the wire format."""
    score = ONE if label >= 0 else 0
    return Response(worker_wire.encode_reply(status, request.boot, request.sequence, label, score), media_type=OCTETS)


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
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._discard(receive), DISCARD_S)
            await send({"type": "http.response.start", "status": 413, "headers": [(b"content-type", b"text/plain")]})
            await send(
                {"type": "http.response.body", "body": f"a body has a length of at most {self._largest} bytes\n".encode()}
            )
            return
        await self._application(scope, receive, send)

    async def _discard(self, receive: Any) -> None:
        """Read a body, so that its sender reads the answer: a connection that closes on unread bytes is reset."""
        size = 0
        while size < DISCARDED:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body"):
                return
