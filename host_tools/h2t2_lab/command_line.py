"""`h2t2-lab`: a command is a module whose function measure() has a signature, from which its options derive.

measure(progress, ...) performs the command and returns a report that JSON can hold. Parameters without a default are positional
arguments; the docstring explains the others under `Args:`, and shows command lines under `Examples:`. The module may have
report(measured), which makes tables and lines for people, and broken(measured), a sentence for each missed goal. They take
those options, too, whose names they list.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from pydantic import create_model

from h2t2_tools import __version__
from h2t2_tools.cli.commands import EVERYWHERE
from h2t2_tools.cli.execute import guarded
from h2t2_tools.cli.options import Reporting, parse
from h2t2_tools.cli.output import show, working
from h2t2_tools.cli.usage_errors import hint
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.common.fields import option

PROGRAM = "h2t2-lab"
BENCH = "bench"
_BENCHES = (
    "policy memory fidelity kernels signals tls install saving worth device compiled c native ldl operators trees "
    "cuts offload overload gate presets dashboard fleet all"
).split()

# name of a command -> its module, below h2t2_lab
COMMANDS = {f"{BENCH} {name}": f"bench.{name}" for name in _BENCHES} | {
    "experiment": "experiments",
    "results": "pages.results_page",
    "dataset": "datasets",
    "chaos": "chaos",
    "proxy": "proxy",
    "emulators": "emulators.install",
}


class Measurement(Reporting):
    """The options of a command, and `--json`."""

    module: ClassVar[ModuleType]

    def run(self) -> None:
        options = self.model_dump(exclude={"json_file"})
        with working("measuring") as bar:
            measured = self.module.measure(bar.describe, **options)
        if self.report(measured) and hasattr(self.module, "report"):
            show(_called(self.module.report, measured, options))
        missed = _called(self.module.broken, measured, options) if hasattr(self.module, "broken") else None
        if missed:
            raise Failure("; ".join(missed))


def _called(function: Callable[..., Any], measured: Any, options: dict[str, Any]) -> Any:
    """Call a function with a measurement, and with the options that it names."""
    names = [*inspect.signature(function).parameters][1:]
    return function(measured, **{name: options[name] for name in names if name in options})


@cache
def model(name: str) -> type[Measurement]:
    """The options of a command, from the signature of its measure()."""
    module = import_module(f".{COMMANDS[name]}", __package__)
    types, texts = get_type_hints(module.measure, include_extras=True), _explained(name)
    fields: dict[str, Any] = {}
    for parameter in [*inspect.signature(module.measure).parameters.values()][1:]:
        required = parameter.default is parameter.empty
        text, _, unset = texts[parameter.name].rstrip(".").partition("; default: ")
        fields[parameter.name] = (
            types[parameter.name],
            option(
                ... if required else parameter.default, text, positional=required, unset=unset,
                metavar=_metavar(types[parameter.name], parameter.name, required),
            ),
        )  # fmt: skip
    options: type[Measurement] = create_model(name, __base__=Measurement, **fields)
    options.module, options.examples = module, _examples(name)
    return options


def _docstring(name: str) -> str:
    """What measure() of a command says, from its file: the overview needs no extra that a command imports."""
    place = Path(__file__).parent.joinpath(*COMMANDS[name].split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return next(ast.get_docstring(node) or "" for node in functions if node.name == "measure")


def _metavar(kind: Any, name: str, positional: bool) -> str:
    """How help names the value of an option: of a tuple of two, two names; of a path, FILE; "" for the usual name."""
    if get_origin(kind) is tuple and get_args(kind)[-1] is not Ellipsis:
        return " ".join([name.upper()] * len(get_args(kind)))
    return name.upper() if positional else "FILE" if kind == Path | None else ""


def summary(name: str) -> str:
    """What a command does: the first paragraph of its docstring."""
    return " ".join(_docstring(name).partition("\n\n")[0].split())


def _explained(name: str) -> dict[str, str]:
    """The entries of the section `Args:`: name -> text."""
    text = re.search(r"^Args:\n((?: {4}.*\n|\n)+)", _docstring(name) + "\n", re.M)
    entries: dict[str, str] = {}
    for line in re.split(r"\n {4}(?=\S)", "\n" + text[1]) if text else []:
        names, _, meaning = " ".join(line.split()).partition(": ")
        entries |= {name: meaning for name in names.split(", ") if name}
    return entries


def _examples(name: str) -> tuple[str, ...]:
    """The command lines of the section `Examples:`."""
    section = _docstring(name).partition("Examples:\n")[2].partition("\n\n")[0]
    return tuple(line.strip() for line in section.splitlines())


def parsed(line: list[str]) -> Measurement:
    """Read a command line.

    Raises:
        UserError: the command line is wrong.
        SystemExit: after `--help`.
    """
    name = " ".join(line[:2]) if line[:1] == [BENCH] else "".join(line[:1])
    if name not in COMMANDS:
        word = name.removeprefix(f"{BENCH} ")
        names = [command.removeprefix(f"{BENCH} ") for command in COMMANDS if (BENCH in command) == (BENCH in name)]
        raise UserError(f"{word or PROGRAM}: no such command{hint(word, names)}; {PROGRAM} --help lists the commands")
    return model(name).parsed(parse(f"{PROGRAM} {name}", summary(name), model(name), line[len(name.split()) :]))


def overview() -> str:
    """All commands, a line each."""
    lines = [f"  {name:18}{summary(name).partition('. ')[0].rstrip('.')}\n" for name in COMMANDS]
    title = "Evidence and science of H2T2 Edge, in a clone of its repository."
    return f"usage: {PROGRAM} COMMAND [OPTIONS]\n\n{title}\n\n{''.join(lines)}"


def main(argv: list[str] | None = None) -> int:
    """Run a command line. Return the exit status, as `h2t2` does."""
    words = sys.argv[1:] if argv is None else argv
    line = [word for word in words if word not in EVERYWHERE]
    if line[:1] == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    if line in ([], ["-h"], ["--help"], [BENCH, "--help"]):
        print(overview(), end="")
        return 0
    return guarded(lambda: parsed(line).run(), "--debug" in words)
