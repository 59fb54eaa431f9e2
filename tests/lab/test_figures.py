"""Every figure in the README's table is the figure of its row in docs/benchmarks.md."""

import re

import pytest
from support import ROOT

from h2t2_lab.bench import all as every
from h2t2_lab.pages import page_parts

BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text()


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def section(name):
    """The text of a benchmark's section. One that was measured later than the others says so beside its command."""
    return re.split(rf"\n`h2t2-lab bench {name}`(?:, measured.*)?\n", BENCHMARKS)[1].split("\n## ")[0]


def rows(name, header):
    """The rows, header -> cell, of the first table in a benchmark's section whose first columns have these headers."""
    lines = section(name).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("|") and cells(line)[: len(header)] == header)
    names = cells(lines[start])
    body = lines[start + 2 :]
    end = next((n for n, line in enumerate(body) if not line.startswith("|")), len(body))
    return [dict(zip(names, cells(line))) for line in body[:end]]


def saving():
    cost = {row["policy"]: row["average cost"] for row in rows("saving", ["policy", "average cost"])}
    return (
        f"{cost['adaptive']}; Algorithm 1, replayed {cost['Algorithm 1, replayed']}, never asking {cost['no offload']}, "
        f"always asking {cost['full offload']}, best thresholds in hindsight {cost['best thresholds (offline)']}"
    )


def fidelity():
    table = rows("fidelity", ["b", "decisions"])
    return f"{sum(int(row['differing']) for row in table)} of {sum(int(row['decisions'].replace(',', '')) for row in table):,}"


def policy():
    ratio = re.search(r"CPython, b = 10: dense NumPy matrix takes ([\d.]+) times as long as the tree core", section("policy"))
    return f"{float(ratio[1]):.1f} times as long"


def device():
    (row,) = [row for row in rows("device", ["mode"]) if row["mode"] == "Algorithm 1"]
    return f"{row['bytes of heap, code and state']} bytes of heap"


def memory():
    row = next(row for row in rows("memory", ["board", "runtime as"]) if row["runtime as"] == ".mpy")
    return f"{row['heap at rest']} bytes of heap, {row['at its peak']} at its peak, {row['bytes of flash']} of flash"


def install():
    (row,) = [row for row in rows("install", ["library", "version"]) if row["library"] == "all of them"]
    return f"{row['MB']} MB"


QUOTED = {figure.__name__: figure for figure in (saving, fidelity, policy, device, memory, install)}


def quotations():
    """The README's figures, benchmark -> text."""
    table = (ROOT / "README.md").read_text().split(every.BEGIN)[1].split(page_parts.END)[0]
    lines = [cells(line) for line in table.strip().splitlines()[2:]]
    return {re.fullmatch(r"`h2t2-lab bench (\w+)`", command)[1]: figure for _, figure, command in lines}


@pytest.mark.parametrize("name", QUOTED)
def test_a_figure_is_the_one_of_its_row(name):
    assert quotations()[name] == QUOTED[name](), "run: h2t2-lab bench all --out docs/benchmarks.md --readme README.md"


def test_every_quoted_figure_is_compared():
    assert set(quotations()) == set(QUOTED)


def test_the_pages_summary_is_the_readmes_table():
    table = (ROOT / "README.md").read_text().split(every.BEGIN)[1].split(page_parts.END)[0]
    assert BENCHMARKS.split("\n## In short\n")[1].split("\n## ")[0].strip() == table.strip()


def test_the_hook_says_what_the_table_says():
    def share(text):
        return float(text.strip("%")) / 100

    columns = {row["policy"]: row for row in rows("saving", ["policy", "average cost"])}
    measured = {
        name: {"cost": float(row["average cost"]), "fn": share(row["missed"]), "offload": share(row["offloaded"])}
        for name, row in columns.items()
    }
    readme = (ROOT / "README.md").read_text()
    assert readme.split(every.BEGIN_HOOK)[1].split(page_parts.END)[0].strip() == every.hook(measured)


def test_each_table_names_the_version_that_it_measured():
    head, _, *sections = BENCHMARKS.split("\n## ")
    assert len(sections) > 15 and "h2t2 0." not in head
    assert all(re.search(r"^`h2t2-lab bench .*`, measured.* h2t2 \d+\.\d", section, re.M) for section in sections)
