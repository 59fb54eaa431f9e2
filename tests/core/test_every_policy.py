"""Every policy of the core has what "Add a policy" in CONTRIBUTING.md lists."""

import json
from importlib import import_module

import pytest
import targets
from portable import replay
from snapshots import restored, saved
from support import ROOT

from h2t2.core.adaptive import Adaptive
from h2t2.core.experts import Pairs
from h2t2.core.policies import NAMES
from h2t2.core.policy import Policy
from h2t2_tools.common import policies
from h2t2_tools.demo import demo


def classes():
    for path in (ROOT / "firmware/h2t2/core").glob("*.py"):
        import_module(f"h2t2.core.{path.stem}")
    derived = {Policy}
    while more := {kind for each in derived for kind in each.__subclasses__()} - derived:
        derived |= more
    return {kind for kind in derived - {Policy, Pairs} if kind.__module__.startswith("h2t2.core.")}


def test_every_kind_is_fuzzed_and_has_vectors():
    kinds = sorted(each.kind for each in classes())
    assert len(set(kinds)) == len(kinds) >= 6 and set(targets.KINDS) >= set(kinds)
    assert [make().kind for make in targets.POLICIES] == list(targets.KINDS)
    played = {type(replay.make(kind, 1, options)) for kind, _, _, options in replay.RUNS if kind not in ("rng", "budget")}
    assert played == classes()


@pytest.mark.parametrize("words", [(1, 1, 1), (30268, 30306, 30322)], ids=["smallest", "largest"])
def test_a_snapshot_takes_every_state_of_the_draws(words):
    policy, again = Adaptive(), Adaptive(seed=7)
    policy.rng.x, policy.rng.y, policy.rng.z = words
    restored(again, saved(policy, policy.cost_list()), policy.cost_list())
    assert [again.rng.draw() for _ in range(9)] == [policy.rng.draw() for _ in range(9)]


@pytest.mark.parametrize("name", NAMES)
def test_a_node_can_tell_what_each_has_learned(name):
    policy = policies.make(name, policies.DEFAULTS)
    assert policy.name == name and name in demo.LINES
    json.dumps([policies.thresholds(policy), policies.learned_state(policy)])
