"""`h2t2 node`: an edge node on this machine, fed from a pair's test part, one JSON line a decision."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from h2t2.ldl_open import open_ldl
from h2t2.ldl_tflite import TFLiteModel, quantise
from h2t2.link_paho import PahoLink
from h2t2.node import Node
from h2t2.service import SOURCES, Service, telemetry
from h2t2.snapshot import file_store

from . import pairs, policies
from .errors import Failure


@dataclass(frozen=True)
class Options:
    """What `h2t2 node` is told beside pair and policy. ldl: another one (.tflite, .h2m); snapshot: files <snapshot>.0, .1."""

    host: str
    port: int
    bits: int
    samples: int
    seed: int
    device: str
    window: int
    deadline_ms: int
    resolver: str
    ldl: str | None = None
    snapshot: str | None = None
    snapshot_every: int = 500


def run(pair: pairs.Pair, policy: Any, options: Options, out: TextIO) -> dict[str, Any]:
    """Stream test samples through a node; one JSON line each to `out` as decided; the summary."""
    ldl = open_ldl(options.ldl or pair.ldl, pair.about.event_index["ldl"], options.bits, options.resolver)
    rdl = TFLiteModel(str(pair.rdl), event=pair.about.event_index["rdl"])  # for its input's scale and shape only
    started: dict[int, float] = {}

    def act(tag: tuple[int, int], k: int, decision: int, source: int) -> None:
        n, index = tag
        line = {"n": n, "sample": index, "bin": k, "decision": decision, "source": SOURCES[source]}
        line["ms"] = round((time.perf_counter() - started.pop(n)) * 1000, 3)
        if n % 20 == 0:
            line["thresholds"] = policies.thresholds(policy)
        print(json.dumps(line), file=out, flush=True)

    stream = enumerate(pairs.stream(pair, options.samples, options.seed).tolist())

    def sensor() -> tuple[Any, Any, tuple[int, int]] | None:
        for n, index in stream:
            x = pair.x[index]
            started[n] = time.perf_counter()
            local, remote = quantise(ldl, pair.view(x, "ldl")), rdl.quantise(x)
            return memoryview(local.ravel()), remote.tobytes(), (n, index)
        return None

    boot = int.from_bytes(os.urandom(4), "little") >> 2
    try:
        link = PahoLink(options.host, options.port, options.device)
    except ConnectionError as error:
        raise Failure(str(error)) from None
    node = Node(policy, ldl, link, act, pair.about.model_id, boot, options.window, options.deadline_ms)
    store = file_store(options.snapshot) if options.snapshot else None
    try:
        service = Service(node, sensor, rdl.input_shape, store, options.snapshot_every, log=_say)
        service.run()
    finally:
        link.close()
    kept = {"errors": service.errors, "restored": service.restored, "saves": service.saves, "unsaved": service.unsaved}
    return {**telemetry(node), **kept, "thresholds": policies.thresholds(policy), **policies.learned(policy)}


def _say(text: str) -> None:
    print(f"h2t2 node: {text}", file=sys.stderr, flush=True)


def open_out(path: str) -> TextIO:
    """Standard output for "-", else the file, new."""
    return sys.stdout if path == "-" else Path(path).open("w")
