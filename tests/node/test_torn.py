"""A policy that an exception interrupted: nobody calls it any more, it is not saved, and only a new start repairs it."""

import pytest
from scripted import running
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.node.node import FALLBACK
from h2t2.node.store import file_store


class Torn(Adaptive):
    """A policy whose call fails halfway, once; a call after this is noted."""

    failing, torn, later = "", False, 0

    def _fail(self, name):
        if self.torn:
            self.later += 1
        if self.failing == name:
            self.failing, self.torn, self.lead = "", True, 12345  # half of a change
            raise MemoryError("heap full")

    def decide(self, k):
        self._fail("decide")
        return super().decide(k)

    def learn(self, ticket, label, beta=-1):
        self._fail("learn")
        return super().learn(ticket, label, beta)

    def reset(self):
        self._fail("reset")
        super().reset()

    def lose(self, ticket):
        self._fail("lose")
        return super().lose(ticket)

    def likely(self, k):
        self._fail("likely")
        return super().likely(k)

    def report(self):
        self._fail("report")
        return super().report()


def torn_service(tmp_path, failing, later=()):
    """Run a service whose policy fails at its third sample, with replies that arrive in the same turn."""
    policy = Torn(beta=100, seed=3)
    service, node, decisions, log = running(policy, bins=(0,) * 9, store=file_store(str(tmp_path / "state")), window=8)
    node.link.answers = False
    step = node.step

    def fail_at_the_third(*arguments, **options):
        if node.samples == 2:
            policy.failing = failing
            for request in node.link.sent:
                node.link.answer_to(request)
            node.link.commands.extend(later)
        step(*arguments, **options)

    node.step = fail_at_the_third
    service.run()
    return service, policy, decisions, log


@pytest.mark.parametrize("failing", ["decide", "learn"])
def test_a_reply_in_the_same_turn_does_not_repair_a_torn_policy(failing, tmp_path):
    service, policy, decisions, log = torn_service(tmp_path, failing, later=[b'{"snapshot": true}', b'{"reset": true}'])
    assert policy.torn and service.node.policy_torn and service.next_cause
    assert not policy.later and not service.keeper.saves and not list(tmp_path.iterdir())
    assert len(decisions) == service.node.samples and any("torn" in line or "again" in line for line in log)


def test_a_node_with_a_torn_policy_answers_the_safest_class():
    policy = Torn(beta=100, seed=3)
    _, node, decisions, _ = running(policy, bins=())
    policy.failing = "decide"
    for n in range(3):
        node.step(0, (1,), b"x", n)
    assert [row[2:] for row in decisions] == [(policy.safest_class(), FALLBACK)] * 3 and not policy.later


def test_a_command_that_fails_halfway_tears_the_policy_and_one_that_is_refused_does_not(tmp_path):
    policy = Torn(beta=100, seed=3)
    service, node, _, _ = running(policy, store=file_store(str(tmp_path / "state")))
    node.link.commands.append(b'{"set": {"costs": [[0, 1, 5]]}}')
    service._housekeeping()
    assert not node.policy_torn and not service.keeper.saves
    policy.failing = "reset"
    node.link.commands.append(b'{"reset": true}')
    service.run()
    assert node.policy_torn and service.next_cause and not service.keeper.saves and not policy.later


def test_a_sound_policy_is_saved():
    service, node, _, _ = running(paper(epsilon=32768), bins=(5,) * 3)
    service.run()
    assert not node.policy_torn and not service.next_cause
