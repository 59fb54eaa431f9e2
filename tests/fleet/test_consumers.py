"""Everything that passes the schemas of what devices and workers say goes through every consumer, and none of them raises.

The consumers: dashboard pages and their pictures, the table of `h2t2 fleet` and its details, alarms, metrics, JSON, the history
(written and read again), and the CSV file of kept samples.
"""

import csv
import io
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from states import EPOCH, Clock, Followed, state

from h2t2.link import presence, wire
from h2t2.node.asking import PLACES, WAITS
from h2t2_tools.cli import output
from h2t2_tools.fleet.dashboard import chart_options, device_page, fleet_page, fleet_rows, sentences, watcher
from h2t2_tools.fleet.monitoring import details, fleet_report, intervals, savings
from h2t2_tools.fleet.monitoring.history import History
from h2t2_tools.fleet.monitoring.prometheus import FleetCollector
from h2t2_tools.fleet.monitoring.state import State
from h2t2_tools.fleet.monitoring.unit import Unit
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet
from h2t2_tools.fleet.rdl import telemetry
from h2t2_tools.fleet.samples import sample_files, sample_store

GOOD = [0, 1, 2, 255, 4096, 2**15, 2**16, 2**31, 2**53 - 2, 2**53 - 1]
BAD = [-1, 2**15 + 1, 2**53, 2**63 - 1, 2**63, 10**400]  # refused, by some entries or by all
NUMBERS = st.sampled_from(GOOD * 4 + BAD) | st.integers(0, 2**53 - 1)
SMALL = st.integers(0, 2**15)
MARKUP = ["[/x]", "[red]", "\x1b[2J", "=1+1", "@SUM(A1)", "\u202e", "\x00", '"\\\n', "<script>", "{}", "%s", "²"]
WORDS = st.sampled_from(MARKUP) | st.text(max_size=40)
NAMES = st.text(min_size=1, max_size=16).filter(lambda name: name.isascii() or name.isprintable()) | st.sampled_from(MARKUP)


def entries():
    """Entries of a state by name, as deep as the schema goes, some of them outside it."""
    counts = st.lists(NUMBERS, min_size=1, max_size=PLACES)
    special = {
        "link": WORDS, "start": WORDS, "policy": WORDS, "runtime": WORDS, "namesakes": st.booleans(), "paused": st.booleans(),
        "scores": counts, "answered": counts, "events": counts, "local_cost": counts,
        "waits": st.lists(NUMBERS, min_size=WAITS, max_size=WAITS),
        "last": st.tuples(NUMBERS | st.just(-1), NUMBERS, NUMBERS),
        "snapshot_age_s": NUMBERS | st.just(-1), "past": st.lists(NUMBERS | st.just(-999), min_size=5, max_size=5),
        "update": st.fixed_dictionaries(
            {"counter": NUMBERS, "tried": NUMBERS, "trial": NUMBERS, "said": WORDS | st.just("back: x")}
        ),
    }  # fmt: skip
    every = {name: special.get(name, NUMBERS | SMALL) for name in State.model_fields}
    chosen = st.lists(st.sampled_from(sorted(every)), unique=True, max_size=8)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: every[name] for name in names}))


def workers():
    """States of a worker."""
    return st.fixed_dictionaries({
        "host": WORDS, "pid": NUMBERS, "source": WORDS, "version": WORDS, "uptime_s": NUMBERS, "waiting": NUMBERS,
        "each_ms": st.floats(0, 1e9), "replies": st.dictionaries(WORDS, NUMBERS, max_size=4),
        "waits": st.lists(NUMBERS, min_size=WAITS, max_size=WAITS),
    })  # fmt: skip


def terminal_text(parts):
    """Tables and lines as a terminal of 120 columns gets them."""
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    for part in parts:
        console.print(output.renderable(part, 120))
    return console.file.getvalue()


class Recorder:
    """In place of a chart: keeps what it draws."""

    drawn = ()

    def draw(self, picture, sentence):
        self.drawn = (vars(picture), sentence)


