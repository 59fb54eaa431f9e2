"""The thread behind the dashboard: no message, full disk, lock or damage to its history ends it or makes it silent."""

import json
import random
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from prometheus_client import CollectorRegistry
from states import Followed, say, state
from support import until

from h2t2.cpython.mqtt_session import make_client
from h2t2.link import wire
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.dashboard.watcher import Watcher
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.metrics_server import MetricsServer
from h2t2_tools.fleet.monitoring import fleet_report
from h2t2_tools.fleet.monitoring.follower import Follower
from h2t2_tools.fleet.monitoring.history import History, Line


@pytest.fixture
def watch(watched, clock, tmp_path):
    with closing(Watcher(Followed(watched), History(tmp_path / "h.db"), clock)) as watcher:
        yield watcher


def texts(watch):
    return [line["text"] for line in watch.log("kitchen")]


def test_a_clock_that_was_set_back_does_not_stop_the_pruning(watch, clock, monkeypatch):
    times = []
    monkeypatch.setattr(watch._history, "prune", times.append)
    watch.tick()
    clock.time -= 365 * 86400
    watch.tick()
    assert times == [clock.time + 365 * 86400, clock.time]


def test_a_full_disk_is_said_and_what_it_refused_is_written_afterwards(watched, watch, clock):
    say(watched)
    watch.tick()
    base = watch._history._base
    base.execute(f"PRAGMA max_page_count = {base.execute('PRAGMA page_count').fetchone()[0]}")
    for n in range(400):
        clock.time += 60
        say(watched, samples=1100 + n)
        watched.take(wire.topic("kitchen", "command"), json.dumps({"pause": n, "x": "a" * 200}).encode())
        watch.tick()
        if "full" in watch.trouble:
            break
    assert watch.trouble == "the history is not written: database or disk is full"
    assert watch.devices["kitchen"]["state"]["samples"] == 1100 + n  # the picture moves on
    base.execute("PRAGMA max_page_count = 100000")
    watch.tick()
    assert watch.trouble == "" and texts(watch)[0].startswith(f'{{"pause": {n},')
    assert watch.series("kitchen", 0)[-1]["samples"] == 1100 + n


