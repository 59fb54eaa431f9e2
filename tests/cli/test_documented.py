"""docs/json.md explains every key that a command reports; docs/commands.md and the rest are as the code is."""

import ast
import doctest
import json
import re
import shlex
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from support import ROOT

from h2t2_lab.pages import operators_page
from h2t2_lab.pages.reference import group_file, group_page, lab_page, page
from h2t2_tools.cli import execute
from h2t2_tools.cli.commands import COMMANDS as CALLED
from h2t2_tools.cli.commands import GROUPS
from h2t2_tools.cli.execute import parsed
from h2t2_tools.cli.main import main
from h2t2_tools.cli.options import visible
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.places import models

DOCS = ROOT / "docs"


def explained(command):
    """The words in backquotes in a command's section."""
    section = (DOCS / "json.md").read_text().split(f"\n## h2t2 {command}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([^`]+)`", section))


def keys(content):
    """Every key in a report, but for names that are values: of policies, replies' statuses, tests' own figures."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key != "policies":
                yield from keys(value)
            else:
                yield from (inner for one in value.values() for inner in one)
            yield key
    elif isinstance(content, list):
        for one in content:
            yield from keys(one)


MODEL = str(models() / "digits/ldl.tflite")
COMMANDS = {
    "validate": ["--bits", "2", "--rounds", "50"],
    "ldl-check": [MODEL, "--samples", "2"],
    "inspect": [MODEL, "--board", "pico_w"],
    "pair": [MODEL, str(models() / "digits/rdl.tflite"), "--test", str(models() / "digits/test.npz"), "--out", "{}/p"],
    "boards": [],
    "doctor clean": [],
    "certs": ["--out", "{}/certs", "--name", "a"],
    "broker-config": ["--out", "{}/broker", "--device", "a"],
    "replay": ["phishing", "--runs", "1", "--samples", "100", "--beta", "0.2", "--out", "{}", "--policy", "h2t2"],
    "prior": ["phishing", "--out", "{}/prior.json"],
    "recommend": ["phishing", "--runs", "1", "--bits", "4", "--out", "{}"],
    "score": [MODEL, str(models() / "digits/test.npz"), "--out", "{}/t.npz"],
    "demo": ["--samples", "60", "--out", "{}"],
    "new": ["{}/mine"],
    "update keys": ["--out", "{}/fleet"],
}


LONG = {"recommend", "replay", "demo"}


@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=pytest.mark.whole if command in LONG else ()) for command in COMMANDS]
)
def test_every_key_is_explained(command, tmp_path):
    out = tmp_path / "report.json"
    assert main([*command.split(), *(word.format(tmp_path) for word in COMMANDS[command]), "--json", str(out)]) == 0
    unknown = set(keys(json.loads(out.read_text()))) - explained(command)
    assert not unknown, f"docs/json.md, h2t2 {command}: {', '.join(sorted(unknown))}"


def test_the_command_reference_is_the_parsers():
    assert (DOCS / "commands.md").read_text() == page(), "run: make pages"
    assert (DOCS / "lab.md").read_text() == lab_page(), "run: make pages"
    for group in GROUPS:
        assert (DOCS / group_file(group)).read_text() == group_page(group), "run: make pages"


def test_the_index_of_commands_links_to_the_heading_of_each_command():
    links = re.findall(r"\]\((commands-\w+\.md)#([\w-]+)\)", page())
    headings = {
        (path.name, heading.replace(" ", "-"))
        for path in DOCS.glob("commands-*.md")
        for heading in re.findall(r"^## (h2t2 .+)$", path.read_text(), re.M)
    }
    assert len(links) > 30 and set(links) == headings


def test_the_page_of_operators_is_the_codes():
    assert (DOCS / "operators.md").read_text() == operators_page.page(), "run: make pages"


PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md"), *(ROOT / "firmware").rglob("*.md"), *(ROOT / "hil").rglob("*.md")])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_refers_to_nothing_the_repository_does_not_hold(path):
    text = path.read_text()
    assert not re.search(r"\b(TODO|TBD|FIXME|XXX|WINDOW1|FLEET|PLACEHOLDER)\b|OWNER/REPO|DESIGN section|\?\?\?", text)
    for name in re.findall(r"`((?:firmware|host_tools|models|tests|hil|docs|\.ci)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), f"{path.name}: {name}"


CONTRIBUTING = re.split(r"^## ", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)[1:]
DEFINITION = r"\b(def|class) {0}\b|\b{0}(: | = | \|= |\()|\"{0}\""


@pytest.mark.parametrize("section", CONTRIBUTING, ids=lambda section: section.splitlines()[0])
def test_a_section_for_contributors_names_what_is_there(section):
    """Paths from the root, names that one of these files defines, targets of make, commands. NAME is the reader's."""
    names = {name for name in re.findall(r"`([^`]+)`", section) if "NAME" not in name.split()[0]}
    paths = {ROOT / name for name in names if re.fullmatch(r"[\w.-]+/[\w./-]*", name)}
    assert not [path for path in paths if not path.exists()]
    files = [file for path in paths for file in ([path] if path.is_file() else path.glob("*.py"))]
    text = "\n".join(file.read_text() for file in files)
    words = {name for name in names if re.fullmatch(r"[A-Za-z_]\w+", name)}
    assert not {word for word in words if not re.search(DEFINITION.format(word), text)}
    for program, word in re.findall(r"`(make|h2t2) ([\w-]+)", section):
        assert program == "h2t2" or re.search(rf"^{word}:", (ROOT / "Makefile").read_text(), re.M), word
        assert program == "make" or any(word == command.split()[0] for command in CALLED), word


