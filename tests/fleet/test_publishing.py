"""A decision is published once the broker has it: late brokers, lost connections, restarts and kills leave none behind."""

import json
import tempfile
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from disks import at_once, read_only  # noqa: F401
from gate_decisions import decision
from gate_faults import OTHER_KILLS, play
from paho.mqtt.client import MQTTMessage
from support import listening, mosquitto, until

from h2t2.cpython.mqtt_session import make_client
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.gate import Gate, GateConfig, door
from h2t2_tools.fleet.gate.gate_backlog import Backlog
from h2t2_tools.fleet.gate.gate_link import GateClient, once, packet_of
from h2t2_tools.fleet.queue.attempts import MAX_ATTEMPTS

pytestmark = pytest.mark.usefixtures("at_once")
MODEL = "def scores(x):\n    return [0.9] * len(x)\n"


def configured(folder, **entries):
    (folder / "mine.py").write_text(MODEL)
    entries = {"topic": "x/+", "key": "$topic.1", "identity": "id", "remote": "mine.py:scores", "folder": folder, **entries}
    return GateConfig(**entries)


HEARD = "x/porch/decision"


def ids_of(heard):
    """The identities of the decisions that a client has heard, in their order."""
    return [one["id"] for one in heard]


def test_the_outbox_keeps_what_the_broker_does_not_have(tmp_path):
    file = Backlog(tmp_path / "gate.db", 10**6, 100.0, 10)
    first, second = (file.decide(decision(n)) for n in (1, 2))
    assert 0 < first.place < second.place and "place" not in first.as_json()
    file.note_published(first.place)
    file.close()
    again = Backlog(tmp_path / "gate.db", 10**6, 100.0, 10)
    assert [(one, one.place) for one in again.unpublished()] == [(decision(2), second.place)]
    again.close()


def reopened(folder):
    return Backlog(folder / "gate.db", 10**6, 100.0, 10)


def test_a_published_decision_whose_row_cannot_be_deleted_is_not_published_again_until_a_restart(tmp_path):
    """The row goes when the file can be written. A gate that is killed before publishes it once more, as docs/gate.md says."""
    file = reopened(tmp_path)
    first, second = (file.decide(decision(n)) for n in (1, 2))
    read_only(file)
    file.note_published(first.place)
    assert file.unpublished() == [second] and not file.is_writable
    killed = reopened(tmp_path)
    assert killed.unpublished() == [first, second]
    killed.close()
    read_only(file, on=False)
    assert until(file.flush)
    file.close()
    file = reopened(tmp_path)
    assert file.unpublished() == [second]
    file.close()


def test_a_decision_that_cannot_be_stored_is_published_once_and_then_remembered(tmp_path):
    file = reopened(tmp_path)
    read_only(file)
    marked = decision(1, mark="1 x")
    waiting = file.decide(marked)
    assert waiting.place < 0 and file.unpublished() == [waiting] and file.decision("x/porch", "1 x") == marked
    read_only(file, on=False)
    assert until(file.flush) and file.unpublished() == [waiting]  # no connection has taken it
    file.note_published(waiting.place)
    assert file.unpublished() == []
    assert file.flush()
    file.close()
    file = reopened(tmp_path)
    assert file.unpublished() == [] and file.decision("x/porch", "1 x") == marked
    file.close()


def test_what_the_broker_has_taken_over_is_known_after_a_kill_until_the_broker_forgets_it(tmp_path):
    file = reopened(tmp_path)
    place = file.decide(decision(1)).place
    file.note_received(place)
    for received in {place}, set():
        again = reopened(tmp_path)
        assert again.received == received and [one.place for one in again.unpublished()] == [place]
        again.forget_received()
        again.close()
    file.close()


def test_packet_ids_of_decisions_are_those_of_no_other_packet():
    client = make_client("", kind=GateClient)
    others = {client._mid_generate() for _ in range(3000)}
    with client.packet_id(packet_of(decision(1, place=7))):
        assert client._mid_generate() == packet_of(decision(2, place=7))
    assert client._mid_generate() in others
    places = range(-100, 70000, 977)
    assert others.isdisjoint({packet_of(decision(1, place=place)) for place in places})


