"""`h2t2 metrics`: what Prometheus scrapes is what nodes and workers said, under conventional names; Grafana's board fits."""

import contextlib
import json
import re
import subprocess
import sys
import urllib.request

import pytest
from command_line import started
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from states import Clock, Followed, say, state
from support import ROOT, until

from h2t2.link import presence, wire
from h2t2_tools.fleet import monitoring
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.metrics_server import MetricsServer
from h2t2_tools.fleet.monitoring.prometheus import FleetCollector
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet
from h2t2_tools.fleet.rdl import telemetry

H2T2 = [sys.executable, "-m", "h2t2_tools"]
UNITS = ("seconds", "joules", "ratio", "info", "requests", "slots", "replies", "errors")


def scraped(fleet):
    registry = CollectorRegistry()
    registry.register(FleetCollector(Followed(fleet)))
    return generate_latest(registry).decode()


@pytest.fixture
def fleet():
    made = Fleet(Clock())
    say(made, status=b"online 7")
    say(made, waits=[0, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], energy_mj=1500, runtime='0.1 "x"\n')
    made.take(presence.worker_topic(3, "one"), b"1", True)
    told = telemetry.Telemetry("rdl.tflite", "abc", 0.0)
    told.answered(0.003)
    made.take(telemetry.topic(3, "one"), told.message(5.0, 2, 0.001, {"ok": 4, "busy": 1}))
    return made


def samples(text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_values_are_what_was_said(fleet):
    found = samples(scraped(fleet))
    kitchen = (("device", "kitchen"),)
    assert found["h2t2_node_samples_total", kitchen] == 1000
    assert found["h2t2_node_energy_joules_total", kitchen] == 1.5
    assert found["h2t2_node_online", kitchen] == 1
    assert found["h2t2_node_alarm", (("device", "kitchen"), ("kind", "drift"))] == 0
    assert found["h2t2_node_sample_cost_ratio", (("device", "kitchen"), ("of", "always"))] == pytest.approx(0.2, abs=1e-4)
    bucket = "h2t2_node_answer_seconds_bucket"
    buckets = [found[bucket, (("device", "kitchen"), ("le", le))] for le in ("0.002", "0.004", "+Inf")]
    assert buckets == [5, 15, 16]
    who = {"model": "3", "worker": "one"}
    answered = {dict(labels)["status"]: v for (name, labels), v in found.items() if name == "h2t2_worker_replies_total"}
    assert answered == {"ok": 4, "busy": 1}
    assert any(name == "h2t2_worker_info" and who.items() <= dict(labels).items() for name, labels in found)


def test_names_follow_the_conventions(fleet):
    for family in text_string_to_metric_families(scraped(fleet)):
        assert re.fullmatch(r"h2t2_[a-z_]+", family.name) and family.documentation, family
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)
        if family.type == "histogram":
            assert family.name.endswith("_seconds")


def test_the_board_asks_for_metrics_that_there_are(fleet):
    exported = {sample.name for family in text_string_to_metric_families(scraped(fleet)) for sample in family.samples}
    labels = {label for family in text_string_to_metric_families(scraped(fleet)) for s in family.samples for label in s.labels}
    board = json.loads(monitoring.GRAFANA.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["query"]["query"] for one in board["templating"]["list"]]
    names = set(re.findall(r"h2t2_\w+", " ".join(asked)))
    assert names and names <= exported, names - exported
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", " ".join(asked)) for label in group.split(",")}
    assert grouped <= labels, grouped - labels


def test_the_board_is_as_grafana_wants_it():
    board = json.loads(monitoring.GRAFANA.read_text())
    assert board["schemaVersion"] >= 36 and board["title"] and re.fullmatch(r"[\w-]{1,40}", board["uid"])
    assert {one["name"] for one in board["__inputs"]} == {"DS_PROMETHEUS"}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in board["panels"]:
        assert panel["type"] == "timeseries" and panel["targets"] and panel["datasource"]["uid"] == "${DS_PROMETHEUS}"
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24
        taken |= cells
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_metrics_are_explained(watched):
    page = (ROOT / "docs/json.md").read_text()
    say(watched, energy_mj=1, waits=[0] * 13)
    names = {family.name for family in text_string_to_metric_families(scraped(watched))}
    missing = [name for name in sorted(names) if name not in page]
    assert not missing, missing


def test_the_server_answers_as_prometheus_own_library_does(fleet):
    """/metrics?name[]=NAME chooses, /metrics/ is /metrics, and HEAD has the head alone."""
    registry = CollectorRegistry()
    registry.register(FleetCollector(Followed(fleet)))
    with contextlib.closing(MetricsServer(registry, lambda: "", "127.0.0.1", 0)) as server:

        def ask(path, method="GET"):
            request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", method=method)
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.headers, reply.read().decode()

        chosen = {name for name, _ in samples(ask("/metrics?name[]=h2t2_node_online&name[]=h2t2_node_answer_seconds")[1])}
        assert chosen == {"h2t2_node_online", "h2t2_node_answer_seconds_bucket"}
        assert samples(ask("/metrics?name[]=no_such_metric")[1]) == {}
        assert {name for name, _ in samples(ask("/metrics/?name%5B%5D=h2t2_node_samples_total")[1])} == {
            "h2t2_node_samples_total"
        }
        whole = samples(ask("/metrics/")[1])
        assert whole.keys() == samples(ask("/metrics?x=1")[1]).keys() and len(whole) > 30
        headers, content = ask("/metrics", "HEAD")
        assert not content and headers["content-type"].startswith("text/plain") and int(headers["content-length"]) > 1000


@pytest.mark.whole
def test_prometheus_scrapes_a_real_fleet(broker, rdl, tmp_path):
    port = free_port()
    node = [*H2T2, "node", "--broker", broker.url, "--device", "kitchen", "--samples", "60", "--every", "20ms"]
    subprocess.run([*node, "--out", str(tmp_path / "out")], check=True, timeout=120)
    summary = json.loads((tmp_path / "out").read_text().splitlines()[-1])["summary"]
    with started("metrics", "--listen", port, "--broker", broker.url, stdout=subprocess.PIPE, stderr=None) as process:
        assert process.stdout.readline().split()[-1] == f"http://127.0.0.1:{port}/metrics"

        def scrape():
            return samples(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode())

        kitchen = (("device", "kitchen"),)
        assert until(lambda: scrape().get(("h2t2_node_samples_total", kitchen)) == 60, 30)
        assert scrape()["h2t2_node_replies_total", kitchen] == summary["replies"]
        assert scrape()["h2t2_node_online", kitchen] == 0
        assert until(lambda: any(name == "h2t2_worker_info" for name, _ in scrape()), 30)
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).read() == b"ok\n"
    assert process.returncode == 0


def test_any_state_can_be_scraped(watched):
    watched.take(wire.topic('we"ird\\', "state"), json.dumps(state(start='a"b\n\\', link="x")).encode())
    assert ("h2t2_node_samples_total", (("device", 'we"ird\\'),)) in samples(scraped(watched))
