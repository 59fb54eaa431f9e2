"""The commands as a user runs them: the main job end to end, and what wrong use gets."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from support import ROOT, worker

from h2t2_tools.boards.emulators import MICROBIT
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import broker
from h2t2_tools.proof import ldl_check
from h2t2_tools.proof.bench import policy as bench


def h2t2(*arguments, **options):
    command = [sys.executable, "-m", "h2t2_tools", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("model, policy", [("breast_cancer", "h2t2"), ("digits", "h2t2"), ("digits", "calibrating")])
@pytest.mark.parametrize("kind", ["amqtt", "mosquitto"])
def test_demo_end_to_end(kind, model, policy, tmp_path):
    if kind == "mosquitto" and broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    report = tmp_path / "report.json"
    options = ("--model", model, "--policy", policy, "--broker", kind, "--samples", 2000)
    run = h2t2("demo", *options, "--out", tmp_path, "--json", report)
    assert run.returncode == 0, run.stderr
    result = json.loads(report.read_text())
    assert result["samples"] == 2000 and result["decided_once"]
    assert result["offloads"] == result["answered"] > 0
    assert result["fallbacks"] == result["replies_unlike_the_rdl"] == 0
    cost = {name: row["cost"] for name, row in result["policies"].items()}
    mine = cost[result["policy"]]
    assert cost["best pair (offline)"] < mine < min(cost["no offload"], cost["full offload"])
    with (tmp_path / "decisions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows] == list(range(2000))
    assert np.mean([float(row["cost"]) for row in rows]) == pytest.approx(mine)
    assert sum(row["source"] == "remote" for row in rows) == result["offloads"]
    for name in ("running_cost.png", "weights.png" if policy == "h2t2" else "intervals.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_corollary_sets_the_papers_parameters(tmp_path):
    options = ("--corollary", 10000, "--beta", 0.5, "--samples", 50, "--out", tmp_path)
    run = h2t2("demo", *options, "--json", tmp_path / "report.json")
    assert run.returncode == 0, run.stderr
    numbers = json.loads((tmp_path / "report.json").read_text())["numbers"]
    assert (numbers["feedback"], numbers["exploration"]) == ("explored", "epsilon")
    assert numbers["epsilon"] == pytest.approx(0.09941, abs=1e-5)  # (ln 136 / (2 * .25 * 10^4))^(1/3)
    assert numbers["eta"] == pytest.approx(0.009883, abs=1e-6)


def test_the_same_seed_gives_the_same_decisions(tmp_path):
    runs = []
    for name in ("a", "b"):
        assert h2t2("demo", "--samples", 150, "--seed", 5, "--out", tmp_path / name).returncode == 0
        with (tmp_path / name / "decisions.csv").open() as file:
            runs.append([(row["decision"], row["source"]) for row in csv.DictReader(file)])
    assert runs[0] == runs[1]


def children(pid):
    """Processes of the sessions that a demo started: those that name its broker's address."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if b"h2t2_tools" in words and parent == pid:
            found.append(int(entry))
    return found


