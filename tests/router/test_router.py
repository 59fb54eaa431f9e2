"""The router in a Python program: whatever gives scores is a model, the policy is the runtime's, the report counts."""

import asyncio
import subprocess
import sys
import warnings

import numpy as np
import pytest
from routed import STREAM, TRUE, local, remote

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.ordered import Ordered
from h2t2.core.policy import OFFLOAD
from h2t2_tools import Router
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError


@pytest.mark.parametrize(("options", "kind"), [({}, Ordered), ({"ordered": False}, Adaptive)])
def test_it_decides_as_the_policy_of_a_device(options, kind):
    router = Router(local, remote, beta=0.2, seed=3, **options)
    policy = kind(**units.policy(beta=0.2, seed=3))
    for (score, true), x in zip(STREAM.tolist(), STREAM):
        action = policy.decide(min(int(score * policy.steps()), policy.steps() - 1))
        if action == OFFLOAD:
            policy.learn(policy.ticket, int(true))
        decision = router.decide(x)
        assert (decision.label, decision.source) == ((int(true), "remote") if action == OFFLOAD else (action, "local"))
        assert decision.score == score
    assert list(router.policy.state()) == list(policy.state())


def test_the_report_is_what_the_decisions_cost():
    router = Router(local, remote, beta=0.2)
    assert str(router.report()) == "no decision yet"
    decisions = [router.decide(x) for x in STREAM]
    asked = np.array([decision.source == "remote" for decision in decisions])
    labels = np.array([decision.label for decision in decisions])
    mistakes = np.where(labels == TRUE, 0, np.where(TRUE == 1, 1.0, 0.7))
    report = router.report(TRUE)
    assert report.offloads == asked.sum() and report.samples == 600 and report.accuracy == (labels == TRUE).mean()
    assert report.own == pytest.approx((0.2 * asked + mistakes).mean(), abs=1e-4)
    assert report.always == pytest.approx(0.2, abs=1e-4)
    share, saved = round(100 * asked.mean()), round(100 * (1 - report.own / report.always))
    assert f"asked for {share} % of 600 samples, {saved} % cheaper than always asking" in str(report) == repr(report)
    estimate = router.report()
    assert not estimate.measured and abs(estimate.own - report.own) < 3 * estimate.error + 0.02
    with pytest.raises(ValueError, match="1 labels for 600 decisions"):
        router.report([1])
    with pytest.raises(ValueError, match="7 is none of the classes"):
        router.report([7] * 600)


def test_the_picture_is_a_png_and_leaves_the_programs_back_end_alone(tmp_path):
    router = Router(local, remote, beta=0.2)
    router.decide(STREAM[0])
    for x in STREAM:
        router.decide(x)
    router.report().picture(tmp_path / "cost.png")
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    assert 'src="data:image/png;base64,' in router.report()._repr_html_()


class Estimator:
    classes_ = np.array(["cat", "dog", "fox"])

    def __init__(self, order=(0, 1, 2)):
        self.order = list(order)
        self.classes_ = self.classes_[self.order]

    def predict_proba(self, x):
        scores = np.full((len(x), 3), 0.2)
        scores[np.arange(len(x)), x[:, 0].astype(int)] = 0.6
        return scores[:, self.order]

    def predict(self, x):
        return self.classes_[self.predict_proba(x).argmax(1)]


class NamesOnly:
    def predict(self, x):
        return np.array(["cat", "dog", "fox"])[x[:, 1].astype(int)]


def test_a_report_before_the_first_decision_settles_nothing():
    three = Router(lambda x: np.full((len(x), 3), 1 / 3), lambda x: np.eye(3)[[0] * len(x)])
    assert str(three.report()) == "no decision yet" == str(three.report(labels=[]))
    assert three.decide(np.zeros(2)).number in (0, 1, 2)


@pytest.mark.parametrize("big", [Estimator((2, 0, 1)), NamesOnly(), NamesOnly().predict], ids=["scores", "predict", "function"])
def test_classes_have_the_names_that_the_models_give_them(big):
    router = Router(Estimator(), big, beta=0.1)
    decisions = [router.decide([n % 3, n % 3]) for n in range(60)]
    assert {decision.source for decision in decisions} >= {"remote"}
    assert [decision.label for decision in decisions] == ["cat", "dog", "fox"] * 20
    assert [decision.number for decision in decisions] == [0, 1, 2] * 20
    assert router.report(["cat", "dog", "fox"] * 20).accuracy == 1


def test_a_remote_model_that_fails_costs_no_decision():
    def broken(x):
        raise OSError("no route to host")

    router = Router(local, broken, beta=0.2)
    with pytest.warns(UserWarning, match="no answer of the remote model: no route to host"):
        decisions = [router.decide(x) for x in STREAM[:50]]
    assert "fallback" in {decision.source for decision in decisions} <= {"local", "fallback"}
    report = router.report()
    assert report.fallbacks == report.offloads > 0 and "without an answer nothing tells" in str(report)


