"""`h2t2 --help`, `h2t2 help GROUP`, and hints for misspelt names."""

import os
import subprocess
import sys

import pytest

from h2t2_tools.cli import overview
from h2t2_tools.cli.commands import COMMANDS, FIRST_PAGE, GROUPS, MOVED
from h2t2_tools.cli.main import main

HEAVY = {"argparse", "numpy", "pydantic", "rich", "h2t2.core", "h2t2_tools.cli.options", "h2t2_tools.cli.execute"}
MODELS = {f"h2t2_tools.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
IMPORTED = """import sys
from h2t2_tools.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def imported(*words: str) -> set[str]:
    """The modules that a process imports for a command line."""
    unmeasured = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}  # it loads sqlite3
    command = [sys.executable, "-c", IMPORTED, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=unmeasured)
    assert done.stdout.startswith("usage: h2t2")
    return set(done.stderr.split())


@pytest.mark.parametrize("line", ["--help", "help policies"])
def test_an_overview_imports_neither_numpy_nor_argparse_nor_a_command_s_model(line):
    assert not imported(*line.split()) & (HEAVY | MODELS)


SLOW = {"asyncio", "matplotlib", "numpy", "rich", "sqlite3", "ssl"}
ONE_OF_EACH = {module.partition(":")[0]: name for name, (module, _) in COMMANDS.items()}.values()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_help_of_a_command_imports_only_the_declarations(name):
    """Beside pydantic nothing that loads slowly: what a command needs is imported where it runs."""
    assert not imported(*name.split(), "--help") & SLOW


def listed(page: str) -> list[str]:
    """The commands that an overview lists."""
    return [line[2 : 2 + overview.NAME_WIDTH].strip() for line in page.splitlines() if line[:2] == "  " and line[2] != "-"]


def test_the_first_page_shows_at_most_15_commands_and_names_every_group(capsys):
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert sorted(listed(page)) == sorted(FIRST_PAGE) and len(FIRST_PAGE) <= 15
    assert ", ".join(GROUPS) in page


def test_the_pages_of_the_groups_list_every_command_once(capsys):
    names = []
    for group in GROUPS:
        assert main(["help", group]) == 0
        names += listed(capsys.readouterr().out)
    assert sorted(names) == sorted(COMMANDS)


@pytest.mark.parametrize("line", ["--help", "--version", "help use"])
def test_debug_before_an_overview_changes_nothing(line, capsys):
    assert main(line.split()) == 0
    page = capsys.readouterr().out
    assert main(["--debug", *line.split()]) == 0 and capsys.readouterr().out == page


def test_overviews_fit_80_columns():
    pages = [overview.first_page(), *map(overview.group_page, GROUPS)]
    assert max(len(line) for page in pages for line in page.splitlines()) <= 80


@pytest.mark.parametrize("line", [[], ["--debug"]])
def test_bare_h2t2_prints_one_line(line, capsys):
    assert main(line) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "h2t2 --help" in captured.err


@pytest.mark.parametrize(
    "line, suggestion",
    [
        ("flete", "fleet"),
        ("dashbord", "dashboard"),
        ("help polices", "policies"),
        ("--hlp", "--help"),
        ("demo --brokr mosquitto", "--broker"),
        ("node --deadline 5 --delta-fpp 1", "--delta-fp"),
        ("pair --tset a.npz", "--test"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(line, suggestion, capsys):
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert f"did you mean {suggestion}?" in error and error.count("\n") == 1


def test_a_name_that_resembles_nothing_gets_no_suggestion(capsys):
    for line in (["xyzzy"], ["demo", "--xyzzy"], ["help", "xyzzy"]):
        assert main(line) == 2
        assert "did you mean" not in capsys.readouterr().err


def test_options_after_the_separator_belong_to_another_program():
    from h2t2_tools.cli.execute import parsed

    assert parsed(["hil", "--", "--help", "--xyzzy"]).model_dump()["pytest"] == ["--help", "--xyzzy"]


def test_there_are_at_most_36_commands():
    """Those of two words, such as `update keys`, belong to the first."""
    assert len({name.split()[0] for name in COMMANDS}) <= 36


@pytest.mark.parametrize("name", MOVED)
def test_a_former_command_tells_the_present_one(name, capsys):
    assert main([name, "x"]) == 2
    assert capsys.readouterr().err == f"h2t2: {name}: this command is called {MOVED[name]} now\n"
