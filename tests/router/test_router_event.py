"""Which class is a router's event: named, or plain. Its misses cost delta_fn, whatever the order of the classes."""

import numpy as np
import pytest
from routed import OPTIONS, STREAM, TRUE, local, remote

from h2t2_tools.router.router import Router

WORDS = np.array(["broken", "ok"])  # as scikit-learn orders them: TRUE is 1 where a sample is ok


class Classifier:
    """Scores of both classes, by words, as scikit-learn's classifiers have them."""

    classes_ = WORDS

    def __init__(self, scores):
        self.scores = scores

    def predict_proba(self, x):
        return np.stack([1 - self.scores(x), self.scores(x)], 1)


class Three:
    """Scores of three classes: a sample that is 1 is a cat."""

    classes_ = np.array(["ant", "bee", "cat"])

    def predict_proba(self, x):
        return np.stack([0.9 * (1 - x[:, 1]), 0.1 * (1 - x[:, 1]), x[:, 1]], 1)


def mistakes(router):
    """How many broken ones were called ok, and how many ok ones broken."""
    labels = router.predict(STREAM)
    wanted = WORDS[TRUE]
    return int(((wanted == "broken") & (labels == "ok")).sum()), int(((wanted == "ok") & (labels == "broken")).sum())


def test_the_costs_follow_the_event_that_is_named():
    costs = {"beta": 0.6, "delta_fn": 1.0, "delta_fp": 0.1, "seed": 3}
    missed, alarms = mistakes(Router(Classifier(local), Classifier(remote), event="broken", **costs))
    assert missed < alarms / 5
    others, missed = mistakes(Router(Classifier(local), Classifier(remote), event="ok", **costs))
    assert missed < others / 5


def test_two_named_classes_need_an_event():
    with pytest.raises(ValueError, match=r"event: which of the classes \['broken', 'ok'\] is it\?"):
        Router(Classifier(local), Classifier(remote))
    with pytest.raises(ValueError, match="event 'brocken': want one of the classes"):
        Router(Classifier(local), Classifier(remote), event="brocken")
    assert Router(local, remote).event is None and Router(local, remote, classes=[True, False]).event is True
    with pytest.raises(ValueError, match="with costs, no class is the event"):
        Router(Three(), Three(), event="cat", costs=1 - np.eye(3))


def test_names_that_contradict_the_models_are_an_error():
    """They inverted the local decisions."""
    for classes in (["ok", "broken"], ["good", "bad"], ["ok"]):
        with pytest.raises(ValueError, match=r"local model Classifier scores \['broken', 'ok'\], in this order"):
            Router(Classifier(local), Classifier(remote), classes=classes, event=classes[0])
    numbered = Classifier(local)
    numbered.classes_ = np.array([0, 1])
    assert Router(numbered, remote, classes=["broken", "ok"], event="broken").event == "broken"


@pytest.mark.parametrize(
    "answer", [remote, Classifier(remote), lambda x: WORDS[x[:, 1].astype(int)]], ids=["score", "both", "words"]
)
def test_each_form_of_answer_is_of_the_event(answer):
    """Scores of one number are those of the second class, as scikit-learn's decision functions have them."""
    router = Router(Classifier(local), answer, event="broken", **OPTIONS)
    decisions = router.decide_many(STREAM)
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert len(asked) > 50 and all(decisions[n].label == WORDS[TRUE[n]] for n in asked)
    assert all(decision.number == (decision.label == "broken") for decision in decisions)
    assert [decision.score for decision in decisions[:9]] == pytest.approx(1 - STREAM[:9, 0])
    assert list(router.classes) == ["ok", "broken"]


def test_one_class_of_numbers_without_names_may_be_the_event():
    router = Router(local, remote, event=0, **OPTIONS)
    decisions = router.decide_many(STREAM)
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert all(decisions[n].label == TRUE[n] and decisions[n].number == 1 - TRUE[n] for n in asked)


def test_one_of_three_classes_may_be_the_event():
    router = Router(Three(), Three(), event="cat", **OPTIONS)
    decisions = router.decide_many(STREAM)
    assert list(router.classes) == ["not cat", "cat"]
    assert ([decision.label == "cat" for decision in decisions] == (TRUE == 1)).mean() > 0.97
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert all((decisions[n].label == "cat") == (TRUE[n] == 1) for n in asked)


def test_a_saved_router_keeps_its_event_and_one_of_before_the_second_class(tmp_path):
    router = Router(Classifier(local), Classifier(remote), event="broken", path=tmp_path / "new", **OPTIONS)
    router.decide_many(STREAM[:50])
    router.save()
    models = {"local": Classifier(local), "remote": Classifier(remote)}
    assert Router.load(tmp_path / "new", **models).event == "broken"
    options = (tmp_path / "new/router.json").read_text()
    (tmp_path / "new/router.json").write_text(options.replace('"event": "broken"', '"path": null'))
    assert Router.load(tmp_path / "new", **models).event == "ok"