NOT_THERE = (
    "no h2t2.toml in it",
    "no mypair/pair.json",
    "frigate.toml: no such file",
    "birdnet-go.toml: no such file",
    "generic.toml: no such file",
)  # what an earlier command of the page writes


def test_every_command_on_a_page_is_a_valid_one():
    broken, count = [], 0
    for path in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        for block in re.findall(r"```(?:sh|bash)\n(.*?)```", path.read_text(), re.S):
            for line in re.sub(r"\s#.*", "", block.replace("\\\n", " "), flags=re.M).splitlines():
                for command in re.split(r"&&|\|\||;|\|", line.rstrip("& ")):
                    if not command.strip().startswith("h2t2 "):
                        continue
                    words = shlex.split(command.split(">")[0])
                    count += 1
                    try:
                        parsed(words[1:])
                    except SystemExit as end:  # --help
                        assert not end.code
                    except UserError as error:
                        if not any(reason in str(error) for reason in NOT_THERE):
                            broken.append(f"{path.name}: {shlex.join(words)}: {error}")
    assert not broken, "\n".join(broken)
    assert count > 100


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


def test_the_contents_are_short_and_lead_to_every_page():
    """At most 25 entries. What is no entry is linked by one, or by a page that one links."""
    contents = (ROOT / ".mkdocs.yml").read_text().split("\nnav:\n")[1]
    entries = {DOCS / name for name in re.findall(r": (\S+\.md)$", contents, re.M)}
    assert 20 < len(entries) == contents.count(".md") <= 25
    linked = entries
    for _ in range(2):
        links = [(page, link) for page in linked for link in re.findall(r"\]\(([\w./-]+\.md)", page.read_text())]
        linked = linked | {(page.parent / link).resolve() for page, link in links}
    outside = (ROOT / "models/RESULTS.md", ROOT / "firmware/examples/README.md")
    pages = {*DOCS.glob("*.md"), *(ROOT / "firmware/boards").glob("*/README.md"), *outside}
    assert not pages - linked
    assert not [page for page in linked if not page.is_file()]


def rooms_below(picture: int) -> dict[str, set[str]]:
    """{room: all rooms below it} in a picture of imports on docs/architecture.md; dotted arrows do not count."""
    block = re.findall(r"```mermaid\n(.*?)```", (DOCS / "architecture.md").read_text(), re.S)[picture]
    below: dict[str, set[str]] = {}
    for left, right in re.findall(r"^ *([^-\n]+) --> (.+)$", block, re.M):
        for room in left.split(" & "):
            below.setdefault(room.split("[")[0], set()).update(other.split("[")[0] for other in right.split(" & "))
    for _ in below:
        for others in below.values():
            others.update(*(below.get(other, set()) for other in list(others)))
    return below


RUNTIME, TOOLS = 1, 2  # pictures on docs/architecture.md


def test_the_host_tools_import_as_their_picture_shows():
    below = rooms_below(TOOLS)
    assert below["cli"] == {"demo", "checks", "boards", "model", "fleet", "replay", "common", "h2t2"}
    for path in (ROOT / "host_tools/h2t2_tools").rglob("*.py"):
        room = path.relative_to(ROOT / "host_tools/h2t2_tools").parts[0]
        if room in below:
            for other in imported(path):
                assert other not in below or other == room or other in below[room], f"{path}: {other}"
    assert not any(room in others for room, others in below.items()), "a circle"


def test_the_product_imports_nothing_of_the_lab():
    """The wheel has no h2t2_lab."""
    paths = [*(ROOT / "host_tools/h2t2_tools").rglob("*.py"), *(ROOT / "firmware").rglob("*.py")]
    assert len(paths) > 300
    importing = [
        path for path in paths if re.search(r"^\s*(from|import) h2t2_lab\b|[\"']h2t2_lab[.\"']", path.read_text(), re.M)
    ]
    assert not importing


