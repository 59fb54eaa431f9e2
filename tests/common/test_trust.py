"""A stranger's pair or model runs no program, and sends samples nowhere, before its user says that he trusts it."""

import json
import pickle
import shutil
import sys

import pytest
from command_line import h2t2

from h2t2_tools.common import pairs, trust
from h2t2_tools.common.errors import UserError

PROGRAM = "open({ran!r}, 'w')\n\ndef encode(x): return b'x'\n\ndef scores(batch): return [0.5] * len(batch)\n"
PYTHON = {"model": "own.py:scores"}
ENCODER = {"dtype": "raw", "media": "x/y", "encode": "own.py:encode"}
SERVER = {"model": "https://a.example/v2/models/m"}
CHAT = {"model": "own.toml"}


@pytest.fixture(autouse=True)
def nothing_trusted(tmp_path, monkeypatch):
    monkeypatch.delenv(trust.GIVEN, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def stranger(tmp_path):
    """Makes a pair whose description has further entries of its remote model."""

    def make(**remote):
        folder = tmp_path / "stranger"
        shutil.copytree(pairs.load("digits").folder, folder)
        (folder / "own.py").write_text(PROGRAM.format(ran=str(tmp_path / "ran")))
        (folder / "own.toml").write_text("url = 'https://a.example'\nmodel = 'm'\nprompt = '?'\nclasses = ['a', 'b']\n")
        description = json.loads((folder / "pair.json").read_text())
        description["remote"].update(remote)
        (folder / "pair.json").write_text(json.dumps(description))
        return folder

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    "entries, danger",
    [
        (PYTHON, "own.py runs with all your rights"), (ENCODER, "own.py runs with all your rights"),
        (SERVER, "samples go to https://a.example"), (CHAT, "samples go to the server that own.toml names"),
    ],
)  # fmt: skip
def test_commands_refuse_what_nobody_trusts_before_it_runs(entries, danger, stranger, tmp_path):
    folder = stranger(**entries)
    for command in (
        ["new", tmp_path / "mine", "--from", folder],
        ["rdl", "--pair", folder, "--broker", "mqtt://127.0.0.1:1"],
        ["node", "--pair", folder, "--samples", 3, "--broker", "mqtt://127.0.0.1:1"],
    ):
        run = h2t2(*command)
        assert run.returncode == 2 and danger in run.stderr and "--trust" in run.stderr and "Traceback" not in run.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "mine").exists()


@pytest.mark.slow
def test_an_option_trusts_a_pair_this_time_and_says_what_it_does(stranger, tmp_path):
    folder = stranger(**PYTHON)
    run = h2t2("new", tmp_path / "mine", "--from", folder, "--trust")
    assert run.returncode == 0 and "own.py runs with all your rights" in run.stderr
    assert h2t2("new", tmp_path / "another", "--from", folder).returncode == 2


def test_what_a_user_made_is_trusted_wherever_it_lies_until_it_changes(stranger, tmp_path):
    folder = stranger(**ENCODER)
    with pytest.raises(UserError, match="own.py runs"):
        pairs.load(str(folder))
    info = pairs.PairInfo.model_validate_json((folder / "pair.json").read_text())
    trust.remember(pairs.active_parts(folder, info)[1])  # as h2t2 pair does
    pair = pairs.load(str(folder))
    pairs.copy_pair(pair, tmp_path / "copy")
    assert pairs.load(str(tmp_path / "copy")).info.remote.encode == "encode.py:encode"
    with (folder / "own.py").open("a") as file:
        file.write("import os\n")
    with pytest.raises(UserError, match="own.py runs"):
        pairs.load(str(folder))


@pytest.mark.parametrize("answer, trusted", [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_at_a_terminal_a_question_is_asked_once(answer, trusted, stranger, monkeypatch, capsys):
    folder = stranger(**SERVER)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdin, "readline", lambda: answer, raising=False)
    if trusted:
        pairs.load(str(folder))
        assert "samples go to https://a.example" in capsys.readouterr().err
        monkeypatch.setattr(sys.stdin, "readline", pytest.fail, raising=False)
        pairs.load(str(folder))
    else:
        with pytest.raises(UserError, match="--trust"):
            pairs.load(str(folder))


class Program:
    """Runs where it is loaded."""

    def __init__(self, ran):
        self.ran = ran

    def __reduce__(self):
        return open, (self.ran, "w")


@pytest.mark.slow
def test_no_pickled_model_is_loaded_before_its_user_trusts_it(tmp_path):
    ran = tmp_path / "ran"
    (tmp_path / "model.joblib").write_bytes(pickle.dumps(Program(str(ran))))
    command = ["convert", tmp_path / "model.joblib", "--calibration", tmp_path / "x.npy", "--out", tmp_path / "out"]
    run = h2t2(*command)
    assert run.returncode == 2 and "loading it runs whatever program is in it" in run.stderr and not ran.exists()
    h2t2(*command, "--trust")
    assert ran.exists()


@pytest.mark.slow
def test_no_recipe_runs_before_its_user_trusts_it(stranger, tmp_path):
    folder = stranger()
    (folder / "train.py").write_text(PROGRAM.format(ran=str(tmp_path / "ran")))
    run = h2t2("retrain", folder, "--samples", tmp_path / "kept", "--out", tmp_path / "out")
    assert run.returncode == 2 and "train.py: it runs with all your rights" in run.stderr and not (tmp_path / "ran").exists()


def test_the_shipped_pairs_are_trusted():
    for name in pairs.shipped_names():
        pairs.load(name)
