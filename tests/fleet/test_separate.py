"""A local model in a process of its own: what hangs, crashes or is told to end does not stop the process that asks."""

import json
import threading
from pathlib import Path

import pytest
from command_line import started
from http_server import serving
from support import until

from h2t2.cpython.mqtt_session import make_client
from h2t2_lab.gate_day.messages import jpeg
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.failures import Cause, Later, Misconfigured, Refused, of_error
from h2t2_tools.fleet.gate import Gate, GateConfig
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.models.separate import Separate

PHOTO = jpeg()
FOREVER = 3600.0  # no test waits for so long
PROGRAM = '''
import os, subprocess, sys, time
from pathlib import Path

HERE = Path(__file__).parent

def scores(batch):
    """What the first byte of each sample says: 1 is class 1, 2 hangs, 3 crashes, 4 exits, 5 raises, 6 wants a file."""
    (HERE / "pid").write_text(str(os.getpid()))
    kind = batch[0][0]
    if kind == 2:
        helper = subprocess.Popen(["sleep", "3600"])
        (HERE / "helper").write_text(str(helper.pid))
        time.sleep(3600)
    if kind == 3:
        os.abort()
    if kind == 4:
        sys.exit(3)
    if kind == 5:
        raise RuntimeError("nothing to see")
    if kind == 6:
        (HERE / "absent").read_text()
    return [float(kind == 1)]

def named(batch):
    return [float((batch[0].key, batch[0].label, batch[0].media) == ("porch", "bird", "image/jpeg"))]
'''


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def opened():
    """Opens models that end with the test."""
    models_of_test = []

    def separate(program, function="scores", seconds=FOREVER):
        models_of_test.append(Separate(models.Source(f"{program}:{function}"), seconds))
        return models_of_test[-1]

    yield separate
    for model in models_of_test:
        model.close()


def running(pid):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_model_answers_as_in_this_process(program, opened):
    model = opened(program)
    assert model.raw and model.shape is None
    assert [model.scores([bytes([kind])]).tolist() for kind in (1, 0, 1)] == [[1.0], [0.0], [1.0]]
    assert model.scores([b"\1" + bytes(1 << 22)]).tolist() == [1.0]
    detected = models.Detected(PHOTO, "porch", "bird", "image/jpeg")
    assert opened(program, "named").scores([detected]).tolist() == [1.0]


def test_an_exception_of_the_model_keeps_its_cause(program, opened):
    model = opened(program)
    with pytest.raises(Refused, match="RuntimeError: nothing to see"):
        model.scores([b"\5"])
    with pytest.raises(Misconfigured, match="FileNotFoundError"):
        model.scores([b"\6"])
    assert model.scores([b"\1"]).tolist() == [1.0]


@pytest.mark.parametrize("kind, why", [(3, "its process ended, status -6"), (4, "its process ended, status 3")])
def test_a_process_that_ends_is_replaced(kind, why, program, opened):
    model = opened(program)
    with pytest.raises(Later, match=why) as raised:
        model.scores([bytes([kind])])
    assert raised.value.of_sample
    assert model.scores([b"\1"]).tolist() == [1.0]


def test_a_process_that_hangs_ends_with_all_that_it_started(program, opened, tmp_path):
    model = opened(program, seconds=1.0)
    with pytest.raises(Later, match="no answer in 1 s"):
        model.scores([b"\2"])
    assert until(lambda: not running((tmp_path / "helper").read_text()))
    assert not running((tmp_path / "pid").read_text())
    assert model.scores([b"\1"]).tolist() == [1.0]


def test_a_model_that_cannot_be_loaded_is_wrong_use(program):
    for function, why in ("nosuch", "no attribute 'nosuch'"), ("scores", "boom"):
        if why == "boom":
            program.write_text("raise RuntimeError('boom')")
        with pytest.raises(UserError, match=why):
            Separate(models.Source(f"{program}:{function}"), FOREVER)


def test_a_model_that_fails_to_load_again_is_the_set_up(program, opened):
    model = opened(program)
    program.write_text("raise RuntimeError('boom')")
    with pytest.raises(Later):
        model.scores([b"\3"])
    with pytest.raises(UserError, match="boom") as raised:
        model.scores([b"\1"])
    assert of_error(raised.value) is Cause.SETUP
    program.write_text(PROGRAM)
    assert model.scores([b"\1"]).tolist() == [1.0]


