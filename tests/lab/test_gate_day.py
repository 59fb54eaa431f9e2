"""A day of two cameras: Frigate's messages through Mosquitto; a server speaks OpenAI's protocol and is away for an hour.

`h2t2 gate` runs in a process of its own. One camera drifts at noon.
"""

import json
import os
import random
import signal
from functools import partial

import numpy as np
import pytest
from command_line import started
from http_server import serving
from support import listening, retained, until, worker

from h2t2.link import wire
from h2t2_lab.gate_day.days import FrigateDay
from h2t2_lab.gate_day.messages import event
from h2t2_lab.gate_day.play import write
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.queue.queue_options import QueueOptions
from h2t2_tools.fleet.queue.queueing_node import QueueFile, Samples

pytestmark = pytest.mark.whole
HOURS, PER_HOUR, AWAY = 24, 120, 9  # messages of a camera in an hour; the hour without the remote model
CAMERAS = ("front_door", "garden")


class Day(FrigateDay):
    """The simulated day, with a language model that may be away."""

    def __init__(self):
        super().__init__()
        self.away, self.asked = False, 0

    def answer(self, path, body, headers):
        if not path.startswith("/api/"):
            if self.away:
                return 503, b"away"
            self.asked += 1
        return super().answer(path, body, headers)


gate = partial(started, "gate", ready="ready")


def written(folder, server, url, **entries):
    """The configuration that the preset writes for this day."""
    return write(FrigateDay(), folder, server.url, str(url), **entries)


def state(server):
    return json.loads(retained(server, wire.topic("frigate", "state")) or "{}")


def test_a_day(broker, tmp_path):
    rng, day = random.Random(5), Day()
    played = []  # (identity, camera, hour, score, person)
    with serving(day.answer) as url, listening(broker) as (session, decisions):
        path = written(tmp_path, broker, url)
        with gate(path):
            for hour in range(HOURS):
                day.away = hour == AWAY
                for n in range(PER_HOUR):
                    for camera in CAMERAS:
                        score, person = day.streams[camera].draw(hour, rng)
                        identity = f"{hour}.{n}-{camera}"
                        day.events[identity] = person
                        played.append((identity, camera, hour, score, person))
                        for kind in ("new", "update", "end") if n % 8 == 0 else ("new",):
                            assert session.publish("frigate/events", json.dumps(event(kind, identity, camera, score)), 1)
                    if n % 4 == 0:  # as fast as the gate decides
                        assert until(lambda: len(decisions) >= len(played))
                assert until(lambda: len(decisions) >= len(played))
                if hour == AWAY:
                    assert until(lambda: state(broker)["queued"] > 0)
                    asked_before, day.away = day.asked, False
                    assert until(lambda: state(broker)["queued"] == 0), "the queue empties"
                    assert day.asked > asked_before
            assert until(lambda: state(broker)["samples"] == len(played))
            last = state(broker)
    by_identity = {one["id"]: one for one in decisions}
    assert len(decisions) == len(played) == len(by_identity), "every message is decided once"
    assert last["late"] > 0 and last["taught"] == last["replies"] + last["late"]
    assert last["fallbacks"] == sum(one["source"] == "fallback" for one in decisions) == last["late"]
    assert {by_identity[identity]["source"] for identity, _, hour, _, _ in played if hour == AWAY} == {"local", "fallback"}
    for camera in CAMERAS:
        hours = [row for row in played if row[1] == camera and row[2] != AWAY]
        own = np.mean([cost(by_identity[identity], person) for identity, _, _, _, person in hours])
        best = day.costs.of_best_pair([row[3] for row in hours], [row[4] for row in hours])
        print(f"{camera}: {own:.4f} beside the best pair's {best:.4f}")
        assert own < best + 0.01, camera


def cost(decision, person):
    return FrigateDay.costs.of(bool(decision["decision"]), person, decision["source"] == "remote")


def test_a_killed_gate_continues_from_its_snapshot_and_decides_what_came_meanwhile(broker, tmp_path):
    rng, day = random.Random(6), Day()
    sent = []
    with serving(day.answer) as url, listening(broker) as (session, decisions):
        path = written(tmp_path, broker, url, snapshot_every=10)

        def publish(count):
            for _ in range(count):
                score, person = day.streams["front_door"].draw(0, rng)
                sent.append(f"{len(sent)}-front_door")
                day.events[sent[-1]] = person
                assert session.publish("frigate/events", json.dumps(event("new", sent[-1], "front_door", score)), 1)

        with gate(path) as process:
            for _ in range(50):  # as fast as the gate decides: it asks about 16 at once
                publish(6)
                assert until(lambda: len({one["id"] for one in decisions}) == len(sent))
            assert until(lambda: state(broker).get("taught", 0) > 20)
            publish(40)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        taught = state(broker)["taught"]
        publish(60)  # while nobody is there
        with gate(path):
            assert until(lambda: {one["id"] for one in decisions} == set(sent)), "the broker kept what came meanwhile"
            assert until(lambda: state(broker).get("uptime_s", 99) < 60 and state(broker)["taught"] > taught - 12)
    assert len({one["id"]: one["decision"] for one in decisions}) == len({(one["id"], one["decision"]) for one in decisions})