def message(content, mid=1, dup=False):
    one = MQTTMessage(mid, b"x/porch")
    one.payload, one.qos, one.dup = json.dumps(content).encode(), 1, dup
    return one


@contextmanager
def door_of(folder, server, **entries):
    with closing(door.Door(configured(folder, **entries), Endpoint(server.host, server.port))) as opened:
        assert until(opened._link.up.is_set)
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_delivery_that_the_broker_repeats_is_published_once(broker, tmp_path, named):
    """A detector that says the same again gets an answer again, where it names the sample; otherwise it is another sample."""
    content = {"id": "a", "score": 0.5} if named else {"score": 0.5}
    acknowledged = []
    entries = {} if named else {"identity": ""}
    with listening(broker, HEARD) as (_, heard), door_of(tmp_path, broker, **entries) as opened:

        def take(**delivery):
            opened._on_message(message(content, **delivery), lambda: acknowledged.append(1))
            assert until(lambda: not opened._link.unpublished())

        take(mid=1)
        take(mid=1, dup=True)
        assert len(acknowledged) == 2 and opened.gate.samples == 1
        take(mid=2)
        take(mid=2, dup=True)
        take(mid=2)  # the number of another delivery, of a broker that was restarted
        assert len(acknowledged) == 5 and until(lambda: len(heard) == 3)
        assert (opened.gate.samples, opened.gate.repeated) == ((1, 4) if named else (3, 2))
        opened.gate.backlog._base.execute("UPDATE decisions SET at = at - 5000")
        take(mid=2, dup=True)
        assert opened.gate.samples == (1 if named else 3)  # of whatever age: the broker says that it repeats it
        end = decision("end")
        opened._publish(opened.gate.backlog.decide(end))
        assert until(lambda: len(heard) == 4)


@pytest.mark.slow
def test_a_message_that_the_disk_has_not_is_acknowledged_with_its_decision(broker, tmp_path):
    """A killed gate gets it again. Where the disk has the question, it is acknowledged at once."""
    acknowledged, slow = [], "def scores(x):\n    import time\n    time.sleep(3)\n    return [0.9] * len(x)\n"
    entries = {"text": "words", "beta": 0.01, "policy": "h2t2", "epsilon": 1.0, "remote": "slow.py:scores"}
    (tmp_path / "slow.py").write_text(slow)
    with door_of(tmp_path, broker, **entries) as opened:
        for n in range(3):
            if n == 1:
                read_only(opened.gate.backlog)
            one = message({"id": str(n), "score": 0.5, "words": "x"}, mid=n + 1)
            opened._on_message(one, once(partial(acknowledged.append, n)))
            assert len(acknowledged) == 1
        assert until(lambda: acknowledged == [0, 1, 2])


FAULTS = "_send_publish", "_handle_pubrec", "_send_pubrel", "_handle_pubackcomp"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, "note_published"])
def test_a_start_that_dies_within_the_handshake_of_a_decision_repeats_none(broker, tmp_path, monkeypatch, fault):
    """After each packet of the handshake, and before the last note of it."""
    with listening(broker, HEARD) as (_, heard):
        first = door.Door(configured(tmp_path), Endpoint(broker.host, broker.port))
        assert until(first._link.up.is_set)
        link, place = first._link, GateClient if fault in FAULTS else Backlog
        original = getattr(place, fault)

        def dies(client, *arguments, **options):
            if fault == "_send_publish" and options.get("qos", arguments[3] if len(arguments) > 3 else 0) != 2:
                return original(client, *arguments, **options)
            link._closing.set()  # it connects no more
            if fault == "_send_pubrel":
                client.on_received(*arguments)
            raise ConnectionError("killed")

        monkeypatch.setattr(place, fault, dies)
        with suppress(ConnectionError):
            first._publish(first.gate.backlog.decide(decision("once")))
        assert until(lambda: not link.up.is_set())
        monkeypatch.undo()
        assert len(first.gate.backlog.unpublished()) == 1
        first.close()
        with door_of(tmp_path, broker) as second:
            assert until(lambda: not second.gate.backlog.unpublished())
            second._publish(second.gate.backlog.decide(decision("end")))
            assert until(lambda: "end" in ids_of(heard))
        assert ids_of(heard) == ["once", "end"]


