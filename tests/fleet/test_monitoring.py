"""What is made of what a fleet says of itself: untrusted bytes in, rates, costs and alarms out."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from states import EPOCH, Clock, say, state

from h2t2.core.numbers import ONE
from h2t2.core.ordered import OFFLOAD, Ordered
from h2t2.link import presence, wire
from h2t2.node.asking import WAITS
from h2t2_tools.fleet.monitoring import alarms, answer_lifetime, details, fleet_report
from h2t2_tools.fleet.monitoring.costs import LEAN
from h2t2_tools.fleet.monitoring.state import LARGEST, parse_state
from h2t2_tools.fleet.monitoring.watched_fleet import MAX_DEVICES, SETTLED_S, Fleet


def kinds(fleet, clock, name="kitchen"):
    one = fleet_report.of_device(fleet.devices[name], clock.time, fleet.listening)
    return [alarm["kind"] for alarm in one["alarms"]]


def test_a_healthy_device_has_no_alarm(watched, clock):
    say(watched, status=b"online 7")
    for n in range(30):
        clock.time += 10
        say(watched, samples=1000 + 100 * n, offloads=200 + 20 * n, replies=200 + 20 * n)
    assert kinds(watched, clock) == []
    rates = watched.devices["kitchen"].rates()
    assert rates.per_s == pytest.approx(10) and rates.offloads == pytest.approx(0.2) and rates.fallbacks == 0


def test_rates_are_of_the_last_minute(watched, clock):
    for n in range(100):
        clock.time += 1
        say(watched, samples=1000 + n + max(0, n - 50) * 9)
    rates = watched.devices["kitchen"].rates()
    assert 7.5 < rates.per_s < 8.6  # 60 to 65 s: 10 to 15 at one a second, 50 at ten
    clock.time += 1
    say(watched, samples=5, boot=8)  # a new start: counters begin anew
    assert watched.devices["kitchen"].rates() is None


def test_costs_are_reckoned_from_its_counters(watched):
    say(watched)
    costs = watched.devices["kitchen"].slow_figures().costs
    assert costs.always == pytest.approx(0.2, abs=1e-4)
    mean = 75 / 200
    lean = LEAN * mean  # a bin with few answers leans on the mean
    bins = [(cost + lean) / (n + LEAN) for cost, n in zip((0, 50, 25, 0), (50, 99, 49, 2))]
    assert costs.never == pytest.approx((500 * bins[0] + 100 * bins[1] + 100 * bins[2] + 300 * bins[3]) / 1000)
    asked = (200 * 6554 / 32768 + 450 * bins[0] + bins[1] + 51 * bins[2] + 298 * bins[3]) / 1000
    assert costs.own == pytest.approx(asked)


@pytest.mark.parametrize(
    "kind, entries",
    [
        ("unanswered", {"link": "nobody"}),
        ("unanswered", {"link": "silent"}),
        ("fallbacks", {"fallbacks": 30}),
        ("fallbacks", {"unasked": 30}),
        ("saturated", {"saturated": 10}),
        ("namesakes", {"namesakes": True}),
        ("clock", {"time": int(EPOCH) - 3600}),
        ("clock", {"time": 0}),
    ],
)
def test_what_is_wrong_is_an_alarm(watched, clock, kind, entries):
    say(watched)
    assert kinds(watched, clock) == []
    clock.time += 10
    say(watched, **{"samples": 1100, **entries})
    assert kinds(watched, clock) == [kind]


def test_an_outage_has_one_cause(watched, clock):
    """While nobody answers, and in the minute afterwards, whose rates hold the outage."""
    counts = {"fallbacks": 0, "unasked": 0}
    for n, (link, expected) in enumerate(
        [("up", []), ("nobody", ["unanswered"]), ("silent", ["unanswered"]), *[("up", [])] * 7, *[("up", ["fallbacks"])] * 2]
    ):
        counts["unasked" if link == "nobody" else "fallbacks"] += 30 * (0 < n < 5) + 200 * (n > 9)
        say(watched, samples=1000 + 100 * n, link=link, **counts)
        assert kinds(watched, clock) == expected, n
        clock.time += 10


@pytest.mark.parametrize("entries, cause", [({}, "a slow link, or busy workers"), ({"paused": True}, "it is paused")])
def test_samples_without_an_answer_have_one_cause(watched, clock, entries, cause):
    say(watched, **entries)
    clock.time += 10
    say(watched, samples=1100, fallbacks=30, **entries)
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time, watched.listening)["alarms"]
    assert alarm["text"] == f"30% of its samples got no answer that it asked for: {cause}"


def test_ten_samples_a_day_raise_the_alarm_when_no_question_is_answered(watched, clock):
    """A worker answers, and its model fails each time: the link is up, and a minute holds no twenty samples."""
    for n in range(12):
        say(watched, samples=n, offloads=n, replies=0, fallbacks=n, uptime_s=8640 * n + 1)
        assert kinds(watched, clock) == (["fallbacks"] if n >= alarms.IN_A_ROW else []), n
        clock.time += 8640
    say(watched, samples=13, offloads=13, replies=1, fallbacks=11, uptime_s=8640 * 12 + 1)
    assert kinds(watched, clock) == []


def test_a_device_that_goes_or_falls_silent_is_said(watched, clock):
    say(watched, status=b"online 7")
    say(watched)
    clock.time += alarms.SILENT_S + 1
    assert kinds(watched, clock) == ["silent"]
    say(watched, status=b"offline 7")
    assert kinds(watched, clock) == ["offline"]
    say(watched, status=b"online 7")
    say(watched)
    assert kinds(watched, clock) == []


@pytest.mark.parametrize("period_s, quiet_s", [(10, 45), (120, 360), (3600, 10800)])
def test_a_device_is_silent_after_three_of_its_periods(watched, clock, period_s, quiet_s):
    say(watched, status=b"online 7")
    say(watched, telemetry_s=period_s)
    clock.time += quiet_s
    assert kinds(watched, clock) == []
    clock.time += 1
    assert kinds(watched, clock) == ["silent"]


def test_a_device_that_publishes_changes_only_is_never_silent(watched, clock):
    say(watched, status=b"online 7")
    say(watched, telemetry_s=0)
    clock.time += 10 * 86400
    assert kinds(watched, clock) == []


def test_a_board_that_sleeps_may_leave_the_broker(watched, clock):
    say(watched, status=b"online 7")
    say(watched, duty=3)
    say(watched, status=b"offline 7")
    clock.time += 3600
    assert kinds(watched, clock) == []
    clock.time += alarms.ASLEEP_S
    assert kinds(watched, clock) == ["silent"]


def test_what_was_retained_tells_nothing_of_now(watched, clock):
    say(watched, status=b"online 7", retained=True)
    say(watched, retained=True, time=int(EPOCH) - 5000)
    assert kinds(watched, clock) == [] and watched.devices["kitchen"].last_message == 0


def test_starts_within_an_hour_are_counted(watched, clock):
    for boot in range(3):
        clock.time += 600
        say(watched, status=b"online %d" % boot)
        say(watched, boot=boot, start="wdt")
    assert kinds(watched, clock) == []
    clock.time += 600
    say(watched, status=b"online 9")
    say(watched, boot=9, start="wdt")
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert alarm["kind"] == "restarts" and "3 times" in alarm["text"] and "wdt" in alarm["text"]
    clock.time += 3700
    say(watched, boot=9, samples=2000)
    assert kinds(watched, clock) == []


def test_another_model_s_scores_are_no_drift(watched, clock):
    """The last state of the start in which a package came names the package, and has the scores of the model before."""
    update = {"tried": 7, "trial": 50, "said": ""}
    for boot, counter, scores in (
        (7, 0, [500, 100, 100, 300]), (7, 7, [600, 100, 100, 300]), (8, 7, [0, 5, 5, 0]), (8, 7, [0, 700, 700, 0]),
        (8, 7, [0, 1400, 1400, 0]), (8, 0, [0, 1600, 1600, 0]), (9, 0, [500, 100, 100, 300]), (9, 0, [1000, 200, 200, 600]),
    ):  # fmt: skip
        clock.time += 10
        say(watched, samples=sum(scores), boot=boot, scores=scores, update={"counter": counter, **update})
        assert "drift" not in kinds(watched, clock), (boot, counter)
    assert watched.devices["kitchen"].slow_figures().lately == [500, 100, 100, 300]


def draw_counts(rng, weights, n):
    counts = [0] * len(weights)
    for k in rng.choices(range(len(weights)), weights, k=n):
        counts[k] += 1
    return counts


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_move_away_are_a_drift_and_those_that_stay_are_none(watched, clock, seed):
    rng = random.Random(seed)
    weights = [40, 10, 5, 3, 2, 1, 1, 1, 1, 1, 1, 1, 2, 3, 8, 20]
    counts = [0] * 16
    for n in range(60):
        drifted = n >= 40
        now = [1] * 16 if drifted else weights
        counts = [a + b for a, b in zip(counts, draw_counts(rng, now, 100))]
        clock.time += 10
        say(watched, samples=100 * (n + 1), scores=counts)
        if not drifted:
            assert kinds(watched, clock) == []
    assert kinds(watched, clock) == ["drift"]


def test_devices_and_workers_are_forgotten_when_they_are_taken_back(watched, clock):
    say(watched, status=b"online 7")
    say(watched)
    watched.take(presence.worker_topic(3, "one"), b"1", True)
    watched.take(presence.worker_topic(3, "two"), b"1", True)
    assert [(one["model"], one["worker"]) for one in fleet_report.of_fleet(watched, clock.time)["workers"]] == [
        (3, "one"),
        (3, "two"),
    ]
    for name in ("one", "two"):
        watched.take(presence.worker_topic(3, name), b"")
    for leaf in ("state", "status"):
        watched.take(wire.topic("kitchen", leaf), b"", False)
    made = fleet_report.of_fleet(watched, clock.time)
    assert made["devices"] == [] and made["workers"] == []


def test_devices_with_alarms_come_first(watched, clock):
    for name in ("a", "b", "c"):
        say(watched, name, status=b"online 7")
        say(watched, name)
    say(watched, "c", status=b"offline 7")
    say(watched, "b", namesakes=True)
    made = fleet_report.of_fleet(watched, clock.time)
    assert [one["device"] for one in made["devices"]] == ["c", "b", "a"]
    table, *lines = fleet_report.table(made, clock.time)
    assert [row[0] for row in table.rows] == ["c", "b", "a"] and "3 devices, 2 with alarms" in table.title
    assert any("rename one" in line for line in lines)
    assert ["last decision", "class 1, asked"] in details.of_device(made["devices"][2], clock.time)[0].rows


def test_decisions_are_shown_by_the_names_of_their_classes(watched, clock):
    say(watched, class_names=["calm", "storm"], last=(2, 1, 1), answered=[4] * 4, events=[1] * 4)
    made = fleet_report.of_fleet(watched, clock.time)
    assert "storm, asked" in fleet_report.table(made, clock.time)[0].rows[0]
    assert ["classes", "calm, storm"] in details.of_device(made["devices"][0], clock.time)[0].rows


def test_one_device_is_described_in_words_and_units(watched, clock):
    for n in range(3):
        clock.time += 10
        say(
            watched,
            samples=1000 + 100 * n,
            offloads=200 + 20 * n,
            waits=[0, 0, 150, 50] + [0] * (WAITS - 4),
            budget=40,
            paused=True,
            queued=1250,
            queue_dropped=3,
        )
    told = details.of_device(fleet_report.of_fleet(watched, clock.time)["devices"][0], clock.time)
    words = told[0].plain()
    for sentence in (
        "1,200 since its start, 10 a second", "240 (20%): 200 answered, 0 not in time", "for 2.2 min, runtime unknown",
        "asking 0.20, a false alarm 0.70, a missed event 1.00", "asking always would cost 0.200, asking never 0.115",
        "against never asking; the dearest mistake costs 1", "number 3: the workers of its model answer",
        "class 1. A missed class 1 costs 1, a false alarm 0.7.",
        "40 % of the bucket", "it asks nothing until the pause ends", "1,250 samples; 3 were dropped",
    ):  # fmt: skip
        assert sentence in words, words
    assert "_" not in words and "[" not in words  # no key, no list


def test_the_page_of_a_device_names_its_event(watched, clock):
    say(watched, class_names=["ok", "broken"])
    facts = details.facts(fleet_report.of_fleet(watched, clock.time)["devices"][0], clock.time)
    assert ["event", "broken. A missed broken costs 1, a false alarm 0.7."] in facts


def test_what_a_head_saved_is_shown_for_each_sample(watched, clock):
    say(watched, head_share=30000, head_saved=-2500)
    device = fleet_report.of_fleet(watched, clock.time)["devices"][0]
    saved = -2.5 / device["state"]["samples"]
    rows = details.of_device(device, clock.time)[0].rows
    assert ["saved by the head", f"about {saved:.4f} a sample since its start"] in rows
    assert device["state"]["head_saved"] == -2500


def test_for_how_long_an_answer_holds_is_shown():
    """States that last 400 samples, 20 or one, and scores that say nothing."""
    held = {}
    for lasts in (400, 20, 1):
        rng, policy, label = random.Random(4), Ordered(beta=6554), 0
        for _ in range(4000):
            label = (1 - label) if rng.random() < 1 / lasts else label
            label = rng.randrange(2) if lasts == 1 else label
            if policy.decide(rng.randrange(256)) == OFFLOAD:
                policy.learn(policy.ticket, label)
        clock = Clock()
        fleet = Fleet(clock)
        say(fleet, beta=6554, delta_fp=22938, delta_fn=32768, **policy.report())
        device = fleet_report.of_fleet(fleet, clock.time)["devices"][0]
        held[lasts] = answer_lifetime.answer_holds(device["state"])
        rows = dict(details.of_device(device, clock.time)[0].rows)
        assert f"an answer holds for {held[lasts][0]}" in rows["its past"]
    assert sum(held[400]) > 2 * sum(held[20]) > 0 and held[1] == (0, 0)


@pytest.mark.parametrize("constant, held", [(-1419, 0), (-1421, answer_lifetime.FORGOTTEN)])
def test_an_answer_holds_while_mistakes_cost_less_than_asking(constant, held):
    """Where nothing fades, P(event) is .2001 or .1998, and asking costs .2."""
    state = {"beta": 6554, "delta_fp": ONE, "delta_fn": ONE, "classes": 2, "past": [0, 0, 0, 0, constant]}
    assert answer_lifetime.answer_holds(state) == (held, held)


def test_a_policy_without_a_past_says_nothing_of_it(watched, clock):
    say(watched)
    device = fleet_report.of_fleet(watched, clock.time)["devices"][0]
    assert answer_lifetime.answer_holds(device["state"]) is None and answer_lifetime.sentence(device["state"]) == ""


def test_a_state_of_an_older_runtime_is_shown(watched, clock):
    watched.take(wire.topic("old", "state"), b'{"samples": 5}')
    made = fleet_report.of_fleet(watched, clock.time)
    assert fleet_report.table(made, clock.time)[0].rows[0][0] == "old"
    assert details.of_device(made["devices"][0], clock.time)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_state_or_refused_in_words(payload):
    try:
        parse_state(payload)
    except ValueError as error:
        assert str(error)


@given(
    st.dictionaries(st.sampled_from(sorted(state())), st.one_of(st.integers(), st.text(), st.none(), st.lists(st.integers())))
)
def test_a_state_of_any_values_is_shown_or_refused(entries):
    fleet = Fleet(Clock())
    fleet.take(wire.topic("x", "state"), json.dumps(state(**entries)).encode())
    fleet.take(wire.topic("x", "state"), json.dumps(state()).encode())
    made = fleet_report.of_fleet(fleet, EPOCH)
    fleet_report.table(made, EPOCH)
    json.dumps(made)


def test_strangers_take_no_memory(watched):
    watched.take(wire.topic("x", "state"), b'{"samples": 1, "start": "' + b"a" * LARGEST + b'"}')
    assert not watched.devices and watched.refused_count == 1
    for n in range(MAX_DEVICES + 10):
        watched.take(wire.topic(f"d{n}", "status"), b"online 1")
    assert len(watched.devices) == MAX_DEVICES
    for topic in ("h2t2/2//state", "h2t2/2/a/b/state", "h2t2-workers/2/x/y", "h2t2-workers/2/1/", "else"):
        watched.take(topic, b"1")
    assert not watched.workers


def test_messages_of_other_leaves_make_no_device(watched):
    for leaf in ("reply", "request/3", "command", "answer", "whatever"):
        watched.take(wire.topic("x", leaf), b"online 1")
    assert not watched.devices and not watched.refused_count


def test_a_device_of_one_bin_is_shown(watched):
    say(watched, scores=[1000], answered=[200], events=[40], local_cost=[9000])
    assert watched.devices["kitchen"].state.scores == [1000]
    say(watched, "hall", scores=[])
    assert "hall" not in watched.devices and watched.refused_count == 1


def minutes(fleet, clock, count, each, name="kitchen"):
    """States of so many minutes, one each ten seconds; each(n): the entries of the n-th."""
    for n in range(6 * count):
        clock.time += 10
        say(fleet, name, **each(n))


def test_a_node_that_decides_nothing_is_an_alarm(watched, clock):
    say(watched, status=b"online 7")
    minutes(watched, clock, 2, lambda n: {"samples": 1000 + 5 * n})
    assert kinds(watched, clock) == []
    minutes(watched, clock, 5, lambda _: {"samples": 1055})
    assert kinds(watched, clock) == []
    minutes(watched, clock, 1, lambda _: {"samples": 1055})
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert alarm["kind"] == "decides nothing" and "for 6 min" in alarm["text"]
    minutes(watched, clock, 1, lambda n: {"samples": 1056 + n})
    assert kinds(watched, clock) == []


def test_a_node_that_has_never_decided_is_an_alarm_and_one_with_a_slow_schedule_is_none(watched, clock):
    minutes(watched, clock, 4, lambda _: {"samples": 0, "scores": [0] * 4, "last": None})
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert alarm["kind"] == "decides nothing" and "since its start" in alarm["text"]
    hour = lambda _: {"samples": 10, "uptime_s": 36000 + int(clock.time - EPOCH)}  # noqa: E731  a sample an hour
    minutes(watched, clock, 30, hour, "hourly")
    assert kinds(watched, clock, "hourly") == []


def test_of_a_node_that_has_not_spoken_yet_nobody_knows_whether_it_decides(watched, clock):
    """The broker kept its state and its status: what it does now they do not say."""
    watched.listen()
    say(watched, status=b"online 7", retained=True)
    say(watched, retained=True, samples=0, scores=[0] * 4, last=None, uptime_s=3600)
    assert kinds(watched, clock) == []
    say(watched, samples=0, scores=[0] * 4, last=None, uptime_s=3600)
    assert kinds(watched, clock) == ["decides nothing"]
    say(watched, status=b"offline 7")
    assert kinds(watched, clock) == ["offline"]


def test_a_sensor_that_fails_is_an_alarm(watched, clock):
    minutes(watched, clock, 3, lambda n: {"samples": 1000 + 100 * n, "sensor_errors": n // 9})
    assert kinds(watched, clock) == []  # now and then one may
    minutes(watched, clock, 2, lambda n: {"samples": 2700, "sensor_errors": 3 + n // 3})  # it is tried each 30 s by then
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert alarm["kind"] == "sensor" and "2 of 2 tries" in alarm["text"]
    minutes(watched, clock, 2, lambda n: {"samples": 2701 + 100 * n, "sensor_errors": 6})
    assert kinds(watched, clock) == []


def test_an_actuator_that_fails_is_an_alarm_of_fast_and_of_slow_devices(watched, clock):
    minutes(watched, clock, 2, lambda n: {"samples": 1000 + 10 * n, "act_errors": 10 * n})
    (alarm,) = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert alarm["kind"] == "actuator" and "raised on 60 of 60 samples" in alarm["text"]
    slow = lambda n: {"samples": 1000 + n // 60, "act_errors": n // 60, "uptime_s": 600_000 + int(clock.time - EPOCH)}  # noqa: E731
    minutes(watched, clock, 15, slow, "slow")
    (alarm,) = fleet_report.of_device(watched.devices["slow"], clock.time)["alarms"]
    assert alarm["kind"] == "actuator" and "1 of 1 samples" in alarm["text"]


def test_a_start_is_dated_by_the_devices_uptime(watched, clock):
    say(watched, status=b"online 7", retained=True)
    assert watched.devices["kitchen"].since == clock.time  # nothing better is known
    say(watched, retained=True, time=int(EPOCH) - 5000, uptime_s=300)
    assert watched.devices["kitchen"].since == EPOCH - 5300
    clock.time += 60
    say(watched, uptime_s=5361)
    assert watched.devices["kitchen"].since == pytest.approx(EPOCH - 5300, abs=5)
    say(watched, uptime_s=90)  # its clock was wrong: what it says now counts
    assert watched.devices["kitchen"].since == clock.time - 90


def test_a_listener_that_loses_its_broker_freezes_the_picture(watched, clock):
    say(watched, status=b"online 7")
    say(watched)
    clock.time += 20
    watched.lose()
    before = fleet_report.of_fleet(watched, clock.time)
    clock.time += 3600
    frozen = fleet_report.of_fleet(watched, clock.time)
    assert frozen == before and frozen["lost"] == EPOCH + 20 and frozen["devices"][0]["alarms"] == []
    watched.listen()  # it is back, and tells what is retained
    say(watched, status=b"online 7", retained=True)
    clock.time += alarms.SILENT_S - 1
    assert fleet_report.of_fleet(watched, clock.time)["devices"][0]["alarms"] == []
    clock.time += 2
    (alarm,) = fleet_report.of_fleet(watched, clock.time)["devices"][0]["alarms"]
    assert alarm["kind"] == "silent"


def test_after_each_connection_the_fleet_is_what_the_broker_holds(watched, clock):
    """A device or worker that went while we were away stayed for ever."""
    for name in ("kept", "old", "slow"):
        say(watched, name=name, status=b"online 7")
        say(watched, name=name)
    for name in ("kept", "old"):
        watched.take(presence.worker_topic(3, name), b"1", True)
    clock.time += 60
    watched.begin()
    watched.listen()
    for _ in range(3):  # a broker that is slow, but goes on
        clock.time += SETTLED_S - 1
        watched.take(wire.topic("kept", "status"), b"online 7", True)
        watched.settle()
    assert set(watched.devices) == {"kept", "old", "slow"} and watched.is_missing("old") and not watched.is_missing("kept")
    watched.take(presence.worker_topic(3, "kept"), b"1", True)
    clock.time += SETTLED_S
    watched.settle()
    assert set(watched.devices) == {"kept"} and set(watched.workers[3]) == {"kept"}
    assert watched.devices["kept"].state  # a broker that kept nothing: its next state comes later
    clock.time += 60
    say(watched, name="slow", status=b"online 8")  # it comes back after all
    say(watched, name="slow", boot=8)
    assert watched.devices["slow"].restarts(clock.time) == 1 and not watched.is_missing("slow")


def test_nothing_is_forgotten_while_the_broker_is_away(watched, clock):
    say(watched)
    watched.begin()
    watched.lose()
    clock.time += 3600
    watched.settle()
    assert list(watched.devices) == ["kitchen"]
    watched.listen()
    watched.settle()
    assert list(watched.devices) == ["kitchen"]
    clock.time -= 3600  # it was wrong
    watched.settle()
    assert not watched.devices


def test_a_device_that_is_online_and_has_never_said_a_word_is_silent(watched, clock):
    say(watched, status=b"online 7", retained=True)
    clock.time += alarms.SILENT_S + 1
    assert [alarm["kind"] for alarm in fleet_report.of_fleet(watched, clock.time)["devices"][0]["alarms"]] == ["silent"]


@pytest.mark.parametrize(
    ("entries", "alarm", "text"),
    [
        ({"rdl_fp": 9830, "rdl_fn": 14746}, "remote model", "wrong on 45.0% of the events and 30.0% of the others"),
        ({"rdl_fp": 655, "rdl_fn": 655}, "", ""),
        ({"rdl_fp": 9830, "rdl_fn": 14746, "miss_rate": 100}, "", ""),
        ({"in_time": [3, 97, 40, 60]}, "biased", "97% of its questions are answered where it would say class 0, 60%"),
        ({"in_time": [40, 60, 35, 65]}, "", ""),
        ({"in_time": [0, 100, 10, 9]}, "", ""),
        ({"in_time": [50, 0, 90, 0]}, "", ""),
    ],
)  # fmt: skip
def test_a_remote_model_that_is_often_wrong_and_answers_lost_by_class_are_alarms(watched, clock, entries, alarm, text):
    say(watched, **entries)
    alarms = fleet_report.of_device(watched.devices["kitchen"], clock.time)["alarms"]
    assert [each["kind"] for each in alarms] == ([alarm] if alarm else []) and text in str(alarms)
