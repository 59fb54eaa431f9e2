"""Runs benchmarks in a process of their own, and holds example measurements for the tests of their reports."""

import json
import os
import subprocess
import sys
import warnings
from importlib import import_module

from h2t2_lab.bench import overload


def benchmark(name, *options):
    """Return the measurements of `h2t2-lab bench NAME`. It exits with 1 exactly for missed goals; warn of them."""
    command = [sys.executable, "-m", "h2t2_lab", "bench", name, *map(str, options), "--json", "-"]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}  # NiceGUI would play a test
    run = subprocess.run(command, capture_output=True, text=True, timeout=280, env=plain)
    assert "Traceback" not in run.stderr and run.stdout, run.stderr
    measured = json.loads(run.stdout)
    missed = import_module(f"h2t2_lab.bench.{name}").broken(measured)
    assert run.returncode == bool(missed) and all(goal in run.stderr for goal in missed), run.stderr
    if missed:
        warnings.warn(f"h2t2-lab bench {name} missed a goal, on a busy machine or for good: {'; '.join(missed)}", stacklevel=2)
    return measured


# measurements of bench overload that meet every goal
OVERLOAD = {
    "capacity": 100.0,
    "devices": 50,
    "loads": [{"load": load, "offered": 100 * load, "in time": 90.0, "busy": 9.0, "late": 1.0} for load in overload.LOADS],
    "fair": {
        "quiet": {"offered": 40.0, "in time": 40.0, "busy": 0.0, "late": 0.0},
        "loud": {"offered": 400.0, "in time": 55.0, "busy": 300.0, "late": 45.0},
    },
}


DASHBOARD = {
    "devices": 500,
    "states_per_s": 499.0,
    "cpu_ms": 150.0,
    "rss_mb": 100.0,
    "rss_end_mb": 101.0,
    "delay_ms": [900.0, 1200.0, 300.0],
    "page": True,
}  # by `h2t2-lab bench dashboard`

PRESET_ROW = {
    "messages": 9,
    "events": 3,
    "gate": 0.1,
    "asked": 0.2,
    "missed": 0,
    "false": 1,
    "always": 0.2,
    "never": 0.3,
    "best": 0.1,
}
PRESET_DAY = {  # of one preset, by `h2t2-lab bench presets`
    "rows": [{"stream": "porch", "threshold": 0.4, **PRESET_ROW}, {"stream": "all", "threshold": 0.4, **PRESET_ROW}],
    "costs": {"beta": 0.2, "delta_fp": 0.7, "delta_fn": 1.0},
    "threshold": 0.8,
    "topic": "detector/porch",
    "message": {"id": "1", "picture": "A" * 500},
    "decisions": {"local": {"id": "1"}, "remote": {"id": "2"}},
    "entities": [{"name": "Decision", "kind": "sensor", "entity": "sensor.gate_decision", "state": "on", "unit": "%"}],
    "configuration": '# A.\n\ntopic = "x"   # where\nremote = "m"   # what\n\n# Defaults. Delete ...\n# beta = 0.3\n',
    "twice": 0,
    "undecided": 0,
}

EVEN = {"per_s": 500.0, "p50_ms": 2.0, "p99_ms": 5.0, "workers_ms": 0.5, "broker_ms": 0.1}
FULL = {"per_s": 1500.0, "p50_ms": 40.0, "p99_ms": 60.0, "workers_ms": 0.2, "broker_ms": 0.1}
TURNS = {"even": [EVEN] * 3, "full": [FULL] * 3}
FLEET = {
    "pair": "breast_cancer",
    "payload": 60,
    "rate": 500.0,
    "in_flight": 64,
    "connection_kb": 4.0,
    "rows": [
        {"nodes": nodes, "workers": workers, "even": EVEN, "full": FULL, "turns": TURNS, "workers_mb": 60.0, "broker_mb": 9.0}
        for workers in (1, 4)
        for nodes in (10, 1000)
    ],
    "alone": [{"workers": 4, "rate": 125.0, "workers_ms": 0.45, "turns": [EVEN] * 3}],
}  # by `h2t2-lab bench fleet`
# what `h2t2-lab bench signals` measured
SIGNALS = [
    {
        "where": where, "how": how, "per_second": speed, "instructions": count, "cycles": None, "crc": 5, "loop": True,
        "ratio": 1.0,
    }
    for where, how, speed, count in (
        ("this machine, CPython, one core", "one by one", 30_000.0, None),
        ("this machine, CPython, one core", "blocks of 64", 60_000.0, None),
        ("emulated Raspberry Pi, CPython", "blocks of 64", None, 30_000.0),
        ("pico", "blocks of 64", 5_000.0, None),
    )
]  # fmt: skip
