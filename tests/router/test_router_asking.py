"""Many samples at once, questions side by side, and labels that come later."""

import asyncio
import json
import threading

import numpy as np
import pytest
from routed import OPTIONS, SCORES, STREAM, TRUE, Held, local, remote

from h2t2_tools import Router


def test_many_samples_take_one_call_of_each_model():
    calls = []

    def counted(name, model):
        def scores(x):
            calls.append((name, len(x)))
            return model(x)

        return scores

    router = Router(counted("local", local), counted("remote", remote), **OPTIONS)
    decisions = router.decide_many(STREAM)
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert calls == [("local", 600), ("remote", len(asked))] and len(asked) > 50
    assert all(decisions[n].label == TRUE[n] for n in asked) and [d.score for d in decisions] == SCORES.tolist()
    assert router.policy.lessons == len(asked) and router.report().offloads == len(asked)


def test_the_models_of_many_samples_are_one_after_the_other_with_batches_of_one():
    one, many = (Router(local, remote, **OPTIONS) for _ in range(2))
    assert [one.decide(x) for x in STREAM] == [many.decide_many(x[None])[0] for x in STREAM]
    assert list(one.policy.state()) == list(many.policy.state())


def test_questions_run_side_by_side_and_teach():
    """The remote model answers only once three questions wait for it."""

    async def run():
        waiting, together = [], asyncio.Event()

        async def slow(x):
            waiting.append(len(x))
            if len(waiting) >= 3:
                together.set()
            await together.wait()
            return x[:, 1]

        router = Router(local, slow, **OPTIONS)
        decisions = await asyncio.gather(*(router.adecide(x) for x in STREAM[:40]))
        return router, decisions

    router, decisions = asyncio.run(run())
    asked = [n for n, decision in enumerate(decisions) if decision.source == "remote"]
    assert len(asked) >= 3 and all(decisions[n].label == TRUE[n] for n in asked)
    assert router.policy.lessons == len(asked)
    with pytest.raises(ValueError, match="only adecide"):
        router.decide(STREAM[0])


def test_a_model_in_a_thread_leaves_the_loop_free():
    async def run():
        release, loop = threading.Event(), asyncio.get_running_loop()

        def blocking(x):
            loop.call_soon_threadsafe(release.set)  # only a loop that goes on sets it
            assert release.wait(60)
            return x[:, 1]

        return await Router(local, blocking, **OPTIONS).adecide(STREAM[0])

    assert asyncio.run(run()).source == "remote"


def test_after_the_deadline_the_local_class_counts_and_the_late_answer_teaches():
    async def run():
        held = Held()
        router = Router(local, held.model(), **OPTIONS)
        decision = await router.adecide(STREAM[0], deadline=0.01)
        assert decision.source == "fallback" and router.policy.lessons == 0 and router.report().fallbacks == 1
        await held.end(router)
        assert not router.teach(decision.ticket, 1)  # it has been learned
        return router

    router = asyncio.run(run())
    assert router.policy.lessons == 1 and router.report().fallbacks == 1 and router.report().offloads == 1


def test_a_caller_who_gives_up_leaves_one_decision():
    async def run():
        held = Held()
        router = Router(local, held.model(), **OPTIONS)
        task = asyncio.create_task(router.adecide(STREAM[0]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await held.end(router)
        return router

    router = asyncio.run(run())
    assert router.report().samples == 1 and router.policy.lessons == 1


def test_a_failure_of_one_question_is_told_and_the_sample_falls_back():
    async def broken(x):
        raise OSError("no route")

    with pytest.warns(UserWarning, match="no route"):
        decision = asyncio.run(Router(local, broken, **OPTIONS).adecide(STREAM[0]))
    assert decision.source == "fallback" and decision.ticket


def test_labels_that_come_later_teach_as_answers_would():
    at_once, later = (Router(local, remote, **OPTIONS) for _ in range(2))
    for x, true in zip(STREAM, TRUE.tolist()):
        answer, decision = at_once.decide(x), later.ask_later(x)
        assert (answer.source == "remote") == (decision.source == "asked") == (decision.ticket is not None)
        if decision.ticket:
            assert later.teach(decision.ticket, true) and not later.teach(decision.ticket, true)
    assert list(at_once.policy.state()) == list(later.policy.state())
    report = later.report(TRUE)
    assert report.fallbacks == report.offloads  # every decision was the local one


def test_a_ticket_of_another_policy_and_no_ticket():
    router, other = Router(local, remote, **OPTIONS), Router(local, remote, bits=6, **OPTIONS)
    ticket = next(d.ticket for d in map(router.ask_later, STREAM) if d.ticket)
    other.decide(STREAM[0])
    assert not other.teach(ticket, 1) and not Router(local, remote).teach(ticket, 1)
    for text in ("", "{}", json.dumps({"number": 0, "lesson": {}}), "[1]"):
        with pytest.raises(ValueError, match="not one of a decision"):
            router.teach(text, 1)
    with pytest.raises(ValueError, match="none of the classes"):
        router.teach(ticket, 7)


def test_every_decision_is_told_once():
    told = []
    router = Router(local, remote, on_decision=lambda x, decision: told.append((x[1], decision)), **OPTIONS)
    decisions = [router.decide(STREAM[0]), *router.decide_many(STREAM[1:50]), router.ask_later(STREAM[50])]
    assert [decision for _, decision in told] == decisions and [true for true, _ in told] == TRUE[:51].tolist()


def test_a_router_is_an_estimator():
    router = Router(local, remote, **OPTIONS)
    labels = router.predict(STREAM)
    assert labels.shape == (600,) and router.classes_.tolist() == [0, 1] and np.mean(labels == TRUE) > 0.8
    decided = router.report().samples
    assert router.predict_proba(STREAM[:5]).tolist() == np.stack([1 - SCORES[:5], SCORES[:5]], 1).tolist()
    assert router.report().samples == decided
    told = []
    again = Router(**{**router.get_params(), "path": "porch", "on_decision": lambda *_: told.append(1)})
    again = Router(**again.get_params())
    again.decide(STREAM[0])
    assert again.beta == 0.2 and again.options["seed"] == 3 and again.path.name == "porch" and told == [1]
