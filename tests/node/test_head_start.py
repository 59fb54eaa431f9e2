"""Heads that begin with the mean of the heads of other devices: `h2t2 head`, its file, and a node that reads it."""

import json

import numpy as np
import pytest
from support import ROOT, configuration, need
from taught_heads import averaged, learners, numbers, taught

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.head import FRESH_ROOT
from h2t2.node import head_start
from h2t2.node.keeper import Keeper
from h2t2.node.store import file_store
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError

MODEL = 0x1234567
COSTS = [[0, 30000, 30000], [30000, 0, 30000], [30000, 30000, 0]]
MAKERS = {
    "two classes": lambda **options: AdaptiveHead(2, **options),
    "three": lambda **options: AdaptiveClassHead(2, COSTS, **options),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def event(policy, feature):
    """Return the probability that the first head of class 1 gives to it."""
    heads = learners(policy)[1 if policy.classes > 2 else 0]
    heads.see([120, feature, 0])
    heads.predict()
    return heads.g[0]


def test_a_new_head_begins_with_the_mean(make, tmp_path, capsys):
    policies, path = averaged(tmp_path, make, MODEL)
    assert "3 devices" in capsys.readouterr().out
    mean = np.rint(np.mean([numbers(policy) for policy in policies], 0)).astype(int).tolist()
    policy, lines = make(), []
    policy.adopt(MODEL)
    head_start.begin(policy, str(path), lines.append)
    assert numbers(policy) == mean and lines == [f"{path}: the head begins with what other devices have learned"]
    assert event(policy, 60) > 4 * event(policy, -60) and event(make(), 60) == event(make(), -60)


def test_what_a_label_has_taught_stays(make, tmp_path):
    """A snapshot wins over the file. A head that was forgotten with its local model begins with it."""
    _, path = averaged(tmp_path, make, MODEL)
    policy, lines = taught(make(seed=9), tmp_path / "own", 9, MODEL), []
    again = make(seed=9)
    keeper = Keeper(again, file_store(str(tmp_path / "own")))
    again.adopt(MODEL)
    head_start.begin(again, str(path), lines.append)
    assert keeper.restored and numbers(again) == numbers(policy) and not lines
    other = taught(make(seed=9), tmp_path / "other", 9, MODEL + 1)
    other.adopt(MODEL)
    head_start.begin(other, str(path), lines.append)
    assert numbers(other) != numbers(policy) and any(learners(other)[0].weights) and len(lines) == 1


def test_a_file_that_does_not_fit_changes_nothing_and_is_named(make, tmp_path):
    _, path = averaged(tmp_path, make, MODEL)
    new = numbers(make())

    def refused(content, policy=None, model=MODEL):
        (tmp_path / "x").write_bytes(content)
        policy, lines = policy or make(), []
        before = numbers(policy)
        policy.adopt(model)
        head_start.begin(policy, str(tmp_path / "x"), lines.append)
        assert numbers(policy) == before and len(lines) == 1 and lines[0].startswith(f"{tmp_path / 'x'}: ")
        return lines[0]

    content = path.read_bytes()
    assert refused(content, model=MODEL + 1).endswith("it is of another local model; the head begins anew")
    assert "of 2 and 3" in refused(content, AdaptiveHead(3))
    assert "no file of `h2t2 head`" in refused(b"") and "no file of" in refused(b"H2M" + content)
    assert "version 2" in refused(content[:4] + b"\2" + content[5:])
    assert "bytes are missing" in refused(content[:-9]) and "checksum" in refused(content[:-1])
    assert "checksum" in refused(content + b"\0")
    for at in range(4, len(content), 5):
        refused(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
    policy, lines = make(), []
    policy.adopt(MODEL)
    head_start.begin(policy, str(tmp_path / "none"), lines.append)
    assert numbers(policy) == new and len(lines) == 1


@pytest.mark.parametrize(
    "other, words",
    [
        (lambda path: taught(AdaptiveHead(2), path, 4, MODEL + 1), "the local model 1234568, that of"),
        (lambda path: taught(AdaptiveHead(3), path, 4, MODEL), "3 features"),
        (lambda path: taught(AdaptiveClassHead(2, COSTS), path, 4, MODEL), "3 classes"),
        (lambda path: taught(AdaptiveHead(2), path, 4, MODEL, rounds=0), "no label has taught this head yet"),
        (lambda path: taught(AdaptiveHead(2), path, 4, 0), "no node wrote the snapshot"),
        (lambda path: Keeper(Adaptive(), file_store(str(path))).save(), "a policy without a head"),
        (lambda path: file_store(str(path)).save(b"something else"), "not a snapshot"),
        (lambda path: path.with_suffix(".0").write_bytes(b"noise"), "neither"),
        (lambda path: None, "neither"),
    ],
    ids=["model", "features", "classes", "untaught", "no model", "no head", "no snapshot", "damaged", "nothing"],
)
def test_heads_of_others_are_refused_by_name(other, words, tmp_path, capsys):
    taught(AdaptiveHead(2), tmp_path / "a", 1, MODEL)
    other(tmp_path / "b")
    capsys.readouterr()
    assert main(["head", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "head.h2h")]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'b'}: " in error and words in error and not (tmp_path / "head.h2h").exists()


def test_the_report(tmp_path):
    averaged(tmp_path, MAKERS["three"], MODEL)
    words = [
        "head",
        str(tmp_path / "s1.0"),
        str(tmp_path / "s1.1"),
        "--out",
        str(tmp_path / "head.h2h"),
        "--json",
        str(tmp_path / "r.json"),
    ]
    assert main(words) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    size = (tmp_path / "head.h2h").stat().st_size
    expected = {"head": str(tmp_path / "head.h2h"), "devices": 1, "classes": 3, "features": 2, "model": MODEL, "bytes": size}
    assert report == expected


SCRIPT = """from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.node import head_start
{lines}
"""
LINES = """policy = {policy}
policy.adopt({model})
head_start.begin(policy, {path!r}, print)
heads = policy.forecaster.heads
print([list(h.weights) + list(h.roots) for h in (heads.of_class if policy.classes > 2 else (heads,))])
"""


@pytest.mark.slow
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda e: e.name)
def test_micropython_reads_the_same_integers(emulator, tmp_path, capsys):
    wanted, lines = [], ""
    for made, maker in (("AdaptiveHead(2)", "two classes"), (f"AdaptiveClassHead(2, {COSTS})", "three")):
        (tmp_path / maker).mkdir()
        _, path = averaged(tmp_path / maker, MAKERS[maker], MODEL)
        damaged = tmp_path / maker / "damaged"
        damaged.write_bytes(path.read_bytes()[:-1] + b"\0")
        for file in (path, damaged):
            lines += LINES.format(policy=made, model=MODEL, path=str(file))
            policy = MAKERS[maker]()
            policy.adopt(MODEL)
            head_start.begin(policy, str(file), wanted.append)
            wanted.append(str([[*heads.weights, *heads.roots] for heads in learners(policy)]))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(lines=lines))
    files = sorted((ROOT / "firmware/h2t2").rglob("*.py"))
    assert need(emulator).run(script, files, ROOT / "firmware").splitlines() == wanted
    assert str(FRESH_ROOT) in wanted[-1]


def test_a_context_needs_a_policy_with_a_head(tmp_path):
    for limits in ({}, {"miss_rate": 0.1}):
        assert configuration(tmp_path, policy="adaptive", context=2, **limits).arguments()["features"] == 2
    with pytest.raises(UserError, match="context"):
        configuration(tmp_path, context=2, policy="h2t2").arguments()
