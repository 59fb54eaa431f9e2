"""What a worker says of itself every two seconds, in a message that is not retained: a worker that is gone leaves nothing."""

from __future__ import annotations

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
WAITS = 13  # as of h2t2.node.account: entry n counts answers below 2^n ms, the last one all that took longer
LARGEST = 4096  # bytes of a message
ANY = wire.presence("+", "+") + "/state"

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
    """Where a worker of a model says it."""
    return wire.presence(model, worker) + "/state"


def parse_state(payload: bytes) -> WorkerState:
    """The state in a payload.

    Raises:
        ValueError: it is too long, no JSON, or an entry is none of the schema's; the text says which.
    """
    if len(payload) > LARGEST:
        raise ValueError(f"a worker's state of {len(payload):,} bytes, at most {LARGEST:,}")
    try:
        return WorkerState.model_validate_json(payload)
    except ValidationError as error:
        raise ValueError(describe_error(error)) from None


def digest(path: Path) -> str:
    """The version of a model: the first digits of its file's SHA-256; "" where it is in no file."""
    with suppress(OSError), path.open("rb") as file:
        made = hashlib.sha256()
        while block := file.read(1 << 20):
            made.update(block)
        return made.hexdigest()[:12]
    return ""


class Telemetry:
    """Of one worker. source: where its model is; version: of that, replaced when it is loaded again."""

    def __init__(self, source: str, version: str, now: float) -> None:
        self.version = version
        self.due = now
        self._source, self._began = source, now
        self._waits = [0] * WAITS

    def answered(self, seconds: float) -> None:
        """A request was answered so long after it came."""
        self._waits[min(WAITS - 1, max(0, int(seconds * 1000)).bit_length())] += 1

    def message(self, now: float, waiting: int, each_s: float, replies: Mapping[str, int]) -> bytes:
        """What it says now."""
        self.due = now + EVERY_S
        made = WorkerState(
            host=socket.gethostname()[:300],
            pid=os.getpid(),
            source=self._source[-300:],
            version=self.version,
            uptime_s=int(now - self._began),
            waiting=waiting,
            each_ms=round(each_s * 1000, 4),
            replies=dict(replies),
            waits=self._waits,
        )
        return json.dumps(made.model_dump(), separators=(",", ":")).encode()
