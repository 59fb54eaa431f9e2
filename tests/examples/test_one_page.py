"""H2T2 on one page: its length, its integers on every interpreter, years of rounds in 31 bits, its snapshot."""

import ast
import sys
import types
from array import array
from itertools import product

import pytest
from command_line import H2T2, ran
from small_ints import run_watched
from support import ROOT, need

from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.boards.microbit import page
from h2t2_tools.checks import validate
from h2t2_tools.checks.float_references import DenseH2T2
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.policies import DEFAULTS

FOLDER = ROOT / "firmware/examples/one_page"
STREAM = (ROOT / "tests/examples/one_page_stream.py").read_text()
OPTIONS = {"beta": 9830, "delta_fp": 22938, "delta_fn": 32768, "eta": 1024, "epsilon": 2048, "seed": 7, "feedback": "all"}


def script(folder, feedback, rounds=3000):
    path = folder / "stream.py"
    path.write_text(f"from h2t2 import OFFLOAD, H2T2\nFEEDBACK = {feedback!r}\nROUNDS = {rounds}\n{STREAM}")
    return path


def on_this_machine(feedback, rounds=3000):
    """The lines that CPython prints."""
    lines = []
    names = {"FEEDBACK": feedback, "ROUNDS": rounds, "print": lambda *words: lines.append(" ".join(map(str, words)))}
    exec(STREAM, {**vars(page.load()), **names})
    return lines


