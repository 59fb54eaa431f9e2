"""A board checks its config.json by the declaration of its entries, and says in its log what is wrong."""

import json
import os

import pytest
from board_folder import configured
from support import ROOT, need

from h2t2.node import board, run
from h2t2.node.entries import check
from h2t2_lab.pages import entries
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common import pairs
from h2t2_tools.fleet.config import RUNTIME, NodeConfig, described

# what somebody writes, and what the log says of it
WRONG = [
    ({"deadline_ms": -5}, "deadline_ms = -5: want a whole number, 10..3600000"),
    ({"deadline_ms": 0}, "deadline_ms = 0: want a whole number, 10..3600000"),
    ({"every_ms": 200.5}, "every_ms = 200.5: want a whole number, 0..86400000"),
    ({"model_id": 70000}, "model_id = 70000: want a whole number, 0..65535"),
    ({"model_id": True}, "model_id = True: want a whole number"),
    ({"watchdog_ms": "8s"}, "watchdog_ms = '8s': want a whole number, 0..60000"),
    ({"device": "a/b#"}, "device = 'a/b#': want 1 to 64 bytes without / + #"),
    ({"device": "d" * 65}, f"device = '{'d' * 39}: want 1 to 64 bytes"),
    ({"device": None}, "device = None: want 1 to 64 bytes"),
    ({"snapshot": 5}, "snapshot = 5: want text"),
    ({"log_file": 5}, "log_file = 5: want text"),
    ({"stream": "yes"}, "stream = 'yes': want true|false"),
    ({"when_down": "wait"}, "when_down = 'wait': want ask|raise|pause"),
    ({"remote_shape": [8, "8"]}, "remote_shape = [8, '8']: want numbers"),
    ({"wifi_password": 12345678}, "wifi_password = ...: want text"),
    ({"arguments": {"beta": "0.2"}}, "arguments.beta = '0.2': want a whole number, 0..32768"),
    ({"arguments": [4]}, "arguments = [4]: want object"),
]


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A function that starts the program of a board with this text as its config.json; what its log says then."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(board, "start_cause", lambda: "pwron")

    def start(text, error=None):
        (tmp_path / "config.json").write_text(text)
        if error:
            with pytest.raises(error):
                run.main()
        else:
            run.main()
        log = tmp_path / "h2t2.log"
        return log.read_text() if log.exists() else ""

    return start


def content(tmp_path, **changed):
    configured(tmp_path, "breast_cancer", ldl="ldl.h2m", records="samples.bin", snapshot="state")
    return {**json.loads((tmp_path / "config.json").read_text()), "samples": 3, **changed}


@pytest.mark.parametrize(("changed", "said"), WRONG)
def test_an_entry_that_does_not_fit_is_named_with_what_it_wants(started, tmp_path, changed, said):
    log = started(json.dumps(content(tmp_path, **changed)), ValueError)
    assert f"config.json cannot be used: {said}" in log and "12345678" not in log and log.count("\n") == 1


@pytest.mark.parametrize("text", ["", '{"policy": "adap', "[]"])
def test_a_file_that_is_cut_is_in_the_log(started, text):
    assert "config.json cannot be used: " in started(text, Exception)


def test_a_file_that_is_not_there_is_in_the_log(started, tmp_path):
    started("", ValueError)
    os.remove(tmp_path / "config.json")
    with pytest.raises(OSError):
        run.main()
    assert "No such file" in (tmp_path / "h2t2.log").read_text()


def test_a_misspelt_entry_is_in_the_log_and_the_node_starts(started, tmp_path):
    log = started(json.dumps(content(tmp_path, every_mss=5, arguments={"bits": 4, "seed": 1})))
    assert "there is no entry every_mss; it is ignored" in log and log.count("no entry") == 1


EVERYTHING = {
    "deadline": 3600, "every": 86400, "telemetry": 0, "watchdog": 60, "keep_alive": 3600, "report_decisions": True,
    "hold": 4096,
    "offload_cost": {"seconds": 2}, "budget": "10%", "miss_rate": 0.05, "confidence": 0.9, "sleep": "deep", "snapshot": "s",
    "wifi_name": "w", "wifi_address": ["192.168.1.7"] * 4, "wifi_power_save": "performance", "wifi_security": "wpa3",
    "provision": True, "provision_password": "12345678", "class_names": ["a", "b"], "remote_limit": 100, "stream": True,
    "remote_dtype": "raw", "snapshot_ldl": True, "when_down": "pause", "snapshot_mismatch": "stop", "seed": 2**28 - 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [{}, EVERYTHING, {"policy": "h2t2", "epsilon": 0.00004, "eta": 5.5, "half_life": 9}, {"ordered": True}, {"context": 2}],
    ids=["as it is", "much", "h2t2", "ordered", "context"],
)
@pytest.mark.parametrize("pair", ["digits", "breast_cancer", "ten_digits"])
def test_what_a_host_writes_fits(pair, changed):
    if pair == "ten_digits" and changed:
        changed = {name: value for name, value in changed.items() if name in RUNTIME - {"policy", "class_names"}}
    unknown = []
    written = NodeConfig(**{**described(pairs.load_info(pair)), **changed}).content()
    check(json.loads(json.dumps(written)), unknown.append)
    assert not unknown and len(written) > 15


def test_the_table_is_that_of_the_declaration():
    text = entries.FILE.read_text()
    assert entries.source(text) == text, "run: make pages"


ON_MICROPYTHON = """import json
from h2t2.node.entries import check
for changed in {changes!r}:
    try:
        check(changed, print)
    except ValueError as error:
        print(error)
"""


def test_micropython_says_the_same(tmp_path):
    script = tmp_path / "checks.py"
    script.write_text(ON_MICROPYTHON.format(changes=[*(changed for changed, _ in WRONG), {"every_mss": 1}]))
    lines = need(UNIX).run(script, [], ROOT / "firmware").splitlines()
    assert len(lines) == len(WRONG) + 1 and "no entry every_mss" in lines[-1]
    for (_, said), line in zip(WRONG, lines):
        assert said in line
