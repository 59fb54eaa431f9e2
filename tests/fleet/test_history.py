"""The history of a fleet: kept over a restart, bounded by age and by size."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from states import Clock, say, state

from h2t2.link import wire
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.monitoring import fleet_report
from h2t2_tools.fleet.monitoring.history import Bounds, History, Line
from h2t2_tools.fleet.monitoring.intervals import gained
from h2t2_tools.fleet.monitoring.watched_device import Device
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet


def note(history, fleet, clock):
    return history.write(fleet_report.of_fleet(fleet, clock.time)["devices"], clock.time)


def test_a_row_a_minute_is_kept_over_a_restart(watched, clock, tmp_path):
    path = tmp_path / "h.db"
    with closing(History(path)) as history:
        for n in range(60):
            say(watched, samples=1000 + n)
            note(history, watched, clock)
            clock.time += 10
        history.write([], clock.time, [Line(clock.time, "kitchen", "command", "pause 60")])
    with closing(History(path)) as history:
        rows = history.series("kitchen", 0)
        assert [row["samples"] for row in rows] == [1000 + n for n in range(0, 60, 6)]
        assert rows[0]["never"] == pytest.approx(watched.devices["kitchen"].slow_figures().costs.never)
        assert [row["at"] for row in history.series("kitchen", clock.time - 200)] == [row["at"] for row in rows[-3:]]
        assert [line["text"] for line in history.log("kitchen")] == ["pause 60"] and history.log("hall") == []
        again = Device("kitchen")
        again.boot, again.since = 7, clock.time
        history.recall(again)
        assert again.usual == state()["scores"] and again.since == watched.devices["kitchen"].since


def test_what_is_usual_is_not_learned_anew_from_what_came_after(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        say(watched)
        note(history, watched, clock)
        later = Fleet(clock)
        device = later.devices["kitchen"] = Device("kitchen")
        history.recall(device)
        say(later, samples=9000, scores=[0, 0, 0, 9000])
        assert device.usual == state()["scores"]


def test_a_device_that_has_said_nothing_now_gets_no_row(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        say(watched, retained=True)
        assert note(history, watched, clock) == 0
        say(watched)
        assert note(history, watched, clock) == 1
        clock.time += 200
        assert note(history, watched, clock) == 0


def test_it_is_bounded_by_age(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db", Bounds(days=0.01), clock)) as history:  # 864 s
        for _ in range(60):
            say(watched)
            note(history, watched, clock)
            history.write([], clock.time, [Line(clock.time, "kitchen", "alarm", "x")])
            clock.time += 60
        history.prune(clock.time)
        assert len(history.series("kitchen", 0)) == 14 and len(history.log("kitchen", 1000)) == 14


@pytest.mark.parametrize("step", [400 * 86400, -400 * 86400, 61, -600])
def test_rows_keep_their_age_while_a_clock_is_wrong(watched, clock, tmp_path, step):
    """It is set, two minutes pass, and it is set right. Nothing is lost, and everything has the time that it had."""
    lived = Clock()
    with closing(History(tmp_path / "h.db", Bounds(days=1), lived)) as history:

        def minutes(count):
            for _ in range(count):
                say(watched)
                note(history, watched, clock)
                history.write([], clock.time, [Line(clock.time, "kitchen", "alarm", "x")])
                history.prune(clock.time)
                clock.time += 60
                lived.time += 60

        minutes(5)
        times = [row["at"] for row in history.series("kitchen", 0)]
        clock.time += step
        minutes(2)
        clock.time -= step
        minutes(1)
        rows = [row["at"] for row in history.series("kitchen", 0)]
        assert rows[:5] == pytest.approx(times, abs=60) and rows == sorted(rows) and len(rows) == 8
        assert len(history.log("kitchen", 1000)) == 8
        lived.time += 2 * 86400  # so much is lived, too
        clock.time += 2 * 86400
        history.prune(clock.time)
        assert not history.series("kitchen", 0) and not history.log("kitchen")


def test_rows_keep_their_age_where_a_clock_begins_in_the_past(watched, clock, tmp_path):
    """A Pi without a battery: its clock begins at 1970, and is set some minutes later."""
    now = clock.time
    with closing(History(tmp_path / "h.db", Bounds(days=1), clock)) as history:
        say(watched)
        note(history, watched, clock)
    lived = Clock()
    with closing(History(tmp_path / "h.db", Bounds(days=1), lived)) as history:
        history.prune(1000.0)
        history.prune(now)  # without time lived
        (row,) = history.series("kitchen", 0)
        assert row["at"] == pytest.approx(now, abs=120)


@pytest.mark.parametrize("limit", [500, 10])
def test_a_thinned_history_keeps_what_each_start_has_counted(watched, clock, tmp_path, limit):
    """Starts of 29 minutes. An old history, and a long series, have fewer rows; they tell the same samples."""
    began, decided = clock.time, 0
    with closing(History(tmp_path / "h.db", lived=clock)) as history:
        for boot in range(1, 10):
            for seconds in range(0, 29 * 60, 10):
                say(watched, boot=boot, samples=seconds, uptime_s=seconds)
                note(history, watched, clock)
                last = fleet_report.of_fleet(watched, clock.time)["devices"][0]
                clock.time += 10
            decided += seconds
            history.write([], clock.time, ended=[last])  # as the watcher does when the number of the start changes
        rows = history.series("kitchen", began)
        clock.time += 7 * 3600
        history.prune(clock.time)
        thinned = history.series("kitchen", began, limit)
    for series in (rows, thinned):
        assert gained(series).samples == decided - series[0]["samples"]
    assert len(thinned) < len(rows) / 3


def test_it_is_bounded_by_size(watched, clock, tmp_path):
    bounds = Bounds(megabytes=0.3)
    with closing(History(tmp_path / "h.db", bounds, clock)) as history:
        for n in range(20):
            watched.take(wire.topic(f"d{n}", "state"), json.dumps(state()).encode())
        for _ in range(200):
            for name in watched.devices:
                say(watched, name)
            note(history, watched, clock)
            clock.time += 60
        history.prune(clock.time)
        rows = history.series("d3", 0)
        assert 10 < len(rows) < 200 and rows[-1]["at"] >= clock.time - 120  # the newest are there
    assert (tmp_path / "h.db").stat().st_size <= bounds.megabytes * 1e6


def test_a_device_is_removed(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        say(watched)
        note(history, watched, clock)
        history.write([], clock.time, [Line(clock.time, "kitchen", "command", "x")])
        history.remove("kitchen")
        assert history.series("kitchen", 0) == [] == history.log("kitchen")


def test_a_file_that_is_none_is_refused(tmp_path):
    other = tmp_path / "other.db"
    other.write_bytes(b"not a database, but long enough to be looked at" * 10)
    with pytest.raises(UserError, match="other.db"):
        History(other)
    with pytest.raises(UserError, match="nowhere"):
        History(Path("/nowhere/h.db"))
    import sqlite3

    base = sqlite3.connect(tmp_path / "theirs.db")
    base.execute("CREATE TABLE x (y)")
    base.close()
    with pytest.raises(UserError, match="move it away"):
        History(tmp_path / "theirs.db")


def test_a_kill_loses_nothing_that_was_noted(tmp_path):
    script = f"""
