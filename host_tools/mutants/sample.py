"""Mutants of the four packages whose tests `make mutants` tries: which there are, and a sample of them with a fixed seed.

cosmic-ray makes the mutants. Left out is what no test of this machine can notice or should assert: types, branches of boards
that `pyproject.toml` leaves out of the measured branches as well, and what log lines and the texts of errors say.
"""

import ast
import difflib
import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tomllib
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "core": "firmware/h2t2/core",
    "link": "firmware/h2t2/link",
    "node": "firmware/h2t2/node",
    "fleet": "host_tools/h2t2_tools/fleet",
}
EXCLUDED = re.compile(
    "|".join(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["report"]["exclude_also"])
)
OMITTED = ("_viper.py", "stdio.py")  # MicroPython alone runs them
# what makes no mutant: decorators and names of exceptions, whose mutants mostly equal what they replace, variables, and `is`
# in place of a comparison of small integers
UNUSED = ("RemoveDecorator", "ExceptionReplacer", "VariableReplacer", "VariableInserter", "_Is", "_IsNot")
OPERATORS = [name for name in operator_names() if not name.endswith(UNUSED)]
FROM_TO = re.compile("/Replace(Binary|Comparison)Operator_")  # FROM_TO follows
LOGGING = {"log", "_log", "debug", "info", "warning", "error", "exception"}
Position = tuple[int, int]


@dataclass(frozen=True, order=True)
class Mutant:
    """A change of one place.

    Attributes:
        path: File, relative to the repository.
        operator: Name of cosmic-ray's operator.
        occurrence: Which of the operator's places in the file, from 0.
        line: Where it is.
        before: The line.
        after: The changed line.
        source: The changed file.
    """

    path: str
    operator: str
    occurrence: int
    line: int
    before: str
    after: str
    source: str = field(repr=False, compare=False)


def silent_ranges(source: str) -> list[tuple[Position, Position]]:
    """The first and last positions (line, column) of types, texts of errors and of the log, and unmeasured branches."""
    texts, nodes = source.splitlines(), []
    for node in ast.walk(ast.parse(source)):
        nodes += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            nodes += node.exc.args
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if getattr(function, "attr", getattr(function, "id", "")) in LOGGING:
                nodes += node.value.args
        if isinstance(node, ast.If) and EXCLUDED.search(texts[node.lineno - 1]):
            nodes += [node.test, *node.body]
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in nodes if n is not None]


def places_of(source: str) -> dict[Position, list[tuple[str, int]]]:
    """The mutants of a file as operator and occurrence, those of one place together."""
    nodes, silent = list(ast_nodes(get_ast(source))), silent_ranges(source)
    starts: dict[str, list[Position]] = {}  # of what an operator replaces, whatever by
    places: dict[Position, list[tuple[str, int]]] = {}
    for name in OPERATORS:
        replaced = name.rpartition("_")[0] if FROM_TO.search(name) else name
        if replaced not in starts:
            operator = get_operator(name)()
            starts[replaced] = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, start in enumerate(starts[replaced]):
            places.setdefault(start, []).append((name, occurrence))
    return {start: found for start, found in places.items() if not any(first <= start < last for first, last in silent)}


def mutant(path: Path, place: Position, operator: str, occurrence: int) -> Mutant | None:
    """A mutant, unless it is no program or the same one."""
    source = path.read_text()
    changed = mutate_code(source, get_operator(operator)(), occurrence)
    try:
        if changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    difference = [*difflib.unified_diff(source.splitlines(), changed.splitlines(), n=0, lineterm="")][3:]
    before, after = (" ".join(line[1:].strip() for line in difference if line.startswith(sign)) for sign in "-+")
    return Mutant(str(path.relative_to(ROOT)), operator, occurrence, place[0], before, after, changed)


def drawn(folder: str, seed: int) -> Iterator[Mutant]:
    """A mutant at each place of a folder, in an order that a seed and the places' own lines give: no other line changes it."""
    keys = []
    for path in sorted((ROOT / FOLDERS[folder]).rglob("*.py")):
        if path.name.endswith(OMITTED):
            continue
        source, seen = path.read_text(), {}
        lines = source.splitlines()
        for place, candidates in sorted(places_of(source).items()):
            text = lines[place[0] - 1]
            key = f"{seed} {path.relative_to(ROOT)} {text.strip()} {place[1] - len(text) + len(text.lstrip())}"
            seen[key] = seen.get(key, 0) + 1
            keys.append((hashlib.sha256(f"{key} {seen[key]}".encode()).hexdigest(), path, place, candidates))
    for digest, path, place, candidates in sorted(keys):
        random.Random(digest).shuffle(candidates)
        mutants = (mutant(path, place, *candidate) for candidate in candidates)
        yield from [found for found in mutants if found][:1]


def sample(folder: str, count: int, seed: int) -> list[Mutant]:
    """So many mutants of a folder, each at another place. A smaller sample is part of a larger one."""
    return [found for _, found in zip(range(count), drawn(folder, seed), strict=False)]