def test_a_bad_sample_of_many_leaves_the_others_their_answers(tmp_path):
    """Of a model in a file, as of one behind a URL: the answers to the others are paid for."""
    (tmp_path / "mine.py").write_text(
        "def scores(batch):\n    if (batch < 0).any(): raise ValueError('no such sample')\n    return [0.75] * len(batch)\n"
    )
    router = Router(lambda x: np.full(len(x), 0.5), f"{tmp_path}/mine.py:scores", beta=0.0, seed=1)
    with pytest.warns(UserWarning, match="no such sample"):
        decisions = router.decide_many([[1.0], [-1.0], [2.0]])
    assert [decision.source for decision in decisions] == ["remote", "fallback", "remote"] and decisions[0].number == 1


def test_the_first_failure_of_a_kind_is_shown_with_its_traceback():
    def broken(x):
        raise {0: KeyError, 1: KeyError, 2: OSError}[int(x[0][0])]("of mine")

    router = Router(lambda x: np.full(len(x), 0.5), broken, beta=0.0, seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sources = [router.decide([n % 3]).source for n in range(60)]
    texts = [str(warning.message) for warning in caught]
    kinds = {text.strip().rpartition("\n")[2].partition(":")[0] for text in texts}  # a traceback ends with it
    assert sources.count("fallback") > 10 and len(texts) == 2 and kinds == {"KeyError", "OSError"}


@pytest.mark.parametrize(
    "answer, named, kind",
    [
        ("weird", "() for 1 samples", "str"),
        (["weird"], "'weird' is none of the classes", "str"),
        (7, "() for 1 samples", "int"),
        ([7], "7 is none of the classes", "int"),
        (None, "() for 1 samples", "NoneType"),
        ([None], "None is none of the classes", "NoneType"),
        ([np.nan], "span nan to nan", "float64"),
        (np.array([np.nan], object), "span nan to nan", "float"),
        ([[np.nan, 0.5]], "span nan to nan", "ndarray"),
        ([3.0], "span 3 to 3; want 0 to 1: end it with a softmax or a sigmoid", "float64"),
        ([0.2, 0.8], "(2,) for 1 samples", "list"),
        ([[[0.2, 0.8]]], "(1, 1, 2) for 1 samples", "list"),
        ([[0.2, 0.3, 0.5]], "3 scores for 2 classes", "ndarray"),
        ([[]], "0 scores for 2 classes", "ndarray"),
        ([1j], "complex128", "list"),
        ({"class": 1}, "() for 1 samples", "dict"),
        ([{"class": 1}], "{'class': 1} is none of the classes", "dict"),
        ([["a", "b"]], "<U1", "list"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_answer_that_is_none_is_a_fallback_and_shown_once_with_its_type(answer, named, kind, asynchronous):
    """It raised out of decide(), and the sample was lost."""

    async def awaited(x):
        return answer

    router = Router(local, awaited if asynchronous else lambda x: answer, beta=0.2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if asynchronous:
            decisions = [asyncio.run(router.adecide(x)) for x in STREAM[:50]]
        else:
            decisions = [router.decide(x) for x in STREAM[:50]]
    report = router.report()
    assert {decision.source for decision in decisions} <= {"local", "fallback"}
    assert report.fallbacks == report.offloads == sum(router.failures.values()) > 1
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith("no answer of the remote model: ") and named in text and f"({kind})" in text
    assert list(router.failures) == [f"an answer of type {kind}"]


def test_an_answer_that_is_none_spoils_no_other_of_its_batch():
    def half(x):
        return np.where(np.arange(len(x)) % 2, np.nan, x[:, 1])

    router = Router(local, half, beta=0.2)
    with pytest.warns(UserWarning, match="span nan to nan"):
        sources = [decision.source for decision in router.decide_many(STREAM)]
    assert abs(sources.count("remote") - sources.count("fallback")) <= 1 and sources.count("remote") > 50


def test_classes_that_are_numbers_with_a_point_are_answers_not_scores():
    """predict() of labels 1.0 and 2.0: both were taken for a score above a half."""
    router = Router(local, lambda x: (x[:, 1] + 1.0).astype(object), classes=[1.0, 2.0], event=2.0, beta=0.2)
    decisions = router.decide_many(STREAM)
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert len(asked) > 50 and all(decisions[n].label == TRUE[n] + 1 for n in asked)


@pytest.mark.parametrize(
    "option",
    [{"bits": 99}, {"bits": 9}, {"miss_rate": 2}, {"epsilon": 7}, {"seed": -1}, {"prior": [0.5]}],
)
def test_a_wrong_option_is_refused_at_once(option):
    with pytest.raises(ValueError):
        Router(local, local, **option)


def test_options_may_be_of_numpy():
    Router(local, local, beta=np.float32(0.2), bits=np.int64(4), prior=np.full(16, 0.5))


def test_routers_draw_differently_unless_a_seed_is_given():
    routers = [Router(function, lambda x: np.ones(len(x))) for function in (local, lambda x: np.full(len(x), 0.5))]
    for router in routers:
        router.decide(STREAM[0])
    assert len({(router.policy.rng.x, router.policy.rng.y) for router in routers}) == 2


def test_paths_are_models_an_int8_one_as_on_a_board():
    pair = pairs.load("breast_cancer")
    router = Router(
        pair.ldl, str(pair.rdl), beta=0.2, local_columns=pair.info.columns["ldl"], remote_columns=pair.info.columns["rdl"]
    )
    decisions = [router.decide(x) for x in pair.x]
    assert router.report(pair.y).accuracy > 0.9 and {"local", "remote"} == {decision.source for decision in decisions}


def test_functions_in_files_and_estimators_in_files_are_models(tmp_path):
    import joblib
    from sklearn.linear_model import LogisticRegression

    (tmp_path / "mine.py").write_text("def scores(x):\n    return x[:, 1]\n")
    joblib.dump(LogisticRegression().fit(STREAM[:100, :1], TRUE[:100]), tmp_path / "small.joblib")
    router = Router(tmp_path / "small.joblib", f"{tmp_path}/mine.py:scores", beta=0.2, local_columns=[0])
    assert {router.decide(x).source for x in STREAM} == {"local", "remote"}


class FakeModule:
    __module__ = "torch.nn"


@pytest.mark.parametrize(
    "model, why",
    [
        ("nothing.joblib", "not a model saved"),
        ("model.bin", "no model that is known by its name"),
        ("nothing.tflite", "no such file"),
        (7, "int is no model that gives scores"),
        (NamesOnly(), "NamesOnly is no model that gives scores"),
        (FakeModule(), "export the module to ONNX"),
    ],
)
def test_what_is_no_model_is_refused(model, why):
    with pytest.raises(UserError, match=why):
        Router(model, remote)


@pytest.mark.parametrize(
    "options, why",
    [
        ({"beta": 1.2}, "beta 1.2 is not between 0 and 1"),
        ({"sed": 1}, "sed: policy adaptive has no such option"),
        ({"bits": 9}, "bits 9 is not in 1..8"),
        ({"bits": 9, "ordered": False}, "bits 9: want 1 to 8"),
        ({"bits": "4"}, "bits '4': want a whole number"), ({"bits": 4.5}, "bits 4.5: want a whole number"),
        ({"seed": None}, "seed None: want a whole number"), ({"beta": "0.2"}, "beta '0.2': want a number"),
        ({"delta_fn": None}, "delta_fn None: want a number"), ({"miss_rate": "x"}, "miss_rate 'x': want a number"),
        ({"prior": "abc"}, "prior 'abc': want a table of numbers"), ({"prior": [1, "x"]}, "want a table of numbers"),
        ({"costs": 3}, "costs 3: want a table of numbers"), ({"costs": ["abc"] * 3}, "want a table of numbers"),
        ({"classes": ["a", "b", "c"]}, "3 names; the local model scores 2 classes"),
        ({"costs": [[0, 1], [1, 0]]}, "delta_fp and delta_fn"),
        ({"policy": "best"}, "'best' is not one of"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(options, why):
    with pytest.raises(ValueError, match=why):
        router = Router(local, remote, **options)
        assert "classes" in options, "the others are refused at once"
        router.decide(STREAM[0])


def test_scores_beyond_0_to_1_are_refused():
    with pytest.raises(ValueError, match="span 3 to 3; want 0 to 1: end it with a softmax"):
        Router(lambda x: np.full(len(x), 3.0), remote).decide([1, 1])


def test_the_package_is_cheap_until_a_router_is_wanted(tmp_path):
    code = "import sys, h2t2_tools; assert 'Router' in dir(h2t2_tools); print(sorted({'numpy', 'pydantic'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'Routers'"):
        import h2t2_tools

        _ = h2t2_tools.Routers


def test_help_says_where_to_begin(tmp_path):
    out = subprocess.run(
        [sys.executable, "-c", "import h2t2; help(h2t2)"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert "h2t2.cpython.pair.service(folder, sense, act)" in out and "units.policy(beta=0.2)" in out


def test_a_fallback_is_1_while_no_evidence_pays_for_the_answer_0_as_on_a_device():
    """What a router answers without the policy and without an answer may miss an event."""
    router = Router(local, lambda x: 1 / 0, beta=0.2, seed=3, miss_rate=0.05, confidence=0.9)
    with pytest.warns(UserWarning, match="division by zero"):
        decisions = [router.decide(x) for x in STREAM]
    assert {decision.number for decision in decisions if decision.source == "fallback"} == {1}


def test_misses_of_three_classes_have_a_limit_once_the_normal_one_is_named():
    options = {"classes": ["hum", "ok", "bang"], "costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "miss_rate": 0.1}
    scores = lambda x: np.full((len(x), 3), 1 / 3)  # noqa: E731
    router = Router(scores, lambda x: np.full(len(x), "bang"), **options, normal="ok")
    router.decide(np.zeros(1))
    assert (router.policy.limit.normal, router.policy.report()["miss_rate_limit"]) == (1, 3277)
    with pytest.raises(ValueError, match="want `normal`, the class that is no event"):
        Router(scores, local, **options)
