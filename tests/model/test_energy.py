"""Milliseconds and millijoules of a model on a board: `h2t2 inspect --board`, docs/energy.md, and the table behind them."""

import json

import pytest
from support import ROOT

from h2t2.ldl.bundle import Int8Model
from h2t2_lab.bench import operators
from h2t2_lab.pages import energy_page
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.cli.main import main
from h2t2_tools.common import places
from h2t2_tools.model import cycles, energy
from h2t2_tools.model.bundle import from_tflite
from h2t2_tools.model.operators.step import LAYOUTS

MODEL = places.models() / "digits/ldl.tflite"


def test_inspect_sums_the_energy_of_all_operators(capsys):
    assert main(["inspect", str(MODEL), "--board", "pico_w", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)["energy"]
    steps = report["operators"]
    assert [step["operator"] for step in steps] == ["conv_2d", "fully_connected", "softmax", "run"]
    assert steps[0]["products"] == 4 * 4 * 2 * 9 and not report["not_measured"]
    assert report["ms"] == pytest.approx(sum(step["cycles"] for step in steps) / 125_000)
    assert report["mj"] == pytest.approx(report["ms"] * report["milliwatts"] / 1000)


def test_inspect_names_the_boards_that_it_knows(capsys):
    assert main(["inspect", str(MODEL), "--board", "pico_x"]) == 2
    message = capsys.readouterr().err
    assert "pico_x" in message and all(name in message for name in energy.powers().boards)


def test_a_native_prediction_needs_a_processor_that_has_the_module(capsys):
    assert main(["inspect", str(MODEL), "--native"]) == 2
    assert main(["inspect", str(MODEL), "--board", "esp32", "--native"]) == 2
    assert "native" in capsys.readouterr().err


def test_every_board_is_a_kind_and_every_number_has_a_source():
    boards = energy.powers().boards
    assert len(boards) == 5 and set(boards) <= set(KINDS)
    for name, board in boards.items():
        states = [state for state in (board.active, board.sleep, board.transmit, board.receive) if state]
        assert len(states) == (4 if "wifi" in KINDS[name].links else 2)
        assert all(state.source and state.mw > 0 for state in states)


def test_an_offload_after_a_sleep_costs_more_and_a_larger_one_too():
    small, large = energy.offload("esp32", 100), energy.offload("esp32", 4000)
    assert large["send"] > small["send"] and large["listen"] == small["listen"] and small["wake"] > small["listen"]
    table = energy_page.cost_table("esp32")
    assert table["wake_mj"] + table["send_mj_per_kb"] == pytest.approx(
        energy.offload("esp32", 1024)["send"] + energy.offload("esp32", 1024)["wake"]
    )


def test_an_operator_that_nobody_has_measured_is_named(monkeypatch):
    content = {**cycles.table(), "viper": {k: v for k, v in cycles.table()["viper"].items() if k != "softmax"}}
    monkeypatch.setattr(cycles, "table", lambda: content)
    report = energy.inference(Int8Model(from_tflite(MODEL), 0), "pico")
    assert report["not_measured"] == ["softmax"] and report["ms"] is None and report["mj"] is None


def test_the_fit_finds_the_terms_of_its_samples():
    pytest.importorskip("sklearn", reason="the extra convert")
    samples = [{"operator": "look_up", "amounts": {"call": 1, "numbers": n}, "cycles": 200.0 + 30 * n} for n in (1, 5, 40, 300)]
    (row,) = operators.fit(samples, "viper")
    assert row["terms"] == pytest.approx({"call": 200, "numbers": 30}, rel=1e-3) and row["farthest"] < 1e-3


def test_the_tables_of_the_page_are_the_codes():
    text = (ROOT / "docs/energy.md").read_text()
    assert energy_page.page(text) == text, "run: make pages"


@pytest.mark.whole
@pytest.mark.skipif(catalogue.PICO.missing() is not None, reason=f"emulated Pico: {catalogue.PICO.missing()}")
def test_a_prediction_is_near_the_emulated_pico():
    models = operators.shipped(("digits", "phishing"))
    for row in operators.compare(cycles.table(), "viper", models, operators.run(models, "viper")):
        assert row["predicted"] == pytest.approx(row["measured"], rel=operators.TOLERANCE), row["model"]


@pytest.mark.parametrize("kernel", ["lstm", "view", "batch_matmul"])
def test_the_table_has_a_term_for_each_amount(kernel):
    """Without them, an LSTM's model had the time and the energy of its other steps, 800 times too little."""
    amounts = cycles.amounts(kernel, [2] * len(LAYOUTS[kernel]))
    assert amounts and set(amounts) == set(cycles.table()["viper"][kernel])
