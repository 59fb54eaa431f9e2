"""100,000 malformed messages from a stranger, through a real Mosquitto: worker and nodes stay up, answer, and do not grow."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from support import ROOT, children, need, need_mosquitto, until, worker

from h2t2.cpython import worker_wire
from h2t2.cpython.mqtt_session import make_client
from h2t2.cpython.paho import PahoLink
from h2t2.link import presence, wire
from h2t2_lab.processes import remaining_output
from h2t2_tools.boards import kinds
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.fleet import broker
from h2t2_tools.fleet import config as board_config
from h2t2_tools.model import bundle

MESSAGES = 100_000


WARM_UP = 6_000  # of which buffers, tables and the allocator have their size


GROWTH = 3 << 20  # bytes; one leaked message of 30 in 100 bytes would be as much


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def answered(friend, sequence):
    """Whether the worker answers a good request: then it has read what came before it."""
    friend.send(wire.encode_request(1, 5, sequence, (30,), bytes(30)))
    while reply := friend.receive(30000):
        if wire.decode_reply(reply)[2] == sequence:
            return True
    return False


def flood(client, rng, count, devices, friend):
    """So many messages on requests, replies and commands: noise, good ones with changes, some large.

    Never further ahead of the worker than the broker keeps for it (1,000): what it dropped nobody could count.
    """
    good = wire.encode_request(1, 2, 3, (30,), bytes(30))
    for n in range(count):
        leaf = ("request", "reply", "request", "reply", "command")[n % 5]
        seed = {"request": good, "reply": worker_wire.encode_reply(0, 9, n, 1, 9), "command": b'{"pause": 5, "x": 1}'}[leaf]
        payload = bytearray(seed)
        for _ in range(1 + n % 3):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        if n % 7 == 0:
            payload = rng.randbytes(rng.randrange(60))
        elif n % 97 == 0:
            payload = rng.randbytes(3000)
        elif leaf == "request":
            payload[0] = 200  # another version: certainly malformed
        leaf = presence.request_leaf(1) if leaf == "request" else leaf
        sent = client.publish(wire.topic(devices[n % len(devices)], leaf), bytes(payload), qos=1)
        if n % 64 == 63:
            sent.wait_for_publish(10)
            time.sleep(0.004)
        if n % 1024 == 1023:
            assert answered(friend, n)


def unix_node(folder, port):
    """A board's node on MicroPython, that streams for as long as it is let."""
    model = folder / "m.h2m"
    model.write_bytes(bundle.from_tflite(ROOT / "models/breast_cancer/ldl.tflite"))
    (folder / "h2t2.toml").write_text(
        f'port = {port}\nremote_shape = [30]\nmodel_id = 1\ndevice = "board"\nexploration = "epsilon"\nepsilon = 0.3\n'
    )
    config = board_config.load(folder / "h2t2.toml")
    for path, content in kinds.payload(kinds.KINDS["unix"], kinds.Contents(model, config)).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "main.py").write_text(ENDLESS)
    command = UNIX.node(folder / "main.py")
    return subprocess.Popen(command, cwd=folder, env=UNIX.environment(folder), stdout=subprocess.PIPE, text=True)


ENDLESS = """import gc, json, os, time
from h2t2.node import start
from h2t2.node.service import summary
with open("config.json") as file:
    config = json.load(file)
link = start.mqtt_link(config)
link.open()
print("up")
x = bytes(30)
n = [0]
def sensor():
    time.sleep_ms(5)
    n[0] += 1
    if n[0] % 20 == 0:
        gc.collect()
        print(json.dumps({"heap": gc.mem_alloc(), "strangers": running.node.strangers + link.dropped}))
    if "stop" in os.listdir():
        raise StopIteration
    return memoryview(x)[:running.node.ldl.input_size], x, n[0]
running = start.service(config, link, act=lambda *_: None, sensor=sensor)
running.run()
link.close()
print(json.dumps({"summary": summary(running)}))
"""


@pytest.mark.evidence
@pytest.mark.timeout(600)
def test_a_hundred_thousand_malformed_messages(tmp_path):
    need(UNIX)
    need_mosquitto()
    rng = random.Random(1)
    with broker.running("mosquitto") as url, worker(url, "breast_cancer", "--json", "-") as serving:
        host, port = broker.parse(url)
        words = ["node", "--broker", url, "--device", "pi", "--samples", "1000000", "--every", "10ms"]
        words += ["--policy", "h2t2", "--exploration", "epsilon", "--epsilon", "0.3"]  # it never stops asking
        node = subprocess.Popen(
            [sys.executable, "-m", "h2t2_tools", *words, "--out", tmp_path / "out"], stderr=subprocess.PIPE, text=True
        )
        board = unix_node(tmp_path, port)
        try:
            assert board.stdout.readline() == "up\n"
            assert until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").stat().st_size > 1000, 30)
            stranger = make_client("stranger")
            stranger.max_inflight_messages_set(200)
            stranger.connect(host, port)
            stranger.loop_start()
            friend = PahoLink(host, port, "friend", 1, 5)
            friend.open()
            flood(stranger, rng, WARM_UP, ["pi", "board"], friend)
            before = {process.pid: resident(process.pid) for process in (serving, node)}
            before.update({pid: resident(pid) for pid in children(serving.pid)})
            flood(stranger, rng, MESSAGES - WARM_UP, ["pi", "board"], friend)
            grown = {pid: resident(pid) - size for pid, size in before.items()}
            assert max(grown.values()) < GROWTH, grown
            stranger.disconnect()
            stranger.loop_stop()
            friend.send(wire.encode_request(1, 5, MESSAGES, (30,), bytes(30)))
            assert wire.decode_reply(friend.receive(10000))[:3] == (wire.OK, 5, MESSAGES)
            friend.close()
            at = len((tmp_path / "out").read_text())
            assert until(lambda: '"remote"' in (tmp_path / "out").read_text()[at:], 60)  # answered again, and by itself
            last = json.loads((tmp_path / "out").read_text().splitlines()[-2])
            assert last["strangers"] > 1000
            (tmp_path / "stop").touch()
            said = remaining_output(board, 280)[0].splitlines()
            said = [json.loads(line) for line in said if line.startswith("{")]
            heaps = [row["heap"] for row in said if row.get("strangers", 0) > 500]
            half = len(heaps) // 2  # a message that is just coming in, or whose bytes the stack still shows, is up to 1.3 KB
            assert half > 10 and min(heaps[half:]) <= min(heaps[:half]) + 64
            assert (
                said[-1]["summary"]["errors"] == 0
                and said[-1]["summary"]["commands_refused"] > 200
                and said[-2]["strangers"] > 2000
            )  # what it was too slow for the broker has dropped
            assert node.poll() is None and serving.poll() is None
            serving.send_signal(signal.SIGTERM)
            counts = json.loads(remaining_output(serving, 20)[0])
            refused = sum(counts[what] for what in ("malformed request", "another version of the wire format", "dropped"))
            assert refused > 0.99 * 0.4 * MESSAGES and counts["ok"] > 100, counts
        finally:
            for process in (node, board):
                process.kill()
                process.communicate()
