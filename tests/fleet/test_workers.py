"""The RDL worker: requests of strangers, batches, a full queue, reload, drain, metrics, several of them; and what dies."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
from command_line import line_with, started
from support import children, mosquitto, need_mosquitto, until, worker, worker_replies

from h2t2.cpython.paho import PahoLink
from h2t2.cpython.tflite import TFLiteModel
from h2t2.link import presence, wire
from h2t2_lab.processes import remaining_output
from h2t2_tools.common import pairs
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.rdl import pool
from h2t2_tools.fleet.rdl.desk import Desk
from h2t2_tools.fleet.rdl.inbox import Inbox, Item
from h2t2_tools.fleet.rdl.models import Source, load
from h2t2_tools.fleet.rdl.server import Server
from h2t2_tools.fleet.rdl.worker import Worker
from h2t2_tools.fleet.rdl.worker_options import WorkerOptions

DIGITS = 2  # the number of its remote model


@pytest.fixture
def url():
    need_mosquitto()
    with broker.running("mosquitto") as one:
        yield one


def request(sequence, tensor=bytes(64), shape=(8, 8, 1), model=DIGITS, boot=5, left=0):
    return wire.encode_request(model, boot, sequence, shape, tensor, remaining_ms=left)


def opened(url, device="dev"):
    link = PahoLink(*broker.parse(url), device, DIGITS, 5)
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


@pytest.mark.slow
def test_the_worker_answers_strangers_and_survives(broker_url):
    """Malformed, oversized, foreign requests against the real worker and a real broker; then a good one."""
    pair = pairs.load("digits")
    model = TFLiteModel(str(pair.rdl), event=1)
    tensor = model.quantise(pair.x[0]).reshape(model.input_shape)
    good = wire.encode_request(DIGITS, 5, 6, model.input_shape, tensor.tobytes())
    with worker(broker_url, "digits", "--json", "-") as process:
        link = opened(broker_url, "stranger")
        statuses = []
        foreign = wire.encode_request(999, 5, 6, model.input_shape, tensor.tobytes())
        small = wire.encode_request(pair.info.model_id, 5, 6, (3,), b"abc")
        for payload in (b"", b"x", good[:-1], good + b"x", b"\xff" * 40, small, foreign, good):
            link.publish(wire.topic("stranger", presence.request_leaf(DIGITS)), payload)  # on this model's topic
            if len(payload) >= wire.REQUEST_HEADER:
                statuses.append(wire.decode_reply(link.receive(5000))[0])
        malformed = wire.MALFORMED
        assert statuses == [malformed, malformed, wire.OTHER_VERSION, malformed, wire.WRONG_MODEL, wire.OK]
        assert link.receive(100) is None
        link.close()
        process.send_signal(signal.SIGTERM)
        out, errors = remaining_output(process, 10)
        assert process.returncode == 0 and "Traceback" not in errors
        counts = json.loads(out)
        told = {"dropped": 2, "malformed request": 3, "another version of the wire format": 1, "model not served here": 1}
        assert counts == {**told, "ok": 1} and "stranger: a request of version 255 of the wire format" in errors


def test_a_batch_is_answered_like_its_requests_alone():
    """Good and foreign requests, two shapes of the same size, in one batch: each the answer it gets alone."""
    pair = pairs.load("breast_cancer")
    model = TFLiteModel(str(pair.rdl))
    mixed = []
    for n, x in enumerate(pair.x[:40]):
        tensor = model.quantise(x).tobytes()
        good = wire.encode_request(1, 2, n, (30,) if n % 2 else (1, 30), tensor)
        mixed += [good, wire.encode_request(7, 2, n, (30,), tensor), wire.encode_request(1, 2, n, (2,), b"ab")]
    together = worker_replies(Worker(load(Source(str(pair.rdl))), 1), mixed)
    one = Worker(load(Source(str(pair.rdl))), 1)
    assert together == [worker_replies(one, [payload])[0] for payload in mixed]
    labels = [wire.decode_reply(reply)[3] for reply in together[::3]]
    assert labels == [int(model.score(model.run(model.quantise(x))) >= 0.5) for x in pair.x[:40]]
    refusals = [wire.decode_reply(reply) for n, reply in enumerate(together) if n % 3]
    assert {(label, score) for *_, label, score in refusals} == {(-1, 0)} and len(refusals) == 80
    assert one.counts["ok"] == 40 and one.counts["model not served here"] == 40


SLOW = "import time\ndef slow(x):\n    time.sleep(0.05 * len(x))\n    return [0.75] * len(x)\n"


@pytest.mark.slow
def test_a_batch_waits_for_others_as_long_as_it_is_told(url, tmp_path):
    """The score tells the size of the batch: 8 requests within the wait make one, a ninth alone waits no longer than that."""
    (tmp_path / "size.py").write_text("def size(x): return [len(x) / 100] * len(x)\n")
    options = ("--remote", f"{tmp_path}/size.py:size", "--batch", "8", "--batch-wait", "1s")
    with worker(url, "digits", *options):
        link = opened(url)
        for n in range(8):
            link.send(request(n))
        sizes = [round(wire.decode_reply(link.receive(5000))[4] / 32768 * 100) for _ in range(8)]
        link.send(request(9))
        sizes.append(round(wire.decode_reply(link.receive(5000))[4] / 32768 * 100))
        assert sizes == [8] * 8 + [1]
        link.close()


@pytest.mark.slow
def test_more_than_the_queue_holds_is_answered_busy(url, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    options = ("--remote", f"{tmp_path}/slow.py:slow", "--queue", "4", "--batch", "4", "--json", "-")
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
        assert json.loads(remaining_output(process, 10)[0])["busy"] == statuses.count(wire.BUSY)


@pytest.mark.slow
def test_what_was_taken_is_answered_before_the_end(url, tmp_path):
    """SIGTERM while a slow model has work: every request taken gets its answer, the rest is left to others."""
    (tmp_path / "slow.py").write_text(SLOW)
    with worker(url, "digits", "--remote", f"{tmp_path}/slow.py:slow", "--batch", "2", "--json", "-") as process:
        link = opened(url)
        for n in range(12):
            link.send(request(n))
        got = replies(link, 1)  # the worker has taken all twelve by the end of its first batch
        process.send_signal(signal.SIGTERM)
        got |= replies(link, 11)
        out, errors = remaining_output(process, 15)
        assert process.returncode == 0 and "Traceback" not in errors
        assert json.loads(out) == {"ok": 12} and got == dict.fromkeys(range(12), (wire.OK, 1))
        link.close()


@pytest.mark.whole
def test_the_model_is_replaced_under_load_without_losing_a_request(url, tmp_path):
    """By a changed file, by SIGHUP; a broken file leaves the old model in service."""
    path = tmp_path / "model.py"
    path.write_text("def f(x): return [0.25] * len(x)\n")
    with worker(url, "digits", "--remote", f"{path}:f") as process:
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
        errors = remaining_output(process, 10)[1]
        assert errors.count("reloaded") >= 2 and "the model stays as it was" in errors


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        try:
            return error.code, "hung" if "not answered" in error.read().decode() else ""
        except http.client.HTTPException:  # the process ended while it answered, as one that hangs does
            return error.code, ""
    except (OSError, http.client.HTTPException):
        return 0, ""


@pytest.mark.slow
def test_metrics_and_health(tmp_path):
    port = broker.free_port()
    with mosquitto(tmp_path) as one, worker(one.url, "digits", "--metrics", str(port)):
        link = opened(one.url)
        for n in range(7):
            link.send(request(n))
        link.publish(wire.topic("dev", presence.request_leaf(DIGITS)), request(9, model=9))
        assert len(replies(link, 8)) == 8
        link.publish(wire.topic("dev", presence.request_leaf(DIGITS)), request(10)[:-1])
        assert replies(link, 1) == {10: (wire.MALFORMED, -1)}
        assert until(lambda: "h2t2_rdl_batch_size_sum 8.0" in get(port, "/metrics")[1])  # replies go out first, then count
        status, text = get(port, "/metrics")
        assert status == 200 and 'h2t2_rdl_replies_total{status="ok"} 7.0' in text
        for refusal in ("model not served here", "malformed request"):  # of the model, and as it comes
            assert f'h2t2_rdl_replies_total{{status="{refusal}"}} 1.0' in text
        assert get(port, "/healthz")[0] == 200 and get(port, "/other")[0] == 404
        link.close()
        one.stop(kill=True)
        assert until(lambda: get(port, "/healthz")[0] == 503)
        one.start()
        assert until(lambda: get(port, "/healthz")[0] == 200)


@pytest.mark.whole
def test_workers_share_the_load_and_one_killed_costs_its_own_requests_only(url, tmp_path):
    """Three workers; one is killed with requests in flight, and started again by the parent."""
    (tmp_path / "slow.py").write_text(SLOW.replace("0.05", "0.01"))
    base = broker.free_port()
    options = ("--workers", "3", "--metrics", str(base), "--batch", "1", "--remote", f"{tmp_path}/slow.py:slow", "--json", "-")
    with worker(url, "digits", *options) as process:
        link = opened(url)
        for start in range(0, 30, 6):  # a window of six
            for n in range(start, start + 6):
                assert link.send(request(n))
            assert len(replies(link, 6)) == 6

        def answered():
            return [int(float(re.search(r'status="ok"} (\S+)', get(base + n, "/metrics")[1])[1])) for n in range(3)]

        assert until(lambda: sum(answered()) == 30) and min(answered()) >= 5
        victim = children(process.pid)[0]
        for n in range(12):
            link.send(request(100 + n))
        os.kill(victim, signal.SIGKILL)
        lost = 12 - len(replies(link, 12, 5))
        assert lost <= 6  # what it had, not what the others had
        for n in range(20):
            link.send(request(200 + n))
            assert link.receive(5000) is not None
        assert "starting another" in process.stderr.readline()
        assert until(lambda: len(children(process.pid)) == 3)
        process.send_signal(signal.SIGTERM)
        assert sum(json.loads(remaining_output(process, 20)[0]).values()) >= 30
        link.close()


def scheduling(pid):
    """The policies of all threads of a process."""
    return {os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()}


@pytest.mark.whole
def test_several_workers_let_the_broker_finish(url):
    """They take the processor from nobody when a request wakes them; one alone does, as it has no others in its way."""
    for many, policy in (("1", os.SCHED_OTHER), ("2", os.SCHED_BATCH)):
        with worker(url, "digits", "--workers", many) as process:
            for pid in children(process.pid) or [process.pid]:
                assert scheduling(pid) == {policy}


@pytest.mark.slow
def test_workers_end_with_a_parent_that_was_killed(url):
    with worker(url, "digits", "--workers", "2") as process:
        workers = children(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait()
        assert until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}/exe").exists()])


@pytest.mark.whole
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
        "100ms",
        "--beta",
        "0",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    decisions = [line for line in lines if "n" in line]
    assert len(decisions) == 60 and "remote" not in {line["source"] for line in decisions}
    with worker(url, "breast_cancer"):
        run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert json.loads(run.stdout.splitlines()[-1])["summary"]["replies"] > 10


@pytest.mark.slow
def test_oversize_requests_are_refused_or_not_taken(url):
    """300 kB: answered with an error and counted. 1.5 MB: the broker keeps it from a worker that says it takes 1 MB at most."""
    with worker(url, "digits", "--json", "-") as process:
        link = opened(url)
        assert link.send(request(7)[:24] + bytes(300000))
        assert replies(link, 1) == {7: (wire.MALFORMED, -1)}
        assert link.send(request(8)[:24] + bytes(1500000)) and link.send(request(9))
        assert replies(link, 1) == {9: (wire.OK, 0)} and link.is_connected()
        link.close()
        process.send_signal(signal.SIGTERM)
        out, errors = remaining_output(process, 10)
        assert json.loads(out) == {"malformed request": 1, "ok": 1} and "Traceback" not in errors


def test_topics_that_are_no_devices_are_not_answered(url):
    server = Server(Source(str(pairs.load("digits").rdl)), 1, Endpoint(*broker.parse(url)), WorkerOptions())
    message = type("Message", (), {"topic": "h2t2/2/" + "x" * 65 + "/request/1", "payload": b"", "mid": 1, "qos": 1})
    server._on_message(None, None, message)
    assert not server._inbox
    server.session.close()


def test_a_person_is_asked_however_late_the_answer_will_be(url):
    """The device has decided by itself long before; the label still teaches it."""
    desk = Desk(2)
    server = Server(Source(str(pairs.load("digits").rdl)), DIGITS, Endpoint(*broker.parse(url)), WorkerOptions(), desk=desk)
    link = opened(url)
    link.send(request(1, left=1))
    assert until(lambda: desk.size, 10)
    assert desk.answer(desk.first().number, 1) and replies(link, 1) == {1: (wire.OK, 1)}
    link.close()
    server.session.close()


ENDS_ONCE = """import json, os, pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1]).write_text('{"ok": 3}')
    os._exit(0)
