"""Wheel and source archive, in empty environments outside the repository: the examples of every command's help are right, and
what commands offer by name is there."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import numpy as np
import pytest
from command_line import ran
from on_boards import BOOSTERS, NETWORKS, PIPELINES, board_scores, booster, compared, network, pipeline
from support import ROOT, made_once, need

from h2t2_tools.boards.emulators.catalogue import EMULATORS, UNIX
from h2t2_tools.cli import execute
from h2t2_tools.cli.commands import COMMANDS
from h2t2_tools.common import pairs, places
from h2t2_tools.replay import trace_names

pytestmark = [pytest.mark.whole, pytest.mark.timeout(1200)]
EXTRAS = "demo,lab,boards,fleet,convert,onnx"
OFFERED = [
    ["replay", "weather", "--runs", "2", "--samples", "500"],
    ["replay", "digits", "--runs", "2", "--samples", "500"],
    ["prior", "digits"],
    ["recommend", "occupancy", "--beta", "0.2"],
    ["new", "mine"],
    ["demo", "--samples", "200", "--broker", "amqtt"],
]


# command -> which of its examples runs here, and what runs before it. The other commands wait for a broker, a board, an
# emulator or samples from the field; other tests run those
EXAMPLES = {
    "demo": (1, []),
    "new": (0, []),
    "boards": (0, []),
    "mip": (0, []),
    "completion": (0, []),
    "update keys": (0, []),
    "update sign": (0, ["h2t2 update keys --out fleet"]),
    "certs": (0, []),
    "broker-config": (0, ["h2t2 certs --out certs"]),
    "metrics": (1, []),
    "pair": (3, ["rm -r mypair"]),
    "convert": (1, []),
    "inspect": (0, []),
    "recommend": (1, []),
    "replay": (1, []),
    "score": (0, []),
    "prior": (0, []),
    "ldl-check": (0, []),
}
SCORES = """import numpy

def scores(x):
    return numpy.clip(x.reshape(len(x), -1).mean(1), 0, 1)
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """(wheel, source archive)."""

    def build(folder):
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], check=True, cwd=ROOT, capture_output=True)

    folder = made_once(tmp_path_factory, "packages", build)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(packages):
    return packages[0]


def environment(folder, package, extras=""):
    """The folder of the programs of a new environment with a package and what it needs, in the versions of the lock."""
    versions = re.findall(r"^(\S+==\S+(?: ;[^\\\n]*)?) *\\?$", (ROOT / "host_tools/locks/dev.txt").read_text(), re.M)
    (folder / "constraints.txt").write_text("\n".join(versions) + "\n")
    venv.create(folder / "venv", symlinks=True)  # as `python -m venv` does
    install(folder / "venv/bin", f"{package}{extras}", "-c", folder / "constraints.txt")
    return folder / "venv/bin"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = made_once(tmp_path_factory, "installed", lambda folder: environment(folder, wheel, f"[{EXTRAS}]"))
    return folder / "venv/bin"


def install(programs, *words):
    uv = shutil.which("uv", path=os.path.dirname(sys.executable))
    python = programs / "python"
    command = [uv, "pip", "install", "--no-config", "-q", "--python", python] if uv else [sys.executable, "-m", "pip"]
    command += [] if uv else ["--python", python, "install", "-q", "--no-compile"]
    ran([*command, *words], cwd=programs, timeout=1200)


def h2t2(installed, folder, *words):
    command = [*map(str, (installed / "h2t2", *words))]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": ""}, timeout=600
    )


def runs(*where_and_words):
    done = h2t2(*where_and_words)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
    return done


