#!/usr/bin/env python3
"""Counts what makes code hard to read: vague names, long functions, many positional parameters, and lines of code.

`python host_tools/plain.py [FOLDER ...]` prints the counts and each finding; tests/cli/test_plain.py holds the limits.
"""

import ast
import collections
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LONGEST = 60  # lines of a function, with its signature and docstring
POSITIONAL = 7  # parameters that a call may pass by position, without self
VAGUE = frozenset(
    "made found told seen given put said kept taken wanted known shown drawn had done had asked heard left one ones other"
    " others rest more most least what how whole part thing things here there now then much many few some any all lot stuff"
    " data2 tmp".split()
)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Finding(NamedTuple):
    """A name, function or class that a reader stumbles over.

    kind: class, function, attribute, argument or variable (a vague name), lines (a long function) or parameters.
    """

    path: str
    line: int
    kind: str
    name: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} {self.name}" + (f" ({self.number})" if self.number else "")


def names(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Kind, name and line of whatever a module names."""
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield "class" if isinstance(node, ast.ClassDef) else "function", node.name, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield "variable", node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield "attribute", node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield "argument", node.arg, node.lineno


def vague_names(path: Path) -> Iterator[Finding]:
    """The names in a file that do not say what they name."""
    for kind, name, line in names(ast.parse(path.read_text(encoding="utf-8"))):
        if name.lstrip("_").lower() in VAGUE:
            yield Finding(str(path), line, kind, name)


def long_functions(path: Path) -> Iterator[Finding]:
    """The functions in a file that have more than LONGEST lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST:
                yield Finding(str(path), node.lineno, "lines", node.name, lines)


def crowded_signatures(path: Path) -> Iterator[Finding]:
    """The functions and data classes in a file that accept more than POSITIONAL parameters by position."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            parameters = [argument.arg for argument in node.args.posonlyargs + node.args.args]
            count = len(parameters) - (parameters[:1] in (["self"], ["cls"]))
        elif isinstance(node, ast.ClassDef):
            count = positional_fields(node)
        else:
            continue
        if count > POSITIONAL:
            yield Finding(str(path), node.lineno, "parameters", node.name, count)


def positional_fields(node: ast.ClassDef) -> int:
    """How many fields the constructor of a data class or named tuple accepts by position; 0 for any other class."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    data = any("dataclass" in text and "kw_only=True" not in text for text in decorators)
    named_tuple = any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)
    if not (data or named_tuple):
        return 0
    fields = [ast.unparse(field.annotation) for field in node.body if isinstance(field, ast.AnnAssign)]
    return fields.index("KW_ONLY") if "KW_ONLY" in fields else len(fields)


def docstring_lines(tree: ast.AST) -> set[int]:
    """The lines on which docstrings stand."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(path: Path) -> int:
    """How many lines of a file hold code: no comments, docstrings or empty lines."""
    source = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def python_files(folders: list[str]) -> list[Path]:
    """Every Python file below some folders."""
    return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))


def main(folders: list[str]) -> None:
    """Print every finding, then the counts."""
    files = python_files(folders)
    vague = [finding for path in files for finding in vague_names(path)]
    findings = vague + [finding for path in files for check in (long_functions, crowded_signatures) for finding in check(path)]
    print(*findings, sep="\n")
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in files)
    kinds = collections.Counter(finding.kind for finding in findings)
    print(f"vague names: {len(vague)} in {lines} lines, {1000 * len(vague) / max(1, lines):.1f} per thousand")
    print(f"findings: {dict(kinds.most_common())}; lines of code: {sum(map(code_lines, files))}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["firmware/h2t2", "host_tools/h2t2_tools"])
