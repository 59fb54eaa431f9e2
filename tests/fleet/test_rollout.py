"""`h2t2 update`: packages to devices over a real broker, in steps, until one reports a failure; the devices' side is the
runtime's own."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from command_line import started
from node_updates import Device, made_key, service, signed
from states import say, state
from support import mosquitto, retained, until

from h2t2.cpython import device_names
from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.link import presence, wire
from h2t2.node.store import file_store
from h2t2_tools.boards.kinds import KINDS, Contents, payload
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.update import delivery, rollout, signed_package
from h2t2_tools.fleet.update.delivery import DELIVERED, INSTALLED, LOST, REFUSED, ROLLED_BACK, TRIAL, Delivery
from h2t2_tools.fleet.update.device_health import Health


class Field:
    """Devices on a broker. bad: those whose trial ends badly; deaf: that never answer; lossy: a third of the chunks is lost;
    slow: whose trial lasts until end_trial(); fading: device -> the one whose sensor fails once that one has kept a package."""

    def __init__(self, broker, folder, key, names, bad=(), deaf=(), lossy=(), slow=(), fading=None):
        self.devices, self.bad, self.deaf, self.lossy, self.slow, self.fading = {}, bad, deaf, lossy, slow, fading or {}
        self.chunks, self.rng, self.on_command = 0, random.Random(4), {}  # on_command: device -> what its first command starts
        for name in names:
            (folder / name).mkdir()
            self.devices[name] = Device(folder / name, key)
        self.session = Session(broker.host, broker.port, self._client, [wire.topic("+", "command")]).start()
        self.session.open()
        for name in names:
            self.session.publish(wire.topic(name, "status"), presence.status("online", 1), 1, True)
            self.tell(name)

    def _client(self):
        client = make_client("")
        client.on_message = self._take
        return client

    def tell(self, name, samples=10, **entries):
        said = state(samples=samples, model=1, update=self.devices[name].updates.report(), **entries)
        self.session.publish(wire.topic(name, "state"), json.dumps(said).encode(), 1, True)

    def remove(self, name):
        for leaf in ("status", "state"):
            self.session.publish(wire.topic(name, leaf), b"", 1, True)

    def _take(self, _client, _data, message):
        name = device_names.device_of(message.topic)
        self.chunks += 1
        self.on_command.pop(name, lambda: None)()
        if name in self.deaf or (name in self.lossy and self.rng.random() < 0.33):
            return
        answer, again = self.devices[name].take(message.payload)
        self.session.publish(wire.topic(name, "answer"), json.dumps(answer).encode(), 0)
        if self.devices[name].updates.news():
            self.tell(name)
        if again:
            self.devices[name].start()
            self.tell(name)
            if name not in self.slow:
                self.end_trial(name)

    def end_trial(self, name):
        self.devices[name].updates.look(service(errors=9 if name in self.bad else 0))
        self.tell(name, 100)
        if name in self.fading:
            self.tell(self.fading[name], 100, sensor_errors=50)


@contextmanager
def field(tmp_path, key, names, **trouble):
    with mosquitto(tmp_path) as broker:
        made = Field(broker, tmp_path, key, names, **trouble)
        try:
            yield broker, made
        finally:
            made.session.close()


def updated(broker, tmp_path, key, *words, counter=7):
    path = tmp_path / f"{counter}.h2u"
    path.write_bytes(signed(key, counter).content)
    command = ["update", *words[:1], str(path), "--soak", "0", *words[1:], "--broker", broker.url]
    return main([*command, "--json", str(tmp_path / "report.json")])


def report(tmp_path):
    return json.loads((tmp_path / "report.json").read_text())


@pytest.mark.parametrize(
    ("devices", "tenth"), [(1, 1), (2, 1), (9, 1), (10, 1), (11, 2), (19, 2), (20, 2), (21, 3), (30, 3), (70, 7), (1001, 101)]
)
def test_a_tenth_of_the_devices_is_rounded_up(devices, tenth):
    assert rollout.device_counts(devices, at_once=False) == [1, tenth, devices]
    assert rollout.device_counts(devices, at_once=True) == [devices]


@pytest.mark.whole
def test_to_one_a_tenth_and_all(tmp_path, key, capsys, monkeypatch):
    monkeypatch.setattr(delivery, "AGAIN_S", 0.3)
    names = [f"s-{n:02}" for n in range(20)]
    with field(tmp_path, key, [*names, "other"], lossy=("s-03",)) as (broker, made):
        assert updated(broker, tmp_path, key, "s-*") == 0
        err = capsys.readouterr().err
        assert "1 of 20 devices: s-00" in err and "1 of 20 devices: s-01" in err and "18 of 20 devices: s-02" in err
        told = report(tmp_path)
        assert {one["outcome"] for one in told["devices"]} == {INSTALLED} and not told["left"] and not told["stopped"]
        assert made.devices["s-19"].updates.report()["counter"] == 7 and made.devices["other"].updates.report()["counter"] == 0
        sent = made.chunks
        assert updated(broker, tmp_path, key, "s-*") == 0  # they have it: nothing is sent again
        assert made.chunks == sent and {one["outcome"] for one in report(tmp_path)["devices"]} == {INSTALLED}


@pytest.mark.slow
def test_it_stops_where_one_goes_back(tmp_path, key, capsys):
    names = [f"s-{n:02}" for n in range(20)]
    with field(tmp_path, key, names, bad=("s-01",)) as (broker, made):
        assert updated(broker, tmp_path, key, "s-*") == 1
        assert "not every device has kept the package; 18 devices were left as they are" in capsys.readouterr().err
        told = report(tmp_path)
        assert (
            [one["outcome"] for one in told["devices"]] == [INSTALLED, ROLLED_BACK]
            and told["stopped"]
            and len(told["left"]) == 18
        )
        assert told["devices"][1]["why"] == "9 exceptions" and made.devices["s-05"].updates.report()["tried"] == 0


@pytest.mark.whole
def test_it_stops_where_a_device_fails_after_it_has_kept_the_package(tmp_path, key, capsys):
    """The first of three, while it is watched; its table says why, and the others are left as they are."""
    with field(tmp_path, key, ["a", "b", "c"], fading={"a": "a"}) as (broker, made):
        assert updated(broker, tmp_path, key, "*", "--patience", "2") == 1
        told = report(tmp_path)
    assert [(row["outcome"], row["alarms"]) for row in told["devices"]] == [
        (INSTALLED, ["50 errors of its sensor, 0 samples meanwhile"])
    ]
    assert told["stopped"] and told["left"] == ["b", "c"] and made.devices["b"].updates.report()["tried"] == 0
    said = capsys.readouterr()
    assert "alarms" in said.out and "50 errors of its sensor" in said.out
    assert "not every device has kept the package without an alarm; 2 devices were left" in said.err


@pytest.mark.whole
@pytest.mark.parametrize("last, kept", [("b", 2), ("c", 12)])
def test_earlier_groups_are_looked_at_again(tmp_path, key, last, kept):
    """The first device fails while the second group, or the third and last, is tried: its alarm stops the rollout, or is its
    result."""
    with field(tmp_path, key, "abcdefghijkl", fading={last: "a"}) as (broker, _):
        assert updated(broker, tmp_path, key, "*", "--patience", "3") == 1
    told = report(tmp_path)
    assert [row["outcome"] for row in told["devices"]] == [INSTALLED] * kept and len(told["left"]) == 12 - kept
    assert told["stopped"] and [row["device"] for row in told["devices"] if row["alarms"]] == ["a"]


KEPT_7 = {"counter": 7, "tried": 7, "trial": 0, "seconds": 0, "said": "kept: 50 samples"}


@pytest.mark.parametrize(
    "before, since, now, alarm",
    [
        ({}, {}, {"samples": 2000, "uptime_s": 200}, None),
        ({}, {}, {"link": "down"}, "it cannot reach the broker"),
        ({"link": "down"}, {"link": "down"}, {"link": "down"}, None),  # it could not before the rollout either
        ({}, {}, {"uptime_s": 160}, "no decision for 60 s"),
        ({}, {}, {"sensor_errors": 4}, "4 errors of its sensor, 0 samples meanwhile"),
        ({"sensor_errors": 4}, {"sensor_errors": 4}, {"sensor_errors": 4}, None),
        ({}, {}, {"sensor_errors": 20, "samples": 2000}, None),
        ({}, {}, {"errors": 4}, "4 errors of its loop, 0 samples meanwhile"),
        ({}, {}, {"update": {**KEPT_7, "counter": 0, "said": "back: gone"}}, "package 7 is not in force any more: back: gone"),
        ({}, {}, {"program": "0" * 16}, "it runs another program, 0000000000000000, than the package's"),
        ({}, {}, {"boot": 8, "uptime_s": 1, "samples": 0, "sensor_errors": 3}, None),
    ],
)
def test_how_a_device_does_that_has_kept_a_package(watched, key, tmp_path, before, since, now, alarm):
    app = tmp_path / "app.py"
    app.write_text("def sense():\n    pass\ndef act(decision):\n    pass\n")
    say(watched, "d", **before)
    health = Health(watched.devices["d"], signed(key, app=app))
    health.since = device_report(**{"update": KEPT_7, **since})
    say(watched, "d", **{"update": KEPT_7, **now})
    assert health.look() == ([alarm] if alarm else [])


@pytest.mark.whole
def test_another_package_with_the_same_counter_is_no_success(tmp_path, key):
    with field(tmp_path, key, ["a"]) as (broker, made):
        assert updated(broker, tmp_path, key, "a") == 0 == updated(broker, tmp_path, key, "a")
        (tmp_path / "other.h2u").write_bytes(signed(key, 7, tests=8).content)
        command = ["update", "a", str(tmp_path / "other.h2u"), "--broker", broker.url]
        assert main([*command, "--json", str(tmp_path / "report.json")]) == 1
        (row,) = report(tmp_path)["devices"]
    assert (row["outcome"], row["why"]) == (REFUSED, OTHER)


def test_a_device_that_falls_silent_after_it_has_kept_a_package(watched, clock, key, monkeypatch):
    """What was retained before the rollout listened says nothing of its silence."""
    monkeypatch.setattr("time.time", clock)
    say(watched, "d", status=b"online 7", retained=True)
    say(watched, "d", retained=True, update=KEPT_7)
    health = Health(watched.devices["d"], signed(key))
    clock.time += 1000
    assert health.look() == []
    say(watched, "d", update=KEPT_7)
    assert health.look() == []
    clock.time += 46
    (alarm,) = health.look()
    assert "no message for 46 s" in alarm


@pytest.mark.whole
def test_those_that_do_not_answer_or_refuse(tmp_path, key):
    with field(tmp_path, key, ["a", "b"], deaf=("a",)) as (broker, made):
        assert updated(broker, tmp_path, key, "a", "--patience", "4") == 1
        assert "asking, and then silent for 4 s" in report(tmp_path)["devices"][0]["why"]
        assert updated(broker, tmp_path, made_key(tmp_path, "stranger"), "b") == 1
        assert report(tmp_path)["devices"][0]["why"] == "the package is not signed with the key that this node trusts"
        assert updated(broker, tmp_path, key, "nobody") == 2


@pytest.mark.slow
def test_a_device_that_is_removed_meanwhile_is_lost_alone(tmp_path, key):
    with field(tmp_path, key, ["a", "b"], deaf=("a",)) as (broker, made):
        made.on_command["a"] = lambda: made.remove("a")
        assert updated(broker, tmp_path, key, "*", "--at-once") == 1
    lost, kept = report(tmp_path)["devices"]
    assert (lost["outcome"], lost["why"]) == (LOST, "it was removed from the broker") and kept["outcome"] == INSTALLED


@pytest.mark.slow
def test_a_broker_that_goes_leaves_the_report_of_what_was_delivered(tmp_path, key, monkeypatch, capsys):
    monkeypatch.setattr(rollout, "BROKER_S", 0.2)
    with field(tmp_path, key, ["a", "b"], deaf=("b",)) as (broker, made):
        made.on_command["b"] = lambda: threading.Thread(target=broker.stop).start()
        assert updated(broker, tmp_path, key, "*") == 1
    told = report(tmp_path)
    assert [row["outcome"] for row in told["devices"]] == [INSTALLED, LOST] and "the broker is away" in told["trouble"]
    assert "the broker is away" in capsys.readouterr().err


@pytest.mark.slow
def test_trials_are_shown_while_they_last(tmp_path, key, monkeypatch, capsys):
    """The device is on trial for three rounds of news."""
    told = rollout.trials
    monkeypatch.setattr(rollout, "NEWS_S", 0.0)
    with field(tmp_path, key, ["a"], slow=("a",)) as (broker, made):
        seen = []

        def trials(deliveries, clock_s):
            seen.append(text := told(deliveries, clock_s))
            if len([line for line in seen if line]) == 3:
                made.end_trial("a")
            return text

        monkeypatch.setattr(rollout, "trials", trials)
        assert updated(broker, tmp_path, key, "a") == 0
    err = capsys.readouterr().err
    assert err.count("a on trial: 10 of 50 samples, 100 of 0 s; about 6.7 min to go. Ctrl-C ends this") == 3, err


def test_the_trial_that_ends_last_is_shown(key):
    made, update = signed(key), {"counter": 7, "tried": 7, "trial": 500, "seconds": 600, "said": ""}
    deliveries = [Delivery(made, name, 10, 1000) for name in "abcd"]
    assert rollout.trials(deliveries, 100.0) == ""
    for one, (samples, uptime_s) in zip(deliveries, [(400, 100), (0, 30), (250, 400)]):
        one.take_state(device_report(update=update, samples=samples, uptime_s=uptime_s), 100.0)
    news = rollout.trials(deliveries, 100.0)
    assert news.startswith("b and 2 more on trial: 0 of 500 samples, 30 of 600 s; about 9.5 min to go")
    deliveries[1].take_state(device_report(update=update, samples=1, uptime_s=60), 130.0)
    assert "about 8.3 h to go" in rollout.trials(deliveries, 130.0)
    assert "; the end is due. Ctrl-C" in rollout.trials(deliveries, 40000.0)


OTHER = "it knows another package with the counter 7: sign this one again, with a higher one"


def device_report(**entries):
    """What a device says of itself, as the fleet's owner reads it."""
    return parse_state(json.dumps(state(**entries)).encode())