def test_it_holds_every_trace_and_pair_of_the_source_tree(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    assert not [name for name in held if "h2t2_lab" in name]
    for name in trace_names.names():
        if trace_names.is_real(name):
            assert f"h2t2_tools/_models/{name}/trace.npz" in held
    for name in pairs.shipped_names():
        assert {f"h2t2_tools/_models/{name}/{file}" for file in ("pair.json", "test.npz", "ldl.tflite", "train.py")} <= held


@pytest.mark.parametrize("words", OFFERED, ids=lambda words: "-".join(words[:2]))
def test_what_it_offers_by_name_runs(installed, words, tmp_path):
    runs(installed, tmp_path, *words)


def test_pandas_beside_it_breaks_nothing(installed, tmp_path):
    """Whatever NumPy pandas brings along: the local model, the policy and the pictures still run."""
    venv.create(tmp_path / "venv", symlinks=True)
    of_it, own = (next(folder.glob("lib/python*/site-packages")) for folder in (installed.parent, tmp_path / "venv"))
    (own / "beside.pth").write_text(f"{of_it}\n")
    install(tmp_path / "venv/bin", "pandas")
    (tmp_path / "venv/bin/h2t2").write_text((installed / "h2t2").read_text().replace(str(installed), f"{tmp_path}/venv/bin"))
    (tmp_path / "venv/bin/h2t2").chmod(0o755)
    runs(tmp_path / "venv/bin", tmp_path, "demo", "--samples", "100", "--broker", "amqtt")
    assert h2t2(tmp_path / "venv/bin", tmp_path, "prior", "digits").returncode == 0


def test_the_source_archive_makes_the_same_wheel(packages, tmp_path):
    wheel, source = packages
    with tarfile.open(source) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian 12's Python 3.11.2 has none
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    again = next((tmp_path / "again").glob("*.whl"))
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


def test_the_source_archive_installs_and_runs(packages, tmp_path):
    programs = environment(tmp_path, packages[1], "[demo]")
    for words in (["--version"], ["new", "mine"], ["demo", "--samples", "100", "--broker", "amqtt"]):
        runs(programs, tmp_path, *words)


PARSE = """import json, sys
from h2t2_tools.cli.execute import parsed
from h2t2_tools.common.errors import UserError
for words in json.load(sys.stdin):
    try:
        parsed(words)
    except UserError as error:
        if "no such file" not in str(error):  # a configuration, which is read before the other options are checked
            sys.exit(f"{words}: {error}")
"""


def words_of(example):
    """The words after `h2t2` of every h2t2 command in a line of a help text."""
    for line in re.split(r" && | \| ", example.split("   #")[0].split(" > ")[0]):
        if line.startswith("h2t2 "):
            yield [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line)][1:]


def test_every_example_of_a_help_text_is_a_right_command_line(installed, tmp_path):
    lines = [words for name in COMMANDS for example in execute.command(name).examples for words in words_of(example)]
    assert len(lines) > 80
    assert h2t2(installed, tmp_path, "new", "porch").returncode == 0  # `h2t2 node porch` reads it before it checks options
    done = subprocess.run(
        [installed / "python", "-c", PARSE], input=json.dumps(lines), capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""}, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("material")
    shutil.copytree(ROOT / "models", folder / "models")
    for name in ("mypair", "digits-again"):
        shutil.copytree(ROOT / "models/digits", folder / name)
    for name in ("small_int8.tflite", "my.tflite"):
        shutil.copy(ROOT / "models/digits/ldl.tflite", folder / name)
    for name in ("test.npz", "my_test.npz"):
        shutil.copy(ROOT / "models/digits/test.npz", folder / name)
    with np.load(ROOT / "models/digits/trace.npz") as trace:
        rows = zip(trace["score"], trace["label"])
        lines = ["score,label", *(f"{score:.6f},{label}" for score, label in rows)]
    for name in ("my.csv", "validation.csv"):
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "mine.py").write_text(SCORES)
    return folder


CLASSIFIER = """import joblib, numpy
from sklearn.linear_model import LogisticRegression
x = numpy.random.default_rng(7).normal(size=(200, 4)).astype("float32")
joblib.dump(LogisticRegression().fit(x, x[:, 0] > 0), "classifier.joblib")
numpy.save("samples.npy", x)
"""


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_of_its_help_runs(command, installed, material, tmp_path):
    folder = tmp_path / "work"
    shutil.copytree(material, folder)
    number, before = EXAMPLES[command]
    paths = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(places.cache().parent), "PATH": f"{installed}:{os.environ['PATH']}"}
    environment = {**os.environ, "PYTHONPATH": "", **paths}
    if command == "convert":
        subprocess.run([installed / "python", "-c", CLASSIFIER], check=True, cwd=folder, env=environment)
    example = re.split(r" && (?:python3|h2t2 node) ", execute.command(command).examples[number])[0]
    for line in (*before, example):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder, env=environment, timeout=280)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]


