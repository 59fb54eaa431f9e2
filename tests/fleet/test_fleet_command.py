"""`h2t2 fleet` against real nodes, a real worker and a real broker."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import pseudo_terminal
import pytest
from command_line import H2T2, h2t2, ran
from support import hears_ctrl_c, until

from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.link import wire
from h2t2_tools.common.places import models
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.monitoring.follower import Follower
from h2t2_tools.fleet.rdl import telemetry


def node(url, name, out, *options):
    """A node of 20 samples a second that goes on until it is ended."""
    command = [*H2T2, "node", "--broker", url, "--device", name, "--samples", "100000", "--every", "50ms", *options]
    return subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL)


def decided(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.whole
def test_it_shows_what_nodes_say_and_what_is_wrong(broker, rdl, tmp_path):
    outs = {name: tmp_path / name for name in ("kitchen", "hall")}
    with (
        node(broker.url, "kitchen", outs["kitchen"]) as kitchen,
        node(broker.url, "hall", outs["hall"], "--pair", "digits") as hall,  # nobody serves its model
    ):
        try:
            assert until(lambda: all(decided(out) > 60 for out in outs.values()), 60)
            run = ran([*H2T2, "fleet", "--broker", broker.url, "--json", "-", "--listen", 12])
            one = h2t2("fleet", "kitchen", "--broker", broker.url, "--listen", 1)
            assert one.returncode == 0 and "kitchen" in one.stdout and "asking always would cost 0.200" in one.stdout, (
                one.stderr
            )
            nobody = h2t2("fleet", "attic", "--broker", broker.url, "--listen", 1)
            assert nobody.returncode == 1 and "there are: hall, kitchen" in nobody.stderr
        finally:
            for process in (kitchen, hall):
                process.send_signal(signal.SIGTERM)
    summary = json.loads(outs["kitchen"].read_text().splitlines()[-1])["summary"]
    after = h2t2("fleet", "--broker", broker.url, "--json", "-", "--listen", 1)
    report = json.loads(run.stdout)
    assert [one["device"] for one in report["devices"]] == ["hall", "kitchen"]  # alarms first
    hall_seen, kitchen_seen = report["devices"]
    assert "unanswered" in [alarm["kind"] for alarm in hall_seen["alarms"]]
    assert kitchen_seen["online"]
    assert {alarm["kind"] for alarm in kitchen_seen["alarms"]} <= {"fallbacks"}  # a busy machine's node may lack time to ask
    assert kitchen_seen["rates"]["per_s"] > 0 and kitchen_seen["costs"]["own"] > 0
    (serving,) = report["workers"]
    assert serving["per_s"] > 0 and serving["p99_ms"] >= serving["p50_ms"] > 0
    assert serving["state"]["version"] == telemetry.digest(models() / "breast_cancer/rdl.tflite") != ""
    state = kitchen_seen["state"]
    assert sum(state["scores"]) == state["samples"] <= summary["samples"]
    assert sum(state["answered"]) == state["replies"]
    ended = {one["device"]: one for one in json.loads(after.stdout)["devices"]}
    assert [alarm["kind"] for alarm in ended["kitchen"]["alarms"]] == ["offline"]
    assert ended["kitchen"]["state"]["samples"] == summary["samples"]


@pytest.mark.slow
def test_on_a_terminal_it_is_live_until_ctrl_c(broker, tmp_path):
    pseudo_terminal.need()
    with node(broker.url, "kitchen", tmp_path / "out") as kitchen:
        ours, theirs = pty.openpty()
        fleet = subprocess.Popen(
            [*H2T2, "fleet", "--broker", broker.url],
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "200"},
            preexec_fn=hears_ctrl_c,
        )
        os.close(theirs)
        try:
            said = b""
            end = time.monotonic() + 60
            while b"kitchen" not in said and time.monotonic() < end:
                if select.select([ours], [], [], 1)[0]:
                    said += os.read(ours, 65536)
            assert b"kitchen" in said and b"1 device" in said, said[-2000:]
            fleet.send_signal(signal.SIGINT)
            while until(lambda: select.select([ours], [], [], 0)[0], 1):  # a terminal that nobody reads would stop it
                try:
                    os.read(ours, 65536)
                except OSError:
                    break
            assert fleet.wait(30) == 0
        finally:
            fleet.kill()
            kitchen.send_signal(signal.SIGTERM)
            os.close(ours)


def test_a_broker_that_is_not_there_is_said():
    run = h2t2("fleet", "--broker", "mqtt://127.0.0.1:1")
    assert run.returncode == 1 and "not reachable" in run.stderr and "Traceback" not in run.stderr


def test_a_broker_that_tells_of_thousands_at_once(broker):
    """What comes is read together ten times a second, and not less where more is waiting."""
    telling = Session(broker.host, broker.port, lambda: make_client(""), ["none"]).start()
    telling.open()
    for n in range(3000):
        telling.publish(wire.topic(f"d{n}", "status"), b"online 7", 0, True)
    follower = Follower(Endpoint(broker.host, broker.port)).start()

    def device_count():
        with follower.fleet() as fleet:
            return len(fleet.devices)

    assert until(lambda: device_count() == 3000, 30)
    telling.publish(wire.topic("last", "status"), b"online 7", 0, True)
    assert until(lambda: device_count() == 3001, 30)
    follower.close()
    telling.close()
