"""Commands from outside: checked, limited in number, carried out; and what an offload really cost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, Ldl, paper

import h2t2.node.commands
import h2t2.node.service
from h2t2.core.calibrating import Calibrating
from h2t2.link import wire
from h2t2.link.cost import LinkCost
from h2t2.node import commands
from h2t2.node.node import FALLBACK, LOCAL, REMOTE, Node
from h2t2.node.service import Service
from h2t2.node.snapshot import BufferSlot, Store, save
from h2t2_tools.boards.emulators import ARM32, UNIX
from h2t2_tools.common import cost_table
from h2t2_tools.common.errors import UserError

GOOD = [
    (b'{"set": {"beta": 100}}', ("set", {"beta": 100})),
    (b'{"set": {"beta": 0, "delta_fp": 32768, "delta_fn": 1}}', ("set", {"beta": 0, "delta_fp": 32768, "delta_fn": 1})),
    (b'{"snapshot": true}', ("snapshot", True)),
    (b'{"reset":true}', ("reset", True)),
    (b'{"pause": 86400}', ("pause", 86400)),
]
BAD = [
    b"", b"x", b"\xff\xfe", b"[]", b"3", b"null", b"{}", b'{"set": {}}', b'{"set": {"beta": 32769}}', b'{"set": {"beta": -1}}',
    b'{"set": {"beta": 0.5}}', b'{"set": {"beta": true}}', b'{"set": {"beta": "1"}}', b'{"set": {"eta": 1}}', b'{"set": 5}',
    b'{"snapshot": 1}', b'{"reset": false}', b'{"pause": 86401}', b'{"pause": -1}', b'{"pause": null}', b'{"exec": "os"}',
    b'{"reset": true, "pause": 5}', b'{"pause": 5' + b" " * 200 + b"}", b"[" * 190, b'{"pause": 1e400}', b'{"pause": NaN}',
]  # fmt: skip


@pytest.mark.parametrize("payload, meant", GOOD)
def test_good_commands(payload, meant):
    assert commands.parse(payload) == commands.parse(memoryview(payload)) == meant


@pytest.mark.parametrize("payload", BAD)
def test_bad_commands_are_refused(payload):
    with pytest.raises(ValueError, match="command"):
        commands.parse(payload)


ON_BOARD = """from h2t2.node.commands import parse
from h2t2.link.cost import LinkCost
for payload in PAYLOADS:
    try:
        what, value = parse(payload)
        print(what, sorted(value.items()) if what == "set" else value)
    except ValueError:
        print("refused")
