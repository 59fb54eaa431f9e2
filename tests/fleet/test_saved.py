"""What did it save? One function tells it, and every place shows the same number."""

import json
import random
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from subprocess import Popen

import pytest
from jinja2 import Environment
from states import Clock, Followed, say, state
from support import until, worker

from h2t2_tools.fleet import broker, endpoint, home_assistant
from h2t2_tools.fleet.announcer import Announcer
from h2t2_tools.fleet.dashboard import fleet_rows
from h2t2_tools.fleet.monitoring import details, fleet_report
from h2t2_tools.fleet.monitoring.follower import Follower
from h2t2_tools.fleet.monitoring.prometheus import FleetCollector
from h2t2_tools.fleet.monitoring.savings import in_words, saved_so_far, total
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.monitoring.unit import Unit
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet

BETA = 0.2
DAY = 86400


def saved(**entries):
    return saved_so_far(parse_state(json.dumps(state(**entries)).encode()))


def test_it_is_what_the_simple_choices_would_have_cost_more():
    """Bins of 1000 samples in which local decisions cost 0, 1/2, 1/4 and 0; it asked in the middle."""
    counts = {"scores": [400, 100, 100, 400], "answered": [40, 100, 100, 40], "local_cost": [0, 50000, 25000, 0]}
    told = saved(**counts, samples=1000, offloads=280, replies=280, paid=280 * 6554)
    paid, alone = 280 * BETA, 0.0
    assert told["samples"] == 1000 and told["cost"] == pytest.approx(paid + alone, abs=1.5)
    assert told["always"]["amount"] == pytest.approx(1000 * BETA - paid - alone, abs=1.5)
    assert told["never"]["amount"] == pytest.approx(75 - paid, abs=1.5)
    for choice, simple in (("always", 200), ("never", 75)):
        assert told[choice]["share"] == pytest.approx(told[choice]["amount"] / simple, abs=0.02)
        assert 0 < told[choice]["interval"] < 30


def test_without_an_answer_nothing_is_known():
    zeros = [0] * 4
    for counts in ({"answered": zeros}, {"scores": None}, {"beta": None}, {"scores": zeros, "answered": zeros}):
        assert saved(**{"local_cost": zeros, **counts}) is None
    assert in_words(None) == "nobody can tell: no answer has come since its start"


@pytest.mark.parametrize("asks", [(0.05, 0.9, 0.9, 0.02), (0.02, 0.1, 0.2, 0.01), (0.9, 0.2, 0.2, 0.9)])
def test_the_interval_holds_what_it_really_saved(asks):
    """In 95 of 100 lives, also where a few answers stand for hundreds of samples of a bin without a mistake so far."""
    missed, costs = {"always": 0, "never": 0}, (0.01, 0.3, 0.5, 0.005)
    for seed in range(200):
        rng, counts = random.Random(seed), {name: [0] * 4 for name in ("scores", "answered", "local_cost")}
        own = 0.0
        for _ in range(1500):
            k = rng.randrange(4)
            counts["scores"][k] += 1
            wrong = rng.random() < costs[k]
            if rng.random() < asks[k]:
                counts["answered"][k] += 1
                counts["local_cost"][k] += 1000 * wrong
                own += BETA
            else:
                own += wrong
        asked = sum(counts["answered"])
        told = saved(**counts, samples=1500, offloads=asked, replies=asked, paid=asked * 6554)
        expected = sum(a * cost for a, cost in zip(counts["answered"], costs)) - asked * BETA
        for choice, truth in (("always", 1500 * BETA - own), ("never", expected)):
            missed[choice] += abs(told[choice]["amount"] - truth) > told[choice]["interval"] + 1
    assert max(missed.values()) <= 20, missed


def test_a_figure_a_day_only_after_a_day_and_where_the_interval_is_narrower():
    many = {"answered": [50, 99, 49, 50], "paid": 248 * 6554}
    known = saved(uptime_s=2 * DAY, **many)
    assert known["always"]["a_day"] == pytest.approx(known["always"]["amount"] / 2, abs=0.01)
    assert all(saved(uptime_s=seconds, **many)["always"]["a_day"] is None for seconds in (0, 10, DAY - 1))
    few = saved(uptime_s=2 * DAY, scores=[900, 0, 0, 100], answered=[1, 1, 0, 0], local_cost=[0, 0, 0, 0], paid=2 * 6554)
    assert few["always"]["interval"] > abs(few["always"]["amount"]) and few["always"]["a_day"] is None
    assert "a day" in in_words(known) and "a day" not in in_words(few) and "too few answers to tell" in in_words(few)


def test_where_counters_overstate_the_cost_the_saving_is_a_lower_bound():
    gate = {"porch": [1, 500, 20], "garden": [1, 500, 180]}  # the answers of one stream do not stand for the other's samples
    for told in (saved(past=[1, 2, 3, 4, 5]), saved(streams=gate)):
        assert told["never"] is None and told["always"]
        assert "at least " in in_words(told) and "never asking" not in in_words(told)


def test_a_loss_is_a_loss():
    told = saved(scores=[0, 1000, 0, 0], answered=[0, 1000, 0, 0], local_cost=[0, 10000, 0, 0], paid=1000 * 6554)
    assert told["never"]["amount"] == pytest.approx(-190, abs=1)
    assert "against always asking" in in_words(told) and "-190 ±" in in_words(told)
    assert "(-1,900 %)" in in_words(told)


