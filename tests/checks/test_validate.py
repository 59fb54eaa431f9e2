"""`h2t2 validate`."""

import json

import pytest
from command_line import H2T2, ran

from h2t2_tools.checks import validate


def test_validate_reports_a_row_for_each_b(tmp_path):
    ran([*H2T2, "validate", "--bits", 2, 4, "--rounds", 500, "--json", tmp_path / "rows.json"])
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["bits"], row["rounds"], row["differ"]) for row in rows] == [(2, 500, 0), (4, 500, 0)]
    assert all(row["worst_error"] <= 2e-4 for row in rows)


@pytest.mark.parametrize("mode", validate.EVERY)
def test_every_mode_begins_as_its_reference(mode):
    """A draw that falls between a probability in integers and the one in float64 may decide one sample otherwise."""
    assert validate.compare(4, 200, seed=1, mode=mode)["differ"] <= 1
