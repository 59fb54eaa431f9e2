"""`h2t2 node` by itself."""

import json
import os
import shutil
import socket

import pytest
from command_line import h2t2
from support import ROOT, worker

from h2t2_tools.common import places
from h2t2_tools.common.lock import Lock
from h2t2_tools.fleet import broker


@pytest.mark.slow
@pytest.mark.parametrize("command", [["demo"], ["command", "dev", "--reset"]])
def test_a_broker_out_of_reach_gets_status_1(command):
    run = h2t2(*command, "--broker", f"mqtt://127.0.0.1:{broker.free_port()}")
    assert run.returncode == 1
    assert "not reachable" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_node_without_a_broker_decides_locally():
    """Nobody listens, or somebody who never answers: every sample is decided, and it is said once why."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (broker.free_port(), silent.getsockname()[1]):
            run = h2t2("node", "--samples", 40, "--beta", 0.1, "--deadline", "300ms", "--broker", f"mqtt://127.0.0.1:{port}")
            decisions = [json.loads(line) for line in run.stdout.splitlines() if '"n"' in line]
            assert run.returncode == 0 and run.stderr.count("deciding locally until it answers") == 1
            assert "Event: malignant. A missed malignant costs 1, a false alarm 0.7." in run.stderr  # the pair names no classes
            assert len(decisions) == 40 and {line["source"] for line in decisions} <= {"local", "fallback"}


@pytest.mark.whole
def test_a_node_keeps_to_its_budget():
    """It offloads a tenth of its samples at most, and what it could not afford is counted; a budget that is none is refused."""
    with broker.running("amqtt") as url, worker(url):
        run = h2t2("node", "--pair", "digits", "--broker", url, "--samples", 200, "--budget", "10%", "--beta", 0.05)
    summary = json.loads(run.stdout.splitlines()[-1])["summary"]
    assert 0 < summary["offloads"] <= 20 and summary["unaffordable"] and summary["budget"] < 100
    assert summary["samples"] == 200 and summary["errors"] == summary["complaints"] == 0
    run = h2t2("node", "--pair", "digits", "--budget", "a lot")
    assert run.returncode == 2 and "want a share" in run.stderr


@pytest.mark.whole
def test_a_node_tells_what_it_misses(tmp_path):
    """A limit for misses, its estimate and interval in the summary, and kept over a restart; another policy has none."""
    size = "--pair", "digits", "--samples", 300, "--beta", 0.3, "--miss-rate", 0.01, "--snapshot", tmp_path / "state"
    said = []
    with broker.running("amqtt") as url, worker(url):
        for _ in range(2):
            run = h2t2("node", "--broker", url, *size)
            said.append(json.loads(run.stdout.splitlines()[-1])["summary"])
    for summary in said:
        assert summary["miss_rate_low"] <= summary["miss_rate"] <= summary["miss_rate_high"] <= 32768
        assert summary["miss_rate_limit"] == 328 and summary["miss_counts"] >= 1024
    assert said[1]["restored"] and said[1]["miss_rate_high"] < said[0]["miss_rate_high"] < 32768
    run = h2t2("node", "--policy", "h2t2", "--miss-rate", 0.01)
    assert run.returncode == 2 and "--miss-rate is an option of --policy adaptive" in run.stderr


@pytest.mark.whole
def test_a_node_takes_a_bundle_in_place_of_its_tflite(tmp_path):
    """The same decisions from the .h2m as from its .tflite with `--resolver exact`, offloading to a real broker and worker."""
    h2t2("inspect", ROOT / "models/digits/ldl.tflite", "--bundle", tmp_path / "digits.h2m")
    seen = []
    with broker.running("amqtt") as url, worker(url):
        for extra in (("--resolver", "exact"), ("--ldl", tmp_path / "digits.h2m")):
            run = h2t2("node", "--pair", "digits", "--broker", url, "--samples", 60, *extra)
            lines = [json.loads(line) for line in run.stdout.splitlines()]
            seen.append([(line["bin"], line["decision"], line["source"]) for line in lines if "bin" in line])
    assert seen[0] == seen[1] and {source for _, _, source in seen[0]} == {"local", "remote"}


@pytest.mark.whole
def test_a_node_needs_no_remote_models_file(tmp_path):
    """The pair's description says what an offload looks like: the model itself may be anywhere."""
    folder = tmp_path / "pair"
    shutil.copytree(places.models() / "breast_cancer", folder)
    (folder / "rdl.tflite").unlink()
    with broker.running("amqtt") as url, worker(url, "breast_cancer"):
        done = h2t2("node", "--pair", folder, "--broker", url, "--samples", 60)
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert done.returncode == 0 and summary["taught"] == summary["offloads"] > 5


APP = """
def sense(): return None
def act(decision): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, words",
    [
        ("import machine_that_is_not_here", "app.py: No module named"),
        ("open_relay = {}['relay']", "app.py: KeyError: 'relay'"),
        ("def setup(config): raise ValueError('no bus')", "app.py: setup(): ValueError: no bus"),
    ],
)
def test_an_app_that_does_not_start_is_named(program, words, tmp_path):
    (tmp_path / "app.py").write_text(APP + program + "\n")
    run = h2t2("node", "--app", tmp_path / "app.py", "--broker", f"mqtt://127.0.0.1:{broker.free_port()}")
    assert run.returncode == 2 and words in run.stderr and "defect" not in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["snapshot", "queue"])
def test_two_nodes_do_not_share_a_file(option, tmp_path):
    """The second would lose the labels of the first; it names the process."""
    mine = Lock(tmp_path / "mine.lock", "h2t2 node")
    words = ["--snapshot", tmp_path / "st", "--queue", tmp_path / "q"]
    words[2 * (option == "queue") + 1] = tmp_path / "mine"
    run = h2t2("node", *words, "--samples", 3, "--broker", f"mqtt://127.0.0.1:{broker.free_port()}")
    assert (
        run.returncode == 2
        and f"mine: process {os.getpid()} h2t2 node uses it; give one of them another --{option}" in run.stderr
    )
    mine.release()


@pytest.mark.slow
def test_two_dashboards_do_not_share_a_history(tmp_path):
    mine = Lock(tmp_path / "h.db.lock", "h2t2 dashboard")
    run = h2t2("dashboard", "--history", tmp_path / "h.db", "--port", broker.free_port(), "--broker", "mqtt://127.0.0.1:9")
    assert run.returncode == 2 and f"h.db: process {os.getpid()} h2t2 dashboard uses it" in run.stderr
    mine.release()
