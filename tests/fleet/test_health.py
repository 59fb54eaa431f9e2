"""The health of a gate's remote model: what its last questions came to, however few there are a day."""

import pytest

from h2t2_tools.fleet.gate.remote_health import AWAY, FAILURES, LONGEST_TEXT, Health
from h2t2_tools.fleet.monitoring import alarms
from h2t2_tools.fleet.monitoring.state import State
from h2t2_tools.fleet.monitoring.watched_device import Device

DAY_S = 86400.0


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def health(clock):
    return Health(lambda: clock[0])


def test_ten_events_a_day_raise_the_alarm_with_the_servers_words(clock, health):
    for _ in range(FAILURES):
        assert not health.unanswered
        clock[0] += DAY_S / 10
        health.note_failure("it answered 'perhaps'", server=False)
    device = Device("gate", online=True, last_message=1.0)
    device.take_state(State(samples=3, uptime_s=60, link="silent", unanswered=health.unanswered), 1.0, False)
    assert alarms.Alarm("unanswered", "it answered 'perhaps'") in alarms.of_device(device, device.rates(), None, unix_s=2.0)
    health.note_answer(0.0, 5.0)
    assert not health.unanswered


def test_a_server_that_is_away_or_wrongly_set_up_is_named_at_once(health):
    health.note_failure("status 401\x1b[2J" + "x" * 999, server=True)
    assert health.unanswered.startswith("status 401 [2Jx") and len(health.unanswered) == LONGEST_TEXT


def test_answers_that_always_come_too_late_are_an_outcome(health):
    for _ in range(FAILURES):
        assert not health.unanswered
        health.note_answer(7.2, 5.0)
    assert "too late" in health.unanswered and "7.2 s" in health.unanswered and not health.is_away


def test_a_remote_model_that_is_away_gets_probes_after_longer_and_longer(clock, health):
    health.note_failure("refused", server=True)
    probes = []
    while clock[0] < 600:
        if health.may_ask():
            probes.append(clock[0])
            health.note_failure("refused", server=True)
        clock[0] += 0.25
    waits = [later - sooner for sooner, later in zip(probes, probes[1:])]
    assert waits[0] < 2 and 24 <= len(probes) < 45 and max(waits) <= 31 and health.is_away and not health.answers
    clock[0] += 60
    assert health.may_ask() and not health.may_ask(), "one question at a time"
    health.note_answer(0.0, 5.0)
    assert health.may_ask() and health.may_ask() and health.answers


def test_a_server_is_asked_when_it_wants_to_be(clock, health):
    health.note_failure("429", server=True, retry_s=3600)
    clock[0] = 3599
    assert not health.may_ask()
    clock[0] = 3600
    assert health.may_ask()


def test_failures_of_single_samples_in_a_row_are_a_server_that_is_away(health):
    for n in range(AWAY):
        assert health.may_ask(), n
        health.note_failure("status 500", server=False)
    assert health.is_away and not health.may_ask()
