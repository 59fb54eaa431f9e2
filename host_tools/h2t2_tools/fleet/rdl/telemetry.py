"""The state that a worker publishes every two seconds. It is not retained: a worker that ends leaves nothing."""

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from h2t2.link import wire

from ...common.errors import describe_error

EVERY_S = 2.0
WAITS = 13  # as of h2t2.node.account: entry n counts answers below 2^n ms, the last entry longer ones
LARGEST = 4096  # bytes of a message
ANY_STATE = wire.presence("+", "+") + "/state"

Count = Annotated[int, Field(ge=0, le=2**53 - 1)]  # as of a node's state
Words = Annotated[str, Field(max_length=300)]


class WorkerState(BaseModel):
    """docs/json.md says what each entry means."""

    model_config = ConfigDict(extra="ignore", strict=True)

    host: Words
    pid: Count
    source: Words
    version: Words
    uptime_s: Count
    waiting: Count
    each_ms: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
    replies: dict[Words, Count] = Field(max_length=32)
    waits: list[Count] = Field(min_length=WAITS, max_length=WAITS)


def topic(model: int, worker: str) -> str:
    """The topic of a worker's state."""
    return wire.presence(model, worker) + "/state"


def parse_state(payload: bytes) -> WorkerState:
    """The state in a payload.

    Raises:
        ValueError: the payload is too long, no JSON, or an entry is invalid; the text says which.
    """
    if len(payload) > LARGEST:
        raise ValueError(f"a worker's state of {len(payload):,} bytes, at most {LARGEST:,}")
    try:
        return WorkerState.model_validate_json(payload)
    except ValidationError as error:
        raise ValueError(describe_error(error)) from None


def digest(path: Path) -> str:
    """The version of a model: the first digits of its file's SHA-256; "" where there is no file."""
    with suppress(OSError), path.open("rb") as file:
        content = hashlib.sha256()
        while block := file.read(1 << 20):
            content.update(block)
        return content.hexdigest()[:12]
    return ""


class Telemetry:
    """The state of one worker. source: where its model is. version: of the model; set again after a reload."""

    def __init__(self, source: str, version: str, clock_s: float) -> None:
        self.version = version
        self.due = clock_s
        self._source, self._began = source, clock_s
        self._waits = [0] * WAITS

    def answered(self, seconds: float) -> None:
        """Count an answer that took so long."""
        self._waits[min(WAITS - 1, max(0, int(seconds * 1000)).bit_length())] += 1

    def message(self, clock_s: float, waiting: int, each_s: float, replies: Mapping[str, int]) -> bytes:
        """The state of this moment, as a payload."""
        self.due = clock_s + EVERY_S
        content = WorkerState(
            host=socket.gethostname()[:300],
            pid=os.getpid(),
            source=self._source[-300:],
            version=self.version,
            uptime_s=int(clock_s - self._began),
            waiting=waiting,
            each_ms=round(each_s * 1000, 4),
            replies=dict(replies),
            waits=self._waits,
        )
        return json.dumps(content.model_dump(), separators=(",", ":")).encode()
