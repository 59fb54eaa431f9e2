"""A project is the unit: it holds all that it needs, takes several boards, and can be moved."""

import json
import shutil
import sys

import joblib
import numpy as np
import pytest
from command_line import ran
from sklearn.linear_model import LogisticRegression
from support import need

from h2t2_tools.boards import project, run_emulated
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import models

FUNCTION = """import joblib
from pathlib import Path
from cleaning import cleaned

MODEL = joblib.load(Path(__file__).with_name("big.joblib"))
TABLE = (Path(__file__).parent / "data" / "shift.txt").read_text()


def scores(x):
    return MODEL.predict_proba(cleaned(x) + float(TABLE))[:, 1]
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A pair whose remote model is a function that reads two files and imports a module; all of its sources are deleted."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 4)).astype(np.float32)
    y = (x.sum(1) > 0).astype(int)
    joblib.dump(LogisticRegression().fit(x[:, :2], y), folder / "small.joblib")
    joblib.dump(LogisticRegression().fit(x, y), folder / "big.joblib")
    np.savez(folder / "test.npz", x=x, y=y)
    (folder / "data").mkdir()
    (folder / "data/shift.txt").write_text("0.0\n")
    (folder / "cleaning.py").write_text("def cleaned(x):\n    return x\n")
    (folder / "mine.py").write_text(FUNCTION)
    (folder / "unrelated.bin").write_bytes(b"1")
    out = tmp_path_factory.mktemp("pairs") / "mypair"
    words = ["pair", folder / "small.joblib", f"{folder}/mine.py:scores", "--test", folder / "test.npz", "--out", out]
    assert main([*map(str, words), "--ldl-columns", "0", "1"]) == 0
    shutil.rmtree(folder)
    return out


def moved(tmp_path, name, *boards):
    """A project of the pair `name` with these boards, moved to another folder, with nothing left where it was."""
    first = tmp_path / "first"
    assert main(["new", str(first / "porch"), "--from", str(name)]) == 0
    for board in boards:
        assert main(["new", str(first / "porch"), "--board", board]) == 0
    second = tmp_path / "elsewhere"
    second.mkdir()
    shutil.move(first / "porch", second / "door")
    shutil.rmtree(first)
    path = second / "door/h2t2.toml"
    path.write_text(path.read_text().replace('wifi_name = "network"', 'wifi_name = "home"'))
    return second / "door"


def test_a_pair_holds_the_files_that_its_function_reads(pair):
    assert {path.name for path in pair.rglob("*.*")} >= {"rdl.py", "big.joblib", "cleaning.py", "shift.txt"}
    assert not (pair / "unrelated.bin").exists()


@pytest.mark.whole
def test_a_moved_project_is_flashed_for_two_boards(pair, tmp_path, capsys):
    """Its pair is deleted too. Each board gets its own section and the same app."""
    copy = tmp_path / "pairs/mypair"
    shutil.copytree(pair, copy)
    door = moved(tmp_path, copy, "pico_w", "pico")
    shutil.rmtree(copy.parent)
    written = {}
    for board in ("pico_w", "pico"):
        report = tmp_path / f"{board}.json"
        assert main(["flash", str(door), "--board", board, "--dry-run", "--json", str(report)]) == 0, capsys.readouterr().err
        written[board] = {row["path"]: row["bytes"] for row in json.loads(report.read_text())["files"]}
        assert json.loads(report.read_text())["model"]["bundle_bytes"] == (door / "pair/ldl.h2m").stat().st_size
    assert written["pico_w"]["app.py"] == written["pico"]["app.py"] == (door / "app.py").stat().st_size
    assert "h2t2/link/wifi.mpy" in written["pico_w"] and "h2t2/link/serial.mpy" in written["pico"]
    assert main(["flash", str(door), "--dry-run"]) == 2
    assert "sections for pico_w, pico: name one with --board" in capsys.readouterr().err
    loaded = pairs.load(str(door / "pair"))
    scores = models.answers(loaded)
    assert ((scores >= 0.5) == loaded.y).mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("board", ["unix", "arm32"])
def test_a_moved_project_runs_with_its_own_remote_model(pair, tmp_path, board):
    """An emulated board without a section stands in for the one that has one."""
    need(run_emulated.EMULATED[board])
    door = moved(tmp_path, pair, "esp32")
    lines = (door / "samples.csv").read_text().splitlines(True)[:40]
    (door / "samples.csv").write_text("".join(lines))
    assert main(["run", str(door), "--board", board, "--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert sum(report["decisions"].values()) == 40 and report["decisions"]["remote"] > 10 and report["accuracy"] > 0.8


@pytest.mark.whole
def test_a_project_of_three_classes(tmp_path, capsys):
    """From models to a moved project: its class costs come from the pair, and a node of it decides between three."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 300)
    x = (np.eye(3)[y] * 2 + rng.normal(size=(300, 3))).astype(np.float32)
    joblib.dump(LogisticRegression().fit(x[:, :2], y), tmp_path / "small.joblib")
    joblib.dump(LogisticRegression().fit(x, y), tmp_path / "big.joblib")
    np.savez(tmp_path / "test.npz", x=x, y=y)
    words = ["pair", tmp_path / "small.joblib", tmp_path / "big.joblib", "--test", tmp_path / "test.npz"]
    words += ["--out", tmp_path / "three", "--classes", 3, "--ldl-columns", 0, 1]
    assert main([*map(str, words)]) == 0
    door = moved(tmp_path, tmp_path / "three", "pico_w")
    loaded = project.load(door)
    assert (loaded.board, loaded.contents.config.class_costs) == ("pico_w", [[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert main(["flash", str(door), "--dry-run", "--json", str(tmp_path / "report.json")]) == 0, capsys.readouterr().err
    paths = [row["path"] for row in json.loads((tmp_path / "report.json").read_text())["files"]]
    assert "h2t2/core/adaptive_classes.mpy" in paths
    assert main(["new", str(door), "--board", "microbit"]) == 2
    assert "3 classes, but the microbit supports two" in capsys.readouterr().err


@pytest.mark.slow
def test_a_node_runs_a_project_from_any_folder(pair, tmp_path):
    """The app finds its files as on a board, and what the node writes lies in the project. Nobody answers here."""
    door = moved(tmp_path, pair, "esp32")
    lines = (door / "samples.csv").read_text().splitlines(True)[:12]
    (door / "samples.csv").write_text("".join(lines))
    path = door / "h2t2.toml"
    path.write_text(path.read_text().replace("# snapshot = ", "snapshot = "))
    command = [sys.executable, "-m", "h2t2_tools", "node", "elsewhere/door", "--broker", "mqtt://127.0.0.1:1", "--bits", "3"]
    command += ["--prior", ""]  # the project's is of four bits
    run = ran(command, cwd=tmp_path)
    summary = json.loads(run.stdout.splitlines()[-1])["summary"]
    assert summary["samples"] == 12 == len((door / "decisions.csv").read_text().splitlines())
    assert max(json.loads(line)["bin"] for line in run.stdout.splitlines() if '"bin"' in line) < 8
    assert project.load(door).contents.own.keys() == {"samples.csv"}


def test_a_board_is_added_and_everything_else_stays(tmp_path, capsys):
    porch = tmp_path / "porch"
    assert main(["new", str(porch)]) == 0
    (porch / "app.py").write_text("# mine\n" + (porch / "app.py").read_text())
    path = porch / "h2t2.toml"
    path.write_text(path.read_text().replace("# beta = 0.3", "beta = 0.25") + "\n[offload_cost]\nseconds = 4.0")
    before = {file: file.read_bytes() for file in porch.rglob("*") if file.is_file() and file != path}
    text = path.read_text()
    for board in ("pico_w", "esp32_s3", "microbit"):
        assert main(["new", str(porch), "--board", board]) == 0
    assert {file: file.read_bytes() for file in before} == before and path.read_text().startswith(text)
    assert project.load(porch, "esp32_s3").contents.config.device == "porch-esp32_s3"
    assert project.load(porch, "pico_w").contents.config.device == "porch"
    microbit = project.load(porch, "microbit").contents
    assert (microbit.config.beta, microbit.config.policy, microbit.records) == (0.25, "h2t2", porch / "samples.bin")
    capsys.readouterr()
    for words, why in (
        (["--board", "esp32_s3"], "already has a section [boards.esp32_s3]"),
        (["--board", "esp32", "--from", "digits"], "has its pair, pair: leave this option out"),
        ([], "--board KIND adds a board to it"),
    ):
        assert main(["new", str(porch), *words]) == 2
        assert why in capsys.readouterr().err


def test_a_section_of_no_board_is_refused(tmp_path, capsys):
    assert main(["new", str(tmp_path / "porch")]) == 0
    with (tmp_path / "porch/h2t2.toml").open("a") as file:
        file.write("[boards.pico-w]\n")
    assert main(["flash", str(tmp_path / "porch")]) == 2
    assert "[boards.pico-w]: this board does not exist; want one of unix, esp32" in capsys.readouterr().err