if pathlib.Path("ended").exists():
    signal.signal(signal.SIGTERM, end)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(60)
pathlib.Path("ended").touch()
os.write(2, json.dumps({"level": "info", "text": "ready: a model"}).encode())
"""


def test_a_worker_that_ends_is_started_again_and_tells_at_the_end_what_it_answered(tmp_path, monkeypatch):
    """Its second process ends the parent, which asks it to end in turn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pool, "python", lambda *words: [sys.executable, "-c", ENDS_ONCE, words[-1]])  # the report's file
    monkeypatch.setattr(pool, "AGAIN", 0.0)
    impatient = threading.Timer(60, os.kill, (os.getpid(), signal.SIGTERM))  # where no second process ends the parent
    impatient.start()
    try:
        assert pool.supervise([[]], tmp_path) == {"ok": 3}
    finally:
        impatient.cancel()


@pytest.mark.whole
def test_a_worker_waits_for_its_broker(broker):
    """Started first, it says so once, and is ready as soon as the broker is there."""
    broker.stop()
    with started("rdl", "--pair", "digits", "--broker", broker.url) as process:
        assert "waiting for it" in process.stderr.readline()
        with socket.create_server((broker.host, broker.port)) as server:  # it tries again, and says nothing more
            for _ in range(2):
                server.accept()[0].close()
        broker.start()
        line_with("ready", process.stderr)
        link = opened(broker.url)
        link.send(request(1))
        assert replies(link, 1) == {1: (wire.OK, 0)}
        link.close()


