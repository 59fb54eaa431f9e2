"""A router is saved, loaded, pickled, and goes on on a device and back."""

import json
import pickle

import numpy as np
import pytest
from routed import OPTIONS, RNG, SCORES, STREAM, TRUE, local, remote

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.ordered import Ordered
from h2t2.cpython.pair import error_table
from h2t2.node import store
from h2t2.node.keeper import Keeper
from h2t2_tools import Router


def decisions(router, stream):
    return [router.decide(x) for x in stream]


def test_a_saved_router_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole, first = (Router(local, remote, **OPTIONS) for _ in range(2))
    decisions(whole, STREAM[:400])
    decisions(first, STREAM[:400])
    first.save(tmp_path / "porch")
    second = Router.load(tmp_path / "porch", local=local, remote=remote)
    assert second.beta == 0.2 and decisions(second, STREAM[400:]) == decisions(whole, STREAM[400:])
    assert list(second.policy.state()) == list(whole.policy.state())
    assert str(second.report(TRUE)) == str(whole.report(TRUE)) and str(second.report()) == str(whole.report())


def test_names_of_classes_and_other_costs_come_back(tmp_path):
    def scores(x):
        return np.eye(3)[x[:, 0].astype(int)] * 0.8 + 0.2 / 3

    def names(x):
        return np.array(["ant", "bee", "cat"])[x[:, 0].astype(int)]

    router = Router(scores, names, classes=["ant", "bee", "cat"], beta=0.05)
    asked = [d for d in decisions(router, RNG.integers(0, 3, (50, 1))) if d.source == "remote" and d.label == "bee"]
    assert len(asked) > 1 and router.judge(asked[0], "cat") and router.judge(asked[1], "bee")
    assert np.array(router.policy.confusion[:9]).reshape(3, 3) / 32768 == pytest.approx(
        np.array(error_table([[0, 0, 0], [0, 1, 0], [0, 1, 0]])), abs=1e-4
    )
    router.save(tmp_path / "three")
    again = Router.load(tmp_path / "three", local=scores, remote=names, beta=0.1)
    assert again.policy.confusion == router.policy.confusion and again.policy.label_costs == router.policy.label_costs
    assert again.classes == ["ant", "bee", "cat"] and again.beta == 0.1 and again.policy.beta == units.q15(0.1, "beta")
    assert again.report().samples == 50 and again.decide(np.array([2])).label in ("ant", "bee", "cat")


@pytest.mark.parametrize("kind", [Ordered, Adaptive])
def test_a_device_goes_on_where_a_router_stopped_and_back(tmp_path, kind):
    router = Router(local, remote, **OPTIONS, ordered=kind is Ordered)
    decisions(router, STREAM[:300])
    router.save(tmp_path / "porch")
    path = str(tmp_path / "porch/h2t2.state")
    policy = kind(**units.policy(**OPTIONS))
    keeper = Keeper(policy, store.file_store(path), mismatch="stop")
    assert keeper.restored and list(policy.state()) == list(router.policy.state())
    for score in SCORES[300:500]:
        policy.decide(min(int(score * policy.steps()), policy.steps() - 1))
    keeper.save()
    back = Router.load(path, local=local, remote=remote, **OPTIONS, ordered=kind is Ordered)
    assert list(back.policy.state()) == list(policy.state()) and back.path is None


def test_a_router_of_release_1_0_goes_on_with_a_past(tmp_path):
    """Its router.json has no `ordered`, its snapshot is adaptive's."""
    former = Router(local, remote, **OPTIONS, ordered=False)
    decisions(former, STREAM[:300])
    former.save(tmp_path / "porch")
    options = json.loads((tmp_path / "porch/router.json").read_text())
    assert options.pop("ordered") is False
    (tmp_path / "porch/router.json").write_text(json.dumps(options))
    again = Router.load(tmp_path / "porch", local=local, remote=remote)
    assert isinstance(again.policy, Ordered) and again.policy.lessons == former.policy.lessons > 50
    assert again.report().samples == 300