def test_the_runtime_imports_as_its_picture_shows():
    below = rooms_below(RUNTIME)
    assert below["node"] == {"ldl", "link", "core", "clock", "modules"}
    rooms = {*below, "clock", "modules", "units"}
    for path in (ROOT / "firmware/h2t2").rglob("*.py"):
        parts = path.relative_to(ROOT / "firmware/h2t2").parts
        room = parts[0].removesuffix(".py")
        for indent, dots, other in re.findall(r"^( *)from (\.+)(\w*)", path.read_text(), re.M):
            inside_a_function = other == "cpython" and indent
            if len(dots) == len(parts) and other in rooms and not inside_a_function and room != "units":
                assert other in below.get(room, set()), f"{path}: {other}"


def test_the_runtime_below_its_node_has_no_circle_of_imports():
    """Not of modules either, and imports inside functions and of types count."""
    runtime = ROOT / "firmware/h2t2"
    paths = [path for room in ("core", "ldl", "link", "cpython") for path in (runtime / room).glob("*.py")]
    below = {path.relative_to(runtime).with_suffix("").parts: path for path in paths}
    graph = {}
    for parts, path in below.items():
        named = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = (*parts[: -node.level], *(node.module or "").split("."))
                named |= {tuple(filter(None, name)) for name in (base, *((*base, alias.name) for alias in node.names))}
        graph[parts] = named & {*below} - {parts}
    assert sum(map(len, graph.values())) > 150
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def test_no_board_module_needs_cpythons_folder():
    """Portable code imports from h2t2/cpython inside functions only; no board's list has it."""
    for path in (ROOT / "firmware/h2t2").rglob("*.py"):
        if path.parent.name != "cpython":
            assert not re.search(r"^(from|import) .*\bcpython\b", path.read_text(), re.M), path
    assert "cpython" not in (ROOT / "firmware/boards/modules.txt").read_text()


def imported(path: Path):
    """The rooms of h2t2_tools that a file imports from."""
    depth = len(path.relative_to(ROOT / "host_tools/h2t2_tools").parts)
    for dots, rest in re.findall(r"^\s*from (\.+)([\w.]*) import", path.read_text(), re.M):
        if len(dots) == depth and rest:
            yield rest.split(".")[0]


def test_every_promise_about_boards_names_a_test_that_exists():
    named = re.findall(r"`((?:tests|hil)/[\w/]+\.py)::(\w+)`", (DOCS / "shown.md").read_text())
    assert len(named) > 15
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


def test_the_readme_of_the_tests_names_what_is_there():
    """Modules and folders, functions of a row's modules, fixtures."""
    tests = ROOT / "tests"
    source = "".join(path.read_text() for folder in (tests, ROOT / "hil") for path in folder.rglob("*.py"))
    for row in re.findall(r"^\| `.*$", (tests / "README.md").read_text(), re.M):
        names = re.findall(r"`([\w./]+)`", row.split("|")[1])
        files = [tests / name for name in names if (tests / name).is_file()]
        for name in names:
            place = (tests / name).exists() or (ROOT / name).exists()
            assert place or re.search(rf"@pytest.fixture.*\ndef {name}\(", source), name
        for word in re.findall(r"`(\w+)(?:\(\)`|(?<=[a-z])`)", row.split("|")[2]) if files else ():
            assert any(re.search(rf"^(def|class) {word}\b", path.read_text(), re.M) for path in files), word


def test_the_table_of_boundaries_names_modules_and_tests_that_exist():
    rows = re.findall(r"^\| .* \| `([\w/.]+)` \| `([\w/.]+)` \|$", (ROOT / "SECURITY.md").read_text(), re.M)
    assert len(rows) >= 13
    for path in (path for row in rows for path in row):
        assert any((ROOT / folder / path).is_file() for folder in ("", "host_tools/h2t2_tools", "firmware", "firmware/h2t2")), (
            path
        )


SHOWN = [path for path in sorted((ROOT / "firmware/h2t2").rglob("*.py")) if "    >>> " in path.read_text()]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_what_docstrings_of_the_runtime_show_is_what_happens(path):
    module = import_module(".".join(path.relative_to(ROOT / "firmware").with_suffix("").parts))
    assert doctest.testmod(module).failed == 0


def test_every_option_says_what_it_is():
    """A property of the same name would hide the declaration of an option."""
    options = [(name, *each) for name in CALLED for each in visible(execute.command(name)).items()]
    assert [(name, key) for name, key, field in options if isinstance(field.default, property) or not field.description] == []