def shown_on_pages(one, rows, log):
    """What the dashboard sends a browser of a device."""
    marks = device_page._marks(log)
    counted = intervals.buckets(rows, 50)
    latest = intervals.gained(rows) or (intervals.since_start(rows[-1]) if rows else None)
    text = sentences.of_costs(latest.costs if latest else None, "an hour")
    drawn = [vars(chart_options.costs(counted, marks)), vars(chart_options.shares(counted, marks)), text]
    drawn += [sentences.of_comparison(intervals.around(rows, mark.at), "update") for mark in marks]
    if one["state"]:
        charts = {key: Recorder() for key in device_page.CHARTS}
        device_page._draw_present(charts, one, latest)
        drawn += [chart.drawn for chart in charts.values()]
    row = fleet_rows.of_device(one, one["heard"] or 0.0, Unit())
    fleet_rows.matches(row, "x", fleet_rows.kinds_of(row))
    drawn += [row, savings.in_words(savings.total([one["saved"]])), fleet_page.address(one["device"])]
    return json.dumps([drawn, [device_page._line(line) for line in log]], allow_nan=False)


def numbers_in(text):
    return [sample.value for family in text_string_to_metric_families(text) for sample in family.samples]


@pytest.mark.whole
@settings(deadline=None, max_examples=100, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(NAMES, st.lists(entries(), min_size=1, max_size=4), st.lists(workers(), max_size=2), st.integers(1, 600))
def test_what_passes_the_schema_passes_every_consumer(name, states, workers, seconds):
    clock = Clock()
    fleet = Fleet(clock)
    fleet.take(presence.worker_topic(3, "w"), b"1", True)
    with TemporaryDirectory() as folder:
        watch = watcher.Watcher(Followed(fleet), History(Path(folder) / "h.db"), clock)
        for n, said in enumerate(states):
            clock.time += seconds
            fleet.take(wire.topic(name, "status"), b"online %d" % n)
            fleet.take(wire.topic(name, "state"), json.dumps(state(**{"time": int(clock.time), **said})).encode(), n == 0)
            fleet.take(wire.topic(name, "command"), json.dumps(said).encode())
            for told in workers:
                fleet.take(telemetry.topic(3, "w"), json.dumps(told).encode())
            watch.tick()
            assert not watch.trouble
            seen = fleet_report.of_fleet(fleet, clock.time)
            json.dumps(seen, allow_nan=False)
            text = terminal_text(fleet_report.table(seen, clock.time))
            for one in seen["devices"]:
                text += terminal_text(details.of_device(one, clock.time))
                shown_on_pages(one, watch.series(one["device"], 0), watch.log(one["device"]))
            assert not set(text) & {"\x1b", "\x07", "\u202e"}, text
            registry = CollectorRegistry()
            registry.register(FleetCollector(Followed(fleet)))
            assert not any(map(math.isnan, numbers_in(generate_latest(registry).decode())))
        watch.close()
        csv_of(name, Path(folder) / "kept.csv")


def csv_of(name, path):
    """The rows of a kept sample of that device: no cell begins a formula."""
    sample = sample_store.Sample.model_construct(
        id=1, at=EPOCH, device=name, model=3, boot=7, sequence=0, chance=0, share=1.0, bin=3,
        dtype=wire.INT8, shape=(2,), media="", data=b"\x01\x02", label=1, score=2**15,
    )  # fmt: skip
    sample_files.export([sample], path)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert all(cell[:1] not in ("=", "+", "@", "\t") and not (cell[:1] == "-" and not cell[1:2].isdigit()) for cell in rows[1])


def test_counters_beyond_what_every_consumer_holds_exactly_are_refused(watched):
    for value in (2**63 - 1, 2**53, -1):
        watched.take(wire.topic("kitchen", "state"), json.dumps(state(samples=value)).encode())
    assert not watched.devices and watched.refused_count == 3
    watched.take(wire.topic("kitchen", "state"), json.dumps(state(samples=2**53 - 1)).encode())
    assert watched.devices["kitchen"].state.samples == 2**53 - 1


@pytest.mark.parametrize("topic", ["h2t2-workers/2/²/w", "h2t2-workers/2/" + "9" * 5000 + "/w", "h2t2-workers/2/٣/w/state"])
def test_numbers_of_other_scripts_in_a_topic_are_refused(watched, topic):
    watched.take(topic, b"1")
    assert not watched.workers and watched.refused_count == 1