def test_closing_ends_a_call_under_way(program, opened, tmp_path):
    model = opened(program)
    raised = []

    def ask():
        try:
            model.scores([b"\2"])
        except Later as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert until(lambda: (tmp_path / "helper").exists())
    model.close()
    thread.join()
    assert raised and not running((tmp_path / "pid").read_text())
    with pytest.raises(Later):
        model.scores([b"\1"])


def test_both_models_of_a_chain_are_separate(program, tmp_path):
    """The second one hangs: the first one's answer stands."""
    (tmp_path / "first.py").write_text("def scores(batch): return [0.5] * len(batch)\n")
    second = models.Source(f"{program}:scores")
    source = models.Source(f"{tmp_path}/first.py:scores", second=second, second_beta=0.0)
    model = models.load(source, separate_s=1.0)
    try:
        assert model.scores([b"\1"]).tolist() == [1.0]
        assert model.scores([b"\2"]).tolist() == [0.5]
    finally:
        model.close()


def always_asking(folder, **entries):
    """A gate that asks about every sample. `hang_after` is far away."""
    policy = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0}
    return Gate(GateConfig(topic="x", remote="mine.py:scores", folder=folder, hang_after=FOREVER, **policy, **entries))


def test_a_gate_ends_while_its_model_hangs(program, tmp_path):
    (tmp_path / "mine.py").write_text("import time\ndef scores(batch): time.sleep(3600)\n")
    gate = always_asking(tmp_path, deadline=0.1)
    assert [gate.decide("a", 0.5, PHOTO).source for _ in range(3)] == ["fallback"] * 3
    gate.close()


@pytest.mark.parametrize("remote", ["chat.toml", "/v1/models/m:predict", "/v2/models/m"])
def test_a_gate_ends_while_its_server_hangs(remote, tmp_path):
    """The calls under way end with the gate, also that of the test question at the start."""
    asked, answer = threading.Event(), threading.Event()

    def hang(*_):
        asked.set()
        answer.wait()
        return b"{}"

    with serving(hang) as url:
        about = {"url": f"{url}/v1", "model": "m", "prompt": "?", "classes": ["no", "yes"], "timeout_s": 300}
        (tmp_path / "chat.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in about.items()))
        entries = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0, "deadline": 0.1, "patience": 3600}
        remote = remote if remote.endswith("toml") else url + remote
        gate = Gate(GateConfig(topic="x", remote=remote, folder=tmp_path, **entries))
        assert gate.decide("a", 0.5, PHOTO).source == "fallback" and asked.wait(60)
        gate.close()
        answer.set()


def test_a_gate_whose_model_hung_asks_again(program, tmp_path):
    """A sample hangs the model once. The gate decides it without an answer, and the next one by an answer."""
    (tmp_path / "mine.py").write_text(
        "import pathlib, time\nHUNG = pathlib.Path(__file__).with_name('hung')\n"
        "def scores(batch):\n    if not HUNG.exists():\n        HUNG.touch()\n        time.sleep(3600)\n    return [1.0]\n"
    )
    policy = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0}
    config = GateConfig(topic="x", remote="mine.py:scores", folder=tmp_path, hang_after=1.0, deadline=0.2, **policy)
    with Gate(config) as gate:
        assert gate.decide("a", 0.5, PHOTO).source == "fallback"
        assert until(lambda: gate.decide("a", 0.5, PHOTO).source == "remote")


@pytest.mark.slow
@pytest.mark.parametrize("hangs", ["def scores(batch):", "if True:"], ids=["answering", "loading"])
def test_sigterm_ends_the_command_while_the_model_hangs(hangs, broker, tmp_path):
    """Without an answer, and also while the model's file is still loading."""
    pid = tmp_path / "pid"
    note = f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))"
    program = f"import os, pathlib, time\n{hangs}\n    {note}\n    time.sleep(3600)\n"
    (tmp_path / "mine.py").write_text(program)
    entries = {
        "topic": "x",
        "remote": "mine.py:scores",
        "broker": broker.url,
        "text": "text",
        "epsilon": 1.0,
        "hang_after": "1h",
    }
    entries |= {"policy": "h2t2", "exploration": "epsilon"}
    (tmp_path / "gate.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
    with started("gate", tmp_path / "gate.toml", stderr=None) as process:
        client = make_client("detector")
        client.connect(broker.host, broker.port)
        message = json.dumps({"score": 0.5, "text": "a knock"})

        def asked():
            client.publish("x", message)
            return pid.exists() and pid.read_text()

        assert until(asked)
        process.terminate()
        assert process.wait(120) == (0 if hangs.startswith("def") else 143)
    assert until(lambda: not running(pid.read_text()))
