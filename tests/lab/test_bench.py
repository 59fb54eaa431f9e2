"""`h2t2-lab bench`: what it measures, and that it would say what is not met. Signals and TLS have files of their own."""

import json
import re
import shutil

import pytest
from measured import DASHBOARD, EVEN, FLEET, FULL, OVERLOAD, PRESET_DAY, SIGNALS, TURNS, benchmark
from support import need, need_mosquitto

from h2t2_lab.bench import all as every
from h2t2_lab.bench import compiled, convolutions, dashboard, fleet, on_boards, overload
from h2t2_lab.bench import policy as bench
from h2t2_lab.command_line import main
from h2t2_lab.emulators import built, lwip
from h2t2_lab.pages import page_parts
from h2t2_tools import __version__
from h2t2_tools.boards.emulators.catalogue import MICROBIT, UNIX
from h2t2_tools.checks import oracle
from h2t2_tools.common import places
from h2t2_tools.model.inspect import inspect


@pytest.mark.whole
def test_bench_device_counts_on_the_emulated_microbit(tmp_path, monkeypatch, capsys):
    need(MICROBIT)
    monkeypatch.setattr(built, "COUNTING", [])  # the other boards have a test of their own, and so have convolutions
    monkeypatch.setattr(convolutions, "measure", lambda progress: [])
    assert main(["bench", "device", "--rounds", "10", "--json", str(tmp_path / "device.json")]) == 0
    capsys.readouterr()
    for row in json.loads((tmp_path / "device.json").read_text())["microbit"]:
        assert row["same_as_host"]
        assert 50_000 < row["instructions_mean"] <= 800_000  # counted, not timed: the same everywhere
        assert 2_500 < row["heap_bytes"] <= 4_096


@pytest.mark.whole
def test_bench_device_counts_on_a_cortex_m3(monkeypatch):
    """Steps, a snapshot, cryptography and every operator of two models; instructions are exact: twice the same."""
    need(built.CORTEX_M3)
    monkeypatch.setattr(built, "COUNTING", [built.CORTEX_M3])
    rows, again = on_boards.measure(print), on_boards.measure(print)
    assert rows == again and {row["unit"] for row in rows} == {"instructions"}
    counts = {row["what"]: row["count"] for row in rows}
    assert {*on_boards.LABELS.values()} <= {*counts} and all(count > 0 for count in counts.values())
    products = {row["what"]: row["macs"] for row in rows if row["macs"]}
    found = inspect(places.models() / "chest_xray/ldl.tflite")["multiply_accumulates"]
    assert sum(macs for what, macs in products.items() if what.startswith("chest_xray")) == found