def test_a_fleet_saved_what_its_devices_saved():
    one, other = saved(), saved(paid=100 * 6554)
    both = total([one, None, other])
    for choice in ("always", "never"):
        assert both[choice]["amount"] == pytest.approx(one[choice]["amount"] + other[choice]["amount"], abs=0.01)
        assert one[choice]["interval"] < both[choice]["interval"] < 2 * one[choice]["interval"]
    assert total([None]) is None and total([saved(past=[1, 2, 3, 4, 5]), one])["never"]["amount"] == one["never"]["amount"]


def test_every_place_shows_the_same_number(watched, clock):
    say(watched, status=b"online 7")
    for n in range(3):
        clock.time += 10
        say(watched, samples=1000 + 100 * n, scores=[500 + 100 * n, 100, 100, 300])
    (device,) = fleet_report.of_fleet(watched, clock.time)["devices"]
    told = saved_so_far(watched.devices["kitchen"].state)
    text = in_words(told)
    assert device["saved"] == told
    assert ["saved so far", text] in details.of_device(device, clock.time)[0].rows
    table, *lines = fleet_report.table(fleet_report.of_fleet(watched, clock.time), clock.time)
    assert all(
        cell in text
        for cell in (table.rows[0][list(table.columns).index(name)] for name in ("against always", "against never"))
    )
    assert f"saved so far: {text}" in lines
    assert "EUR" in dict(details.facts(device, clock.time, Unit.parse("0.05 EUR")))["saved so far"]
    row = fleet_rows.of_device(device, clock.time, Unit.parse("0.05 EUR"))
    assert row["always"] == pytest.approx(0.05 * told["always"]["amount"], abs=0.05)
    assert "EUR" in in_words(told, Unit.parse("0.05 EUR")) and row["always_interval"] > 0
    found = {
        (family.name, sample.labels["against"]): sample.value
        for family in FleetCollector(Followed(watched)).collect()
        for sample in family.samples
        if "against" in sample.labels
    }
    for choice in ("always", "never"):
        assert found["h2t2_node_saved_cost", choice] == told[choice]["amount"]
        assert found["h2t2_node_saved_interval_cost", choice] == told[choice]["interval"]
        assert found["h2t2_node_saved_ratio", choice] == told[choice]["share"]


def test_home_assistant_gets_the_same_number():
    follower = Followed(Fleet(Clock()))
    follower._fleet.lost, sent = None, {}
    follower.retain = lambda topic, payload: sent.update({topic: payload}) or True
    say(follower._fleet)
    Announcer([]).look(follower)
    figures = json.loads(sent[home_assistant.figures_topic("kitchen")])
    device = fleet_report.of_device(follower._fleet.devices["kitchen"], 0.0)
    assert figures == {"cost": device["costs"]["own"], "saved": device["saved"]}
    entities = json.loads(sent[home_assistant.topic("kitchen")])["cmps"]
    assert {entity["stat_t"] for entity in entities.values() if "stat_t" in entity} == {home_assistant.figures_topic("kitchen")}
    assert entities["saved-always"]["name"] == "Saved against always asking"
    for told in (device["saved"], saved(past=[1, 2, 3, 4, 5]), saved(local_cost=[0] * 4), None):
        for choice in ("always", "never"):
            saving = told and told[choice]
            for name, key, scale in ((f"saved-{choice}", "amount", 1), (f"saved-{choice}-share", "share", 100)):
                shown = Environment().from_string(entities[name]["val_tpl"]).render(value_json={"saved": told})
                known = saving and saving[key] is not None
                assert float(shown) == pytest.approx(scale * saving[key], abs=0.06) if known else shown == "None"


@pytest.mark.slow
def test_a_node_that_is_stopped_says_what_it_saved():
    """At its end, in its log; --json - prints the summary alone, with the same numbers."""
    command = [sys.executable, "-m", "h2t2_tools", "node", "--pair", "digits", "--telemetry", "1s", "--json", "-"]
    command += ["--samples", "1000000"]  # none comes to its end before the signal, on any machine
    ends = {"kitchen": signal.SIGTERM, "hall": signal.SIGINT}
    with broker.running("amqtt") as url, worker(url), fleet_of(url) as follower, ExitStack() as stack:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        nodes = [Popen([*command, "--broker", url, "--device", name], **options) for name in ends]
        for node in nodes:
            stack.enter_context(node)
        assert until(lambda: all(answers(follower, name) > 20 for name in ends), 60)
        for node, number in zip(nodes, ends.values(), strict=True):
            node.send_signal(number)
            out, log = node.communicate(timeout=60)
            told = json.loads(out)
            assert node.returncode == 0 and told["saved"]["samples"] == told["samples"] > 20
            assert log.splitlines()[-1].endswith(f"saved so far: {in_words(told['saved'])}"), log


@contextmanager
def fleet_of(url):
    """A follower of the devices of a broker."""
    follower = Follower(endpoint.resolve(url)).start()
    try:
        yield follower
    finally:
        follower.close()


def answers(follower, name):
    with follower.fleet() as fleet:
        device = fleet.devices.get(name)
        return device.state.replies if device and device.state else 0
