"""Every program in firmware/examples, run as its README says."""

import json
import shutil
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import scikit_models
from PIL import Image
from support import ROOT, listening, need, until, worker

from h2t2.cpython.tflite import TFLiteModel
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.broker import free_port

EXAMPLES = ROOT / "firmware/examples"


def run(*command, status=0, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=280, **options)
    assert done.returncode == status, done.stdout[-500:] + done.stderr[-1500:]
    return done.stdout


def test_every_example_has_a_readme_and_a_test():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith("__")}
    # app_csv is in tests/model/test_pair.py, sensors of ports are in test_recipes.py; the others in their own
    apps = {f"app_{name}" for name in "csv temperature microphone images i2s_microphone imu adc_dma pir camera".split()}
    programs = {"algorithm_1", "one_page", "policy_alone", "sensor_on_a_pi", "own_remote_model", "web_page", "links"}
    assert folders == apps | programs
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
@pytest.mark.parametrize("on", ["unix", "cpython"])
def test_a_web_page_shows_the_last_decision(on, broker, rdl, tmp_path):
    """The node goes on while a browser that asks nothing has a connection, and one asks again and again."""
    port = free_port()
    source = (EXAMPLES / "web_page/main.py").read_text()
    source = source.replace('"192.168.1.5", 1883', f'"{broker.host}", {broker.port}').replace("8080", str(port))
    (tmp_path / "main.py").write_text(source)
    shutil.copy(ROOT / "models/breast_cancer/ldl.h2m", tmp_path)
    command, env = [sys.executable, "main.py"], None
    if on == "unix":
        command, env = need(UNIX).command(tmp_path / "main.py", []), UNIX.environment(ROOT / "firmware")
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        try:
            assert until(lambda: b"class" in page(port) or program.poll() is not None)
            with socket.create_connection(("127.0.0.1", port)):
                first = sample(port)
                assert until(lambda: sample(port) > first + 3 or program.poll() is not None)
                assert until(lambda: b"the remote model" in page(port) or program.poll() is not None)
                assert program.poll() is None, program.stdout.read()
        finally:
            program.kill()


def page(port):
    """The page, or nothing while nobody listens yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return answer.read()
    except OSError:
        return b""


def sample(port):
    return int(page(port).split(b"Sample ")[1].split(b":")[0])


@pytest.mark.whole
def test_a_sensor_on_a_pi(broker, rdl, tmp_path):
    pair = pairs.load("breast_cancer")
    rows = "\n".join(",".join(str(float(number)) for number in row) for row in pair.x[:60])
    (tmp_path / "measurements.csv").write_text(rows)
    command = [sys.executable, EXAMPLES / "sensor_on_a_pi/main.py", "--pair", pair.folder, "--port", broker.port]
    out = run(*command, cwd=tmp_path)
    again = run(*command, cwd=tmp_path)
    lines = out.splitlines()
    assert len(lines) == len(again.splitlines()) == 60
    assert sum("remote" in line for line in lines) > 10 and sum("fallback" in line for line in lines) < 20  # a busy machine
    assert (tmp_path / "learned.0").exists() and sum("remote" in line for line in again.splitlines()) < 60


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """trained(n) -> the folder of a pair of two models of n numbers."""

    def make(n, window=()):
        """window: options of windows of n measurements, of which the models read three numbers."""
        folder = tmp_path_factory.mktemp(f"of{n}")
        x = np.random.default_rng(n).normal(20, 5, (300, n))
        y = (x.mean(1) > 20).astype(int)
        numbers = np.stack([x.mean(1), x.std(1), x.max(1)], 1) if window else x
        model = scikit_models.logistic(numbers, y, max_iter=1000)
        scikit_models.save(folder, x, y, model=model)
        model = str(folder / "model.joblib")
        words = ["pair", model, model, "--test", str(folder / "test.npz"), *window, "--out", str(folder / "pair")]
        assert main(words) == 0
        return folder / "pair"

    return make


# a board's pins in place of real ones: what is written to a pin is printed, what is read comes from a script
MACHINE = """
class Pin:
    OUT = 1
    def __init__(self, *_): pass
    def value(self, level): print("pin", level)
class I2C:
    def __init__(self, *_, **pins): self.n = 0
    def readfrom_mem(self, address, register, size):
        assert (address, register, size) == (0x48, 0, 2)
        self.n += 1
        if self.n == 20: raise OSError(5)  # once, it does not answer
        raw = (16 * (14 + self.n % 13)) & 4095
        return bytes([raw >> 4, (raw & 15) << 4])