def test_a_locked_history_is_said_and_delays_nothing_for_long(watched, watch, clock, tmp_path):
    say(watched)
    watch.tick()
    with closing(sqlite3.connect(tmp_path / "h.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        clock.time += 60
        say(watched, "hall")
        watched.take(wire.topic("kitchen", "command"), b'{"pause": 1}')
        watch.tick()
        assert watch.trouble == "the history is not written: database is locked" and "hall" in watch.devices
        other.execute("ROLLBACK")
    watch.tick()
    assert watch.trouble == "" and '{"pause": 1}' in texts(watch) and watch.series("hall", 0)


def test_what_waits_for_the_history_is_bounded(watched, watch, monkeypatch):
    monkeypatch.setattr("h2t2_tools.fleet.dashboard.watcher.PENDING_LINES", 10)
    monkeypatch.setattr(History, "write", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("disk I/O error")))
    for _ in range(12):
        for n in range(1000):
            watched.take(wire.topic("kitchen", "command"), b"%d" % n)
        watch.tick()
    assert len(watch._pending_lines) <= 5000 and "disk I/O error" in watch.trouble


def test_a_defect_of_ours_shows_on_the_page_and_the_next_tick_is_well(watched, watch, monkeypatch, caplog):
    say(watched)
    with monkeypatch.context() as broken:
        broken.setattr(fleet_report, "of_fleet", lambda *_: {}["missing"])
        watch.tick()
        assert "cannot be shown" in watch.trouble and "KeyError" in caplog.text
    watch.tick()
    assert watch.trouble == "" and "kitchen" in watch.devices


def test_one_device_that_no_page_can_show_leaves_the_others(watched, watch, monkeypatch):
    say(watched, "kitchen")
    say(watched, "hall")
    usual = fleet_report.alarms.of_device

    def raising(device, *others, **times):
        if device.name == "hall" and device.state:
            raise OverflowError("Python int too large")
        return usual(device, *others, **times)

    monkeypatch.setattr(fleet_report.alarms, "of_device", raising)
    watch.tick()
    assert watch.devices["kitchen"]["state"] and watch.devices["hall"]["state"] is None
    assert "h2t2/2/hall/state: OverflowError" in watch.refused_text


def test_damaged_histories_are_refused_in_words_or_shown_in_part(watched, clock, tmp_path):
    """150 damages to the file: none ends in a traceback."""
    with closing(History(tmp_path / "whole.db")) as history:
        for n in range(120):
            say(watched, samples=1000 + n)
            history.write(fleet_report.of_fleet(watched, clock.time)["devices"], clock.time)
            history.write([], clock.time, [Line(clock.time, "kitchen", "alarm", "clock: it is off")])
            clock.time += 60
        history._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = (tmp_path / "whole.db").read_bytes()
    refused = troubled = 0
    for seed in range(150):
        rng = random.Random(seed)
        damaged = bytearray(content)
        if seed % 3 == 0:
            del damaged[rng.randrange(len(damaged)) :]
        for _ in range(rng.choice((1, 20, 400))):
            begin = 100 if seed % 2 and len(damaged) > 101 else 0  # every second one has a good header
            if damaged:
                damaged[rng.randrange(begin, len(damaged))] = rng.randrange(256)
        path = tmp_path / f"{seed}.db"
        path.write_bytes(bytes(damaged))
        try:
            watch = Watcher(Followed(watched), History(path), clock)
        except UserError as error:
            assert str(path) in str(error)
            refused += 1
            continue
        say(watched)
        watch.tick()
        json.dumps([watch.series("kitchen", 0), watch.log("kitchen")])
        troubled += bool(watch.trouble)
        assert "kitchen" in watch.devices and "cannot be shown" not in watch.trouble
        watch.close()
        path.unlink()
    assert refused > 20 and troubled > 10


def test_values_of_other_types_in_a_history_are_left_out(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        for _ in range(3):
            say(watched)
            history.write(fleet_report.of_fleet(watched, clock.time)["devices"], clock.time)
            clock.time += 60
        history.write([], clock.time, [Line(clock.time, "kitchen", "alarm", "x")])
        base = history._base
        base.execute("UPDATE minutes SET samples = 'many' WHERE at = (SELECT min(at) FROM minutes)")
        base.execute("UPDATE minutes SET own = 9e999 WHERE at = (SELECT max(at) FROM minutes)")
        for usual in ("[" * 5000, "[1e9]", "{}", b"\xff", "[-1]"):
            base.execute("UPDATE devices SET usual = ?, since = 'x'", (usual,))
            history.recall(watched.devices["kitchen"])
        base.execute("INSERT INTO log (at, device, kind, text) VALUES (1, 'kitchen', 2, x'ff')")
        assert len(history.series("kitchen", 0)) == 1 and [line["text"] for line in history.log("kitchen")] == ["x"]


def test_retained_messages_of_one_device_blind_nobody(broker):
    """Through a real broker: a follower that meets them stays connected, counts them, and hears the others."""
    bad = {
        wire.topic("evil", "state"): json.dumps(state(samples=2**63 - 1)).encode(),
        wire.topic("deep", "state"): b"[" * 60000,
        "h2t2-workers/2/²/w": b"1",
        "h2t2-workers/2/" + "9" * 5000 + "/w/state": b"{}",
        wire.topic("[red]", "status"): b"online " + b"9" * 25,
    }
    client = make_client("")
    client.connect(broker.host, broker.port)
    client.loop_start()
    for topic, payload in bad.items():
        client.publish(topic, payload, 1, True).wait_for_publish(10)
    client.publish(wire.topic("kitchen", "state"), json.dumps(state()).encode(), 1, True).wait_for_publish(10)
    follower = Follower(Endpoint(broker.host, broker.port)).start()
    try:

        def devices_and_refusals():
            with follower.fleet() as fleet:
                return set(fleet.devices), fleet.refused_count

        assert until(lambda: devices_and_refusals() == ({"kitchen", "[red]"}, 4), 20), devices_and_refusals()
        assert follower.trouble == "" and follower._session.connections == 1
    finally:
        follower.close()
        client.disconnect()
        client.loop_stop()


def test_metrics_that_cannot_be_told_are_an_error_and_not_the_end():
    class Broken:
        def collect(self):
            raise OverflowError("no")

    registry = CollectorRegistry()
    registry._collector_to_names[Broken()] = []
    served = MetricsServer(registry, lambda: "the broker: lost ²", "127.0.0.1", 0, lambda: "3 messages were refused")
    try:
        for path, status, words in (
            ("metrics", 500, "OverflowError"),
            ("healthz", 503, "lost ²\n3 messages were refused\n"),
            ("metrics", 500, "cannot"),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{served.port}/{path}", timeout=10)
            assert refused.value.code == status and words in refused.value.read().decode()
    finally:
        served.close()


def test_a_lost_broker_is_said_and_writes_nothing_about_devices(watched, watch, clock):
    say(watched)
    watch.tick()
    watch._follower.trouble = "connection lost"
    watched.lose()
    for _ in range(60):
        clock.time += 60
        watch.tick()
    assert watch.trouble == "broker unreachable since 08:00:00 UTC, data 1 h old (connection lost); connecting again"
    assert texts(watch) == [] and len(watch._history.series("kitchen", 0)) == 1 and watch.devices["kitchen"]["alarms"] == []
    watch._follower.trouble = ""
    watched.listen()
    watch.tick()
    assert watch.trouble == "" and texts(watch) == []


def test_a_real_follower_notices_a_broker_that_goes_and_comes(broker):
    """A hung one is missed within twice the keep-alive, sooner than a device counts as silent."""
    from h2t2_tools.fleet.monitoring import alarms, follower

    assert 2 * follower.KEEP_ALIVE_S < alarms.SILENT_S - 10
    listener = Follower(Endpoint(broker.host, broker.port)).start()

    def lost():
        with listener.fleet() as fleet:
            return fleet.lost

    try:
        assert lost() is None
        broker.stop()
        assert until(lost, 20)
        broker.start()
        assert until(lambda: lost() is None, 30)
    finally:
        listener.close()