def test_what_stands_in_the_way_is_said_before_anything_is_sent(key):
    made = signed(key)
    for change, why in (
        ({}, "no update_key"),
        ({"update": {"counter": 0, "tried": 9, "trial": 0, "said": ""}}, "tried package 9 already, this one is 7"),
        ({"update": {"counter": 5, "tried": 5, "trial": 100, "said": ""}}, "package 5 is on trial there"),
        (
            {"update": {"counter": 0, "tried": 0, "trial": 0, "said": ""}, "model": 4},
            "asks model 4, the package is of model 1",
        ),
        ({"update": {"counter": 0, "tried": 0, "trial": 0, "said": ""}, "bits": 6}, "6 score bits"),
        ({"update": {"counter": 0, "tried": 7, "trial": 0, "said": "back: 3 exceptions"}}, "3 exceptions"),
        ({"update": {"counter": 7, "id": "00000001", "tried": 7, "trial": 0, "said": "kept"}}, OTHER),
        ({"update": {"counter": 0, "tried": 7, "tried_id": "00000001", "trial": 0, "said": "back: 3 exceptions"}}, OTHER),
        ({"update": {"counter": 7, "id": "00000001", "tried": 9, "tried_id": "00000002", "trial": 0, "said": ""}}, OTHER),
    ):
        one = Delivery(made, "d", 10, 10)
        one.check_before(device_report(**{"model": 1, **change}), 0.0)
        assert one.phase in (REFUSED, ROLLED_BACK) and why in one.reason, (one, why)
    one = Delivery(made, "d", 10, 10)
    one.check_before(None, 0.0)
    assert one.phase == REFUSED