import os, sys, time
sys.path[:0] = {[p for p in sys.path if p]!r}
from pathlib import Path
from states import Clock, say
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet
from h2t2_tools.fleet.monitoring.history import History, Line
from h2t2_tools.fleet.monitoring import fleet_report
clock = Clock(); fleet = Fleet(clock); history = History(Path({str(tmp_path / "h.db")!r}))
for n in range(1000):
    say(fleet, samples=n, boot=7)
    history.write(fleet_report.of_fleet(fleet, clock.time)['devices'], clock.time); clock.time += 60
    print(n, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    last = -1
    while last < 50:
        last = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    rest = process.stdout.read().split("\n")[:-1]
    last = int(rest[-1]) if rest else last
    with closing(History(tmp_path / "h.db")) as history:
        samples = [row["samples"] for row in history.series("kitchen", 0, 2000)]
    assert samples[: last + 1] == list(range(last + 1)) and len(samples) <= last + 2


def test_a_series_has_five_hundred_rows_at_most(watched, clock, tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        for n in range(501):
            if n == 500:
                assert len(history.series("kitchen", 0)) == 500
            say(watched, samples=1000 + n)
            note(history, watched, clock)
            clock.time += 60
        rows = history.series("kitchen", 0)
        assert [row["samples"] for row in rows] == [1000 + n for n in range(0, 501, 2)]