one = LinkCost(5, 32768000, 32768000, 9)
print([one.paid(ms, size) for ms in (0, 1, 7, 500, 2**29) for size in (0, 31, 32, 64, 2**20)], one.expected)
"""


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda emulator: emulator.name)
def test_boards_judge_commands_and_costs_alike(emulator, tmp_path, capsys):
    if emulator.missing():
        pytest.skip(emulator.missing())
    (tmp_path / "judge.py").write_text(f"PAYLOADS = {[payload for payload, _ in GOOD] + BAD!r}\n{ON_BOARD}")
    exec((tmp_path / "judge.py").read_text(), {})
    out = emulator.run(tmp_path / "judge.py", [], ROOT / "firmware")
    assert out == capsys.readouterr().out and out.count("refused") == len(BAD)


def test_a_burst_then_one_each_fifteen_seconds(monkeypatch):
    now = [2**30 - 20000]  # the clock wraps on the way
    monkeypatch.setattr(h2t2.node.commands, "ticks_ms", lambda: now[0] % 2**30)
    limit = commands.Limit()
    assert [limit.passes() for _ in range(6)] == [True] * 4 + [False] * 2
    now[0] += 14999
    assert not limit.passes()
    now[0] += 1
    assert limit.passes() and not limit.passes()
    now[0] += 10 * commands.EVERY_MS
    assert [limit.passes() for _ in range(5)] == [True] * 4 + [False]
    now[0] -= 500000  # the clock jumps back: nothing is let through for that, and it goes on
    assert not limit.passes()
    now[0] += commands.EVERY_MS
    assert limit.passes()


class Link:
    """Answers every offload at once with `label`; commands are what a test puts there."""

    def __init__(self):
        self.up, self.commands, self.waiting, self.renewed, self.answers = True, [], [], 0, True

    def is_connected(self):
        return self.up

    def send(self, payload):
        if self.up and self.answers:
            _, boot, sequence, _, _ = wire.decode_request(payload)
            self.waiting.append(wire.encode_reply(wire.OK, boot, sequence, 1, 0))
        return self.up

    def receive(self, wait_ms):
        return self.waiting.pop(0) if self.waiting else None

    def command(self):
        return self.commands.pop(0) if self.commands else None

    def report(self, message):
        self.reported = message

    def renew(self):
        self.renewed += 1


def running(policy=None, bins=(5,) * 30, store=None, **options):
    """(service, node, decisions, said) over those bins."""
    decisions, said = [], []
    options = {"deadline_ms": 1000, **options}
    policy = policy or paper(epsilon=32768, feedback="all")  # offloads everything
    node = Node(policy, Ldl(), Link(), lambda *args: decisions.append(args), 1, 9, **options)
    given = iter(bins)
    service = Service(
        node, lambda: next(((k, b"x", n) for n, k in enumerate(given)), None), (1,), store, 500, 0, log=said.append
    )
    return service, node, decisions, said


def test_costs_are_set():
    service, node, decisions, _ = running()
    node.link.commands.append(b'{"set": {"beta": 111, "delta_fn": 222}}')
    service.run()
    assert (node.policy.beta, node.policy.delta_fn, node.policy.delta_fp) == (111, 222, 22938)
    assert node.policy.rates == paper(delta_fn=222).rates and service.commands == 1 and len(decisions) == 30
    service, node, _, _ = running(Calibrating())
    node.link.commands.append(b'{"set": {"beta": 3000, "delta_fp": 9000}}')
    service.run()
    assert (node.policy.lower, node.policy.upper) == (
        Calibrating(beta=3000, delta_fp=9000).lower,
        Calibrating(beta=3000, delta_fp=9000).upper,
    )


def test_a_pause_offloads_nothing_and_ends(monkeypatch):
    now = [0]
    monkeypatch.setattr(h2t2.node.service, "ticks_ms", lambda: now[0] % 2**30)
    service, node, decisions, _ = running(bins=(5,) * 12)
    before = save(node.policy)

    def act(tag, k, decision, source):
        decisions.append((tag, k, decision, source))
        now[0] += 1000

    node.act = act
    node.link.commands.append(b'{"pause": 5}')
    service.run(5)
    assert [source for *_, source in decisions] == [FALLBACK] * 5 and node.unasked == 5
    assert save(node.policy) == before  # not asked, nothing charged
    service.run()
    assert {source for *_, source in decisions[5:]} == {REMOTE}


def test_a_reset_forgets_and_an_old_reply_teaches_nothing():
    blank = paper(epsilon=32768, feedback="all")
    service, node, decisions, _ = running(blank)
    service.run(10)
    assert node.policy.taught == 10
    last = node.policy.tickets.last
    node.link.answers = False
    node.step(5, (1,), b"x", "held")
    node.link.commands.append(b'{"reset": true}')
    service._command()
    assert decisions[-1][0] == "held" and decisions[-1][3] == FALLBACK  # decided, not forgotten
    assert node.policy.taught == 0 and node.policy.tickets.last == last + 1
    node.link.waiting.append(wire.encode_reply(wire.OK, 9, last + 1, 1, 0))
    node.poll()
    assert node.policy.taught == 0 and node.strangers == 1


def test_commands_survive_a_restart_and_a_stranger_cannot_flood():
    memory = bytearray(4096)
    store = Store([BufferSlot(memory, 0, 2048), BufferSlot(memory, 2048, 2048)])
    service, node, decisions, said = running(store=store)
    node.link.commands += [b'{"set": {"beta": 777}}'] + [b"nonsense"] * 1000 + [b'{"pause": 0}'] * 10
    node.link.commands += [b'{"set": {"delta_fn": 888}}']
    for _ in range(1100):
        service._command()
    assert service.commands == 4 and service.commands_refused == 1000 + 7 + 1 and len(said) < 40
    again, node, _, _ = running(store=store)
    assert again.restored and node.policy.beta == node.policy.charged == 777


@given(st.binary(max_size=300))
def test_whatever_comes_as_a_command_the_node_goes_on(payload):
    service, node, decisions, _ = running(bins=(5,) * 3)
    node.link.commands.append(payload)
    service.run()
    assert len(decisions) == 3 and service.errors == 0


def test_while_the_link_is_down_beta_is_raised_and_comes_back():
    service, node, _, _ = running(paper(beta=3000, epsilon=1, feedback="all"), when_down="raise")
    node.step(5, (1,), b"x", 0)
    assert node.policy.beta == 3000
    node.link.up = False
    node.step(5, (1,), b"x", 1)
    assert node.policy.charged == 32768 and node.policy.beta == 3000
    node.link.up = True
    node.step(5, (1,), b"x", 2)
    assert node.policy.beta == 3000


def test_a_raised_beta_is_not_what_is_saved():
    memory = bytearray(4096)
    store = Store([BufferSlot(memory, 0, 2048), BufferSlot(memory, 2048, 2048)])
    service, node, _, _ = running(paper(beta=3000), store=store, when_down="raise")
    node.link.up = False
    service.run()
    assert node.policy.charged == 32768 and node.policy.beta == 3000
    again, node, _, _ = running(paper(beta=3000), store=store)
    assert again.restored and node.policy.beta == 3000


def test_while_the_link_is_down_the_policy_may_rest():
    service, node, decisions, _ = running(when_down="pause")
    node.link.up = False
    before = save(node.policy)
    service.run(20)
    assert save(node.policy) == before and node.unasked == 20 and {source for *_, source in decisions} == {FALLBACK}
    node.link.up = True
    service.run()
    assert {source for *_, source in decisions[20:]} == {REMOTE} and len(decisions) == 30
    for wrong in ({"when_down": "sleep"}, {"window": 0}, {"window": 9}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            running(**wrong)


def test_a_connection_that_never_answers_is_made_anew(monkeypatch):
    now = [0]
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: now[0] % 2**30)
    _, node, decisions, _ = running(window=8)
    node.link.answers = False
    for n in range(h2t2.node.node.SILENT):
        node.step(5, (1,), b"x", n)
        if node.busy():
            now[0] += 1000
            node.poll()
    assert node.link.renewed == 1 and len(decisions) == h2t2.node.node.SILENT


def test_the_clock_may_jump_either_way(monkeypatch):
    now = [10**6]
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: now[0] % 2**30)
    for jump in (600000, -600000):
        _, node, decisions, _ = running()
        node.link.answers = False
        node.step(5, (1,), b"x", 0)
        now[0] += jump
        node.poll()
        assert len(decisions) == 1 and not node.pending  # never later than its deadline


class Slow(Link):
    """Replies after 500 ms of the test's clock."""

    def __init__(self, now):
        super().__init__()
        self.now = now

    def receive(self, wait_ms):
        if self.waiting:
            self.now[0] += 500
        return super().receive(wait_ms)


