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
from h2t2.link_cost import LinkCost
from h2t2.link_paho import PahoLink
from h2t2.node import Node
from h2t2.service import SOURCES, Service, telemetry
from h2t2.snapshot import file_store

from . import pairs, policies
from .cost_table import CostTable
from .endpoint import Endpoint
from .errors import UserError


@dataclass(frozen=True)
class Options:
    """What `h2t2 node` is told beside pair and policy. ldl: another one (.tflite, .h2m); snapshot: files <snapshot>.0, .1.

    order: the test samples to stream, by number; None: drawn by `seed`. cost: beta from the link. rate: samples a second
    at most.
    """

    endpoint: Endpoint
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
    when_down: str = "ask"
    cost: CostTable | None = None
    order: list[int] | None = None
    rate: float | None = None


def run(pair: pairs.Pair, policy: Any, options: Options, out: TextIO) -> dict[str, Any]:
    """Stream test samples through a node; one JSON line each to `out` as decided; the summary."""
    ldl = open_ldl(options.ldl or pair.ldl, pair.about.event_index["ldl"], options.bits, options.resolver)
    rdl = TFLiteModel(str(pair.rdl), event=pair.about.event_index["rdl"])  # for its input's scale and shape only
    started: dict[int, float] = {}

    def act(tag: tuple[int, int], k: int, decision: int, source: int) -> None:
        n, index = tag
        line = {"n": n, "sample": index, "bin": k, "decision": decision, "source": SOURCES[source]}
        line["ms"] = round((time.perf_counter() - started.pop(n)) * 1000, 3)
        line.update(taught=policy.taught, strangers=node.strangers)
        if n % 20 == 0:
            line["thresholds"] = policies.thresholds(policy)
        print(json.dumps(line), file=out, flush=True)

    drawn = pairs.stream(pair, options.samples, options.seed).tolist() if options.order is None else options.order
    stream = enumerate(drawn)

    first = time.perf_counter()

    def sensor() -> tuple[Any, Any, tuple[int, int]] | None:
        for n, index in stream:
            x = pair.x[index]
            if options.rate:
                time.sleep(max(0.0, first + n / options.rate - time.perf_counter()))
            started[n] = time.perf_counter()
            local, remote = quantise(ldl, pair.view(x, "ldl")), rdl.quantise(x)
            return memoryview(local.ravel()), remote.tobytes(), (n, index)
        return None

    boot = int.from_bytes(os.urandom(4), "little") >> 2
    to = options.endpoint
    link = PahoLink(to.host, to.port, options.device, seed=boot >> 2, **to.login)
    cost = LinkCost(*options.cost.arguments()) if options.cost else None
    store = file_store(options.snapshot) if options.snapshot else None
    try:
        try:
            link.open(options.deadline_ms)
        except OSError as error:
            _say(f"{error}; deciding locally until it answers")
        model = pair.about.model_id
        node = Node(policy, ldl, link, act, model, boot, options.window, options.deadline_ms, options.when_down, cost)
        service = Service(node, sensor, rdl.input_shape, store, options.snapshot_every, log=_say)
        begin = {"boot": boot, "restored": service.restored, "taught": policy.taught}
        print(json.dumps({"start": begin}), file=out, flush=True)
        service.run()
    finally:
        link.close()
    kept = {"errors": service.errors, "restored": service.restored, "saves": service.saves, "unsaved": service.unsaved}
    kept.update({name: getattr(link, name) for name in ("connections", "oversize", "dropped", "refused")})
    kept.update(commands=service.commands, commands_refused=service.commands_refused)
    return {**telemetry(node), **kept, "thresholds": policies.thresholds(policy), **policies.learned(policy)}


def order(path: Path, samples: int) -> list[int]:
    """The numbers in a file, one a line, each 0..samples - 1. UserError, naming the line, for anything else."""
    numbers = []
    for n, line in enumerate(path.read_text().split(), 1):
        if not line.isdigit() or int(line) >= samples:
            raise UserError(f"{path}: entry {n}, {line[:20]!r}, is not a test sample, 0..{samples - 1}")
        numbers.append(int(line))
    return numbers


def _say(text: str) -> None:
    print(f"h2t2 node: {text}", file=sys.stderr, flush=True)


def open_out(path: str) -> TextIO:
    """Standard output for "-", else the file, new."""
    return sys.stdout if path == "-" else Path(path).open("w")