def test_it_has_at_most_130_lines_and_imports_only_array():
    source = (FOLDER / "h2t2.py").read_text()
    assert len(source.splitlines()) <= 130 and max(map(len, source.splitlines())) <= 128
    nodes = list(ast.walk(ast.parse(source)))
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imports] == ["from array import array"]
    assert not [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    assert not [node for node in nodes if isinstance(node, (ast.Div, ast.Pow))]


@pytest.mark.parametrize("feedback", ["explored", "all"])
@pytest.mark.parametrize("emulator", [UNIX, pytest.param(ARM32, marks=pytest.mark.whole)], ids=lambda each: each.name)
def test_the_integers_are_those_of_every_micropython(tmp_path, emulator, feedback):
    """Masses, losses, draws and actions; the micro:bit's are in tests/boards/test_microbit.py."""
    need(emulator)
    lines = emulator.run(script(tmp_path, feedback), [], FOLDER).splitlines()
    assert lines == on_this_machine(feedback) and len(lines) == 30


@pytest.mark.parametrize("mode", validate.ONE_PAGE)
def test_it_decides_as_float64_does(mode):
    row = validate.compare(4, 2000, 3, mode)
    assert row["within"] and row["differ"] <= 1 and row["worst_error"] < 2e-3


@pytest.mark.slow
def test_validate_compares_both_kinds_of_feedback(tmp_path):
    ran([*H2T2, "validate", "--mode", "one-page", "--bits", 4, 6, "--rounds", 300, "--json", tmp_path / "rows.json"])
    rows = ast.literal_eval((tmp_path / "rows.json").read_text().replace("true", "True"))
    assert [(row["mode"], row["bits"]) for row in rows] == [("one-page", 4), ("one-page+all", 4)]


EXTREMES = [
    {"beta": 32768, "delta_fp": 32768, "delta_fn": 32768, "eta": 4096, "epsilon": 256},
    {"beta": 0, "delta_fp": 0, "delta_fn": 32768, "eta": 4096, "epsilon": 256},
    {"beta": 32768, "delta_fp": 32768, "delta_fn": 0, "eta": 4096, "epsilon": 32768},
    {"beta": 1, "delta_fp": 1, "delta_fn": 1, "eta": 1, "epsilon": 256},
]
STREAMS = (  # round -> (bin, label): one bin, scores the wrong way round, the first and the last bin
    lambda n: (7, n & 1),
    lambda n: (n % 16, int(n % 16 < 8)),
    lambda n: (15 * (n & 1), n >> 1 & 1),
)


@pytest.mark.slow
@pytest.mark.parametrize("options", EXTREMES)
def test_every_integer_fits_31_bits_at_the_extremes(options):
    """Also while losses are halved, and when they begin at their limit."""
    module = types.ModuleType("page")
    seen = run_watched((FOLDER / "h2t2.py").read_text(), module)
    for stream, feedback, start in product(STREAMS, ("explored", "all"), (0, module.LIMIT)):
        policy = module.H2T2(**{**OPTIONS, **options, "feedback": feedback})
        policy.losses = array("i", [start * int(n % 3 == n // 16) for n in range(48)])
        for n in range(40):
            k, label = stream(n)
            if policy.decide(k) == module.OFFLOAD:
                policy.learn(policy.ticket, label)
            assert module.BEST // 2 < sum(policy.masses) < 1 << 29
    assert seen["count"] > 10000 and max(-seen["low"], seen["high"]) > 1 << 28


def test_losses_stay_bounded_for_years():
    """A bin that always holds events: its losses grow to the limit again and again, and halving keeps the order of experts."""
    policy = page.load().H2T2(**{**OPTIONS, "eta": 4096})
    halvings, charged = 0, 0
    actions = []
    for n in range(4000):
        k, label = (12, 1) if n % 3 else (3, 0)
        actions.append(policy.decide(k))
        if actions[-1] < 0:
            policy.learn(policy.ticket, label)
        halvings += sum(policy.losses) < charged
        charged = sum(policy.losses)
        assert max(policy.losses) <= 1 << 24
    assert halvings >= 2 and sum(action >= 0 for action in actions[2000:]) / 2000 > 0.8


def test_a_label_teaches_once_and_only_the_last_offload():
    policy = page.load().H2T2(**OPTIONS)
    tickets = []
    while len(tickets) < 2:
        if policy.decide(7) < 0:
            tickets.append(policy.ticket)
    before = list(policy.losses)
    policy.learn(tickets[0], 1)
    assert list(policy.losses) == before
    policy.learn(tickets[1], 1)
    once = list(policy.losses)
    policy.learn(tickets[1], 1)
    assert list(policy.losses) == once != before


def test_restore_goes_on_as_if_there_had_been_no_restart():
    module = page.load()
    policy, other = module.H2T2(**OPTIONS), module.H2T2(**{**OPTIONS, "seed": 1})
    for n in range(500):
        if policy.decide(n * 7 % 16) < 0:
            policy.learn(policy.ticket, int(n * 7 % 16 > 8))
    other.restore(policy.snapshot())
    assert len(policy.snapshot()) == 53
    for n in range(500):
        actions = [each.decide(n * 5 % 16) for each in (policy, other)]
        assert actions[0] == actions[1] and policy.state == other.state
        for each in (policy, other):
            each.learn(each.ticket, n & 1)
    assert policy.snapshot() == other.snapshot()


@pytest.mark.parametrize("place, value", [(0, 0), (1, 30307), (2, -1), (3, 256), (4, 1 << 28), (20, -1), (52, (1 << 24) + 1)])
def test_restore_refuses_what_is_no_snapshot(place, value):
    policy = page.load().H2T2(**OPTIONS)
    policy.decide(3)
    integers = policy.snapshot()
    integers[place] = value
    for wrong in (integers, policy.snapshot()[:-1], array("i", [*policy.snapshot(), 0]), array("i")):
        before = policy.snapshot()
        with pytest.raises(ValueError, match="not a snapshot"):
            policy.restore(wrong)
        assert policy.snapshot() == before


def test_exploration_happens_as_often_as_it_should():
    """The label of a bin is certain: after a while the policy offloads its samples at the rate epsilon."""
    policy = page.load().H2T2(**{**OPTIONS, "feedback": "explored"})
    offloads = 0
    for n in range(12000):
        if policy.decide(14) < 0:
            policy.learn(policy.ticket, 1)
            offloads += n >= 2000
    assert abs(offloads / 10000 - 1 / 16) < 0.01


def test_options_beyond_its_integers_are_refused():
    for options in ({"eta": 4.1}, {"epsilon": 1 / 200}):
        with pytest.raises(UserError, match="H2T2 on one page takes eta up to 4 and epsilon from 1/128 on"):
            page.arguments({**DEFAULTS, **options})
    assert page.arguments({**DEFAULTS, "epsilon": 1 / 128, "eta": 4.0, "beta": 0.3})["beta"] == 9830


def test_the_readme_example_runs():
    lines = [line[8:] for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith(("    >>> ", "    ... "))]
    names = {}
    sys.modules.pop("h2t2_one_page", None)
    exec("\n".join(lines).replace("from h2t2 import H2T2, OFFLOAD\n", ""), {**vars(page.load()), **names})


def test_the_reference_of_the_tests_is_algorithm_1():
    """By hand: one round of the dense matrix and of the page have the same masses."""
    policy, reference = (
        page.load().H2T2(**OPTIONS),
        DenseH2T2(bits=4, beta=0.3, delta_fp=0.7, delta_fn=1.0, eta=1.0, epsilon=1 / 16),
    )
    for k in range(16):
        policy.weigh(k)
        zero, one, offload = policy.masses
        assert (zero, one, offload) == tuple(policy.masses) and zero + one + offload == 136 * (1 << 21)
        q, p = reference.regions(k)
        assert offload / (136 << 21) == pytest.approx(q) and one / (136 << 21) == pytest.approx(p)
