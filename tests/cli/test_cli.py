"""The command line: wrong use, and help."""

import os
import subprocess
import sys

import pytest

from h2t2_tools.cli.main import main

WRONG_USE = [
    (["demo", "--pair", "no_such_model"], "no_such_model"),
    (["demo", "--no-such-option"], "no-such-option"),
    (["demo", "--broker", "http://localhost"], "mqtt://"),
    (["demo", "--broker", "mqtt://localhost:99999"], "99999"),
    (["demo", "--beta", "1.5"], "beta"),
    (["demo", "--policy", "h2t2", "--eta", "0"], "eta"),
    (["demo", "--policy", "h2t2", "--epsilon", "7"], "epsilon"),
    (["demo", "--samples", "0"], "samples"),
    (["boards", "nosuch"], "nosuch: no such emulator; want one of unix"),
    (["boards", "unix", "nosuch", "--install"], "nosuch: no such emulator"),
    (["demo", "--policy", "h2t2", "--corollary", "100", "--beta", "0"], "corollary"),
    (["node", "--device", "a/b"], "device"),
    (["node", "--broker", "mqtt://me:secret-word@localhost"], "--user"),
    (["node", "--password-file", "/nowhere/at/all"], "/nowhere/at/all"),
    (["node", "--broker", "mqtt://localhost", "--ca", "ca.crt"], "mqtts://"),
    (["node", "--broker", "mqtts://localhost", "--ca", "/nowhere/ca.crt"], "/nowhere/ca.crt"),
    (["node", "--broker", "mqtts://localhost", "--cert", "a"], "--key"),
    (["rdl", "--metrics", "x"], "--metrics"),
    (["rdl", "--remote", "/nowhere/big.onnx"], "/nowhere/big.onnx"),
    (["command", "kitchen"], "one of"),
    (["command", "kitchen", "--pause", "-1"], "pause"),
    (["broker-config", "--device", "a", "a"], "'a'"),
    (["broker-config", "--device", "a", "--client-certs"], "--certs"),
    (["validate", "--bits", "99"], "bits"),
    (["rdl", "--model-id", "70000"], "--model-id 70000: want a whole number, 0 to 65535"),
    (["pair", "a.keras", "b.keras", "--test", "/nowhere/test.npz"], "/nowhere/test.npz"),
    ([], "COMMAND"),
]


@pytest.mark.parametrize("arguments, word", WRONG_USE)
def test_wrong_use_gets_status_2_and_names_the_argument(arguments, word, capfd):
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    errors = capfd.readouterr().err
    assert status == 2
    assert word in errors and "Traceback" not in errors and "secret-word" not in errors


@pytest.mark.parametrize(
    "command",
    "demo node rdl command certs broker-config validate boards".split(),
)
def test_help_shows_examples(command, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert f"examples:\n  h2t2 {command}" in capsys.readouterr().out


def test_output_that_nobody_reads_any_more_ends_a_command_in_silence(tmp_path):
    """As in `h2t2 new mine | head -1`."""
    unread, output = os.pipe()
    os.close(unread)
    command = [sys.executable, "-m", "h2t2_tools", "new", str(tmp_path / "mine")]
    with os.fdopen(output) as stdout:
        ended = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_file_that_is_not_there_is_named(capsys):
    assert main(["score", "nowhere.tflite", "breast_cancer"]) == 1
    assert capsys.readouterr().err == "h2t2: nowhere.tflite: No such file or directory\n"
