"""`h2t2 bench policy` and `h2t2 bench device`: both sides of every claim in one run."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import h2t2
from h2t2.fixed import ONE
from h2t2.policy import H2T2, OFFLOAD

from .emulators import UNIX
from .validate import samples

BITS = (4, 6, 8, 10, 12)
RUNTIME = Path(h2t2.__file__).parent
BETA, EPSILON, ETA = 0.3, 1 / 16, 1.0
Step = Callable[[int, int], int]


def dense(bits: int) -> Step:
    """Algorithm 1 on the (N, N) matrix of weights: NumPy, slices updated in place, W summed each round as printed."""
    n = 2**bits
    w = np.triu(np.ones((n, n)))
    rng = np.random.default_rng(1)
    charge = math.exp(-ETA * BETA)

    def step(k: int, label: int) -> int:
        both, one = w[: k + 1, k + 1 :], w[: k + 1, : k + 1]
        total = float(w.sum())
        q, p = float(both.sum()), float(one.sum())
        psi = rng.random() * total
        explore = rng.random() < EPSILON
        np.multiply(both, charge, out=both)
        if explore:
            part, cost = (one, 0.7) if label == 0 else (w[k + 1 :, k + 1 :], 1.0)
            part *= math.exp(-ETA * cost / EPSILON)
        if total < 1e-200:
            np.divide(w, total, out=w)
        return OFFLOAD if psi <= q or explore else int(psi <= q + p)

    return step


def linear(bits: int) -> Step:
    """Algorithm 1 with the factorised weights and no tree: NumPy, O(2^b) a step."""
    n = 2**bits
    a, b = np.zeros(n), np.zeros(n)  # natural units
    rng = np.random.default_rng(1)

    def step(k: int, label: int) -> int:
        u, v = np.exp(a.min() - a), np.exp(b.min() - b)
        lower = np.cumsum(u)
        both = lower[k] * v[k + 1 :].sum()
        pairs = lower * v  # (i <= j, j)
        one = pairs[: k + 1].sum()
        total = pairs.sum()
        psi = rng.random() * total
        explore = rng.random() < EPSILON
        a[k + 1 :] -= ETA * BETA
        b[k + 1 :] += ETA * BETA
        if explore and label:
            a[k + 1 :] += ETA / EPSILON
        elif explore:
            b[k + 1 :] -= ETA * 0.7 / EPSILON
        return OFFLOAD if psi <= both or explore else int(psi <= both + one)

    return step


def tree(bits: int) -> Step:
    """The device's core, on this CPython."""
    policy = H2T2(bits=bits, beta=round(BETA * ONE), epsilon=round(EPSILON * ONE))
    decide, learn = policy.decide, policy.learn

    def step(k: int, label: int) -> int:
        action = decide(k)
        if action == OFFLOAD:
            learn(policy.ticket, label)
        return action

    return step


def _time(make: Callable[[int], Step], bits: int, rounds: int, repeat: int) -> tuple[float, int]:
    """(microseconds a step, the best of `repeat` runs; checksum of the actions)."""
    bins, labels = (column.tolist() for column in samples(bits, rounds, 1))
    best = math.inf
    for _ in range(repeat):
        step = make(bits)
        started = time.perf_counter()
        actions = [step(k, y) for k, y in zip(bins, labels)]
        best = min(best, (time.perf_counter() - started) / rounds * 1e6)
    return best, zlib.crc32(bytes(action & 255 for action in actions))


def simulator(bits: int, rounds: int) -> tuple[float, int]:
    """As _time(), of the learner that numba compiled: the same decisions as the tree core, so the same checksum."""
    from .simulation.policies import H2T2 as Compiled
    from .simulation.stream import Costs, Stream

    bins, labels = samples(bits, rounds, 1)
    stream = Stream((bins + 0.5) / 2**bits, labels, np.full(rounds, BETA))
    compiled, costs = Compiled(bits, eta=ETA, epsilon=EPSILON), Costs.binary(BETA, 0.7, 1.0)
    best = math.inf
    for _ in range(4):  # the first compiles
        started = time.perf_counter()
        actions = compiled.act(stream, costs, 1)
        best = min(best, (time.perf_counter() - started) / rounds * 1e6)
    return best, zlib.crc32(bytes(max(action, OFFLOAD) & 255 for action in actions.tolist()))


