"""Every policy of the core has what "Add a policy" in CONTRIBUTING.md lists."""

import json
from importlib import import_module

import pytest
import targets
from portable import replay
from support import ROOT

from h2t2.core.pairs import Pairs
from h2t2.core.policies import NAMES
from h2t2.core.policy import Policy
from h2t2_tools.common import policies
from h2t2_tools.proof import demo


def classes():
    for path in (ROOT / "firmware/h2t2/core").glob("*.py"):
        if not path.stem.endswith("_viper"):
            import_module(f"h2t2.core.{path.stem}")
    derived = {Policy}
    while more := {kind for each in derived for kind in each.__subclasses__()} - derived:
        derived |= more
    return {kind for kind in derived - {Policy, Pairs} if kind.__module__.startswith("h2t2.core.")}


def test_every_kind_is_fuzzed_and_has_vectors():
    kinds = sorted(each.kind for each in classes())
    assert len(set(kinds)) == len(kinds) >= 6 and sorted(targets.KINDS) == kinds
    assert [make().kind for make in targets.POLICIES] == list(targets.KINDS)
    played = {type(replay.make(kind, 1, options)) for kind, _, _, options in replay.RUNS if kind not in ("rng", "budget")}
    assert played == classes()


@pytest.mark.parametrize("name", NAMES)
def test_a_node_can_tell_what_each_has_learned(name):
    policy = policies.make(name, policies.DEFAULTS)
    assert policy.name == name and name in demo.LINES
    json.dumps([policies.thresholds(policy), policies.learned_state(policy)])
