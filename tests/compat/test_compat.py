"""This release reads what every earlier release wrote, or refuses it by its number. docs/formats.md states both."""

import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from snapshots import restored, saved
from support import ROOT, need, program

from h2t2 import __version__
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.forecaster import BINS
from h2t2.core.numbers import ONE
from h2t2.core.ordered import Ordered
from h2t2.cpython import worker_wire
from h2t2.ldl import bounds
from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire
from h2t2.node import head_start, package, restoring, snapshot
from h2t2.node.store import file_store
from h2t2_lab.boards import drive
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import config

HERE = Path(__file__).parent
artefacts = program(HERE / "artefacts.py")

NUMBERS = {
    "wire": wire.VERSION,
    "snapshot": snapshot.VERSION,
    "bundle": bounds.VERSION,
    "update": package.VERSION,
    "head": head_start.VERSION,
    "pair": pairs.FORMAT,
    "project": config.FORMAT,
}
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "wire").is_dir())
# (release, format) -> the error with which this release refuses it; docs/formats.md says so
REFUSED: dict[tuple[str, str], str] = {}


def assert_holds(content, expected):
    """Every entry that was read then is read now; a later release may add entries."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in content, key
            assert_holds(content[key], value)
    else:
        assert content == expected


def test_this_release_has_its_artefacts():
    assert __version__ in RELEASES, "run: python tests/compat/artefacts.py"


@pytest.mark.parametrize("name", artefacts.READERS)
@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_wrote_is_read_as_it_was_then(release, name):
    folder = HERE / release / name
    refusal = REFUSED.get((release, name))
    if refusal:
        with pytest.raises((ValueError, UserError), match=refusal):
            artefacts.READERS[name](folder)
    else:
        assert_holds(artefacts.READERS[name](folder), json.loads((folder / artefacts.CONTENTS).read_text()))


@pytest.mark.parametrize("name", NUMBERS)
def test_the_page_states_the_number_that_is_written(name):
    row = re.search(rf"^\| {name} \| (\d+) \|", (ROOT / "docs/formats.md").read_text(), re.M)
    assert row and int(row[1]) == NUMBERS[name], f"docs/formats.md: the row {name!r} must say {NUMBERS[name]}"


def newest(name, file):
    return bytearray((HERE / __version__ / name / file).read_bytes())


def test_a_request_of_another_version_is_answered_with_its_status():
    request = newest("wire", "request.bin")
    request[0] = wire.VERSION + 1
    with pytest.raises(ValueError, match=f"request version {wire.VERSION + 1}, this one reads {wire.VERSION}"):
        worker_wire.decode_request(bytes(request))
    assert worker_wire.refusal(bytes(request)) == wire.OTHER_VERSION


def test_a_reply_of_another_version_is_refused_by_its_number():
    reply = newest("wire", "reply.bin")
    reply[0] = wire.VERSION + 1
    with pytest.raises(ValueError, match=f"reply with version {wire.VERSION + 1}"):
        wire.decode_reply(bytes(reply))


@pytest.mark.parametrize("number", [3, snapshot.VERSION + 1])
def test_a_snapshot_of_another_version_is_refused_by_its_number(number):
    policy = artefacts.POLICIES["h2t2"]()
    content = bytearray(file_store(str(HERE / __version__ / "snapshot/h2t2.state")).load())
    content[4] = number
    with pytest.raises(restoring.Mismatch, match=f"version {number}, this runtime reads {snapshot.VERSION}"):
        restored(policy, content, artefacts.COSTS)


@pytest.mark.parametrize("number", [1, 2, bounds.VERSION + 1])
def test_a_bundle_of_another_format_is_refused_by_its_number(number):
    content = newest("bundle", "dense.h2m")
    struct.pack_into("<H", content, 4, number)
    with pytest.raises(ValueError, match=f"format {number}, this runtime reads {bounds.VERSION}: make it again"):
        Int8Model(bytes(content))


def test_an_update_of_another_version_is_refused_by_its_number():
    content = newest("update", "update.h2u")
    content[4] = package.VERSION + 1
    with pytest.raises(
        ValueError, match=f"package version {package.VERSION + 1}, flags 0; this runtime reads {package.VERSION}"
    ):
        package.Head(bytes(content))


@pytest.mark.parametrize("number", [0, pairs.FORMAT + 1, "new", None])
def test_a_pair_of_another_format_is_refused_by_its_number(number, tmp_path):
    shutil.copytree(HERE / __version__ / "pair", tmp_path / "mine")
    description = json.loads((tmp_path / "mine/pair.json").read_text())
    assert description["format"] == pairs.FORMAT
    (tmp_path / "mine/pair.json").write_text(json.dumps({**description, "format": number, "remote": "of another shape"}))
    with pytest.raises(UserError, match=re.escape(f"pair.json: format {number!r}, this version reads {pairs.FORMAT}; ")):
        pairs.load(str(tmp_path / "mine"))


def test_a_pair_without_a_format_is_of_format_1():
    description = json.loads((pairs.places.models() / "digits/pair.json").read_text())
    assert "format" not in description and pairs.load("digits").info.name == "digits"


def test_a_project_of_another_format_is_refused_by_its_number(tmp_path):
    path = tmp_path / config.FILE
    path.write_text("format = 2\nunheard_of = 1\n")
    with pytest.raises(UserError, match=f"h2t2.toml: format 2, this version reads {config.FORMAT}; use the version"):
        config.ProjectFile(path)


def test_a_project_without_a_format_is_of_format_1(tmp_path):
    path = tmp_path / config.FILE
    path.write_text("bits = 5\n")
    assert config.ProjectFile(path).entries() == {"bits": 5}


def test_the_head_of_release_1_0_continues_without_its_cells():
    """Written by that release after 16 labels (4 features): its heads, their losses and the bins are taken over."""
    policy = AdaptiveHead(4, beta=9830)
    restored(policy, (HERE / "head-1.0.0.snapshot").read_bytes(), policy.cost_list())
    assert policy.lessons == 16 and policy.forecaster.heads.taught == 16
    assert list(policy.forecaster.loss[BINS:]) == [41371, 59033, 113766]
    weights = policy.forecaster.heads.weights.tolist()
    assert weights[:3] == [3499541, 22364, 0] and weights[-1] == -1220335
    assert sum(policy.forecaster.weight) == ONE and policy.report()["head_share"] > ONE - ONE // 8
    fresh = AdaptiveHead(4, beta=9830)
    restored(fresh, saved(policy, policy.cost_list()), policy.cost_list())
    assert list(fresh.state()) == list(policy.state())


def test_a_policy_with_a_past_continues_what_release_1_0_learned_without_one():
    """A node that was updated: counts, pairs and draws are those of the snapshot, the past is empty, the heads begin."""
    content = file_store(str(HERE / "1.0.0/snapshot/adaptive.state")).load()
    former, policy, fresh = Adaptive(beta=9830), Ordered(beta=9830), Ordered(beta=9830)
    for one in (former, policy):
        restored(one, content, artefacts.COSTS)
    assert policy.lessons == former.lessons > 100
    own, theirs = policy.forecaster, former.forecaster
    assert own.labels.tolist() == theirs.labels.tolist() and own.events.tolist() == theirs.events.tolist()
    assert own.loss[:BINS].tolist() == theirs.loss.tolist() and set(own.loss[BINS:]) == {max(theirs.loss)}
    assert policy.experts.losses.tolist() == former.experts.losses.tolist() and policy.rng.x == former.rng.x
    assert [list(row[0]) for row in own.heads.array_rows()] == [list(row[0]) for row in fresh.forecaster.heads.array_rows()]
    assert sum(own.weight) == ONE and own.head_share() < ONE >> 1


IN_MICROPYTHON = """
from h2t2.core.ordered import Ordered
from h2t2.node.restoring import restore
from h2t2.node.store import file_store

policy = Ordered(beta=9830)
restore(policy, file_store(FOLDER + "adaptive.state").open(), {costs})
print(list(policy.state()))
"""


def test_a_board_reads_the_same_from_it():
    path = HERE / "1.0.0/snapshot/adaptive.state.0"
    policy = Ordered(beta=9830)
    restored(policy, file_store(str(path.with_suffix(""))).load(), artefacts.COSTS)
    script = IN_MICROPYTHON.format(costs=artefacts.COSTS)
    output = drive.run(need(UNIX), script, {path.name: path.read_bytes()})
    assert json.loads(output.splitlines()[-1]) == list(policy.state())
