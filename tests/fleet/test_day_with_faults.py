"""A day with faults: messages as of Frigate and of BirdNET-Go on one Mosquitto, a gate for each, and one server behind both.

The server loads its model slowly, fails on one picture, has another only after a while, thinks, is away for ten minutes,
and hangs. The machine's clock jumps, and a detector's counter begins anew. Waits follow a clock of the test's.
"""

import base64
import itertools
import json
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest
from http_server import serving
from support import subscribed, until

from h2t2_lab.gate_day.messages import bird, clip, event, jpeg
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.gate import presets
from h2t2_tools.fleet.gate.door import Door
from h2t2_tools.fleet.monitoring import alarms
from h2t2_tools.fleet.monitoring.state import State
from h2t2_tools.fleet.monitoring.watched_device import Device

pytestmark = pytest.mark.slow
MARK = b"of the sample "
PICTURE, CLIP = jpeg() + MARK, clip(800) + MARK  # a name follows
SECOND_LIFE = " of a second life"
OUTAGE_S, MONTH_S, DEADLINE_S = 600, 30 * 86400, 4.0
END_S = 10 * (DEADLINE_S + 2)  # ten times what a gate may need to end, as tests run beside load; the server hangs for longer


class Server:
    """A detector's web server, a language model and a model of the open inference protocol.

    Attributes:
        asked, answered: questions about each sample, and those that had a usable answer.
        loaded: set once the language model is loaded.
        released: ends what hangs.
        away: whether the models are away.
        late: samples whose snapshot is missing -> how often it will be.
        life: of the detectors' databases: another one when a counter begins anew.
        poison, thinking, hanging: samples on which the server fails, thinks without an answer once, and hangs once.
    """

    def __init__(self):
        self.asked, self.answered = Counter(), Counter()
        self.loaded, self.released = threading.Event(), threading.Event()
        self.away, self.life = False, ""
        self.late, self.poison, self.thinking, self.hanging = {}, set(), set(), set()

    def __call__(self, path, body, _headers):
        if path.startswith("/api/"):
            return self.file(path.split("/")[3 if path.endswith(".jpg") else -1], PICTURE if path.endswith(".jpg") else CLIP)
        if path.endswith("/chat/completions"):
            self.loaded.wait(120)
            url = json.loads(body)["messages"][0]["content"][1]["image_url"]["url"]
            return self.label(url.partition(",")[2], lambda word: {"choices": [{"message": {"content": word}}]})
        if path.endswith("/infer"):
            outputs = {"outputs": [{"name": "bird", "datatype": "FP32", "shape": [1], "data": [0.9]}]}
            return self.label(json.loads(body)["inputs"][0]["data"][0], lambda _word: outputs)
        return json.dumps({"extensions": [], "inputs": [{"name": "clip", "datatype": "BYTES", "shape": [-1, 1]}]}).encode()

    def file(self, name, content):
        self.late[name] = self.late.get(name, 0) - 1
        return content + (name + self.life).encode() if self.late[name] < 0 else (404, b"{}")

    def label(self, data, content):
        """The answer about a sample, which names itself behind its data."""
        _, mark, name = base64.b64decode(data).rpartition(MARK)
        name = name.decode() if mark else "test question"
        self.asked[name] += 1
        if self.away:
            return 502, b"no model behind this gateway"
        if name in self.hanging:
            self.hanging.remove(name)
            self.released.wait(600)
            return 504, b""
        if name in self.poison:
            return 500, b"cannot decode it"
        if name in self.thinking:
            self.thinking.remove(name)
            return json.dumps(content("<think>is this a person, or")).encode()
        self.answered[name] += 1
        return json.dumps(content("yes")).encode()


class Played:
    """The detectors' side: it publishes messages and hears decisions. sent: (topic, name, key) of each."""

    def __init__(self, session, decisions):
        self._session, self.decisions, self.sent = session, decisions, []
        self.begin(1)

    def begin(self, number):
        """Number the next detections from here; return the names of the next person and the next bird."""
        self._numbers = itertools.count(number)
        return f"{1700000000 + number}.5-abcdef", str(number + 1)

    def person(self, camera="front_door"):
        name = f"{1700000000 + next(self._numbers)}.5-abcdef"
        self._publish("frigate/events", name, camera, event("new", name, camera, 0.5))
        return name

    def bird(self, species="Corvus corax"):
        number = next(self._numbers)
        self._publish("birdnet", str(number), species, bird(number, species, "Common Raven", 0.5))
        return str(number)

    def _publish(self, topic, name, key, message):
        self.sent.append((topic, name, key))
        assert self._session.publish(topic, json.dumps(message), 1)

    @property
    def all_decided(self):
        return len(self.decisions) >= len(self.sent)


@contextmanager
def played(broker):
    decisions = []

    def take(message):
        decisions.append((message.topic.removesuffix("/decision"), json.loads(message.payload)))

    with subscribed(broker, ["frigate/events/decision", "birdnet/decision"], take) as session:
        yield Played(session, decisions)


def configured(folder, url, preset, remote):
    """The configuration of a preset, of a gate that asks about every sample."""
    always = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0, "deadline": DEADLINE_S, "patience": 300.0}
    config = presets.write(preset, remote, url, "", folder / f"{preset}.toml")
    return config.model_copy(update={**always, "device": preset, "state": f"{preset}-state"})


