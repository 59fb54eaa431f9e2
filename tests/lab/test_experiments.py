"""`h2t2-lab experiment`, `results` and `dataset`: what they draw and write."""

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from h2t2_lab import command_line, datasets
from h2t2_lab.experiments import ALL
from h2t2_lab.pages import results_page
from h2t2_tools.cli.main import main
from h2t2_tools.cli.options import visible
from h2t2_tools.common import places
from h2t2_tools.common.errors import UserError
from h2t2_tools.replay import trace_names, traces

SOME = ("Where the adaptive policy loses", "Streams as they came", "Streams made to fool a policy")


def lab(*arguments):
    return command_line.main([str(argument) for argument in arguments])


@pytest.mark.parametrize("name", ["phishing", "chest_xray"])
def test_the_shipped_traces_are_their_models_scores(name, tmp_path):
    data = tmp_path / "data.npz"
    try:
        datasets.measure(str, name, out=data)
    except UserError as error:
        pytest.skip(str(error))
    assert main(["score", str(places.models() / name / "ldl.tflite"), str(data), "--out", str(tmp_path / "t.npz")]) == 0
    made = traces.load(tmp_path / "t.npz")
    shipped = trace_names.find(name)
    assert np.array_equal(made.label, shipped.label) and np.abs(made.score - shipped.score).max() < 1e-6


@pytest.mark.whole
@pytest.mark.timeout(1200)  # a minute and a half of computing alone, and whatever a busy machine makes of it
def test_experiments_draw_and_the_page_is_written(tmp_path, capsys):
    """All of them, quick, from what the product ships; then the page, which names every claim and no missing number."""
    assert lab("experiment", "all", "--quick", "--out", tmp_path, "--json", "-") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(ALL)
    for file in (file for row in rows for file in row["files"]):
        content = Path(file).read_bytes()
        assert content[1:4] == b"PNG" if file.endswith(".png") else len(content.splitlines()) > 1
    assert lab("results", "--csv", tmp_path, "--out", tmp_path / "R.md", "--json", "-") == 0
    page = (tmp_path / "R.md").read_text()
    for words in ("beats single-threshold HI", "offline θ†", "out of distribution", "b = 4 suffices", "η = 1", "cuts FN"):
        assert words in page
    assert "nan" not in page
    (tmp_path / "eta.csv").unlink()
    assert lab("results", "--csv", tmp_path, "--out", tmp_path / "new.md") == 2
    assert "eta.csv" in capsys.readouterr().err


def test_one_experiment_renews_its_sections_and_the_readme(tmp_path, capsys, monkeypatch):
    """The other sections stay as they were; pictures are copied and shown; losses come before gains."""
    csvs, page, readme = tmp_path / "csv", tmp_path / "pages/R.md", tmp_path / "README.md"
    csvs.mkdir()
    page.parent.mkdir()
    excess = {"adaptive": (0.03, -0.01), "H2T2 (paper)": (0.04, 0.02), "best pair of 200 samples, kept": (0.01, 0.0)}
    lines = ["stream,way,samples,policy,excess,excess_sd,worst"]
    for n, stream in enumerate(("room", "sky")):
        lines += [
            f'{stream},{way},400,"{name}",{values[n]},0,0.1'
            for way in ("in order", "shuffled")
            for name, values in excess.items()
        ]
    (csvs / "in_order.csv").write_text("\n".join(lines))
    rows = [f'"{name}",{T},{value / T}' for name, (value, _) in excess.items() for T in (300, 1000)]
    (csvs / "horizon.csv").write_text("\n".join(["policy,T,excess", *rows]))
    (csvs / "in_order.png").write_bytes(b"PNG")
    some = [part for part in results_page.TEMPLATE.split("\n\n## ") if part.startswith(SOME)]
    monkeypatch.setattr(results_page, "TEMPLATE", "\n\n".join(f"## {part}" for part in some))
    assert lab("results", "--csv", csvs, "--out", page) == 2 and "adversary.csv" in capsys.readouterr().err
    page.write_text("<!-- section: adversary -->\nas it was\n<!-- end -->")
    readme.write_text("# R\n<!-- losses: h2t2-lab results -->\nold\n<!-- end -->\nrest\n")
    assert lab("results", "--csv", csvs, "--out", page, "--pictures", tmp_path / "docs", "--readme", readme) == 0
    text, quoted = page.read_text(), readme.read_text()
    assert "as it was" in text and "](../docs/in_order.png)" in text and (tmp_path / "docs/in_order.png").read_bytes() == b"PNG"
    assert "+0.0300 (+0.100)" in text and text.index("another policy is cheaper") < text.index("## Streams as they came")
    loss = "on 1: room (best pair of 200 samples, kept: +0.0100, adaptive +0.0300)"
    assert loss in quoted and loss in text and "on 1 of 2: sky" in quoted and "T = 300 and 1,000" in quoted
    assert "\nold\n" not in quoted and quoted.endswith("<!-- end -->\nrest\n")


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_an_option_is_a_parameter_of_the_command_s_function(name):
    """Every parameter has a line in its docstring; none of the lab's options is declared twice."""
    module = import_module(f"h2t2_lab.{command_line.COMMANDS[name]}")
    parameters = [*inspect.signature(module.measure).parameters][1:]
    fields = visible(command_line.model(name))
    assert fields.keys() - {"json_file"} == set(parameters) and command_line.summary(name)
    assert all(field.description for field in fields.values())


@pytest.mark.parametrize(
    "line, words",
    [
        ("bench memry", "did you mean memory?"),
        ("bench", "no such command"),
        ("bench fleet --seconds nan", "--seconds nan"),
        ("bench all --only xyzzy", "xyzzy: want one of"),
        ("chaos --nodes pi", "no such option"),
        ("dataset nothing", "want one of phishing"),
        ("proxy --broker mqtts://localhost", "no TLS"),
        ("bench all --only memory", "--out docs/benchmarks.md"),
    ],
)
def test_wrong_use_is_named_in_one_line(line, words, capsys):
    assert lab(*line.split()) == 2
    error = capsys.readouterr().err
    assert words in error and error.startswith("h2t2: ") and error.count("\n") == 1


def test_the_overview_lists_every_command(capsys):
    assert lab("--help") == 0
    page = capsys.readouterr().out
    assert all(f"  {name} " in page for name in command_line.COMMANDS)


def test_the_overview_needs_no_extra():
    """After `make demo` numba is missing, which some commands import."""
    code = "import sys; sys.modules['numba'] = None\nfrom h2t2_lab.command_line import main\nsys.exit(main(['--help']))"
    assert "bench fidelity" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