def test_a_delivery_asks_again_and_gives_up(key):
    made = signed(key)
    one = Delivery(made, "d", 10, 100)
    fresh = {"counter": 0, "tried": 0, "trial": 0, "said": ""}
    one.check_before(device_report(model=1, update=fresh), 100.0)
    assert one.next_payloads(True, 100.0) == [made.question()] and one.next_payloads(True, 101.0) == []
    for junk in (b"", b"[]", b"{", b'{"id": 1, "next": -1}', b'{"id": "u0", "ok": true, "why": "", "next": 5}'):
        one.take_answer(junk, 101.0)
    assert one.next_payloads(True, 104.0) == [made.question()]
    answer = {"id": f"u{made.id:08x}", "ok": True, "why": "", "next": 192}
    one.take_answer(json.dumps(answer).encode(), 105.0)
    assert (
        one.next_payloads(True, 105.0) == [made.chunk(192 * n) for n in (1, 2, 3, 4)] and one.next_payloads(True, 105.0) == []
    )
    one.take_answer(json.dumps({**answer, "next": 10**9}).encode(), 106.0)
    assert one.phase == DELIVERED and one.received_bytes == len(made.content)
    assert one.next_payloads(True, 107.0) == []
    one.take_state(device_report(update={**fresh, "counter": 7, "tried": 7, "trial": 50}), 108.0)
    assert one.phase == TRIAL
    one.next_payloads(False, 150.0)
    assert one.phase == TRIAL  # it may be away for a while
    one.next_payloads(True, 300.0)
    assert one.phase == LOST and "in 100 s" in one.reason