@pytest.mark.whole
def test_a_worker_outlives_a_broker_that_is_away_for_long(broker):
    """Fifteen seconds, longer than a silent worker is let live: the same process answers afterwards."""
    with worker(broker.url, "digits") as process:
        before = children(process.pid)
        broker.stop(kill=True)
        time.sleep(15)
        broker.start()
        link = opened(broker.url)
        assert until(lambda: link.workers() == 1, 40)
        link.send(request(1))
        assert replies(link, 1) == {1: (wire.OK, 0)} and children(process.pid) == before
        link.close()


HANGS = """import os, time
def model(x):
    for one in x.reshape(len(x), -1):
        while one[0] == 99:
            time.sleep(60)
    return [0.75] * len(x)
"""


@pytest.mark.whole
def test_a_model_that_hangs_is_replaced_and_what_hung_it_refused(url, tmp_path):
    """One poison request among good ones, asked until answered: health tells, the good get labels, the poison is refused."""
    (tmp_path / "hangs.py").write_text(HANGS)
    port = broker.free_port()
    options = ["--remote", f"{tmp_path}/hangs.py:model", "--hang-after", "1", "--metrics", str(port), "--batch", "4"]
    with worker(url, "digits", *options, "--keep-refused", str(tmp_path / "refused")) as process:
        link = opened(url)
        poison = bytes([99]) * 64
        first = children(process.pid)
        waiting = {0: poison, **{n: bytes(64) for n in range(1, 11)}}  # what is asked for, by the number's last digits
        got, unwell, over = {}, threading.Event(), threading.Event()

        def look():  # it is unwell for less than a second
            while not over.wait(0.02):
                if get(port, "/healthz") == (503, "hung"):
                    unwell.set()

        looking = threading.Thread(target=look)
        looking.start()
        end = time.monotonic() + 60
        turn = 0
        while waiting and time.monotonic() < end:
            turn += 1
            for n, data in waiting.items():
                link.send(request(100 * turn + n, data))
            until(lambda: link.workers() != 1, 1)
            payload = link.receive(2500)
            while payload:
                status, _, sequence, label, _ = wire.decode_reply(payload)
                got[sequence % 100] = status, label
                waiting.pop(sequence % 100, None)
                payload = link.receive(200)
        over.set()
        looking.join()
        assert got == {0: (wire.REFUSED, -1), **dict.fromkeys(range(1, 11), (wire.OK, 1))}, waiting
        assert unwell.is_set() and children(process.pid) != first
        (kept,) = (tmp_path / "refused").iterdir()
        assert kept.read_bytes() == poison
        link.close()


