"""The state that a node retains on the broker (docs/json.md), read from untrusted bytes."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from h2t2.core.numbers import ONE
from h2t2.node.asking import PLACES, WAITS

from ...common.errors import InvalidMessage, describe_error
from ...common.fields import ClassName

LARGEST = 4096  # bytes of a state
# SQLite, JavaScript and Prometheus hold it exactly; a device that counts a million a second takes 285 years
MAX_COUNT = 2**53 - 1

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Places = Annotated[list[Count], Field(min_length=1, max_length=PLACES)]
Words = Annotated[str, Field(max_length=200)]
Cost = Annotated[int, Field(ge=0, le=ONE)]  # Q15
Index = Annotated[int, Field(ge=-1, le=65535)]  # of a bin, a class or a source; -1: none
Content = TypeVar("Content", bound=BaseModel)
Stream = tuple[Index, Count, Count]  # of a gate: its last decision, samples, offloads


class Update(BaseModel):
    """What the device says about update packages.

    Args:
        counter, id: of the package in force; 0 and "" for what was flashed.
        tried, tried_id: of the last package.
        trial, seconds: length of the trial under way, in samples and seconds; 0: none.
        said: the outcome of the last package, in words.
        runtime, runtime_id: counter and id of the package whose runtime is in force; 0 and "": the flashed one.
        key, key_counter: id of the key that signs packages, and the counter that it came with; "" of an older runtime.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    counter: Count
    id: Words = ""
    tried: Count
    tried_id: Words = ""
    trial: Count
    seconds: Count = 0
    said: Words
    runtime: Count = 0
    runtime_id: Words = ""
    key: Words = ""
    key_counter: Count = 0

    def in_force(self, of_runtime: bool) -> tuple[int, str]:
        """Return counter and id of the package in force, of a model or of a runtime."""
        return (self.runtime, self.runtime_id) if of_runtime else (self.counter, self.id)


class State(BaseModel):
    """The entries of a state. One that an older runtime leaves out is None, or 0 for a counter."""

    model_config = ConfigDict(extra="ignore", strict=True)

    samples: Count
    offloads: Count = 0
    replies: Count = 0
    late: Count = 0
    fallbacks: Count = 0
    unasked: Count = 0
    unaffordable: Count = 0
    crowded: Count = 0
    strangers: Count = 0
    taught: Count = 0
    complaints: Count = 0
    errors: Count = 0
    sensor_errors: Count = 0
    act_errors: Count = 0
    skipped: Count = 0
    queued: Count = 0
    queue_dropped: Count = 0
    queue_stuck: bool = False
    saturated: Count = 0
    budget: Count = 100
    link: Words = ""
    unanswered: Words = ""
    namesakes: bool = False
    paused: bool = False
    uptime_s: Count = 0
    telemetry_s: Count | None = None
    start: Words = ""
    program: Words = ""
    boot: Count = 0
    policy: Words = ""
    bits: Count = 0
    classes: Count = 2
    model: Annotated[int, Field(ge=0, le=65535)] = 0
    runtime: Words = ""
    beta: Cost | None = None
    delta_fp: Cost | None = None
    delta_fn: Cost | None = None
    rdl_fp: Cost = 0
    rdl_fn: Cost = 0
    paid: Count = 0
    in_time: Annotated[list[Count], Field(min_length=4, max_length=4)] | None = None
    scores: Places | None = None
    answered: Places | None = None
    events: Places | None = None
    local_cost: Places | None = None
    waits: Annotated[list[Count], Field(min_length=WAITS, max_length=WAITS)] | None = None
    last: tuple[Index, Index, Index] | None = None
    time: Count | None = None
    energy_mj: Count | None = None
    duty: Count | None = None
    miss_rate: Cost | None = None
    head_share: Cost | None = None
    head_saved: Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)] | None = None
    past_share: Cost = 0
    past: Annotated[list[Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]], Field(min_length=5, max_length=5)] | None = None
    miss_guaranteed: Annotated[int, Field(ge=0, le=1)] | None = None
    miss_evidence: Cost | None = None
    snapshot_age_s: Annotated[int, Field(ge=-1, le=MAX_COUNT)] = -1
    class_names: Annotated[list[ClassName], Field(max_length=16)] | None = None
    update: Update | None = None
    streams: Annotated[dict[Annotated[str, Field(max_length=64)], Stream], Field(max_length=16)] | None = None

    def content(self) -> dict[str, Any]:
        """The entries as JSON has them. They share the state's lists: a dashboard asks for hundreds of them a second."""
        return {**vars(self), "update": self.update.model_dump() if self.update else None}


def parse_state(payload: bytes) -> State:
    """The State in a payload. InvalidMessage as of parsed()."""
    return parsed(State, payload, "a state")


def parsed(model: type[Content], payload: bytes, name: str) -> Content:
    """What a payload holds.

    Raises:
        InvalidMessage: the payload is too long, no JSON, or an entry is invalid; the text says which.
    """
    if len(payload) > LARGEST:
        raise InvalidMessage(f"{name} of {len(payload):,} bytes, at most {LARGEST:,}")
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise InvalidMessage(describe_error(error)) from None
