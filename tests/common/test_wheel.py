"""The wheel, in an empty environment outside the repository: what commands offer by name is there."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest
from support import ROOT

from h2t2_tools.common import pairs
from h2t2_tools.lab import catalogue

pytestmark = [pytest.mark.whole, pytest.mark.timeout(1200)]
EXTRAS = "demo,lab,convert"
OFFERED = [
    ["replay", "weather", "--runs", "2", "--samples", "500"],
    ["replay", "digits", "--runs", "2", "--samples", "500"],
    ["prior", "digits"],
    ["recommend", "occupancy", "--beta", "0.2"],
    ["experiment", "in-order", "--quick"],
    ["new", "mine"],
    ["demo", "--samples", "200", "--broker", "amqtt"],
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    subprocess.run([*map(str, pip)], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of the programs of an environment with the wheel and what it needs, in the versions of the lock."""
    folder = tmp_path_factory.mktemp("installed")
    versions = re.findall(r"^(\S+==\S+(?: ;[^\\\n]*)?) *\\?$", (ROOT / "host_tools/locks/dev.txt").read_text(), re.M)
    (folder / "constraints.txt").write_text("\n".join(versions) + "\n")
    venv.create(folder / "venv", symlinks=True)  # as `python -m venv` does
    install(folder / "venv/bin", f"{wheel}[{EXTRAS}]", "-c", folder / "constraints.txt")
    return folder / "venv/bin"


def install(programs, *words):
    uv = shutil.which("uv", path=os.path.dirname(sys.executable))
    python = programs / "python"
    command = [uv, "pip", "install", "--no-config", "-q", "--python", python] if uv else [sys.executable, "-m", "pip"]
    command += [] if uv else ["--python", python, "install", "-q", "--no-compile"]
    done = subprocess.run([*map(str, (*command, *words))], capture_output=True, text=True, cwd=programs)
    assert done.returncode == 0, done.stderr[-2000:]


def h2t2(installed, folder, *words):
    command = [*map(str, (installed / "h2t2", *words))]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": ""}, timeout=600
    )


def test_it_holds_every_trace_and_pair_of_the_source_tree(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    for name in catalogue.names():
        if catalogue.is_real(name):
            assert f"h2t2_tools/_models/{name}/trace.npz" in held
    for name in pairs.shipped_names():
        assert {f"h2t2_tools/_models/{name}/{file}" for file in ("pair.json", "test.npz", "ldl.tflite", "train.py")} <= held


@pytest.mark.parametrize("words", OFFERED, ids=lambda words: "-".join(words[:2]))
def test_what_it_offers_by_name_runs(installed, words, tmp_path):
    done = h2t2(installed, tmp_path, *words)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]


def test_pandas_beside_it_breaks_nothing(installed, tmp_path):
    """Whatever NumPy pandas brings along: the local model, the policy and the pictures still run."""
    install(installed, "pandas")
    done = h2t2(installed, tmp_path, "demo", "--samples", "100", "--broker", "amqtt")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert h2t2(installed, tmp_path, "prior", "digits").returncode == 0