def test_ctrl_c_ends_cleanly_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "h2t2_tools", "demo", "--samples", "200000", "--out", str(tmp_path)]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while len(children(demo.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    started = children(demo.pid)
    assert len(started) == 2
    time.sleep(1)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert "Traceback" not in errors and "interrupted" in errors
    assert not [pid for pid in started if os.path.exists(f"/proc/{pid}")]


WRONG_USE = [
    (["demo", "--model", "no_such_model"], "no_such_model"),
    (["demo", "--no-such-option"], "no-such-option"),
    (["demo", "--broker", "http://localhost"], "mqtt://"),
    (["demo", "--broker", "mqtt://localhost:99999"], "99999"),
    (["demo", "--beta", "1.5"], "beta"),
    (["demo", "--eta", "0"], "eta"),
    (["demo", "--epsilon", "7"], "epsilon"),
    (["demo", "--samples", "0"], "samples"),
    (["demo", "--corollary", "100", "--beta", "0"], "corollary"),
    (["node", "--device", "a/b"], "device"),
    (["node", "--broker", "mqtt://me:secret-word@localhost"], "--user"),
    (["node", "--password-file", "/nowhere/at/all"], "/nowhere/at/all"),
    (["node", "--ca", "ca.crt"], "mqtts://"),
    (["node", "--broker", "mqtts://localhost", "--ca", "/nowhere/ca.crt"], "/nowhere/ca.crt"),
    (["node", "--broker", "mqtts://localhost", "--cert", "a"], "--key"),
    (["rdl", "--metrics", "x"], "--metrics"),
    (["rdl", "--model", "/nowhere/big.onnx"], "/nowhere/big.onnx"),
    (["command", "kitchen"], "one of"),
    (["command", "kitchen", "--pause", "-1"], "pause"),
    (["broker-config", "--device", "a", "a"], "'a'"),
    (["broker-config", "--device", "a", "--client-certs"], "--certs"),
    (["proxy", "--broker", "mqtts://localhost"], "no TLS"),
    (["validate", "--bits", "99"], "bits"),
    ([], "COMMAND"),
]


@pytest.mark.parametrize("arguments, word", WRONG_USE)
def test_wrong_use_gets_status_2_and_names_the_argument(arguments, word, capfd):
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    errors = capfd.readouterr().err
    assert status == 2
    assert word in errors and "Traceback" not in errors and "secret-word" not in errors


@pytest.mark.parametrize("command", [["demo"], ["rdl"], ["command", "dev", "--reset"]])
def test_a_broker_out_of_reach_gets_status_1(command):
    run = h2t2(*command, "--broker", f"mqtt://127.0.0.1:{broker.free_port()}")
    assert run.returncode == 1
    assert "not reachable" in run.stderr and "Traceback" not in run.stderr


def test_a_node_without_a_broker_decides_locally():
    """Nobody listens, or somebody who never answers: every sample is decided, and it is said once why."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (broker.free_port(), silent.getsockname()[1]):
            run = h2t2("node", "--samples", 40, "--beta", 0, "--deadline", 300, "--broker", f"mqtt://127.0.0.1:{port}")
            decisions = [json.loads(line) for line in run.stdout.splitlines() if '"n"' in line]
            assert run.returncode == 0 and run.stderr.count("deciding locally until it answers") == 1
            assert len(decisions) == 40 and {line["source"] for line in decisions} == {"local", "fallback"}
            assert max(line["ms"] for line in decisions) < 300


def broken(tmp_path, **changes):
    pair = pairs.load("digits")
    for path in pair.folder.iterdir():
        if path.suffix in (".tflite", ".npz", ".json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    for name, content in changes.items():
        (tmp_path / name.replace("_", ".")).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"pair_json": b"{"}, "pair"),
        ({"pair_json": b'{"name": "x"}'}, "pair"),
        ({"test_npz": b"nothing"}, "pair"),
        ({"ldl_tflite": b"nothing"}, "TFL3"),
    ],
)
def test_a_broken_pair_is_refused(tmp_path, changes, word):
    run = h2t2("node", "--pair", broken(tmp_path, **changes), "--samples", 3)
    assert run.returncode == 2
    assert word in run.stderr and "Traceback" not in run.stderr


def test_validate_reports_a_row_for_each_b(tmp_path):
    run = h2t2("validate", "--bits", 2, 4, "--rounds", 500, "--json", tmp_path / "rows.json")
    assert run.returncode == 0, run.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["bits"], row["rounds"], row["differ"]) for row in rows] == [(2, 500, 0), (4, 500, 0)]
    assert all(row["worst_error"] <= 2e-4 for row in rows)


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


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "node",
        "rdl",
        "command",
        "certs",
        "broker-config",
        "chaos",
        "validate",
        "emulators",
        "bench policy",
        "bench device",
        "bench offload",
    ],
)
def test_help_shows_examples(command, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert f"examples:\n  h2t2 {command}" in capsys.readouterr().out


def test_a_node_takes_a_bundle_in_place_of_its_tflite(tmp_path):
    """The same decisions from the .h2m as from the .tflite it was made of, offloading to a real broker and worker."""
    if ldl_check.oracle() != "tflite_runtime":
        pytest.skip("the oracle is tflite-runtime 2.14, which this Python has not")
    h2t2("bundle", ROOT / "models/digits/ldl.tflite", "--out", tmp_path / "digits.h2m")
    seen = []
    with broker.running("amqtt") as url, worker(url):
        for extra in ((), ("--ldl", tmp_path / "digits.h2m")):
            run = h2t2("node", "--pair", "digits", "--broker", url, "--samples", 60, *extra)
            lines = [json.loads(line) for line in run.stdout.splitlines()]
            seen.append([(line["bin"], line["decision"], line["source"]) for line in lines if "bin" in line])
    assert seen[0] == seen[1] and {source for _, _, source in seen[0]} == {"local", "remote"}
