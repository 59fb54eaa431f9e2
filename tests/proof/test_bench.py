"""`h2t2 bench policy` and `h2t2 bench device`."""

import json

import pytest
from command_line import h2t2

from h2t2_tools.boards.emulators import MICROBIT
from h2t2_tools.cli.main import main
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
