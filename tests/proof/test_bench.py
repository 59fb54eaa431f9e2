"""`h2t2 bench policy` and `h2t2 bench device`."""

import json

import pytest
from command_line import h2t2
from measured import MET

from h2t2_tools.boards.emulators import MICROBIT
from h2t2_tools.cli.main import main
from h2t2_tools.proof.bench import all as every
from h2t2_tools.proof.bench import policy as bench


@pytest.mark.slow
def test_bench_device_counts_on_the_emulated_microbit(tmp_path):
    if MICROBIT.missing():
        pytest.skip(MICROBIT.missing())
    run = h2t2("bench", "device", "--rounds", 10, "--json", tmp_path / "device.json")
    assert run.returncode == 0, run.stderr
    for row in json.loads((tmp_path / "device.json").read_text()):
        assert row["same_as_host"]
        paper = row["mode"] == "Algorithm 1"  # counted, not timed: the same everywhere
        assert 50_000 < row["instructions_mean"] <= (250_000 if paper else 400_000)
        assert 3_000 < row["heap_bytes"] <= (5_120 if paper else 5_632)


@pytest.mark.slow
def test_bench_policy_compares_all_forms_in_one_run(monkeypatch, capsys):
    monkeypatch.setattr(bench, "BITS", (4, 12))
    assert main(["bench", "policy", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    kinds = {(row["where"], row["kind"]) for row in report["rows"]}
    assert {("CPython", "dense NumPy matrix"), ("CPython", "O(2^b) NumPy"), ("CPython", "tree core")} <= kinds
    assert all(row["us"] > 0 for row in report["rows"]) and report["ratios"]
    crc = {(row["kind"], row["bits"]): row["crc"] for row in report["rows"] if row["where"] == "CPython"}
    for bits in (4, 12):
        assert crc["tree core", bits] == crc["compiled simulator", bits]


def test_the_forms_benchmarked_take_the_same_decisions():
    """Dense and O(2^b) from the same draws, so that the times compare like with like."""
    for bits in (4, 6):
        assert bench._time(bench.dense, bits, 2000, 1)[1] == bench._time(bench.linear, bits, 2000, 1)[1]


def test_the_page_of_all_benchmarks_and_the_readmes_table():
    """What `h2t2 bench all` writes, from what it measured: a section a benchmark, the README's table between its marks."""
    device = {
        "mode": "m",
        "rounds": 9,
        "heap_bytes": 4321,
        "instructions_mean": 1.0,
        "instructions_worst": 2,
        "same_as_host": True,
    }
    cost = {"cost": 0.1, "fp": 0.0, "fn": 0.0, "offload": 0.5}
    names = ("H2T2", "no offload", "full offload", "best pair (offline)")
    saved = {"pair": "p", "samples": 10, "numbers": {"beta": 0.2}, "policies": dict.fromkeys(names, cost)}
    step = {"where": "CPython", "bits": 10, "crc": 1}
    steps = [{**step, "kind": "dense NumPy matrix", "us": 90.0}, {**step, "kind": "tree core", "us": 3.0}]
    memory = {"board": "esp32", "mpy": True, "flash_bytes": 45678, "heap_bytes": None, "bundle_bytes": 300}
    row = {"bits": 4, "mode": "paper", "rounds": 77, "differ": 2, "worst_error": 1e-4, "margin": 1e-6}
    measured = {
        "machine": every.machine(),
        "saving": [saved],
        "fidelity": [{**row, "bits": bits} for bits in (4, 6, 8, 10)],
        "policy": {"rows": steps, "ratios": ["dense takes 30.00 times as long"]},
        "device": [device],
        "memory": {"boards": [memory], "policies": [{"policy": "H2T2", "heap_bytes": 1234}]},
        "ldl": {"digits": [{"what": "ref", "us": 2.0, "macs_per_second": 1.0, "crc": 1, "heap": None, "instructions": None}]},
        "offload": {"payload": 9, "rounds": 3, "rows": [{"what": "x", "rate": 1.0, "p50": 1.0, "p99": 1.0, "ratio": 2.0}] * 5},
        "overload": MET,
        "simulate": [{"bits": 4, "simulator": 2.0, "device": 1.0, "dense": 1.0, "same": True}],
        "install": [{"name": "numpy", "version": "1", "bytes": 65_000_000}],
    }
    page = every.page(measured)
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")][0] == "In short"
    assert page.count("\n## ") == 1 + len(every.NAMES) and all(f"h2t2 bench {name}" in page for name in every.NAMES)
    readme = every.quote(f"# A\n{every.BEGIN}\nold\n{every.END}\nB\n", measured)
    assert "old" not in readme and readme.startswith("# A\n") and readme.endswith(f"{every.END}\nB\n")
    for figure in ("4,321 bytes", "8 of 308", "30.0 times", "45,678 of flash", "65 MB"):
        assert figure in readme and figure in page