def test_workers_of_the_fleet_answer_and_commands_reach_the_gate(broker, tmp_path):
    """A pair's own worker is the remote model; `h2t2 command` sets costs; without a worker samples wait until one comes."""
    pair = pairs.load("breast_cancer")
    entries = {
        "topic": "scores/+",
        "key": "$topic.1",
        "identity": "id",
        "tensor": "x",
        "remote": "worker:1",
        "device": "frigate",
    }
    path = tmp_path / "gate.toml"
    entries |= {"telemetry": "1s", "patience": "5s"}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
    columns = pair.info.columns["rdl"]
    with listening(broker, "scores/lab/decision") as (session, decisions):
        path.write_text(path.read_text() + f"broker = {json.dumps(broker.url)}\n")
        sent = []

        def publish(count):
            for _ in range(count):
                x = pair.x[len(sent) % len(pair.x)]
                numbers = (x if columns is None else x[columns]).astype(float).tolist()
                sent.append(str(len(sent)))
                session.publish("scores/lab", json.dumps({"id": sent[-1], "score": 0.5, "x": numbers}), 1)
            assert until(lambda: {one["id"] for one in decisions} == set(sent))

        with gate(path):
            publish(12)
            assert until(lambda: state(broker)["queued"] > 0) and all(one["source"] != "remote" for one in decisions)
            with worker(broker.url, "breast_cancer"):
                assert until(lambda: state(broker)["queued"] == 0 and state(broker)["late"] > 0)
                publish(12)
                assert any(one["source"] == "remote" for one in decisions)
                assert main(["command", "frigate", "--beta", "0.5", "--broker", broker.url]) == 0
                assert until(lambda: state(broker)["beta"] == 16384)


def test_while_the_server_behind_the_workers_is_away_no_sample_is_lost(broker, tmp_path):
    """`h2t2 rdl --remote URL` answers "later": a gate lost 16 of 16 samples, a node with --queue kept none of 19."""
    away = [False]
    path, queue = tmp_path / "gate.toml", tmp_path / "node.queue"
    entries = {"topic": "scores/+", "key": "$topic.1", "identity": "id", "tensor": "x", "remote": "worker:1", "telemetry": "1s"}
    entries |= {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0, "device": "frigate"}

    def answer(_path, body, _headers):
        count = len(json.loads(body)["instances"])
        return (503, b"loading") if away[0] else json.dumps({"predictions": [[0.8]] * count}).encode()

    with serving(answer) as url, listening(broker, "scores/lab/decision") as (session, decisions):
        path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in {**entries, "broker": broker.url}.items()))
        node = ["node", "--pair", "breast_cancer", "--broker", broker.url, "--queue", str(queue)]
        node += ["--beta", "0.001", "--every", "100ms"]

        def publish(count):
            for number in range(len(decisions), len(decisions) + count):
                session.publish("scores/lab", json.dumps({"id": f"s{number}", "score": 0.5, "x": [0.1] * 30}), 1)
                assert until(lambda n=number: len(decisions) > n)
            return [one["source"] for one in decisions[-count:]]

        def played(samples):
            """Run the node; (its decisions without an answer, samples in its queue afterwards)."""
            assert main([*node, "--samples", str(samples), "--out", str(tmp_path / "node.jsonl")]) == 0
            samples = Samples(QueueFile(queue, QueueOptions()))
            queued = samples.length
            samples.close()
            return (tmp_path / "node.jsonl").read_text().count('"fallback"'), queued

        with worker(broker.url, "breast_cancer", "--remote", f"{url}/v1/models/big:predict"), gate(path):
            assert publish(4) == ["remote"] * 4
            away[0] = True
            assert publish(12) == ["fallback"] * 12
            assert until(lambda: state(broker).get("queued") == 12 and "later" in state(broker)["unanswered"])
            fallbacks, queued = played(12)
            assert fallbacks == queued > 5
            away[0] = False
            assert until(lambda: state(broker)["queued"] == 0 and state(broker)["late"] == 12)
            assert state(broker)["failed"] == 0 and not state(broker)["unanswered"]
            assert played(40)[1] < queued
