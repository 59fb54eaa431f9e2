"""`h2t2-lab experiment past`: chains, streams against a memory, and what a past saves on them."""

import csv

import numpy as np
import pytest

from h2t2_lab.experiments import chains, past, reacting
from h2t2_lab.experiments.setting import Setting
from h2t2_lab.pages import results_page


def test_a_chain_is_the_same_for_every_seed_and_lasts():
    one, again = chains.chain(81, 0, 1, 0.2), chains.chain(81, 0, 2, 0.3)
    assert np.array_equal(one.label, again.label) and np.array_equal(one.score, again.score)
    assert chains.SHORTEST <= len(one) <= chains.LONGEST and set(one.label) == {0, 1}
    assert np.mean(one.label[1:] == one.label[:-1]) > 0.9
    assert len(chains.chain(81, 100, 1, 0.2)) == 100


@pytest.mark.parametrize("name", chains.FOOLING)
def test_streams_against_a_memory_have_both_labels_and_weak_scores(name):
    stream = chains.fooling(name, 6000, 1, 0.2)
    assert 0.05 < stream.label.mean() < 0.95
    assert 0 < stream.score[stream.label == 1].mean() - stream.score[stream.label == 0].mean() < 0.2


def test_shuffling_keeps_each_label_at_its_score():
    stream = chains.fooling("blocks of random length", 500, 1, 0.2)
    mixed = chains.shuffled(chains.fooling)("blocks of random length", 500, 1, 0.2)
    assert not np.array_equal(stream.label, mixed.label)
    assert sorted(zip(stream.score, stream.label)) == sorted(zip(mixed.score, mixed.label))


@pytest.mark.whole
def test_the_past_pays_on_chains_and_the_page_says_so(tmp_path):
    past.perform(Setting(tmp_path, True))
    with (tmp_path / "past.csv").open(newline="") as file:
        rows = {(row["streams"], row["stream"]): row for row in csv.DictReader(file)}
    assert float(rows["chains", "mean (worst excess)"]["ratio"]) < 0.85
    text = results_page.section("past", list(rows.values()))
    assert "| recorded | occupancy |" in text and "| chains | mean (worst excess) |" in text and "chain 80" not in text


@pytest.mark.parametrize("options, level", [({}, 3), ({"ordered": True}, 56)])
def test_a_world_that_reacts_shows_a_policy_the_score_in_its_own_steps(options, level):
    """Bin 3 of 16 is 56 of 256 for a policy with a past, which takes eight bits; the best pair costs no more than asking."""
    shown = []
    excess = reacting._excess(options, lambda policy, k, quiet: shown.append(k) or 0, (3,), 0.1, 40, 1, True)
    assert set(shown) == {level} and 0 <= excess <= 0.1