@pytest.mark.slow
@pytest.mark.parametrize("parent_too", [False, True])
def test_a_killed_worker_leaves_nothing_in_the_temporary_folder(url, tmp_path, monkeypatch, parent_too):
    """Neither does its parent."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with worker(url, "digits", "--workers", "2") as process:
        workers = children(process.pid)
        os.kill(workers[0], signal.SIGKILL)
        if parent_too:
            process.kill()
            process.wait()
            assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not list(folder.iterdir())


@pytest.mark.whole
def test_a_worker_that_is_stopped_is_replaced(url):
    with worker(url, "digits") as process:
        (stopped,) = children(process.pid)
        os.kill(stopped, signal.SIGSTOP)
        assert until(lambda: children(process.pid) not in ([stopped], []), 30)
        link = opened(url)
        assert until(lambda: link.workers() == 1)
        link.send(request(1))
        assert replies(link, 1) == {1: (wire.OK, 0)}
        link.close()


@pytest.mark.whole
def test_two_models_on_one_broker_do_not_steal_from_each_other(url):
    """Requests for each, every one is answered by its own model; what nobody serves is known at once."""
    with worker(url, "digits"), worker(url, "breast_cancer"):
        links = [opened(url, "a"), PahoLink(*broker.parse(url), "b", 1, 5), PahoLink(*broker.parse(url), "c", 77, 5)]
        for link in links:
            link.open()
        for n in range(200):
            links[0].send(request(n))
            links[1].send(request(n, bytes(30), (30,), 1))
            assert {link: wire.decode_reply(link.receive(5000))[0] for link in links[:2]} == dict.fromkeys(links[:2], wire.OK)
        assert [link.workers() for link in links] == [1, 1, 0]
        for link in links:
            link.close()


class Sender:
    """What a device offers an inbox: requests of one device, each of use for so many seconds."""

    def __init__(self, name, left=2.0):
        self.name, self.left = name, left

    def item(self, now):
        return Item(self.name, self.name + "/reply", None, now + self.left)


def test_devices_have_their_turn_and_nobody_waits_in_vain():
    """Capacity 100/s; one device at 400/s, twenty at 2/s, for ten seconds of a clock that is played."""
    inbox, each = Inbox(256), 0.01
    now, answered, offered = 0.0, Counter(), Counter()
    hog, others = Sender("hog"), [Sender(f"d{n}") for n in range(20)]
    busy_until = 0.0
    for step in range(10000):
        now = step / 1000
        arrivals = [hog] * (0, 1, 0, 1, 0)[step % 5] + [one for n, one in enumerate(others) if step % 500 == 25 * n]
        for one in arrivals:
            offered[one.name] += 1
            refused = inbox.add(one.item(now), now, each)
            assert refused is None or refused.device == "hog"
        if now >= busy_until:
            batch, late = inbox.take(16, now, each)
            assert {item.device for item in late} <= {"hog"}
            for item in batch:
                assert now + len(batch) * each <= item.until
                answered[item.device] += 1
            busy_until = now + len(batch) * each
    assert all(answered[one.name] >= 0.95 * offered[one.name] for one in others)
    assert sum(answered.values()) >= 0.95 * 1000 and len(inbox) < 256


def test_a_request_waits_for_half_of_the_time_that_it_is_of_use():
    """Of two seconds .1 are the model's: it waits for .95 at most, which is the time of nine requests before it."""
    inbox = Inbox(256)
    refused = [inbox.add(Sender("a", 2.0).item(0), 0, 0.1) for _ in range(11)]
    assert refused[:10] == [None] * 10 and refused[10] is not None and len(inbox) == 10


def test_a_full_inbox_takes_from_the_longest_queue():
    inbox = Inbox(4)
    hog, other = Sender("hog", 1e9), Sender("other", 1e9)
    assert [inbox.add(hog.item(0), 0, 0.01) for _ in range(4)] == [None] * 4
    assert inbox.add(hog.item(0), 0, 0.01).device == "hog" and inbox.add(other.item(0), 0, 0.01).device == "hog"
    batch, late = inbox.take(9, 0, 0.01)
    assert [item.device for item in batch] == ["hog", "other", "hog", "hog"] and not late and not len(inbox)


def test_what_has_become_too_late_is_told_so():
    inbox = Inbox(9)
    inbox.add(Sender("a", 1.0).item(0), 0, 0.1)
    inbox.add(Sender("b", 9.0).item(0), 0, 0.1)
    batch, late = inbox.take(9, 0.95, 0.1)
    assert [item.device for item in batch] == ["b"] and [item.device for item in late] == ["a"]
    assert inbox.add(Sender("a", 0.05).item(1), 1, 0.1).device == "a"  # it would be late in any case