class ADC:
    def __init__(self, pin): self.n = 0
    def read_u16(self):
        self.n += 1
        return 20 + (self.n * 7919 >> 3) % 9
class Timer:
    PERIODIC = 1
    def __init__(self, _): pass
    def init(self, freq, mode, callback): self.callback = callback
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, numbers, window",
    [
        ("app_temperature", 8, ()),
        pytest.param("app_microphone", 256, ("--window", "256", "--features", "mean", "std", "max"), marks=pytest.mark.whole),
    ],
)
def test_an_app_on_a_board(trained, tmp_path, name, numbers, window):
    """On the unix port, with a `machine` module of the test's: every decision reaches the pin."""
    need(UNIX)
    assert main(["new", str(tmp_path / "mine"), "--from", str(trained(numbers, window))]) == 0
    program = (EXAMPLES / name / "app.py").read_text().replace("EVERY_MS = 2000", "EVERY_MS = 5")
    ends = """
_sense, _calls, _measured = sense, 0, 0


def sense():
    global _calls, _measured
    _calls += 1
    if _measured == LAST:
        raise StopIteration
    if "timer" in globals():  # it interrupts between two calls; once the node is late, and readings are missed
        for _ in range(3 * BLOCK if _calls == 50 else BLOCK):
            timer.callback(timer)
    measured = _sense()
    _measured += measured is not None and measured != "gap"
    return measured
""".replace("LAST", "121" if window else "30")  # of the 49 blocks before the gap one is lost; 30 windows of four remain
    (tmp_path / "mine/app.py").write_text(program + ends)
    (tmp_path / "mine/machine.py").write_text(MACHINE)
    (tmp_path / "mine/samples.csv").unlink()
    (tmp_path / "mine/labels.csv").unlink(missing_ok=True)  # of the samples that are gone
    broken = name == "app_temperature"  # its sensor fails once, which ends a run with 1
    command = [sys.executable, "-m", "h2t2_tools", "run", tmp_path / "mine", "--json", tmp_path / "report.json"]
    out = run(*command, status=int(broken))
    report = json.loads((tmp_path / "report.json").read_text())
    decided = [json.loads(line)["decision"] for line in out.splitlines()]
    assert len(decided) == report["summary"]["samples"] == 30 and sum(report["decisions"].values()) > 0
    assert report["summary"]["sensor_errors"] == broken == len(report["trouble"])
    assert not window or report["summary"]["gaps"] == 1


@pytest.mark.whole
def test_an_app_with_pictures_and_a_message(broker, tmp_path):
    pair = pairs.load("digits")
    (tmp_path / "pictures").mkdir()
    for n in range(20):
        small = Image.fromarray((pair.x[n, ..., 0] * 255).astype(np.uint8))
        large = Image.new("RGB", (320, 240))  # the digit in the middle of a wider picture
        large.paste(small.resize((240, 240), Image.Resampling.NEAREST), (40, 0))
        large.save(tmp_path / f"pictures/{n:02}.png")
    with worker(broker.url, "digits"), listening(broker, "home/digit") as (_, heard):
        words = ["node", "--pair", "digits", "--app", EXAMPLES / "app_images/app.py", "--broker", broker.url, "--every", "50ms"]
        out = run(sys.executable, "-m", "h2t2_tools", *words, cwd=tmp_path)
        assert until(lambda: len(heard) == 20)
    lines = [json.loads(line) for line in out.splitlines() if '"bin"' in line]
    assert [row["label"] for row in heard] == [line["decision"] for line in lines]
    ldl = TFLiteModel(str(pair.ldl), event=pair.info.event_index["ldl"])
    exact = [ldl.level(ldl.run(ldl.quantise(x))) >> 4 for x in pair.x[:20]]
    lines.sort(key=lambda line: line["n"])  # a schedule waits for no answer: the next picture may be decided first
    assert sum(line["bin"] == k for line, k in zip(lines, exact)) >= 18  # a picture has 256 greys, a digit 17


@pytest.mark.slow
def test_a_remote_model_of_ones_own(broker):
    with worker(broker.url, "breast_cancer", "--remote", f"{EXAMPLES}/own_remote_model/model.py:scores"):
        out = run(sys.executable, "-m", "h2t2_tools", "node", "--broker", broker.url, "--samples", 100)
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["samples"] == 100 and summary["replies"] == summary["offloads"] > 10 and summary["fallbacks"] == 0