def alarm(door):
    """The text of the alarm "unanswered" of a gate, "" for none."""
    state = State.model_validate_json(json.dumps(door.summary()))
    device = Device("gate", online=True)
    device.take_state(state, time.time(), False)
    found = alarms.of_device(device, device.rates(), None, unix_s=time.time())
    return next((entry.text for entry in found if entry.kind == "unanswered"), "")


def test_a_day_with_faults(broker, tmp_path):
    server, offset, wrong_s, stopped = Server(), [0.0], [0.0], []
    clock = lambda: (stopped[0] if stopped else time.monotonic()) + offset[0]  # noqa: E731
    about = {"model": "llava", "prompt": "{classes}", "classes": ["no", "yes"], "logprobs": False, "timeout_s": 300}

    def until_asked_again(condition):
        def later():
            offset[0] += 10
            return condition()

        return until(later)

    with serving(server) as url, played(broker) as day, ExitStack() as doors:
        doors.callback(server.released.set)
        doors.callback(server.loaded.set)
        entries = {**about, "url": f"{url}/v1"}
        (tmp_path / "llava.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
        remotes = {"frigate": "llava.toml", "birdnet-go": f"{url}/v2/models/birds"}
        configurations = [configured(tmp_path, str(url), *entry) for entry in remotes.items()]

        def started():
            return [Door(config, Endpoint(broker.host, broker.port), clock) for config in configurations]

        gates = started()
        frigate, birdnet = gates
        closing = [threading.Thread(target=door.close) for door in gates]

        def queued():
            return sum(door.gate.backlog.length for door in gates)

        def both():
            return day.person(), day.bird()

        # the language model loads while somebody waits for it
        for _ in range(3):
            both()
        assert until(lambda: day.all_decided) and not server.answered[day.sent[0][1]]
        server.loaded.set()
        assert until(lambda: not queued()) and frigate.gate.late == 3

        # a snapshot that is there only after the message, and a picture on which the server fails
        server.late[day.begin(100)[0]] = 3
        day.person()
        poison = day.person()
        server.poison.add(poison)
        assert until(lambda: server.asked[poison])
        for _ in range(8):
            both()
        assert until(lambda: day.all_decided and queued() == 1 and not alarm(frigate))

        # an answer that holds only thinking
        thinking, _ = day.begin(200)
        server.thinking.add(thinking)
        assert day.person() == thinking
        assert until(lambda: "thinks" in alarm(frigate))
        assert until_asked_again(lambda: server.answered[thinking]) and until(lambda: not alarm(frigate))

        # one question about each hangs, while the others go on; a proxy gives up in the end
        hanging = day.begin(250)
        server.hanging.update(hanging)
        assert both() == hanging and until(lambda: all(server.asked[name] for name in hanging))
        others = [both() for _ in range(3)]
        assert until(lambda: all(server.answered[name] for pair in others for name in pair))
        assert until(lambda: day.all_decided) and not any(server.answered[name] for name in hanging)
        server.released.set()
        assert until_asked_again(lambda: all(server.answered[name] for name in hanging)) and until(lambda: queued() == 1)
        server.released.clear()

        # ten minutes without the models, at two events a minute; the clock is a month ahead, until it is set
        server.away, began = True, offset[0]
        for door in gates:
            door.gate.backlog._clock = lambda: time.time() + wrong_s[0]
        while offset[0] < began + OUTAGE_S:
            offset[0] += 30
            wrong_s[0] = MONTH_S if offset[0] < began + OUTAGE_S / 2 else 0.0
            both()
            assert until(lambda: day.all_decided)
        assert "502" in alarm(frigate) and "502" in alarm(birdnet)
        assert queued() >= 2 * OUTAGE_S / 30
        server.away = False
        assert until_asked_again(lambda: not queued() and not alarm(frigate) and not alarm(birdnet))

        # BirdNET-Go's database is new: its counter begins anew, with other birds
        server.life = SECOND_LIFE
        day.begin(1)
        for _ in range(3):
            day.bird("Strix aluco")
        assert until(lambda: day.all_decided and not queued())
        server.life = ""

        # questions that hang while the gates end: they wait for no deadline, as their clock stands still
        hanging = day.begin(300)
        stopped.append(time.monotonic())
        server.hanging.update(hanging)
        assert both() == hanging and until(lambda: all(server.asked[name] for name in hanging))
        assert not day.all_decided
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(END_S)
        assert not any(thread.is_alive() for thread in closing) and not server.released.is_set()
        assert until(lambda: day.all_decided)
        assert {one["reason"] for _, one in day.decisions if one["id"] in hanging} == {"the gate ended before the answer came"}
        stopped.clear()
        assert [door.gate.failed for door in gates] == [1, 0], "the picture on which the server fails"
        assert [door.gate.backlog.length for door in gates] == [1, 1], "what hung waits for the next start"
        gates[:] = started()
        assert until_asked_again(lambda: not queued())
        for door in gates:
            door.close()

    assert Counter((topic, one["id"], one["key"]) for topic, one in day.decisions) == Counter(day.sent), "each once, as its own"
    names = {name + SECOND_LIFE * (key == "Strix aluco") for _, name, key in day.sent} - {poison}
    assert names == {*server.answered} - {"test question"}, "nothing is lost"
    del server.answered["test question"]  # one a start
    assert set(server.answered.values()) == {1}, "nothing is paid twice"
