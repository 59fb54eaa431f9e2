"""What the command groups share: a command as a model of its options, common options, and how reports are shown."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

from pydantic import PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from ..common import log, pairs, policies
from ..common.corollary import optimal_rates
from ..common.errors import UserError
from ..common.fields import Count, Options, about, domain, file, help_text, option, reason
from ..common.report import Report, Table
from ..common.untrusted import parse_integer, printable
from ..fleet import endpoint
from ..fleet.config import PolicyConfig, described
from .commands import Parser

GROUPS = {
    "log": "one line per record on standard error: time, level, command, text",
    "security": "mqtts:// means TLS; the broker's certificate is verified",
}
Chosen = TypeVar("Chosen", bound="Command")
ChosenPolicy = TypeVar("ChosenPolicy", bound="PolicyChoice")


class Command(Options):
    """A command: its fields are its options, run() performs it.

    Attributes:
        examples: command lines that `--help` and docs/commands.md show.
        renamed: former name of an option -> its name now.
    """

    examples: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[dict[str, str]] = {}

    @classmethod
    def parsed(cls: type[Chosen], words: dict[str, Any]) -> Chosen:
        """The command of these options, name -> text. UserError, naming the option, for a value that it refuses."""
        return checked(cls, words)

    def run(self) -> None:
        """Perform the command."""
        raise NotImplementedError


def checked(model: type[Chosen], values: dict[str, Any]) -> Chosen:
    """A command with these values. UserError, naming the option, for a value that it refuses."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        wrong = error.errors()[0]
        if not wrong["loc"]:
            raise UserError(reason(wrong, model)) from None
        name = str(wrong["loc"][0])
        value = "" if name not in values or wrong["type"] == "missing" else f" {wrong['input']}"
        raise UserError(f"{flag(name, model.model_fields[name])}{value}: {reason(wrong, model)}") from None


def flag(name: str, field: FieldInfo) -> str:
    """An option as it is written on the command line; the name of a positional argument."""
    if about(field, "positional"):
        return str(about(field, "metavar") or name)
    return str(about(field, "flag") or "--" + name.replace("_", "-"))


class _Renamed(argparse.Action):
    """Refuses a former name of an option."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> NoReturn:
        raise UserError(f"{option_string}: this option is called {self.const} now")


def visible(model: type[Command]) -> dict[str, FieldInfo]:
    """The fields of a command that its command line has."""
    return {name: field for name, field in model.model_fields.items() if not about(field, "hidden")}


def parser(name: str, model: type[Command], summary: str) -> Parser:
    """The command line of a command."""
    examples = "examples:\n" + "\n".join("  " + line for line in model.examples)
    command_line = Parser(
        f"h2t2 {name}", description=summary, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command_line.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)  # see main()
    groups: dict[str, Any] = {"": command_line}
    for field_name, field in visible(model).items():
        title = about(field, "group") or ""
        if title not in groups:
            groups[title] = command_line.add_argument_group(title, GROUPS.get(title))
        names, settings = argument(field_name, field)
        groups[title].add_argument(*names, **settings)
    for old, new in model.renamed.items():
        command_line.add_argument(old, nargs="*", action=_Renamed, const=new, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return command_line


def argument(name: str, field: FieldInfo) -> tuple[list[str], dict[str, Any]]:
    """The arguments of add_argument() for a field. The values stay text: pydantic converts and checks them."""
    accepted = domain(field)
    positional, required = about(field, "positional"), field.is_required() and not about(field, "unset")
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help_text(field).replace("%", "%%")}
    if not positional:
        settings["dest"] = name
    if accepted.kind is bool:
        return [flag(name, field)], {**settings, "action": "store_true"}
    settings["metavar"] = metavar(name, field)
    if about(field, "repeat"):
        settings["action"] = "append"
    if about(field, "const") is not None:
        settings.update(nargs="?", const=about(field, "const"))
    elif accepted.count != 1:
        settings["nargs"] = "*" if positional and not required else accepted.count
    elif positional and not required:
        settings["nargs"] = "?"
    if required and not positional:
        settings["required"] = True
    return [name if positional else flag(name, field)], settings


def metavar(name: str, field: FieldInfo) -> Any:
    """The name of an option's value; of several values a tuple."""
    accepted = domain(field)
    text = about(field, "metavar") or ("{" + ",".join(map(str, accepted.choices)) + "}" if accepted.choices else name.upper())
    words = text.split()
    return tuple(words) if len(words) > 1 else text


def words(command: Command, *without: str) -> list[str]:
    """The command line that gives a command its options, apart from defaults and those in `without`."""
    line: list[str] = []
    for name, field in visible(type(command)).items():
        value = getattr(command, name)
        if name in without or about(field, "positional") or value is None or value is False or value == field.get_default():
            continue
        if value is True:
            line.append(flag(name, field))
        elif isinstance(value, (list, tuple)):
            line += [flag(name, field), *map(str, value)]
        else:
            line.append(f"{flag(name, field)}={value}")
    return line


class Reporting(Command):
    """A command that reports."""

    json_file: str | None = file(None, "write the report as JSON; -: to standard output", flag="--json")

    @property
    def quiet(self) -> bool:
        """Whether standard output is for JSON alone."""
        return self.json_file == "-"

    def report(self, content: Any) -> None:
        """Write the report where --json asks for it."""
        write_json(self.json_file, content)


class Daemon(Command):
    """A command that runs for long and logs."""

    log: Literal["text", "json"] = option("text", "form of the log", group="log")
    verbose: bool = option(False, "log details too", group="log")

    def begin_log(self, name: str) -> None:
        """Log from now on; the records bear the command's name."""
        log.start(name, self.log, self.verbose)


