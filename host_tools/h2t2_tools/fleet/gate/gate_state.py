"""The state that a gate retains on the broker: that of a node, and what only a gate has. docs/json.md explains each entry."""

import json
from typing import Any

from h2t2 import __version__
from h2t2.clock import unix_now
from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2.node import snapshot

from ...common.remote_errors import RATES
from ..monitoring.state import LARGEST
from .gate import Gate

SHOWN = 16  # streams in a state, those with the most samples


def state(gate: Gate, *, boot: int, uptime_s: int, strangers: int, complaints: int) -> dict[str, Any]:
    """The entries of a gate's state.

    Args:
        boot: number of this start.
        uptime_s: seconds since then.
        strangers: messages that could not be read.
        complaints: failures of the disk and of publishing.
    """
    config, streams = gate.config, sorted(gate.streams, key=lambda stream: -stream.samples)
    policy = streams[0].policy if streams else None
    entries = {
        **gate.report("repeated", "unfamiliar", "failed", "paused"),
        "strangers": strangers,
        "complaints": complaints + gate.backlog.failures,
        "taught": gate.lessons,
        "budget": gate.budget.level * 100 // gate.budget.capacity if gate.budget else 100,
        "link": "silent" if gate.health.unanswered or gate.health.is_away else "up",
        "unanswered": gate.health.unanswered,
        "boot": boot,
        "model": config.worker or 0,
        "time": unix_now(),
        "uptime_s": uptime_s,
        "telemetry_s": round(config.telemetry),
        "start": "gate",
        **{name: getattr(config, name) for name in ("policy", "bits", "classes")},
        "beta": policy.beta if policy else round(config.beta * ONE),
        "runtime": __version__,
        "wire": wire.VERSION,
        "snapshot": snapshot.VERSION,
        "snapshot_age_s": min((stream.keeper.age() for stream in streams if stream.keeper.age() >= 0), default=-1),
        "queued": gate.backlog.length,
        "queue_dropped": gate.backlog.dropped,
        "queue_stuck": not gate.backlog.is_writable,
        "streams": {stream.key: [stream.last, stream.samples, stream.offloads] for stream in streams[:SHOWN]},
    }
    if config.classes == 2:
        entries["delta_fp"] = policy.delta_fp if policy else round(config.delta_fp * ONE)
        entries["delta_fn"] = policy.delta_fn if policy else round(config.delta_fn * ONE)
        entries |= {name: getattr(policy, name) for name in RATES} if policy else {}
    if policy:  # of the stream with the most samples
        entries |= {name: value for name, value in policy.report().items() if name in ("past", "past_share")}
    if config.class_names:
        entries["class_names"] = config.class_names
    return entries


def encoded(entries: dict[str, Any]) -> str:
    """A state as JSON of at most LARGEST bytes; it leaves out streams with few samples where they do not fit."""
    streams = dict(entries["streams"])
    while True:
        text = json.dumps({**entries, "streams": streams}, separators=(",", ":"), ensure_ascii=False)
        if not streams or len(text.encode()) <= LARGEST:
            return text
        streams.popitem()