def policy(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {where, kind, bits, us, crc, rounds}: time a step (decide + learn) of each form, at each b."""
    rows = []
    for bits in BITS:
        for kind, make, rounds in (
            ("dense NumPy matrix", dense, {10: 1000, 12: 60}.get(bits, 5000)),
            ("O(2^b) NumPy", linear, 5000),
            ("tree core", tree, 20000),
        ):
            progress(f"CPython, b = {bits}, {kind}")
            us, crc = _time(make, bits, rounds, 5)
            rows.append({"where": "CPython", "kind": kind, "bits": bits, "us": us, "crc": crc, "rounds": rounds})
        progress(f"CPython, b = {bits}, compiled simulator")
        us, crc = simulator(bits, 20000)
        rows.append({"where": "CPython", "kind": "compiled simulator", "bits": bits, "us": us, "crc": crc, "rounds": 20000})
    if UNIX.missing() is None:
        progress("MicroPython unix")
        script = Path(__file__).parent / "on_device/policy_bench.py"
        for line in UNIX.run(script, [], RUNTIME.parent).splitlines():
            name, bits_text, us_text, crc_text = line.split()
            kind = {"tree": "tree core", "dense": "dense lists"}[name]
            row = {"where": "MicroPython unix", "kind": kind, "bits": int(bits_text)}
            rows.append({**row, "us": float(us_text), "crc": int(crc_text)})
    return rows


def ratios(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The claims, each as the ratio of two times of one run."""
    times = {(row["where"], row["kind"], row["bits"]): row["us"] for row in rows}
    lines = []
    for (where, kind, bits), us in times.items():
        mine = times[(where, "tree core", bits)]
        if kind != "tree core":
            lines.append(f"{where}, b = {bits}: {kind} takes {us / mine:.2f} times as long as the tree core")
    growth = times[("CPython", "tree core", 12)] / times[("CPython", "tree core", 4)]
    return [*lines, f"CPython: b = 12 takes {growth:.2f} times as long as b = 4"]


DEVICE_MODES: dict[str, dict[str, Any]] = {
    "Algorithm 1": {},
    "all + anytime": {"feedback": "all", "exploration": "anytime"},
}


def device(rounds: int = 200) -> list[dict[str, Any]]:
    """Rows a mode: instructions a step and heap bytes on the emulated micro:bit, window 1, b = 4; actions equal the host's."""
    from .microbit import NANOSECONDS, Microbit

    rows = []
    for mode, options in DEVICE_MODES.items():
        made = H2T2(window=1, **options)
        bins, labels = (column.tolist() for column in samples(4, rounds, 1))
        with Microbit(count=True) as board:
            board.prepare()
            names = board.load(RUNTIME, made)
            used = board.heap() - board.base
            actions, instructions = [], []
            decide, learn, ticket = (names[name] for name in ("decide", "learn", "ticket"))
            clock = 1000 / NANOSECONDS  # instructions a microsecond of the board's clock
            empty = min(int(board.run("L();t=T();t=T()-t;U();print(t)")) for _ in range(3)) * clock
            for k, label in zip(bins, labels):
                # the heap is locked all through the step
                said = board.run(f"L();t=T();a=p.{decide}({k});t=T()-t;U();print(a,t)").split()
                actions.append(int(said[0]))
                spent = int(said[1]) * clock - empty
                if actions[-1] == OFFLOAD:
                    said = board.run(f"L();t=T();p.{learn}(p.{ticket},{label},-1);t=T()-t;U();print(t)").split()
                    spent += int(said[0]) * clock - empty
                instructions.append(spent)
        expected = []
        for k, label in zip(bins, labels):
            expected.append(made.decide(k))
            if expected[-1] == OFFLOAD:
                made.learn(made.ticket, label)
        rows.append(
            {
                "mode": mode,
                "rounds": rounds,
                "heap_bytes": used,
                "instructions_mean": float(np.mean(instructions)),
                "instructions_worst": max(instructions),
                "same_as_host": actions == expected,
            }
        )
    return rows