class Connected(Command):
    """A command that is a client of a broker."""

    broker: str = option("mqtt://localhost:1883", "MQTT broker, mqtt[s]://HOST[:PORT]", metavar="URL")
    ca: str = file("", "certificate of the authority that signed the broker's", unset="the system's own", group="security")
    cert: str = file("", "our certificate, where the broker wants one (PEM)", group="security")
    key: str = file("", "our private key (PEM), readable by its owner alone", group="security")
    no_verify: bool = option(False, "trust any broker: for a first try only", group="security")
    user: str = option("", "user name", group="security")
    password_file: str = file(
        "", f"its password, readable by its owner alone; or the environment's {endpoint.PASSWORD}", group="security"
    )

    @property
    def url(self) -> str:
        """The broker as mqtt[s]://HOST[:PORT]."""
        return self.broker

    def connection(self) -> endpoint.Endpoint:
        """The broker. UserError, naming the option, for what cannot be used; no secret is in it."""
        files = endpoint.Files(self.ca or None, self.cert or None, self.key or None, self.password_file or None)
        return endpoint.resolve(self.url, files, self.user or None, not self.no_verify)


def address(text: str, name: str) -> tuple[str, int]:
    """(host, port) of PORT or HOST:PORT; the default host is this machine. UserError, naming the option, for other text."""
    host, _, port = text.rpartition(":")
    number = parse_integer(port, 65535)
    if not number:
        raise UserError(f"{name} {text}: want PORT or HOST:PORT")
    return host or "127.0.0.1", number


def write_json(path: str | None, content: Any) -> None:
    """Write a report where --json asks for it; "-" is standard output."""
    if path == "-":
        print(json.dumps(content, indent=1))
    elif path:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")


class _NoBar:
    """A progress bar that shows nothing."""

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None: ...

    def advance(self, *_: Any, **__: Any) -> None: ...


@contextmanager
def progress() -> Iterator[Any]:
    """A rich progress bar on standard error, quiet where that is no terminal or rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _NoBar()
        return
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


@dataclass(frozen=True)
class Working:
    """One task on a progress bar."""

    bar: Any
    task: Any

    def describe(self, text: str) -> None:
        """Show what is done now."""
        self.bar.update(self.task, description=text)

    def count(self, completed: int, total: int) -> None:
        """Show how much is done."""
        self.bar.update(self.task, completed=completed, total=total)


@contextmanager
def working(title: str) -> Iterator[Working]:
    """A progress bar of one task."""
    with progress() as bar:
        yield Working(bar, bar.add_task(title, total=None))


def show(report: Report) -> None:
    """Print tables and lines. What devices have said in them is shown, never obeyed."""
    for line in report:
        if isinstance(line, str):
            print(printable(line, "\n"))
        else:
            _print(line)


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console()
    Console(width=None if console.is_terminal else 120).print(renderable(table))


def renderable(content: Table | str) -> Any:
    """A table or a line as rich prints it. Its text is no markup, and it cannot command a terminal."""
    from rich.table import Table as Rich
    from rich.text import Text

    if isinstance(content, str):
        return Text(printable(content, "\n"))
    table = Rich(title=Text(printable(content.title)))
    for name, side in content.columns.items():
        table.add_column(Text(printable(name)), justify="left" if side == "left" else "right", no_wrap=side == "left")
    for row in content.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


class PolicyChoice(PolicyConfig, Command):
    """A command that runs a policy on a pair."""

    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    corollary: Count | None = option(
        None,
        "h2t2: epsilon and eta of the paper's Corollary 1 for T rounds, with fixed exploration and explored feedback",
        group="policy",
        metavar="T",
    )

    _pair: pairs.Pair = PrivateAttr()

    @classmethod
    def parsed(cls: type[ChosenPolicy], words: dict[str, Any]) -> ChosenPolicy:
        """As Command.parsed(). What the pair describes is the default of beta, class_costs, model_id ..."""
        entries = cls.configured(words)
        pair = pairs.load(words.get("pair", entries.get("pair", cls.model_fields["pair"].default)))
        defaults = {name: value for name, value in described(pair.info).items() if name in cls.model_fields}
        command = checked(cls, {**defaults, **entries, **words})
        command._pair = pair
        command._check_options()
        return command

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """Options that come from a file; `words` override them."""
        return {}

    def policy_numbers(self) -> dict[str, Any]:
        """People's numbers of the policy."""
        return self.numbers(Path("."), self._pair.info.classes) | self.corollary_rates()

    def corollary_rates(self) -> dict[str, Any]:
        """The options that --corollary decides; {} without it."""
        if not self.corollary:
            return {}
        if not 0 < self.beta <= 1:
            raise UserError(f"--corollary needs a beta in (0, 1], not {self.beta:g}")
        epsilon, eta = optimal_rates(self.bits, self.corollary, self.beta)
        return {**policies.PAPER, "epsilon": epsilon, "eta": eta}

    def _check_options(self) -> None:
        """UserError for an option that the policy does not have."""
        classes = self._pair.info.classes
        available = policies.option_names(self.policy, classes > 2)
        for name in (*PolicyConfig.model_fields.keys() - {"policy", "in_flight", "beta"}, "corollary"):
            needed = {"corollary": "eta", "class_costs": "costs"}.get(name, name)
            field = type(self).model_fields[name]
            option_flag = flag(name, field)
            if needed in available or getattr(self, name) == field.default:
                continue
            if classes > 2 or name in ("class_costs", "rdl_confusion"):
                raise UserError(f"{option_flag}: not of a pair of {classes} classes, as {self._pair.info.name} is")
            policy = next(name for name in policies.NAMES if needed in policies.option_names(name))
            raise UserError(f"{option_flag} is an option of --policy {policy}, not of {self.policy}")
