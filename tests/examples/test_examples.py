"""Every program in firmware/examples, run as its README says."""

import json
import subprocess
import sys

import pytest
from support import ROOT, mosquitto, worker

from h2t2_tools.boards import kinds
from h2t2_tools.boards.emulators import UNIX
from h2t2_tools.common import pairs
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle

EXAMPLES = ROOT / "firmware/examples"


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    return done.stdout


def test_every_example_has_a_readme_and_a_test():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith("__")}
    tested_beside_its_pair = "app_csv"  # tests/model/test_pair.py
    assert folders == {tested_beside_its_pair, "policy_alone", "sensor_on_a_pi", "sensor_on_a_pico", "own_remote_model"}
    listed = (EXAMPLES / "README.md").read_text()
    assert all((EXAMPLES / name / "README.md").is_file() and f"`{name}`" in listed for name in folders)


def test_the_policy_alone_beats_asking_always_and_never():
    said = [run(sys.executable, EXAMPLES / "policy_alone/main.py")]
    if UNIX.missing() is None:
        said.append(UNIX.run(EXAMPLES / "policy_alone/main.py", [], ROOT / "firmware"))
    assert len(set(said)) == 1  # the same decisions on both
    policy, always, never = (float(word) for word in said[0].split() if word[0].isdigit())
    assert policy < always < never


@pytest.mark.slow
def test_a_sensor_on_a_pi(tmp_path):
    pair = pairs.load("breast_cancer")
    rows = "\n".join(",".join(str(float(number)) for number in row) for row in pair.x[:60])
    (tmp_path / "measurements.csv").write_text(rows)
    with mosquitto(tmp_path) as broker, worker(broker.url, "breast_cancer"):
        out = run(sys.executable, EXAMPLES / "sensor_on_a_pi/main.py", "--model", pair.ldl, "--port", broker.port, cwd=tmp_path)
        again = run(
            sys.executable, EXAMPLES / "sensor_on_a_pi/main.py", "--model", pair.ldl, "--port", broker.port, cwd=tmp_path
        )
    lines = out.splitlines()
    assert len(lines) == len(again.splitlines()) == 60
    assert sum("remote" in line for line in lines) > 10 and sum("fallback" in line for line in lines) < 20  # a busy machine
    assert (tmp_path / "learned.0").exists() and sum("remote" in line for line in again.splitlines()) < 60


MACHINE = """import random
class ADC:
    def __init__(self, pin): self.pin = pin
    def read_u16(self): return random.getrandbits(16)
class Pin:
    OUT = 1
    def __init__(self, *_): pass
    def value(self, level): print("pin", level)
"""


@pytest.mark.slow
def test_a_sensor_on_a_pico(tmp_path):
    """On the unix port, with a `machine` module of the test's."""
    if UNIX.missing():
        pytest.skip(UNIX.missing())
    pair = pairs.load("breast_cancer")
    (tmp_path / "m.h2m").write_bytes(bundle.from_tflite(pair.ldl))
    with mosquitto(tmp_path) as broker, worker(broker.url, "breast_cancer"):
        config = NodeConfig(broker="127.0.0.1", port=broker.port, remote_shape=[30], model_id=pair.about.model_id)
        for path, content in kinds.payload(kinds.KINDS["unix"], kinds.Contents(tmp_path / "m.h2m", config)).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
        (tmp_path / "machine.py").write_text(MACHINE)
        program = (EXAMPLES / "sensor_on_a_pico/main.py").read_text()
        (tmp_path / "main.py").write_text(program.replace("SAMPLES = 0", "SAMPLES = 30"))
        out = run(*UNIX.command(tmp_path / "main.py", []), cwd=tmp_path, env=UNIX.environment(tmp_path))
    assert out.count("pin ") == 30


@pytest.mark.slow
def test_a_remote_model_of_ones_own(tmp_path):
    with (
        mosquitto(tmp_path) as broker,
        worker(broker.url, "breast_cancer", "--model", f"{EXAMPLES}/own_remote_model/model.py:scores"),
    ):
        out = run(sys.executable, "-m", "h2t2_tools", "node", "--broker", broker.url, "--samples", 100)
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["samples"] == 100 and summary["replies"] == summary["offloads"] > 10 and summary["fallbacks"] == 0
