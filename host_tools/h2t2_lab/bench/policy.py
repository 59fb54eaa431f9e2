"""`h2t2-lab bench policy`: times a step of the dense matrix, the O(2^b) form and the tree core, here and on MicroPython."""

import math
import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from h2t2.core.adaptive import Adaptive
from h2t2.core.experts import Pairs
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.checks.validate import samples
from h2t2_tools.common import places, policies
from h2t2_tools.common.report import Report

from .. import material
from . import Progress, Row, cell, table

TITLE = "A step of the policy"
BITS = (4, 6, 8, 10, 12)
BETA, EPSILON, ETA = 0.3, 1 / 16, 1.0
USUAL = "H2T2, all + anytime"
COMPILED = "compiled simulator"
Step = Callable[[int, int], int]


def dense(bits: int) -> Step:
    """Return a step of Algorithm 1 on the (N, N) matrix of weights, in NumPy: slices change in place, each round sums W."""
    n = 2**bits
    w = np.triu(np.ones((n, n)))
    rng = np.random.default_rng(1)
    charge = math.exp(-ETA * BETA)

    def step(k: int, label: int) -> int:
        offload, event = w[: k + 1, k + 1 :], w[: k + 1, : k + 1]
        total = float(w.sum())
        q, p = float(offload.sum()), float(event.sum())
        psi = rng.random() * total
        explore = rng.random() < EPSILON
        np.multiply(offload, charge, out=offload)
        if explore:
            wrong, cost = (event, 0.7) if label == 0 else (w[k + 1 :, k + 1 :], 1.0)
            wrong *= math.exp(-ETA * cost / EPSILON)
        if total < 1e-200:
            np.divide(w, total, out=w)
        return OFFLOAD if psi <= q or explore else int(psi <= q + p)

    return step


def linear(bits: int) -> Step:
    """Return a step of Algorithm 1 with factorised weights and no tree: NumPy, O(2^b) a step."""
    n = 2**bits
    a, b = np.zeros(n), np.zeros(n)  # natural units
    rng = np.random.default_rng(1)

    def step(k: int, label: int) -> int:
        u, v = np.exp(a.min() - a), np.exp(b.min() - b)
        lower = np.cumsum(u)
        offload = lower[k] * v[k + 1 :].sum()
        pairs = lower * v  # (i <= j, j)
        event = pairs[: k + 1].sum()
        total = pairs.sum()
        psi = rng.random() * total
        explore = rng.random() < EPSILON
        a[k + 1 :] -= ETA * BETA
        b[k + 1 :] += ETA * BETA
        if explore and label:
            a[k + 1 :] += ETA / EPSILON
        elif explore:
            b[k + 1 :] -= ETA * 0.7 / EPSILON
        return OFFLOAD if psi <= offload or explore else int(psi <= offload + event)

    return step


def tree(bits: int) -> Step:
    """Return a step of the device's H2T2 on CPython."""
    return _device(H2T2(bits=bits, beta=round(BETA * ONE), epsilon=round(EPSILON * ONE), **policies.PAPER))


def usual(bits: int) -> Step:
    """Return a step of H2T2 with its defaults, which learns from every offload."""
    return _device(H2T2(bits=bits, beta=round(BETA * ONE)))


def adaptive(bits: int) -> Step:
    """Return a step of the device's adaptive policy on CPython."""
    return _device(Adaptive(bits=bits, beta=round(BETA * ONE)))


def _device(policy: Pairs) -> Step:
    decide, learn = policy.decide, policy.learn

    def step(k: int, label: int) -> int:
        action = decide(k)
        if action == OFFLOAD:
            learn(policy.ticket, label)
        return action

    return step


def _time(make: Callable[[int], Step], bits: int, rounds: int, repeat: int) -> tuple[float, int]:
    """Return microseconds per step in the best of `repeat` runs, and the checksum of the actions."""
    bins, labels = (column.tolist() for column in samples(bits, rounds, 1))
    best = math.inf
    for _ in range(repeat):
        step = make(bits)
        started = time.perf_counter()
        actions = [step(k, y) for k, y in zip(bins, labels)]
        best = min(best, (time.perf_counter() - started) / rounds * 1e6)
    return best, zlib.crc32(bytes(action & 255 for action in actions))