def test_what_an_offload_cost_is_charged_and_expected(monkeypatch):
    """beta = 1/4 a second + 1/8 a KiB: half a second and 21 bytes; the correction is learn()'s."""
    now = [0]
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: now[0] % 2**30)
    cost = LinkCost(0, 8192, 4096, 16384)
    _, node, _, _ = running(cost=cost)
    node.link = Slow(now)
    charged = []
    learn = node.policy.learn
    node.policy.learn = lambda ticket, label, beta: (
        charged.append((node.policy.tickets.slots[ticket % 8 * 5 + 2], beta)) or learn(ticket, label, beta)
    )
    for n in range(60):
        node.step(5, (1,), b"x", n)
        node.poll()
    size = len(wire.encode_request(1, 9, 1, (1,), b"x"))
    paid = 8192 * 500 // 1000 + (4096 * (size >> 5) >> 5)
    assert charged[0] == (16384, paid) and charged[-1][1] == paid
    assert abs(charged[-1][0] - paid) <= 8 and abs(node.policy.beta - paid) <= 8


def test_lost_offloads_raise_what_is_expected(monkeypatch):
    now = [0]
    monkeypatch.setattr(h2t2.node.node, "ticks_ms", lambda: now[0] % 2**30)
    _, node, decisions, _ = running(cost=LinkCost(0, 32768, 0, 0))
    node.link.answers = False
    for n in range(20):
        node.step(5, (1,), b"x", n)
        now[0] += 1000
        node.poll()
    assert node.policy.beta > 25000 and {source for *_, source in decisions} <= {FALLBACK, LOCAL}


RATES = st.integers(0, 32768000)


@given(st.integers(0, 32768), RATES, RATES, st.integers(-(2**29), 2**29), st.integers(0, 2**20))
def test_the_cost_is_small_integers_in_range_and_right(fixed, per_s, per_kb, ms, size):
    one = LinkCost(fixed, per_s, per_kb, 100)
    beta = one.paid(ms, size)
    assert fixed <= beta <= 32768 and 0 <= one.expected <= 32768
    exact = fixed + per_s * max(0, ms) / 1000 + per_kb * (size >> 5) / 32
    assert beta == 32768 if exact >= 32770 else abs(beta - exact) <= 2
    assert per_s * one.longest < 2**30 and per_kb * one.largest < 2**30


def test_cost_tables(tmp_path):
    path = tmp_path / "cost.toml"
    path.write_text("seconds = 4\nkilobytes = 64\nmillijoules = 500\nwake_mj = 20\nsend_mj_per_kb = 5\nlisten_mj_per_s = 80\n")
    # per second 1/4 + 80/500, per KiB 1/64 + 5/500, fixed 20/500
    assert cost_table.read(path).arguments() == [round(v * 32768) for v in (0.04, 0.25 + 0.16, 1 / 64 + 0.01, 0.3)]
    for text, word in (("", "scale"), ("seconds = 0", "seconds"), ("colour = 1", "colour"), ("seconds = ", "not TOML")):
        path.write_text(text)
        with pytest.raises(UserError, match=word):
            cost_table.read(path)
    path.write_text("seconds = 0.0001\n")
    with pytest.raises(ValueError, match="second"):
        cost_table.read(path).arguments()


def test_telemetry_tells_the_counters():
    service, node, _, _ = running()
    service.run()
    told = json.loads(node.link.reported)
    assert told["samples"] == told["offloads"] == told["taught"] == 30 and told["fallbacks"] == told["unasked"] == 0