@pytest.mark.whole
def test_bench_policy_compares_all_forms_in_one_run(monkeypatch, capsys):
    monkeypatch.setattr(bench, "BITS", (4, 8))
    assert main(["bench", "policy", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    kinds = {(row["where"], row["kind"]) for row in report["rows"]}
    assert {("CPython", "dense NumPy matrix"), ("CPython", "O(2^b) NumPy"), ("CPython", "tree core")} <= kinds
    assert all(row["us"] > 0 for row in report["rows"]) and report["ratios"]
    crc = {(row["kind"], row["bits"]): row["crc"] for row in report["rows"] if row["where"] == "CPython"}
    for bits in (4, 8):
        assert crc["tree core", bits] == crc["compiled simulator", bits]


def test_the_forms_benchmarked_take_the_same_decisions():
    """Dense and O(2^b) from the same draws, so that the times compare like with like."""
    for bits in (4, 6):
        assert bench._time(bench.dense, bits, 2000, 1)[1] == bench._time(bench.linear, bits, 2000, 1)[1]


def test_the_page_of_all_benchmarks_and_the_readmes_table():
    """What `h2t2-lab bench all` writes, from what it measured: a section a benchmark, the README's table between its marks."""
    device = {
        "mode": "m",
        "rounds": 9,
        "heap_bytes": 4321,
        "instructions_mean": 1.0,
        "instructions_worst": 2,
        "same_as_host": True,
    }
    on_pico = {
        "board": "pico",
        "unit": "cycles",
        "what": "digits: 1. conv_2d",
        "count": 87125.0,
        "macs": 100,
        "per_mac": 871.25,
    }
    cut = {"on": "emulated Pico", "system": "littlefs", "what": "a snapshot", "operations": 10, "cuts": 21, "why": ""}
    cut.update(older=11, newer=10, lost=0, ran=21)
    cost = {"cost": 0.1, "fp": 0.0, "fn": 0.0, "offload": 0.5}
    names = ("no offload", "full offload", "best thresholds (offline)", "Algorithm 1, replayed", "adaptive")
    lines = {name: {**cost, "cost": n / 10} for n, name in enumerate(names)}  # the quoted ones are found by name, not by place
    saved = {"pair": "p", "samples": 10, "numbers": {"beta": 0.2}, "policies": lines}
    step = {"where": "CPython", "bits": 10, "crc": 1}
    steps = [{**step, "kind": "dense NumPy matrix", "us": 90.0}, {**step, "kind": "tree core", "us": 3.0}]
    memory = {
        "board": "esp32",
        "form": ".mpy",
        "flash_bytes": 45678,
        "rest_bytes": None,
        "heap_bytes": None,
        "bundle_bytes": 300,
    }
    row = {"bits": 4, "mode": "paper", "rounds": 77, "differ": 2, "worst_error": 1e-4, "margin": 1e-6}
    kernel = {"pair": "p", "library": "ai_edge_litert", "resolver": "reference", "samples": 5, "outputs": 10, "farthest": 1}
    kernel.update(decisions=20, decided=0)
    measured = {
        "machine": every.machine(),
        "saving": [saved],
        "worth": [{"table": "errors", "case": "5% wrong, told", "sharp": 0.01}],
        "fidelity": [{**row, "bits": bits} for bits in (4, 6, 8, 10)],
        "policy": {"rows": steps, "ratios": ["dense takes 30.00 times as long"]},
        "device": {"microbit": [device], "boards": [on_pico]},
        "signals": SIGNALS,
        "tls": {
            "rows": [
                {"broker": "EC", "device": None, "seconds": 1.0, "longest_s": 0.5, "heap_peak": 30_000, "heap_kept": 26_000}
            ],
            "missing": None,
        },
        "cuts": [cut],
        "memory": {
            "boards": [memory],
            "modules": [{"module": "h2t2.link.mqtt", "heap_bytes": 5_678}],
            "policies": [{"policy": "H2T2", "heap_bytes": 1234}],
            "update": [{"what": "code", "heap_bytes": 15_040}],
        },
        "ldl": {
            "digits": [
                {
                    "what": "ref",
                    **dict.fromkeys(("heap", "instructions", "per_mac", "operators", "ratio")),
                    "us": 2.0,
                    "macs_per_second": 1.0,
                    "crc": 1,
                }
            ]
        },
        "kernels": [{**kernel, "differ": 3}],
        "offload": {"payload": 9, "rounds": 3, "rows": [{"what": "x", "rate": 1.0, "p50": 1.0, "p99": 1.0, "ratio": 2.0}] * 5},
        "overload": OVERLOAD,
        "gate": {"rows": [{"door": "HTTP", "rate": 400.0, "local": 0.9, "p50": 1.0, "p99": 11.0}]},
        "presets": {"generic": PRESET_DAY},
        "dashboard": DASHBOARD,
        "fleet": FLEET,
        "install": {
            "libraries": [{"name": "numpy", "version": "1", "bytes": 65_000_000}],
            "with": {"litert": 129_000_000, "convert and onnx": 452_000_000},
            "pythons": [
                {"python": "3.11", "bytes": 65_000_000, "why": None},
                {"python": "3.12", "bytes": None, "why": "no wheel"},
            ],
        },
    }
    page = every.page(measured)
    version = rf"^`h2t2-lab bench [\w. ]+`, measured: h2t2 {re.escape(__version__)}( \(\w+(-dirty)?\))?, date "
    assert len(re.findall(version, page, re.M)) == len(every.NAMES)
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")][0] == "In short"
    assert page.count("\n## ") == 1 + len(every.NAMES) and all(f"h2t2-lab bench {name}" in page for name in every.NAMES)
    hooked = f"{every.BEGIN_HOOK}\nstale\n{page_parts.END}\n"
    readme = every.quote(f"# A\n{hooked}{every.BEGIN}\nstale\n{page_parts.END}\nB\n", measured)
    assert "asking the big model about 50% of the samples: -300% cheaper" in readme
    assert "stale" not in readme and readme.startswith("# A\n") and readme.endswith(f"{page_parts.END}\nB\n")
    for figure in (
        "4,321 bytes",
        "8 of 308",
        "30.0 times",
        "45,678 of flash",
        "65 MB",
        "0.4000; Algorithm 1, replayed 0.3000, never",
    ):
        assert figure in readme and figure in page
    again = {"machine": {"date": "later"}, "install": {**measured["install"], "libraries": []}}
    renewed = every.renew(page, again)
    assert renewed.count("\n## ") == page.count("\n## ") and "`h2t2-lab bench install`, measured: date later" in renewed
    assert "| the base install | 0 MB | `h2t2-lab bench install` |" in renewed and "65 MB" not in renewed
    assert page.split("\n## ")[2:-1] == renewed.split("\n## ")[2:-1]  # the others as they were
    head, *sections = page.split("\n## ")
    assert every.renew("\n## ".join([head, *sections[:-1]]), again) == renewed  # a benchmark that the page did not have
    quoted = every.quote(readme, again)
    assert [line for line in readme.splitlines() if line not in quoted.splitlines()] == [
        "| the base install | 65 MB | `h2t2-lab bench install` |"
    ]


@pytest.mark.whole
def test_compiled_functions_of_policies_are_quicker_than_their_bytecode(tmp_path):
    """The kernels' functions have bytes alone; a page gets the table."""
    need(compiled.BOARD)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{compiled.BEGIN}\n{page_parts.END}\nafter\n")
    rows = compiled.measure(print, rounds=2, out=page)
    both = [row for row in rows if "compiled" in row and "bytecode" in row]
    assert len(both) >= 40 and all(0 < row["compiled"] < row["bytecode"] for row in both)
    assert all(row["bytes"] > 0 for row in rows)
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n")
    assert "h2t2/core/numbers Rng.draw" in page_parts.inside(text, compiled.BEGIN)


@pytest.mark.whole
def test_a_small_fleet_is_seen():
    need_mosquitto()
    measured = benchmark("dashboard", "--seconds", 8, "--devices", 20)
    assert measured["devices"] == 20 and measured["states_per_s"] > 0 and measured["cpu_ms"] > 0 and measured["rss_mb"] > 20
    assert measured["page"] == (shutil.which("chromedriver") is not None)
    assert len(measured["delay_ms"]) == (dashboard.LOOKS if measured["page"] else 0)


def test_a_missed_goal_of_the_dashboard_is_said():
    assert dashboard.broken(DASHBOARD) == [] and "every goal is met" in dashboard.report(DASHBOARD)
    worse = {**DASHBOARD, "cpu_ms": 300.0, "delay_ms": [100.0, 5000.0], "rss_end_mb": 200.0}
    assert [word in line for line, word in zip(dashboard.broken(worse), ("300 ms", "5000 ms", "200 MB"))] == [True] * 3
    assert len(dashboard.report({**DASHBOARD, "page": False, "delay_ms": []})[0].rows) == 2


@pytest.mark.whole
def test_an_overloaded_worker_answers_most_of_what_it_can_and_starves_nobody():
    need_mosquitto()
    measured = benchmark("overload", "--seconds", 3, "--devices", 20)
    assert [row["load"] for row in measured["loads"]] == list(overload.LOADS) and measured["capacity"] > 20
    assert all(row["in time"] > 0 for row in measured["loads"])
    # a busy machine measures a smaller capacity than the worker has afterwards, and lets refusals come late
    assert measured["loads"][-1]["busy"] + measured["loads"][-1]["late"] > 0
    # how much it answers is the machine's affair; that the quiet one's share of it is the larger is not
    served = {who: row["in time"] / row["offered"] for who, row in measured["fair"].items()}
    assert served["quiet"] > 1.5 * served["loud"], measured["fair"]


def test_a_missed_goal_of_an_overloaded_worker_is_said():
    assert overload.broken(OVERLOAD) == []
    worse = json.loads(json.dumps(OVERLOAD))
    worse["loads"][2]["in time"] = 60.0
    worse["fair"]["quiet"]["in time"] = 30.0
    assert len(overload.broken(worse)) == 2 and "at 4 times" in overload.broken(worse)[0]
    assert "75%" in overload.broken(worse)[1]
    assert len(overload.report(OVERLOAD)[0].rows) == 5 and "every goal is met" in overload.report(OVERLOAD)


@pytest.mark.whole
def test_the_offload_benchmark_measures_both_sides_in_one_run():
    need_mosquitto()
    rows = benchmark("offload", "--seconds", 0.5, "--devices", 6)["rows"]
    assert [row["what"].split(",")[0] for row in rows[:3]] == [
        "raw paho echo",
        "one device (paho link)",
        "one device (paho link)",
    ]
    assert "6 devices" in rows[3]["what"] and "2 workers" in rows[4]["what"] and rows[0]["ratio"] == 1
    assert lwip.LWIP.missing() or "lwIP" in rows[5]["what"]
    assert all(row["rate"] > 0 and 0 < row["p50"] <= row["p99"] for row in rows)


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


def test_missed_goals_of_a_fleet_are_said():
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


@pytest.mark.whole
@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_bench_ldl_computes_the_same_everywhere(name, capsys):
    """A convolution with softmax, and a dense layer with logistic: here, on MicroPython and on the emulated micro:bit."""
    assert main(["bench", "ldl", str(places.models() / name / "ldl.tflite"), "--json", "-"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    ours = {row["crc"] for what, row in rows.items() if what.startswith("ours")}
    assert len(ours) == 1 and all(row["us"] is None or row["us"] > 0 for row in rows.values())
    if oracle.name() == "tflite_runtime":
        assert ours == {rows["TFLite reference"]["crc"]}
    assert rows["TFLite reference"]["heap"] > 0 and rows["TFLite optimised"]["heap"] > 0  # whatever this process had free
    if UNIX.missing() is None:
        assert {"ours, MicroPython viper", "ours, MicroPython plain"} <= set(rows)
    if MICROBIT.missing() is None and name == "breast_cancer":  # the other has a convolution
        assert rows["bins, emulated micro:bit"]["instructions"] > 1000


def test_bench_trees_has_a_row_for_each_way(capsys):
    """Without emlearn its row says how to get it."""
    assert main(["bench", "trees", "--trees", "3", "--depth", "3", "--runs", "2", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["data"] for row in rows} == {"breast cancer", "digits"}
    floats, *others = [row["accuracy"] for row in rows if row["data"] == "breast cancer" and "accuracy" in row]
    assert len(others) >= 1 and all(abs(accuracy - floats) < 0.05 for accuracy in others)
    assert any(row["what"].startswith("emlearn") for row in rows)