def simulator(bits: int, rounds: int) -> tuple[float, int]:
    """As _time(), for the learner that numba compiles. It decides as the tree core does, so the checksums are equal."""
    from h2t2_tools.replay.simulation.policies.learners import H2T2 as Compiled
    from h2t2_tools.replay.simulation.stream import Costs, Stream

    bins, labels = samples(bits, rounds, 1)
    stream = Stream((bins + 0.5) / 2**bits, labels, np.full(rounds, BETA))
    compiled, costs = Compiled(bits, eta=ETA, epsilon=EPSILON), Costs.binary(BETA, 0.7, 1.0)
    best = math.inf
    for _ in range(4):  # the first run compiles
        started = time.perf_counter()
        actions = compiled.act(stream, costs, 1)
        best = min(best, (time.perf_counter() - started) / rounds * 1e6)
    return best, zlib.crc32(bytes(max(action, OFFLOAD) & 255 for action in actions.tolist()))


def measure(progress: Progress) -> dict[str, Any]:
    """Time a step of the policy. It compares the dense matrix, the O(2^b) form and the tree core, here and on MicroPython.

    Returns:
        {"rows": {where, kind, bits, us, crc, rounds}, "ratios"}: a step decides and learns.
    """
    rows: list[Row] = []
    for bits in BITS:
        for kind, make, rounds in (
            ("dense NumPy matrix", dense, {10: 1000, 12: 60}.get(bits, 5000)),
            ("O(2^b) NumPy", linear, 5000),
            ("tree core", tree, 20000),
            (USUAL, usual, 10000),
            ("adaptive", adaptive, 10000),
        ):
            progress(f"CPython, b = {bits}, {kind}")
            us, crc = _time(make, bits, rounds, 5)
            rows.append({"where": "CPython", "kind": kind, "bits": bits, "us": us, "crc": crc, "rounds": rounds})
        progress(f"CPython, b = {bits}, {COMPILED}")
        us, crc = simulator(bits, 20000)
        rows.append({"where": "CPython", "kind": COMPILED, "bits": bits, "us": us, "crc": crc, "rounds": 20000})
    if UNIX.missing() is None:
        progress("MicroPython unix")
        script = material.ON_DEVICE / "policy_bench.py"
        for line in UNIX.run(script, [], places.RUNTIME.parent).splitlines():
            name, bits_text, us_text, crc_text = line.split()
            kind = {"tree": "tree core", "dense": "dense lists", "usual": USUAL, "adaptive": "adaptive"}[name]
            row = {"where": "MicroPython unix", "kind": kind, "bits": int(bits_text)}
            rows.append({**row, "us": float(us_text), "crc": int(crc_text)})
    return {"rows": rows, "ratios": ratios(rows)}


def report(measured: dict[str, Any]) -> Report:
    """Return the times and the claims."""
    columns = {
        "where": cell("where"),
        "what": cell("kind"),
        "b": cell("bits"),
        "microseconds": cell("us", ".1f"),
        "CRC of the actions": cell("crc", "08x"),
    }
    return [table("one step: decide and learn", measured["rows"], columns, words=2), *measured["ratios"]]


def ratios(rows: Iterable[Row]) -> list[str]:
    """Return the claims, each a ratio of two times of one run."""
    times = {(row["where"], row["kind"], row["bits"]): row["us"] for row in rows}
    lines = []
    for (where, kind, bits), us in times.items():
        tree_us = times[where, "tree core", bits]
        if kind != "tree core":
            lines.append(f"{where}, b = {bits}: {kind} takes {us / tree_us:.2f} times as long as the tree core")
        if kind == "adaptive":
            lines.append(f"{where}, b = {bits}: {kind} takes {us / times[where, USUAL, bits]:.2f} times as long as {USUAL}")
    by_bits = {bits: us for (where, kind, bits), us in times.items() if (where, kind) == ("CPython", "tree core")}
    low, high = min(by_bits), max(by_bits)
    return [*lines, f"CPython: b = {high} takes {by_bits[high] / by_bits[low]:.2f} times as long as b = {low}"]


def broken(measured: dict[str, Any]) -> list[str]:
    """Report whether the compiled learner's decisions differ from the device core's."""
    crcs = {(row["kind"], row["bits"]): row["crc"] for row in measured["rows"] if row["where"] == "CPython"}
    same = all(crcs[COMPILED, bits] == crcs["tree core", bits] for kind, bits in crcs if kind == COMPILED)
    return [] if same else ["the compiled learner's decisions differ from the device core's"]