def test_a_broker_that_is_not_there(tmp_path, key, capsys):
    (tmp_path / "a.h2u").write_bytes(signed(key).content)
    assert main(["update", "d", str(tmp_path / "a.h2u"), "--broker", "mqtt://localhost:1"]) == 1
    (tmp_path / "a.h2u").write_bytes(b"nothing")
    assert main(["update", "d", str(tmp_path / "a.h2u"), "--broker", "mqtt://localhost:1"]) == 2
    assert "no update package" in capsys.readouterr().err


def test_signing_refuses_what_cannot_be(tmp_path, key, capsys):
    command = ["update", "sign", "breast_cancer", "--key", str(key.private), "--out", str(tmp_path / "a.h2u")]
    assert main([*command, "--trial", str(1 << 20)]) == 2 and "want a whole number, 1 to" in capsys.readouterr().err
    assert (
        main(["update", "sign", "ten_digits", "--key", str(key.private), "--beta", ".1", "--out", str(tmp_path / "b.h2u")]) == 2
    )
    assert "has 10 classes" in capsys.readouterr().err
    assert main([*command[:3], str(tmp_path / "none"), *command[4:]]) == 2
    app = tmp_path / "app.py"
    for text, mode, words in (
        ("", 0o600, "only its owner may read it"),
        ('"""-----BEGIN PRIVATE KEY-----"""', 0o644, "a private key"),
    ):
        app.write_text(f"def sense(): pass\ndef act(decision): pass\n{text}\n")
        app.chmod(mode)
        assert main([*command, "--app", str(app)]) == 2 and words in capsys.readouterr().err
    assert main([*command, "--counter", "3", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counter"] == 3 and told["model"] == pairs.load("breast_cancer").info.model_id and told["prior"]


def delivered(broker, tmp_path, made, *words):
    """Deliver a package to devices; return the exit status and the outcomes by device."""
    path = tmp_path / "made.h2u"
    path.write_bytes(made.content)
    status = main(["update", *words, str(path), "--soak", "0", "--broker", broker.url, "--json", str(tmp_path / "report.json")])
    return status, {row["device"]: row["outcome"] for row in report(tmp_path)["devices"]}


@pytest.mark.whole
def test_a_key_is_replaced_in_steps_and_the_old_one_signs_nothing_more(tmp_path, key, capsys):
    new = made_key(tmp_path, "second")
    names = [f"s-{n:02}" for n in range(12)]
    with field(tmp_path, key, names, lossy=["s-04"]) as (broker, made):
        rotation = signed_package.rotation(new.public, key.private, 5)
        assert delivered(broker, tmp_path, rotation, "s-*") == (0, dict.fromkeys(names, INSTALLED))
        assert [row["why"] for row in report(tmp_path)["devices"]] == [f"it trusts key {new.id}"] * 12
        assert f"key {new.id}" in capsys.readouterr().out
        chunks = made.chunks
        assert delivered(broker, tmp_path, rotation, "s-*")[0] == 0 and made.chunks == chunks  # nothing is sent again
        assert delivered(broker, tmp_path, signed(key, 7), "s-*") == (1, {"s-00": REFUSED})
        assert report(tmp_path)["devices"][0]["why"] == "the package is not signed with the key that this node trusts"
        assert delivered(broker, tmp_path, signed(new, 7), "s-*")[0] == 0


OLD_KEY = {"counter": 0, "tried": 0, "trial": 0, "said": "", "key": "0" * 16, "key_counter": 4}


@pytest.mark.parametrize(
    "entries, phase, why",
    [
        ({}, REFUSED, "its configuration has no update_key"),
        ({"update": {**OLD_KEY, "key": ""}}, REFUSED, "its runtime knows no packages that replace a key"),
        ({"update": {**OLD_KEY, "key_counter": 5}}, REFUSED, "which came with the counter 5"),
        ({"update": OLD_KEY}, delivery.ASKING, ""),
    ],
)
def test_what_stands_in_the_way_of_a_key(key, tmp_path, entries, phase, why):
    made = signed_package.rotation(made_key(tmp_path, "second").public, key.private, 5)
    one = delivery.KeyDelivery(made, "d", 5, 60)
    one.check_before(device_report(**entries), 100.0)
    assert one.phase == phase and why in one.reason
    other = {**OLD_KEY, "key": made.new_key, "key_counter": 5}
    one = delivery.KeyDelivery(made, "d", 5, 60)
    one.check_before(device_report(update=other), 100.0)
    assert (one.phase, one.is_transferred) == (INSTALLED, False)


# No decision costs more than a trial may cost above the time before it: none is judged by how fast a policy that begins anew
# learns while others hold the processor.
LOW_COSTS = ["--beta", "0.002", "--delta-fp", "0.01", "--delta-fn", "0.01"]
OWN_PROGRAM = ["--app", "app.py", "--update-app", "--update-key", "fleet.pub"]


def device(broker, folder, *words, **streams):
    """A node of this machine, device d, that takes updates in a folder."""
    return started("node", "--broker", broker.url, "--device", "d", "--snapshot", folder / "st", *words, cwd=folder, **streams)


@pytest.mark.whole
def test_h2t2_node_starts_again_with_it(broker, rdl, tmp_path, key):
    """On a Pi: within its process, with the learned state of its own, and back to the older one's when the trial fails."""
    (tmp_path / "fleet.pub").write_bytes(key.private.with_suffix(".pub").read_bytes())
    words = ["--update-key", tmp_path / "fleet.pub", "--samples", 1000000, "--deadline", "20s", *LOW_COSTS]
    with device(broker, tmp_path, *words) as node:
        assert until(lambda: said_by(broker))
        assert updated(broker, tmp_path, key, "d") == 0
        assert report(tmp_path)["devices"][0]["outcome"] == INSTALLED and (tmp_path / "st.u1.h2m").exists()
        new = made_key(tmp_path, "second")
        assert delivered(broker, tmp_path, signed_package.rotation(new.public, key.private, 5), "d") == (0, {"d": INSTALLED})
        assert delivered(broker, tmp_path, signed(key, 8), "d") == (1, {"d": REFUSED})
        (tmp_path / "8.h2u").write_bytes(signed(new, 8, shares=[0] * 15 + [1]).content)
        assert main(["update", "d", str(tmp_path / "8.h2u"), "--broker", broker.url]) == 1
        assert until(lambda: not (tmp_path / "st.u2.h2m").exists(), 30) and (tmp_path / "st.u1.h2m").exists()
    assert node.returncode == 0
    assert f"key {new.id} signs updates from now on, no longer {key.id}" in node.log
    assert "update 7 kept" in node.log and "update 8 back: its scores drift" in node.log and "Traceback" not in node.log


ROWS = pairs.load("breast_cancer").x[:50].tolist()
PROGRAM = f"""import itertools
rows = itertools.cycle({ROWS})
patient = True
fails = {{fails}}
def sense():
    if fails:
        raise OSError("version {{version}} has no sensor")
    return next(rows)
def act(decision):
    pass
"""


@pytest.mark.whole
def test_h2t2_node_runs_the_program_of_the_package_in_force(broker, rdl, tmp_path, key):
    """In one process: versions 1 to 5, of which the third fails and the fourth comes into its slot. Each package has the same
    model and a trial of 300 samples."""
    (tmp_path / "app.py").write_text(PROGRAM.format(version=0, fails=False))
    (tmp_path / "fleet.pub").write_bytes(key.private.with_suffix(".pub").read_bytes())
    words = ["--every", "5ms", *LOW_COSTS, "--deadline", "30s", *OWN_PROGRAM]
    with device(broker, tmp_path, *words) as node:
        assert until(lambda: (said := said_by(broker)) and said.replies >= 30)  # there is something to compare with
        for version in (1, 2, 3, 4, 5):
            app = tmp_path / f"version{version}.py"
            app.write_text(PROGRAM.format(version=version, fails=version == 3))
            sign = ["update", "sign", "breast_cancer", "--key", key.private, "--counter", version, "--app", app]
            sign += ["--trial", 300, "--trial-time", 0, "--out", tmp_path / "p.h2u"]
            assert main([*map(str, sign)]) == 0
            outcome = main(["update", "d", str(tmp_path / "p.h2u"), "--broker", broker.url, "--soak", "0"])
            assert outcome == (version == 3), version
            runs = tmp_path / "version2.py" if version == 3 else app
            digest = hashlib.sha256(runs.read_bytes()).hexdigest()[:16]
            assert until(lambda: (said := said_by(broker)) and said.program == digest, 30), version  # noqa: B023
    assert "back: sense() failed 4 times in 4 tries, 0 of 1000 before" in node.log and "Traceback" not in node.log
    assert "version 3 has no sensor" in node.log and "version 4" not in node.log


@pytest.mark.whole
def test_h2t2_node_that_is_stopped_in_a_trial_goes_on_with_it_and_one_that_is_killed_goes_back(broker, tmp_path, key):
    """Real signals: four times SIGTERM take no package back; three times SIGKILL do."""

    def record():
        content = file_store(str(tmp_path / "st.update")).load()
        return json.loads(content) if content else {}

    def stopped_by(number):
        """Start the node, bring the package if it has none, let the node decide, and stop it."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path) as node:
            assert "start" in node.stdout.readline()
            if not record():
                assert main(["update", "d", str(tmp_path / "p.h2u"), "--broker", broker.url, "--wait", "1"]) == 1
                assert any("start" in line for line in node.stdout)
            assert [node.stdout.readline() for _ in range(5)][-1]
            node.send_signal(number)
            node.stdout.read()
        assert node.returncode == (0 if number == signal.SIGTERM else -number)

    (tmp_path / "p.h2u").write_bytes(signed(key, seconds=86400).content)
    command = [sys.executable, "-m", "h2t2_tools", "node", "--broker", broker.url, "--device", "d", "--every", "50ms"]
    command += ["--pair", "breast_cancer", "--update-key", str(key.public), "--snapshot", str(tmp_path / "st")]
    samples = 0
    for _ in range(4):
        stopped_by(signal.SIGTERM)
        assert (record()["said"], record()["starts"]) == ("on trial", 0) and record()["past"]["samples"] > samples
        samples = record()["past"]["samples"]
    for starts in (1, 2, 3):
        stopped_by(signal.SIGKILL)
        assert (record()["said"], record()["starts"]) == ("on trial", starts)
    stopped_by(signal.SIGTERM)
    assert record()["said"] == "back: it was started 3 times and did not come to an end" and not record()["counter"]


IMPATIENT = """import sys
from h2t2.node import update
from h2t2_tools.fleet import hang
update.QUIET_S = update.UNKNOWN_S = 1
hang.SPARE_S = 0.5
from h2t2_tools.cli.main import main
sys.exit(main())"""


@pytest.mark.whole
@pytest.mark.parametrize("where", ["sense", "setup"])
def test_h2t2_node_goes_back_from_a_program_that_hangs(broker, tmp_path, key, where):
    """Its process starts again by itself, as a board does by its watchdog; after three starts the program before runs."""
    (tmp_path / "app.py").write_text(PROGRAM.format(version=0, fails=False))
    (tmp_path / "fleet.pub").write_bytes(key.private.with_suffix(".pub").read_bytes())
    hangs = tmp_path / "hangs.py"
    hangs.write_text(PROGRAM.format(version=1, fails=False) + f"def {where}(*_):\n    import time\n    time.sleep(1e6)\n")
    (tmp_path / "p.h2u").write_bytes(signed(key, 1, app=hangs).content)
    with device(broker, tmp_path, "--every", "20ms", *OWN_PROGRAM, program=[sys.executable, "-c", IMPATIENT]) as node:
        assert until(lambda: (said := said_by(broker)) and said.samples > 0)
        assert main(["update", "d", str(tmp_path / "p.h2u"), "--broker", broker.url, "--wait", "100"]) == 1
        digest = hashlib.sha256((tmp_path / "app.py").read_bytes()).hexdigest()[:16]
        assert until(lambda: (said := said_by(broker)) and said.program == digest and said.samples > 0)
        assert said_by(broker).update.said == "back: it was started 3 times and did not come to an end"
    assert node.log.count("the program has not returned for") == 3 and "Traceback" not in node.log


def said_by(broker):
    """The state of device d, or None."""
    text = retained(broker, wire.topic("d", "state"))
    return parse_state(text.encode()) if text else None


@pytest.mark.slow
def test_the_microbit_has_no_room_for_it(key):
    pair = pairs.load("breast_cancer")
    public = str(key.private.with_suffix(".pub"))
    config = NodeConfig(remote_shape=[30], model_id=1, policy="h2t2", exploration="epsilon", update_key=public)
    with pytest.raises(UserError, match="update_key: the micro:bit has no room for updates"):
        payload(KINDS["microbit"], Contents(pair.folder / "ldl.h2m", config, pair.folder / "samples.bin"))
    files = payload(KINDS["pico_w"], Contents(pair.folder / "ldl.h2m", config))
    assert {"h2t2/node/update.mpy", "h2t2/node/arrival.mpy", "h2t2/node/package.mpy", "h2t2/node/slots.mpy"} <= set(files)
    assert json.loads(files["config.json"])["update"] == {"key": key.modulus, "max_bytes": 262144, "app": False}
    without = payload(KINDS["pico_w"], Contents(pair.folder / "ldl.h2m", NodeConfig(remote_shape=[30], model_id=1)))
    assert "h2t2/node/update.mpy" not in without
    with pytest.raises(UserError, match="also give `snapshot`"):
        NodeConfig(remote_shape=[30], model_id=1, update_key=public, snapshot="").content()
