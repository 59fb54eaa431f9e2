"""The RDL worker: requests of strangers, batches, a full queue, reload, drain, metrics, several of them; and what dies."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support import mosquitto, until, worker

from h2t2.ldl.tflite import TFLiteModel
from h2t2.link import wire
from h2t2.link.paho import PahoLink
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.rdl.models import Source
from h2t2_tools.fleet.rdl.server import Options, Server
from h2t2_tools.fleet.rdl.worker import Worker


@pytest.fixture
def url():
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    with broker.running("mosquitto") as one:
        yield one


def request(sequence, tensor=bytes(64), shape=(8, 8, 1), model=None, boot=5):
    return wire.encode_request(pairs.load("digits").about.model_id if model is None else model, boot, sequence, shape, tensor)


def opened(url, device="dev"):
    link = PahoLink(*broker.parse(url), device)
    link.open()
    return link


def replies(link, count, seconds=10):
    """{sequence: (status, label)} of so many replies."""
    got = {}
    end = time.monotonic() + seconds
    while len(got) < count and time.monotonic() < end:
        payload = link.receive(200)
        if payload is not None:
            status, _, sequence, label, _ = wire.decode_reply(payload)
            assert sequence not in got, "answered twice"
            got[sequence] = status, label
    return got


def test_the_worker_answers_strangers_and_survives(broker_url):
    """Malformed, oversized, foreign requests against the real worker and a real broker; then a good one."""
    pair = pairs.load("digits")
    model = TFLiteModel(str(pair.rdl), event=1)
    tensor = model.quantise(pair.x[0]).reshape(model.input_shape)
    good = wire.encode_request(pair.about.model_id, 5, 6, model.input_shape, tensor.tobytes())
    with worker(broker_url, "digits", "--json", "-") as process:
        link = opened(broker_url, "stranger")
        statuses = []
        foreign = wire.encode_request(999, 5, 6, model.input_shape, tensor.tobytes())
        small = wire.encode_request(pair.about.model_id, 5, 6, (3,), b"abc")
        for payload in (b"", b"x", good[:-1], good + b"x", b"\xff" * 40, small, foreign, good):
            link.send(payload)
            if len(payload) >= wire.REQUEST_HEADER:
                statuses.append(wire.decode_reply(link.receive(5000))[0])
        assert statuses == [wire.MALFORMED] * 4 + [wire.WRONG_MODEL, wire.OK]
        assert link.receive(100) is None
        link.close()
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=10)
        assert process.returncode == 0 and "Traceback" not in errors
        counts = json.loads(out)
        assert counts == {"dropped": 2, "malformed request": 4, "model not served here": 1, "ok": 1}


def test_a_batch_is_answered_like_its_requests_alone():
    """Good, malformed and foreign requests, two shapes of the same size, in one batch: each the answer it gets alone."""
    pair = pairs.load("breast_cancer")
    model = TFLiteModel(str(pair.rdl))
    mixed = []
    for n, x in enumerate(pair.x[:40]):
        tensor = model.quantise(x).tobytes()
        good = wire.encode_request(1, 2, n, (30,) if n % 2 else (1, 30), tensor)
        mixed += [good, good[: n % 20], wire.encode_request(7, 2, n, (30,), tensor), wire.encode_request(1, 2, n, (2,), b"ab")]
    together = Worker(Source(str(pair.rdl)).load(), 1).answers(mixed)
    one = Worker(Source(str(pair.rdl)).load(), 1)
    assert together == [one.answers([payload])[0] for payload in mixed]
    labels = [wire.decode_reply(reply)[3] for reply in together[::4]]
    assert labels == [int(model.score(model.run(model.quantise(x))) >= 0.5) for x in pair.x[:40]]
    assert one.counts["ok"] == 40 and one.counts["model not served here"] == 40


SLOW = "import time\ndef slow(x):\n    time.sleep(0.05 * len(x))\n    return [0.75] * len(x)\n"


def test_a_batch_waits_for_others_as_long_as_it_is_told(url, tmp_path):
    """The score tells the size of the batch: 8 requests within the wait make one, a ninth alone waits no longer than that."""
    (tmp_path / "size.py").write_text("def size(x): return [len(x) / 100] * len(x)\n")
    options = ("--model", f"{tmp_path}/size.py:size", "--batch", "8", "--wait-ms", "1000")
    with worker(url, "digits", *options):
        link = opened(url)
        for n in range(8):
            link.send(request(n))
            time.sleep(0.02)
        sizes = [round(wire.decode_reply(link.receive(5000))[4] / 32768 * 100) for _ in range(8)]
        link.send(request(9))
        began = time.monotonic()
        sizes.append(round(wire.decode_reply(link.receive(5000))[4] / 32768 * 100))
        assert sizes == [8] * 8 + [1] and time.monotonic() - began > 0.9
        link.close()


def test_more_than_the_queue_holds_is_answered_busy(url, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    options = ("--model", f"{tmp_path}/slow.py:slow", "--queue", "4", "--batch", "4", "--json", "-")
    with worker(url, "digits", *options) as process:
        links = [opened(url, f"dev{n}") for n in range(8)]
        for link in links:
            for n in range(5):
                link.send(request(n))
        got = [replies(link, 5) for link in links]
        assert [len(one) for one in got] == [5] * 8
        statuses = [status for one in got for status, _ in one.values()]
        assert statuses.count(wire.OK) >= 4 and statuses.count(wire.BUSY) >= 8
        assert set(statuses) == {wire.OK, wire.BUSY}
        for link in links:
            link.close()
        process.send_signal(signal.SIGTERM)
        assert json.loads(process.communicate(timeout=10)[0])["busy"] == statuses.count(wire.BUSY)


def test_what_was_taken_is_answered_before_the_end(url, tmp_path):
    """SIGTERM while a slow model has work: every request taken gets its answer, the rest is left to others."""
    (tmp_path / "slow.py").write_text(SLOW)
    with worker(url, "digits", "--model", f"{tmp_path}/slow.py:slow", "--batch", "2", "--json", "-") as process:
        link = opened(url)
        for n in range(12):
            link.send(request(n))
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        got = replies(link, 12)
        out, errors = process.communicate(timeout=15)
        assert process.returncode == 0 and "Traceback" not in errors
        assert json.loads(out) == {"ok": 12} and got == dict.fromkeys(range(12), (wire.OK, 1))
        link.close()


@pytest.mark.slow
def test_the_model_is_replaced_under_load_without_losing_a_request(url, tmp_path):
    """By a changed file, by SIGHUP; a broken file leaves the old model in service."""
    path = tmp_path / "model.py"
    path.write_text("def f(x): return [0.25] * len(x)\n")
    with worker(url, "digits", "--model", f"{path}:f") as process:
        link = opened(url)

        def labels(end, seconds=15):
            n, seen, stop = 0, [], time.monotonic() + seconds
            while time.monotonic() < stop and not end(seen):
                n += 1
                assert link.send(request(n))
                payload = link.receive(5000)
                assert payload is not None, "a request was lost"
                seen.append(wire.decode_reply(payload)[3])
            return seen

        path.write_text("def f(x): return [0.75] * len(x)  # another\n")
        seen = labels(lambda seen: seen[-50:] == [1] * 50)
        assert seen == sorted(seen) and seen[-1] == 1
        path.write_text("def f(x: return\n")
        labels(lambda seen: len(seen) > 3000, 2.5)
        assert labels(lambda seen: len(seen) == 20) == [1] * 20
        path.write_text("def f(x): return [0.1] * len(x)\n")
        process.send_signal(signal.SIGHUP)
        assert labels(lambda seen: seen[-50:] == [0] * 50)[-1] == 0
        link.close()
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=10)[1]
        assert errors.count("reloaded") >= 2 and "the model stays as it was" in errors


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_metrics_and_health(tmp_path):
    port = broker.free_port()
    with mosquitto(tmp_path) as one, worker(one.url, "digits", "--metrics", str(port)):
        link = opened(one.url)
        for n in range(7):
            link.send(request(n))
        link.send(request(9, model=9))
        assert len(replies(link, 8)) == 8
        status, text = get(port, "/metrics")
        assert status == 200 and 'h2t2_rdl_replies_total{status="ok"} 7.0' in text
        assert 'h2t2_rdl_replies_total{status="model not served here"} 1.0' in text
        assert re.search(r"h2t2_rdl_batch_size_sum 8.0", text)
        assert get(port, "/healthz")[0] == 200 and get(port, "/other")[0] == 404
        link.close()
        one.stop(kill=True)
        assert until(lambda: get(port, "/healthz")[0] == 503)
        one.start()
        assert until(lambda: get(port, "/healthz")[0] == 200)


@pytest.mark.slow
def test_workers_share_the_load_and_one_killed_costs_its_own_requests_only(url, tmp_path):
    """Three workers; one is killed with requests in flight, and started again by the parent."""
    (tmp_path / "slow.py").write_text(SLOW.replace("0.05", "0.01"))
    base = broker.free_port()
    options = ("--workers", "3", "--metrics", str(base), "--batch", "1", "--model", f"{tmp_path}/slow.py:slow", "--json", "-")
    with worker(url, "digits", *options) as process:
        link = opened(url)
        for start in range(0, 30, 6):  # a window of six
            for n in range(start, start + 6):
                assert link.send(request(n))
            assert len(replies(link, 6)) == 6

        def answered():
            return [int(float(re.search(r'status="ok"} (\S+)', get(base + n, "/metrics")[1])[1])) for n in range(3)]

        assert until(lambda: sum(answered()) == 30) and min(answered()) >= 5
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        victim = int(children.stdout.split()[0])
        for n in range(12):
            link.send(request(100 + n))
        subprocess.run(["kill", "-9", str(victim)], check=True)
        lost = 12 - len(replies(link, 12, 5))
        assert lost <= 6  # what it had, not what the others had
        for n in range(20):
            link.send(request(200 + n))
            assert link.receive(5000) is not None
        assert "starting it again" in process.stderr.readline()
        assert until(lambda: children.returncode == 0 and len(subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()) == 3)  # fmt: skip
        process.send_signal(signal.SIGTERM)
        assert sum(json.loads(process.communicate(timeout=20)[0]).values()) >= 30
        link.close()


@pytest.mark.slow
def test_workers_end_with_a_parent_that_was_killed(url):
    with worker(url, "digits", "--workers", "2") as process:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
        children = [int(pid) for pid in found.split()]
        assert len(children) == 2
        process.kill()
        process.wait()
        assert until(lambda: not [pid for pid in children if Path(f"/proc/{pid}/exe").exists()])


@pytest.mark.slow
def test_a_device_is_not_stuck_by_a_worker_that_is_gone(url):
    """No worker at all: every sample falls back within its deadline, and when one comes offloads are answered again."""
    command = [
        sys.executable,
        "-m",
        "h2t2_tools",
        "node",
        "--broker",
        url,
        "--samples",
        "60",
        "--deadline",
        "100",
        "--beta",
        "0",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    decisions = [line for line in lines if "n" in line]
    assert len(decisions) == 60 and "remote" not in {line["source"] for line in decisions}
    assert max(line["ms"] for line in decisions) < 400
    with worker(url, "breast_cancer"):
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert json.loads(run.stdout.splitlines()[-1])["summary"]["replies"] > 10


def test_oversize_requests_are_refused_or_not_taken(url):
    """300 kB: answered with an error and counted. 2 MB: the broker keeps it from a worker that says it takes 1 MB at most."""
    with worker(url, "digits", "--json", "-") as process:
        link = opened(url)
        assert link.send(request(7)[:20] + bytes(300000))
        assert replies(link, 1) == {7: (wire.MALFORMED, -1)}
        assert link.send(request(8)[:20] + bytes(2000000)) and link.send(request(9))
        assert replies(link, 1) == {9: (wire.OK, 0)} and link.is_connected()
        link.close()
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=10)
        assert json.loads(out) == {"malformed request": 1, "ok": 1} and "Traceback" not in errors


def test_topics_that_are_no_devices_are_not_answered(url):
    server = Server(Source(str(pairs.load("digits").rdl)), 1, Endpoint(*broker.parse(url)), Options())
    message = type("Message", (), {"topic": "h2t2/1/" + "x" * 65 + "/request", "payload": b"", "mid": 1, "qos": 1})
    server._on_message(None, None, message)
    assert not server._inbox
    server.session.close()


def test_no_broker_is_a_failure_at_the_start():
    with pytest.raises(Failure, match="not reachable"):
        Server(Source(str(pairs.load("digits").rdl)), 1, Endpoint("127.0.0.1", broker.free_port()), Options())
