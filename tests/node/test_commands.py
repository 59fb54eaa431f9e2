"""Commands from outside: checked, and limited in number."""

import pytest
from support import ROOT, need

from h2t2.node import commands
from h2t2.node import limit as limits
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX

GOOD = [
    (b'{"set": {"beta": 100}}', ("set", {"beta": 100}, "", 0)),
    (b'{"set": {"beta": 0, "delta_fp": 32768, "delta_fn": 1}}', ("set", {"beta": 0, "delta_fp": 32768, "delta_fn": 1}, "", 0)),
    (b'{"snapshot": true, "id": "7f"}', ("snapshot", True, "7f", 0)),
    (b'{"reset":true, "until": 1800000000}', ("reset", True, "", 1800000000)),
    (b'{"pause": 86400, "id": "~ ", "until": 0}', ("pause", 86400, "~ ", 0)),
]


BAD = [
    b"", b"x", b"\xff\xfe", b"[]", b"3", b"null", b"{}", b'{"set": {}}', b'{"set": {"beta": 32769}}', b'{"set": {"beta": -1}}',
    b'{"set": {"beta": 0.5}}', b'{"set": {"beta": true}}', b'{"set": {"beta": "1"}}', b'{"set": {"eta": 1}}', b'{"set": 5}',
    b'{"snapshot": 1}', b'{"reset": false}', b'{"pause": 86401}', b'{"pause": -1}', b'{"pause": null}', b'{"exec": "os"}',
    b'{"reset": true, "pause": 5}', b'{"pause": 5' + b" " * 220 + b"}", b"[" * 190, b'{"pause": 1e400}', b'{"pause": NaN}',
    b'{"id": "a"}', b'{"id": 5, "reset": true}', b'{"id": "' + b"x" * 33 + b'", "reset": true}',
    b'{"until": -1, "reset": true}', b'{"until": 1099511627777, "reset": true}',
    b'{"until": 1.5, "reset": true}', b'{"id": "a\\nb", "reset": true}', b'{"id": null, "reset": true}',
]  # fmt: skip


@pytest.mark.parametrize("payload, meant", GOOD)
def test_good_commands(payload, meant):
    for given in (payload, memoryview(payload)):
        made = commands.parse(given)
        assert (made.name, made.value, made.id, made.until) == meant


@pytest.mark.parametrize("payload", BAD)
def test_bad_commands_are_refused(payload):
    with pytest.raises(ValueError, match="command"):
        commands.parse(payload)


ON_BOARD = """from h2t2.node.commands import parse
from h2t2.link.cost import LinkCost
for payload in PAYLOADS:
    try:
        made = parse(payload)
        print(made.name, sorted(made.value.items()) if made.name == "set" else made.value, made.id, made.until)
    except ValueError:
        print("refused")
one = LinkCost(5, 32768000, 32768000, 9)
print([one.beta_of(ms, size) for ms in (0, 1, 7, 500, 2**29) for size in (0, 31, 32, 64, 2**20)], one.expected)
"""


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda emulator: emulator.name)
def test_boards_judge_commands_and_costs_alike(emulator, tmp_path, capsys):
    need(emulator)
    (tmp_path / "judge.py").write_text(f"PAYLOADS = {[payload for payload, _ in GOOD] + BAD!r}\n{ON_BOARD}")
    exec((tmp_path / "judge.py").read_text(), {})
    out = emulator.run(tmp_path / "judge.py", [], ROOT / "firmware")
    assert out == capsys.readouterr().out and out.count("refused") == len(BAD)


def test_a_burst_then_one_each_fifteen_seconds(monkeypatch):
    now = [2**30 - 20000]  # the clock wraps on the way
    monkeypatch.setattr(limits, "ticks_ms", lambda: now[0] % 2**30)
    limit = limits.Limit()
    assert [limit.passes() for _ in range(6)] == [True] * 4 + [False] * 2
    now[0] += 14999
    assert not limit.passes()
    now[0] += 1
    assert limit.passes() and not limit.passes()
    now[0] += 10 * limits.EVERY_MS
    assert [limit.passes() for _ in range(5)] == [True] * 4 + [False]
    now[0] -= 500000  # the clock jumps back: nothing is let through for that, and it goes on
    assert not limit.passes()
    now[0] += limits.EVERY_MS
    assert limit.passes()
