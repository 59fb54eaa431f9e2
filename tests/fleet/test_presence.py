"""Who is there: a node whose remote model is dead, stopped, or behind a broker that is away, goes on deciding."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest
from support import children, mosquitto, until, worker

from h2t2_lab.processes import remaining_output
from h2t2_tools.fleet import broker

SAMPLES, RATE, DEADLINE = 1200, 100, 1000


def node(url, *options, **named):
    command = [sys.executable, "-m", "h2t2_tools", "node", "--broker", url, "--deadline", f"{DEADLINE}ms", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named)


@pytest.mark.whole
def test_a_hundred_a_second_whatever_became_of_the_remote_model(tmp_path):
    """Window 1, an eager policy, 12 s: no worker, a stopped one, no broker: at least 95 % of a healthy node's decisions."""
    rate = ["--samples", str(SAMPLES), "--every", f"{1000 // RATE}ms"]
    rate += ["--policy", "h2t2", "--exploration", "epsilon", "--epsilon", "0.3"]
    folders = [tmp_path / name for name in ("healthy", "nobody", "stopped")]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        urls = {folder.name: stack.enter_context(mosquitto(folder)).url for folder in folders}
        stack.enter_context(worker(urls["healthy"], "breast_cancer"))
        serving = stack.enter_context(worker(urls["stopped"], "breast_cancer"))
        urls["no broker"] = f"mqtt://127.0.0.1:{broker.free_port()}"
        outs = {name: tmp_path / f"{name}.out" for name in urls}  # a pipe that nobody reads would stop them
        running = {name: node(url, *rate, "--out", str(outs[name])) for name, url in urls.items()}
        assert until(lambda: all(out.exists() and out.stat().st_size for out in outs.values()), 30)
        for stopped in (serving.pid, *children(serving.pid)):  # its parent would replace it
            os.kill(stopped, signal.SIGSTOP)
        said = {name: process.communicate(timeout=280)[1] for name, process in running.items()}
    decided = {}
    for name, out in outs.items():
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        summary = rows[-1]["summary"]
        decided[name] = (SAMPLES, SAMPLES + summary["skipped"])  # of so many slots
        assert len(said[name].splitlines()) < 8, said[name]
        assert summary["link"] == {"healthy": "up", "nobody": "nobody", "stopped": "silent", "no broker": "down"}[name]
    healthy = decided["healthy"][0] / decided["healthy"][1]
    for samples, slots in decided.values():
        assert samples / slots >= 0.95 * healthy, decided
    assert "no worker serves the model" in said["nobody"] and "do not answer" in said["stopped"]
    assert "the broker is away" in said["no broker"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.whole)])
def test_a_node_that_is_told_to_stop_saves_and_says_its_summary(broker, rdl, tmp_path, how):
    """In mid-stream, with offloads in flight: all that was handed over is decided, every lesson is there at the next start."""
    words = ["--snapshot", str(tmp_path / "state"), "--snapshot-every", "100000", "--every", "5ms", "--samples", "100000"]
    process = node(broker.url, *words, "--in-flight", "4", "--policy", "h2t2", "--exploration", "epsilon", "--epsilon", "0.5")
    lines = [process.stdout.readline() for _ in range(300)]
    process.send_signal(how)
    out, errors = remaining_output(process, 10)
    assert process.returncode == 0 and "Traceback" not in errors
    rows = [json.loads(line) for line in lines + out.splitlines()]
    summary = rows[-1]["summary"]
    assert sorted(row["n"] for row in rows if "n" in row) == list(range(summary["samples"]))
    assert summary["taught"] > 50 and summary["saves"] >= 1
    again = node(broker.url, *words[:2], "--policy", "h2t2", "--exploration", "epsilon", "--epsilon", "0.5", "--samples", "5")
    first = json.loads(again.communicate(timeout=20)[0].splitlines()[0])["start"]
    assert first["restored"] and first["taught"] == summary["taught"]


@pytest.mark.whole
def test_costs_of_the_command_line_win_over_a_snapshots(broker, tmp_path):
    """--beta 0.02 after 0.9: in force, and said; a snapshot of other bits is kept beside, or stops the node, as asked."""
    words = ["--snapshot", str(tmp_path / "state"), "--samples", "40"]

    def ran(*more):
        process = node(broker.url, *words, *more)
        out, errors = process.communicate(timeout=280)
        return process.returncode, out, errors

    assert ran("--beta", "0.9")[0] == 0
    status, out, errors = ran("--beta", "0.02")
    assert status == 0 and json.loads(out.splitlines()[-1])["summary"]["beta"] == 655 and "other costs" in errors
    status, _, errors = ran("--bits", "5", "--snapshot-mismatch", "stop")
    assert status == 2 and "snapshot" in errors and "Traceback" not in errors
    status, out, errors = ran("--bits", "5")
    assert status == 0 and "state.0.kept1" in errors and (tmp_path / "state.0.kept1").exists()
    assert not json.loads(out.splitlines()[0])["start"]["restored"]


@pytest.mark.whole
def test_two_nodes_of_one_name_both_say_so(broker, tmp_path):
    """Instead of forty reconnections in a quarter of a minute: a line on each side, and long waits."""
    words = ["--device", "twin", "--every", "50ms", "--samples", "100000"]
    twins = [node(broker.url, *words, "--out", str(tmp_path / f"{n}.out")) for n in range(2)]
    said = [[], []]

    def listen(n):
        for line in twins[n].stderr:
            said[n].append(line)

    listeners = [threading.Thread(target=listen, args=(n,)) for n in range(2)]
    for one_of in listeners:
        one_of.start()
    try:
        assert until(lambda: all("another device bears this name" in "".join(lines) for lines in said), 40), said
    finally:
        for process in twins:
            process.send_signal(signal.SIGTERM)
            process.wait(10)
    outs = [(tmp_path / f"{n}.out").read_text().splitlines() for n in range(2)]
    summaries = [json.loads(out[-1])["summary"] for out in outs]
    assert all(summary["namesakes"] and summary["connections"] < 12 for summary in summaries)
