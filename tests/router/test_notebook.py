"""docs/notebook.ipynb runs from its first cell to its last, outside the repository, and its page shows the same cells."""

import json
import re
import sys

import pytest
from command_line import ran
from support import ROOT

CELLS = [
    "".join(cell["source"])
    for cell in json.loads((ROOT / "docs/notebook.ipynb").read_text())["cells"]
    if cell["cell_type"] == "code"
]


def test_the_page_shows_the_cells_of_the_notebook():
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs/from-a-notebook.md").read_text(), re.S)
    assert [cell.strip() for cell in shown] == [cell.strip() for cell in CELLS]


@pytest.mark.whole
def test_the_notebook_runs(tmp_path):
    """Each cell in order in one process; the value of a cell's last line is shown as a notebook shows it."""
    pytest.importorskip("sklearn")
    (tmp_path / "cells.json").write_text(json.dumps(CELLS))
    code = """
import ast, asyncio, inspect, json
names = {}
loop = asyncio.new_event_loop()


def run(code):
    # as a notebook awaits what a cell awaits
    value = eval(code, names)
    return loop.run_until_complete(value) if inspect.iscoroutine(value) else value


for source in json.load(open("cells.json")):
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    run(compile(tree, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    if last:
        value = run(compile(ast.Expression(last.value), "cell", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        print(repr(value))
        if hasattr(value, "_repr_html_"):
            assert "data:image/png" in value._repr_html_()
"""
    out = ran([sys.executable, "-c", code], cwd=tmp_path)
    assert re.search(r"Decision\(label=[01], source='(local|remote)', score=", out.stdout)
    assert re.search(
        r"asked for \d+ % of 897 samples, \d+ % cheaper than always asking, \d+ % cheaper than never asking", out.stdout
    )
    assert "local cost" in out.stdout and out.stdout.count("asked for") >= 3 and "\nTrue\n" in out.stdout
    assert (tmp_path / "porch-router/h2t2.state.0").exists()
    assert "[boards.pico_w]" in (tmp_path / "porch/h2t2.toml").read_text()