REMOTE = """import numpy as np
WEIGHTS = np.array({weights})


def scores(x):
    return 1 / (1 + np.exp(-40 * (x.reshape(len(x), -1) @ WEIGHTS)))
"""


def paired(installed, folder, board, local, remote, samples, *options):
    """The report of `h2t2 run` of a new project with a pair of these models; samples: (x, y), half of them for calibration.

    An emulated Pico decides 30 of the others.
    """
    need(next(emulator for emulator in EMULATORS if emulator.name == board))
    x, y = samples
    half = len(x) // 2
    np.savez(folder / "train.npz", x=x[:half], y=y[:half])
    np.savez(folder / "test.npz", x=x[half:], y=y[half:])
    options = ("--test", "test.npz", "--calibration", "train.npz", "--out", "pair", *options)
    decided = 30 if board == "pico" else len(x) - half
    for words in (
        ("pair", local, remote, *options, "--json", "pair.json"),
        ("new", "porch", "--from", "pair"),
        ("run", "porch", "--board", board, "--json", "report.json"),
    ):
        if words[0] == "run":
            rows = (folder / "porch/samples.csv").read_text().splitlines(keepends=True)[:decided]
            (folder / "porch/samples.csv").write_text("".join(rows))
        runs(installed, folder, *words)
    report = json.loads((folder / "report.json").read_text())
    assert report["board"] == board and report["labelled"] == decided and not report["trouble"]
    return report