def test_a_with_block_saves_at_its_end_also_after_an_error(tmp_path):
    with pytest.raises(KeyError), Router(local, remote, path=tmp_path / "porch", **OPTIONS) as router:
        decisions(router, STREAM[:20])
        raise KeyError("of the program")
    with Router.load(tmp_path / "porch", local=local, remote=remote) as again:
        assert again.report().samples == 20
        decisions(again, STREAM[20:30])
    assert Router.load(tmp_path / "porch", local=local, remote=remote).report().samples == 30
    with Router(local, remote, path=tmp_path / "never"):
        pass
    assert not (tmp_path / "never").exists()


def test_a_router_can_be_pickled():
    router = Router(local, remote, **OPTIONS)
    assert pickle.loads(pickle.dumps(router)).policy is None
    decisions(router, STREAM[:100])
    again = pickle.loads(pickle.dumps(router))
    assert decisions(again, STREAM[100:200]) == decisions(router, STREAM[100:200])
    assert str(again.report()) == str(router.report())


def test_what_cannot_be_loaded_is_told(tmp_path):
    with pytest.raises(ValueError, match="no router and no snapshot"):
        Router.load(tmp_path / "nowhere", local=local, remote=remote)
    router = Router(local, remote, **OPTIONS)
    with pytest.raises(ValueError, match="no decision yet"):
        router.save(tmp_path / "a")
    decisions(router, STREAM[:10])
    with pytest.raises(ValueError, match="name a folder"):
        router.save()
    router.save(tmp_path / "a")
    with pytest.raises(ValueError, match="other options|another kind"):
        Router.load(tmp_path / "a", local=local, remote=remote, bits=5)


def test_a_label_that_was_learned_teaches_no_second_time_after_a_crash(tmp_path, monkeypatch):
    """The process dies between the log and the snapshot: the label is lost, and never counts twice."""
    router = Router(local, remote, path=tmp_path / "porch", **OPTIONS)
    asked = [router.ask_later(x) for x in STREAM[:30]]
    ticket = next(decision.ticket for decision in asked if decision.ticket)
    router.save()
    assert router.teach(ticket, 1)
    with monkeypatch.context() as broken:
        broken.setattr(store.Store, "writing", lambda *_: (_ for _ in ()).throw(OSError("cut")))
        with pytest.raises(OSError, match="cut"):
            router.save()
    assert not Router.load(tmp_path / "porch", local=local, remote=remote).teach(ticket, 1)


def test_what_a_person_says_beside_the_answers_becomes_the_error_rates(tmp_path):
    router = Router(local, remote, **OPTIONS)
    asked = [d for d in decisions(router, STREAM) if d.source == "remote"]
    ones, zeros = ([d for d in asked if d.number == n] for n in (1, 0))
    assert router.policy.rdl_fp == router.policy.rdl_fn == 0 and min(len(ones), len(zeros)) >= 20
    assert all(router.judge(d, int(n >= 4)) for n, d in enumerate(ones[:20]))  # 4 of 20 answers "1" were wrong
    assert router.policy.rdl_fp / 32768 == pytest.approx(error_table([[0, 4], [0, 0]])[0][1], abs=1e-4)
    assert router.policy.rdl_fn / 32768 == pytest.approx(error_table([[0, 0], [0, 16]])[1][0], abs=1e-4)
    assert not router.judge(next(d for d in decisions(router, STREAM) if d.source == "local"), 1)
    for d in zeros[:20]:
        router.judge(d, 0)
    assert router.policy.rdl_fp / 32768 == pytest.approx(error_table([[20, 4], [0, 0]])[0][1], abs=1e-4)
    router.save(tmp_path / "judged")
    for again in (Router.load(tmp_path / "judged", local=local, remote=remote), pickle.loads(pickle.dumps(router))):
        assert (again.policy.rdl_fp, again.policy.rdl_fn) == (router.policy.rdl_fp, router.policy.rdl_fn)
        assert list(again.policy.state()) == list(router.policy.state())
    told = Router(local, remote, **OPTIONS, rdl_fp=0.1)
    decisions(told, STREAM[:50])
    assert told.judge(asked[0], 1 - asked[0].number) and told.policy.rdl_fp == units.q15(0.1)
