"""The state that a worker publishes every two seconds. It is not retained: a worker that ends leaves nothing."""

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from h2t2.link import presence
from h2t2.node.asking import WAITS

from ..monitoring.state import Count, parsed

EVERY_S = 2.0
ANY_STATE = presence.worker_topic("+", "+") + "/state"

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
    return presence.worker_topic(model, worker) + "/state"


def parse_state(payload: bytes) -> WorkerState:
    """The state in a payload. InvalidMessage as of a node's state."""
    return parsed(WorkerState, payload, "a worker's state")


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