@pytest.mark.evidence
def test_a_network_of_pytorch_becomes_a_pair_and_a_node_on_a_pico(installed, tmp_path):
    """A convolutional network along time, which PyTorch exported, decides on a board; a remote model helps where it pays."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="no onnxruntime; run: pip install onnxruntime")
    model = ROOT / "tests/material/onnx/wave.onnx"
    network = onnxruntime.InferenceSession(str(model))
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(600, 3, 64)) + 2 * rng.normal(size=(600, 3, 1))).astype(np.float32)
    scores = np.array([network.run(None, {network.get_inputs()[0].name: sample[None]})[0].item() for sample in x])
    flat = x.reshape(600, -1)
    weights = np.linalg.lstsq(flat, scores - np.median(scores), rcond=None)[0]  # the remote model's rule: the network is near
    y = (flat @ weights > 0).astype(int)
    (tmp_path / "remote.py").write_text(REMOTE.format(weights=weights.round(5).tolist()))
    report = paired(installed, tmp_path, "pico", model, "remote.py:scores", (x, y))
    assert 0 < report["decisions"]["remote"] < 200
    assert report["accuracy"] > np.mean((scores[300:] > 0.5) == y[300:])


FOREST = """import joblib
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
x, y = load_breast_cancer(return_X_y=True)
joblib.dump(RandomForestClassifier(50, random_state=0).fit(x, y), "big.joblib")
"""


def test_trees_of_lightgbm_become_a_pair_and_a_node(installed, tmp_path):
    """From LightGBM's saved text, in an environment without LightGBM. tests/model/test_trees.py goes on to a Pico."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))[:400]
    subprocess.run([installed / "python", "-c", FOREST], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    model = ROOT / "tests/material/trees/cancer_lightgbm_gbdt.txt"
    report = paired(installed, tmp_path, "arm32", model, "big.joblib", (x[order].astype(np.float32), y[order]))
    assert report["accuracy"] > 0.93


THREE = """import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
x, y = np.load("all.npz")["x"], np.load("all.npz")["y"]
joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(x[:30], y[:30]), "small.joblib")
joblib.dump(RandomForestClassifier(50, random_state=0).fit(x, y), "big.joblib")
"""


def test_a_project_of_three_classes(installed, tmp_path):
    """Its decisions name the classes, and it is right more often than its local model."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(600, 4)).astype(np.float32)
    y = np.array(["ant", "bee", "cat"])[(x[:, :3] + 0.4 * x[:, 3:]).argmax(1)]
    np.savez(tmp_path / "all.npz", x=x, y=y)
    subprocess.run([installed / "python", "-c", THREE], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    report = paired(installed, tmp_path, "unix", "small.joblib", "big.joblib", (x, y), "--classes", "3", "--beta", "0.1")
    accuracy = json.loads((tmp_path / "pair.json").read_text())["ldl"]["int8"]["accuracy"]
    assert report["accuracy"] > accuracy + 0.02 and report["decisions"]["remote"] > 30


CASES = [
    *((network, name) for name in NETWORKS),
    *((booster, name) for name in BOOSTERS),
    *((pipeline, name) for name in PIPELINES),
]


@pytest.mark.parametrize("kind, name", CASES, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_a_model_decides_on_a_board_as_in_its_own_framework(kind, name, installed, tmp_path):
    """Networks of PyTorch, trees of boosting libraries, pipelines of scikit-learn, from their files to an emulated board."""
    need(UNIX)
    case = {network: lambda: network(name, 100), booster: lambda: booster(name), pipeline: lambda: pipeline(name, tmp_path)}[
        kind
    ]()

    def command(*words):
        runs(installed, tmp_path, *words)

    row = compared(case.scores, board_scores(command, tmp_path, case), case.test[1])
    assert row["changed"] <= 0.01 and row["mean"] <= 0.01
    assert row["beyond"] <= {booster: 0, pipeline: 0.02, network: 0.04}[kind]


@pytest.fixture(scope="module")
def converting(wheel, tmp_path_factory):
    """An environment of who has a trained model: the page about PyTorch names these extras."""
    folder = made_once(tmp_path_factory, "converting", lambda folder: environment(folder, wheel, "[convert,onnx]"))
    return folder / "venv/bin"


WITH_MODELS = (network, "mobile"), (booster, "cancer_xgboost_gbtree.json"), (pipeline, "LogisticRegression of raw numbers")


@pytest.mark.parametrize("kind, name", WITH_MODELS, ids=["network", "booster", "pipeline"])
def test_convert_and_onnx_alone_bring_what_the_pages_about_models_name(kind, name, converting, tmp_path):
    """Convert, pair, a project, a price: whatever these commands import is there, without the other extras."""
    case = kind(name, tmp_path) if kind is pipeline else kind(name)
    (tmp_path / "remote.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    for part, (x, y) in (("train", case.fit), ("test", case.test)):
        np.savez(tmp_path / f"{part}.npz", x=x, y=y)
    samples = ("--test", "test.npz", "--calibration", "train.npz")
    for words in (
        ("convert", case.path, *samples, "--out", "converted", "--trust"),
        ("inspect", f"converted/{case.path.stem}_int8.tflite"),
        ("pair", case.path, "remote.py:scores", *samples, "--out", "pair", "--trust"),
        ("new", "porch", "--from", "pair"),
        ("doctor",),
    ):
        runs(converting, tmp_path, *words)
    with np.load(tmp_path / "pair/trace.npz") as trace:
        row = compared(case.scores, trace["score"], case.test[1])
    assert row["changed"] <= 0.01 and row["mean"] <= 0.01 and row["beyond"] <= 0.01


def test_the_blocks_of_the_readme_run(installed, tmp_path):
    """As a reader copies them, one after the other; but for the board that nobody has plugged in."""
    need(UNIX)
    first_screen = (ROOT / "README.md").read_text().partition("## Where to begin")[2].partition("## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", first_screen, re.S)
    assert [kind for kind, _ in blocks] == ["python", "sh", "sh"]
    paths = {"PYTHONPATH": "", "PATH": f"{installed}:{os.environ['PATH']}"}
    for kind, block in blocks:
        lines = [line for line in block.splitlines() if not line.startswith("h2t2 flash")]
        command = [installed / "python", "-c"] if kind == "python" else ["bash", "-ec"]
        done = subprocess.run(
            [*command, "\n".join(lines)], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **paths}, timeout=300
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert (tmp_path / "frigate.toml").is_file()


TEN_LINES = """from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from h2t2_tools import Router
x, y = load_digits(return_X_y=True)
clf, big = LogisticRegression(C=0.1, max_iter=500).fit(x[:40], y[:40] == 8), SVC().fit(x[:900], y[:900] == 8)
router = Router(local=clf, remote=big, beta=0.1)
decisions = [router.decide(sample) for sample in x[900:]]
print(router.report())
router.export("porch", board="pico_w")
"""


def test_ten_lines_of_python(installed, tmp_path):
    """Two models of scikit-learn, a router, a report, and a project that an emulated board runs."""
    (tmp_path / "ten.py").write_text(TEN_LINES)
    command = [installed / "python", "ten.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0 and "cheaper than" in done.stdout, done.stdout + done.stderr[-2000:]
    need(UNIX)
    done = h2t2(installed, tmp_path, "run", "porch", "--board", "unix", "--json", "report.json")
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["labelled"] == 500 and report["accuracy"] > 0.9 and not report["trouble"]


@pytest.fixture(scope="module")
def newcomers(wheel, tmp_path_factory):
    """An environment of who follows the README: it names these extras."""
    folder = made_once(tmp_path_factory, "newcomers", lambda folder: environment(folder, wheel, "[demo,convert,boards]"))
    return folder / "venv/bin"


TRAINING = """import csv
import joblib
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
rows = list(csv.DictReader(open("log.csv")))[:300]
x = np.array([[float(row[name] or "nan") for name in ("temp", "load", "vibration")] for row in rows])
y = [row["state"] for row in rows]
small = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(x[:, :2], y)
big = make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((8,), max_iter=2000, random_state=1)).fit(x, y)
joblib.dump(small, "small.joblib")
joblib.dump(big, "big.joblib")
"""
MODELS = ("small.joblib", "big.joblib", "--test", "log.csv", "--trust")


def write_log(path):
    """Write the log of three presses: times, names, words, and an empty cell in each tenth row."""
    rng = np.random.default_rng(5)
    lines = ["time,machine,temp,load,vibration,state"]
    for n in range(600):
        broken = rng.random() < 0.3
        cells = [f"{60 + 9 * (broken + rng.normal()):.1f}", f"{rng.normal():.2f}", f"{5 * broken + rng.normal():.3f}"]
        cells[rng.integers(3)] *= n % 10 != 3
        time, state = f"2026-03-{n // 48 + 1:02d} {n // 2 % 24:02d}:{n % 2 * 30:02d}", "broken" if broken else "ok"
        lines.append(",".join([time, f"press-{n % 3}", *cells, state]))
    path.write_text("\n".join(lines))


def test_a_newcomer_gets_from_a_csv_to_decisions_in_six_commands(newcomers, tmp_path):
    """Installing is the first of the six. Where a command stumbles, its message names the options of the next attempt."""
    need(UNIX)
    write_log(tmp_path / "log.csv")
    (tmp_path / "train.py").write_text(TRAINING)
    subprocess.run([newcomers / "python", "train.py"], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    options = []
    for advice, words in (
        ("--label COLUMN chooses one", ("--label", "state")),
        ("--drop time machine leaves", ("--drop", "time", "machine")),
        ("add --event CLASS", ("--event", "broken")),
        ("--ldl-columns", ("--ldl-columns", "temp", "load")),
    ):
        refused = h2t2(newcomers, tmp_path, "pair", *MODELS, *options)
        assert refused.returncode == 2 and advice in refused.stderr and "Traceback" not in refused.stderr, refused.stderr
        options += words
    said = []
    for words in (
        ("pair", *MODELS, *options, "--out", "mypair"),
        ("demo", "--pair", "mypair", "--broker", "amqtt", "--samples", "300"),
        ("new", "press", "--from", "mypair", "--board", "pico_w"),
        ("run", "press"),
    ):
        done = runs(newcomers, tmp_path, *words)
        said.append(done.stdout + done.stderr)
    pair, demo, _, run = said
    assert "Event: broken." in pair and pair.count("big.joblib: loading it") == 1
    assert "sample costs" in demo and "digits" not in demo  # a sentence before its tables, and no other pair's
    assert run.count('"decision": ') == 500 and '"source": "remote"' in run  # as many samples as a project takes
    assert re.search(r"saved so far: .* against always asking", run)
    accuracy, cost = map(float, re.search(r"accuracy ([\d.]+)%, mean cost ([\d.]+) ", run).groups())
    assert accuracy > 75 and cost < 0.3  # asking about each sample costs 0.3
