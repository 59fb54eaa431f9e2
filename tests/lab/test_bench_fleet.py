"""`h2t2-lab bench fleet`: what it measures, and that it would say what is not met."""

import pytest
from measured import EVEN, FLEET, FULL, TURNS, benchmark
from support import need_mosquitto

from h2t2_lab.bench import fleet


@pytest.mark.whole
def test_more_nodes_and_more_workers_are_measured():
    need_mosquitto()
    measured = benchmark("fleet", "--seconds", 1, "--nodes", 60, 5, "--workers", 1, 2)
    assert measured["connection_kb"] > 0
    assert [(row["workers"], row["rate"]) for row in measured["alone"]] == [(2, 250)] and measured["alone"][0]["workers_ms"] > 0
    assert [(row["workers"], row["nodes"]) for row in measured["rows"]] == [(1, 5), (1, 60), (2, 5), (2, 60)]
    for row in measured["rows"]:
        for load in (row["even"], row["full"]):
            assert load["per_s"] > 0 and load["p99_ms"] >= load["p50_ms"] > 0
            assert load["workers_ms"] > 0 and load["broker_ms"] > 0
            assert load in row["turns"]["even"] + row["turns"]["full"]
        assert row["workers_mb"] > 20 * row["workers"] and row["broker_mb"] > 1


def test_goals_that_are_missed_are_said():
    assert fleet.broken(FLEET) == [] and "every goal is met" in fleet.report(FLEET)
    rows = [dict(row) for row in FLEET["rows"]]
    dear, slow = {**EVEN, "workers_ms": 0.7}, {**FULL, "per_s": 1350.0}
    rows[1]["turns"] = {**TURNS, "even": [dear, EVEN, dear]}  # 1,000 nodes, one worker
    rows[2]["turns"] = {**TURNS, "full": [slow, FULL, slow]}  # 10 nodes, four workers
    told = fleet.broken({**FLEET, "rows": rows})
    assert len(told) == 2 and "1.33 times one of 10" in told[0] and "4 workers answer 0.90 times what 1 answers" in told[1]
    rows[1]["turns"], rows[2]["turns"] = {**TURNS, "even": [dear, EVEN, EVEN]}, {**TURNS, "full": [slow, FULL, FULL]}
    assert fleet.broken({**FLEET, "rows": rows}) == []  # a turn in which the machine was slow decides nothing
    assert [len(table.rows) for table in fleet.report(FLEET)[:5]] == [4, 4, 2, 1, 3]


def test_one_worker_alone_is_told_beside_several():
    """Of 4 each is asked 125 times a second: as often, and alone, one spends as much."""
    assert fleet.report(FLEET)[3].rows == [["4", "125", "0.500", "0.450"]]


def test_what_larger_fleets_come_to():
    """100,000 nodes: 2,000 requests a second of .5 ms and .1 ms, 1,667 states of half of that, 4 kB a connection."""
    assert fleet.report(FLEET)[4].rows[-1] == ["100,000", "2,000", "1,667", "1.00", "0.28", "400"]
