"""`h2t2 node`: an edge node on this machine, fed from a pair's test part, one JSON line a decision."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from h2t2.ldl_open import open_ldl
from h2t2.ldl_tflite import TFLiteModel, quantise
from h2t2.link_paho import PahoLink
from h2t2.node import Node

from . import pairs, policies
from .errors import Failure

SOURCES = ("local", "remote", "fallback")


def run(
    pair: pairs.Pair,
    model: str | None,
    host: str,
    port: int,
    policy: Any,
    bits: int,
    samples: int,
    seed: int,
    device: str,
    window: int,
    deadline_ms: int,
    resolver: str,
    out: TextIO,
) -> dict[str, Any]:
    """Stream `samples` test samples through a node; one JSON line each to `out` as decided, a summary line at the end.

    model: another LDL for the pair, .tflite or .h2m, or None for the pair's own.
    """
    ldl = open_ldl(model or pair.ldl, pair.about.event_index["ldl"], bits, resolver)
    rdl = TFLiteModel(str(pair.rdl), event=pair.about.event_index["rdl"])  # for its input's scale and shape only
    started: dict[int, float] = {}

    def act(tag: tuple[int, int], k: int, decision: int, source: int) -> None:
        n, index = tag
        line = {"n": n, "sample": index, "bin": k, "decision": decision, "source": SOURCES[source]}
        line["ms"] = round((time.perf_counter() - started.pop(n)) * 1000, 3)
        if n % 20 == 0:
            line["thresholds"] = policies.thresholds(policy)
        print(json.dumps(line), file=out, flush=True)

    boot = int.from_bytes(os.urandom(4), "little") >> 2
    try:
        link = PahoLink(host, port, device)
    except ConnectionError as error:
        raise Failure(str(error)) from None
    node = Node(policy, ldl, link, act, pair.about.model_id, boot, window, deadline_ms)
    try:
        for n, index in enumerate(pairs.stream(pair, samples, seed).tolist()):
            while node.busy():
                node.poll(5)
            x = pair.x[index]
            started[n] = time.perf_counter()
            remote = rdl.quantise(x).reshape(rdl.input_shape)
            node.step(memoryview(quantise(ldl, pair.view(x, "ldl")).ravel()), rdl.input_shape, remote.tobytes(), (n, index))
            node.poll(0)
            if n % 100 == 99:
                link.report(json.dumps(_counters(node)))
        while node.pending:
            node.poll(5)
        link.report(json.dumps(_counters(node)))
    finally:
        link.close()
    return {**_counters(node), "thresholds": policies.thresholds(policy), **policies.learned(policy)}


def _counters(node: Node) -> dict[str, int]:
    return {
        "samples": node.samples,
        "offloads": node.offloads,
        "replies": node.replies,
        "fallbacks": node.fallbacks,
        "strangers": node.strangers,
        "taught": node.policy.taught,
    }


def open_out(path: str) -> TextIO:
    """Standard output for "-", else the file, new."""
    return sys.stdout if path == "-" else Path(path).open("w")
