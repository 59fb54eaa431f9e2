"""A lesson teaches what its ticket would have: after the ticket, beside others, and also once it was stored as text."""

import random

import pytest
from limits import limited

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.h2t2 import H2T2
from h2t2.core.ordered import Ordered
from h2t2.core.policy import OFFLOAD
from h2t2_tools.fleet.queue.lesson import Lesson

COSTS = [[0, 32768, 9000], [32768, 0, 32768], [20000, 32768, 0]]
KINDS = {
    "h2t2": lambda **options: H2T2(**options),
    "adaptive": lambda **options: Adaptive(**options),
    "ordered": lambda **options: Ordered(**options),
    "miss_rate": lambda **options: limited(miss_rate=1638, **options),
    "guaranteed": lambda **options: limited(miss_rate=1638, confidence=29491, **options),
    "classes": lambda **options: AdaptiveClasses(COSTS, **options),
    "ordered, guaranteed": lambda **options: limited(ordered=True, miss_rate=1638, confidence=29491, **options),
    "classes, guaranteed": lambda **options: limited(costs=COSTS, normal=1, miss_rate=1638, confidence=29491, **options),
    "class-head, miss_rate": lambda **options: limited(costs=COSTS, normal=0, features=3, miss_rate=1638, **options),
    "head, miss_rate": lambda **options: limited(features=3, miss_rate=1638, **options),
    "head": lambda **options: AdaptiveHead(3, **options),
    "class-head": lambda **options: AdaptiveClassHead(3, COSTS, **options),
}


def reading(policy, rng):
    score, features = rng.randrange(256), [rng.randrange(-200, 200) for _ in range(3)]
    sample = [score * 40, 16384 - score * 40 >> 1, 16384 - score * 40 >> 1] if policy.classes > 2 else [score]
    if hasattr(policy, "features"):
        return sample + features
    return sample if policy.classes > 2 else policy.reading(None, score)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lesson_teaches_what_its_ticket_would_have_taught_and_leaves_other_tickets(kind):
    """Bit for bit, in any order, and while an outstanding ticket holds the slot that the lesson borrows."""
    prompt, late = KINDS[kind](beta=4000, window=512), KINDS[kind](beta=4000, window=3)
    rng, tickets, lessons, borrowed = random.Random(3), set(), [], 0
    for _ in range(400):
        following = late.tickets.last + 1
        if lessons and rng.random() < 0.6:
            ticket, lesson = lessons.pop(rng.randrange(len(lessons)))
            label = rng.randrange(prompt.classes)
            assert prompt.learn(ticket, label) and lesson.fits(late) and lesson.teach(late, label)
            borrowed += following - 3 in tickets
        if following - 3 in tickets:
            tickets.remove(following - 3)
            label = rng.randrange(prompt.classes)
            assert prompt.learn(following - 3, label) and late.learn(following - 3, label)
        assert list(late.state()) == list(prompt.state())
        sample = reading(prompt, rng)
        assert prompt.decide(sample) == late.decide(sample)
        if prompt.ticket and rng.random() < 0.5:
            lessons.append((prompt.ticket, Lesson.parse(Lesson.take(late).as_json())))
        elif prompt.ticket:
            tickets.add(prompt.ticket)
    assert borrowed > 20 and prompt.lessons > 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_lesson_fits_its_own_kind_alone(kind):
    policy = KINDS[kind]()
    while policy.decide(reading(policy, random.Random(1))) != OFFLOAD:
        pass
    lesson = Lesson.of(policy)
    assert [name for name in KINDS if lesson.fits(KINDS[name]())] == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_no_class_has_changes_nothing(kind):
    policy = KINDS[kind]()
    while policy.decide(reading(policy, random.Random(1))) != OFFLOAD:
        pass
    before = list(policy.state()), list(policy.tickets.slots)
    with pytest.raises(ValueError, match="label 3 is not"):
        Lesson.of(policy).teach(policy, 3)
    assert (list(policy.state()), list(policy.tickets.slots)) == before