@pytest.mark.slow
def test_a_burst_of_decisions_passes_a_broker_that_takes_one_at_a_time(tmp_path):
    """Under MQTT 3.1.1 Mosquitto drops what exceeds `max_inflight_messages`, and says that it has it."""
    limited = mosquitto(tmp_path, "max_inflight_messages 1")
    with limited as server, listening(server, HEARD) as (_, heard), door_of(tmp_path, server) as opened:
        for n in range(50):
            opened._publish(opened.gate.backlog.decide(decision(n)))
        assert until(lambda: len(heard) == 50) and until(lambda: not opened.gate.backlog.unpublished())
        assert ids_of(heard) == [str(n) for n in range(50)]


@pytest.mark.slow
def test_a_broker_that_has_forgotten_the_handshake_gets_the_decision_again(broker, tmp_path):
    """It may not have forwarded it: at least once, where a broker without `persistence` is restarted."""
    config = configured(tmp_path)
    (tmp_path / config.state).mkdir()
    file = Backlog(tmp_path / config.state / "gate.db", 10**6, 100.0, 10)
    file.note_received(file.decide(decision("again")).place)
    file.close()
    with listening(broker, HEARD) as (_, heard), door_of(tmp_path, broker):
        assert until(lambda: ids_of(heard) == ["again"])


def test_decisions_of_another_door_need_no_broker(tmp_path):
    with Gate(configured(tmp_path)) as gate:
        gate.decide("porch", 0.9, identity="a")
        assert gate.backlog.unpublished() == []


@pytest.mark.slow
def test_what_a_start_left_unpublished_the_next_one_publishes_once(broker, tmp_path):
    config = configured(tmp_path)
    (tmp_path / config.state).mkdir()
    file = Backlog(tmp_path / config.state / "gate.db", 10**6, 100.0, 10)
    for n in range(20):
        file.decide(decision(n))
    file.close()
    with listening(broker, HEARD) as (session, heard):
        for _ in range(2):  # the second start finds nothing
            opened = door.Door(config, Endpoint(broker.host, broker.port))
            assert until(lambda: len(heard) >= 20)
            assert until(lambda: not opened.gate.backlog.unpublished())  # noqa: B023
            opened.close()
        assert ids_of(heard) == [str(n) for n in range(20)]


@pytest.mark.slow
def test_a_decision_that_falls_into_a_gap_of_the_connection_is_published_after_it(broker, tmp_path):
    config = configured(tmp_path)
    opened = door.Door(config, Endpoint(broker.host, broker.port))
    broker.stop()
    assert until(lambda: not opened._link.up.is_set())
    kept = opened.gate.backlog.decide(decision("gap"))
    opened._publish(kept)
    assert [one.id for one in opened.gate.backlog.unpublished()] == ["gap"] and opened.unpublished == 0
    broker.start()
    with listening(broker, HEARD) as (_, heard):
        assert until(lambda: not opened.gate.backlog.unpublished())
        opened.close()
    assert set(ids_of(heard)) <= {"gap"}  # the listener may have come after it


@pytest.mark.evidence
@pytest.mark.timeout(3600)
def test_kills_full_disks_clock_steps_and_a_late_broker_under_load(request):
    """Each accepted detection is published once, no label teaches twice, questions are bounded. --kills 200 plays all."""
    kills = request.config.getoption("kills")
    with tempfile.TemporaryDirectory() as folder:  # a short path, for a socket
        record = play(Path(folder), kills)
    print(record)
    assert record.published == dict.fromkeys(range(record.sent), 1)
    assert set(record.taught.values()) == {1} and max(record.asked.values()) <= MAX_ATTEMPTS
    deaths = kills + OTHER_KILLS
    assert len(record.asked.keys() - record.taught.keys()) <= deaths  # an answer that a kill cuts off before it teaches
    assert record.summary["taught"] >= len(record.taught) - 50 * deaths  # labels since the last snapshot
