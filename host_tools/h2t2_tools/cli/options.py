"""The base of all commands: a command is a model of its options. Here are its declaration and the common options."""

import argparse
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..common import durations, log
from ..common.errors import UserError
from ..common.fields import Options, about, domain, file, help_text, option, reason, stated
from ..common.untrusted import parse_integer
from ..fleet import endpoint, profile
from .commands import COMMANDS, EVERYWHERE
from .output import write_json
from .usage_errors import Parser, before_separator, hint

Chosen = TypeVar("Chosen", bound="Command")
SECTIONS = {
    "log": "one line per record on standard error: time, level, command, text",
    "security": "mqtts:// means TLS; the broker's certificate is verified",
}


class Command(Options):
    """A command: its fields are its options, run() performs it.

    Attributes:
        examples: command lines.
        without: names of inherited options that the command does not have: they keep their defaults.
    """

    examples: ClassVar[tuple[str, ...]] = ()
    without: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def parsed(cls: type[Chosen], words: dict[str, Any]) -> Chosen:
        """The command of these options, name -> text. UserError, naming the option, for a value that it refuses."""
        return checked(cls, {**cls.configured(words), **words})

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """Options that come from a file or the environment; `words` override them."""
        return {}

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
        value = "" if name not in values or wrong["type"] == "missing" else f" {stated(values[name], wrong)}"
        raise UserError(f"{flag(name, model.model_fields[name])}{value}: {reason(wrong, model)}") from None


def flag(name: str, field: FieldInfo) -> str:
    """The flag of an option, or the name of a positional argument."""
    if about(field, "positional"):
        return str(about(field, "metavar") or name)
    return str(about(field, "flag") or "--" + name.replace("_", "-"))


def visible(model: type[Command]) -> dict[str, FieldInfo]:
    """The fields of a command that are options."""
    return {
        name: field for name, field in model.model_fields.items() if not about(field, "hidden") and name not in model.without
    }


def summary(name: str, model: type[Command]) -> str:
    """What a command does, in sentences."""
    return f"{COMMANDS[name][1]}. {' '.join((model.__doc__ or '').split())}".rstrip()


def parse(program: str, text: str, model: type[Command], line: list[str]) -> dict[str, Any]:
    """Read the words after a command's name.

    Args:
        program: the command's name with that of the program, such as "h2t2 node".
        text: what the command does, for `--help`.

    Returns:
        Name of an option -> its text, or a list of texts.

    Raises:
        UserError: the command has no such option, or misses one.
        SystemExit: after `--help`.
    """
    names = [flag(name, field) for name, field in visible(model).items() if not about(field, "positional")]
    names += ["--help", *EVERYWHERE]
    for word in before_separator(line):
        named = word.partition("=")[0]
        if named.startswith("--") and " " not in named and not any(accepted.startswith(named) for accepted in names):
            raise UserError(f"{named}: {program} has no such option{hint(named, names)}; {program} --help shows its options")
    options = vars(_parser(program, text, model).parse_args(line))
    return {name: words for name, words in options.items() if f"--{name}" not in EVERYWHERE}


def _parser(program: str, text: str, model: type[Command]) -> Parser:
    parser = Parser(
        program,
        description=text,
        epilog="examples:\n" + "\n".join("  " + line for line in model.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    for name in EVERYWHERE:
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    sections: dict[str, Any] = {"": parser}
    for name, field in visible(model).items():
        title = about(field, "group") or ""
        if title not in sections:
            sections[title] = parser.add_argument_group(title, SECTIONS.get(title))
        _add_argument(sections[title], name, field)
    return parser


def _add_argument(section: Any, name: str, field: FieldInfo) -> None:
    """Add an option to a section of a parser. The values stay text: pydantic converts and checks them."""
    settings: dict[str, Any] = {"help": help_text(field).replace("%", "%%")}
    if domain(field).kind is bool:
        settings["action"] = "store_true"
    else:
        settings |= {"metavar": metavar(name, field), **value_count(field)}
        if about(field, "repeat"):
            settings["action"] = "append"
    if about(field, "positional"):
        section.add_argument(name, **settings)
        return
    if field.is_required() and not about(field, "unset"):
        settings["required"] = True
    section.add_argument(flag(name, field), dest=name, **settings)


def value_count(field: FieldInfo) -> dict[str, Any]:
    """How many values an option takes, as add_argument() wants it."""
    count, optional = domain(field).count, about(field, "positional") and (not field.is_required() or about(field, "unset"))
    if about(field, "const") is not None:
        return {"nargs": "?", "const": about(field, "const")}
    if count != 1:
        return {"nargs": "*" if optional else count}
    return {"nargs": "?"} if optional else {}


def metavar(name: str, field: FieldInfo) -> Any:
    """The name of an option's value in help; for several values, a tuple of names."""
    accepted = domain(field)
    text = about(field, "metavar") or (
        "{" + ",".join(map(str, accepted.choices)) + "}" if accepted.choices else "TIME" if accepted.duration else name.upper()
    )
    words = text.split()
    return tuple(words) if len(words) > 1 else text


def words(command: Command, *without: str) -> list[str]:
    """The command line that gives a command its options, apart from those in `without` and defaults that nobody chose."""
    line: list[str] = []
    for name, field in visible(type(command)).items():
        value = getattr(command, name)
        if name in without or about(field, "positional") or value is None or value is False:
            continue
        if value == field.get_default() and name not in command.model_fields_set:
            continue
        if domain(field).duration:
            value = durations.text(value)
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

    def report(self, content: Any) -> bool:
        """Write the report where --json asks for it. Returns whether people read standard output."""
        write_json(self.json_file, content)
        return not self.quiet


class Tabular(Command):
    """A command that reads samples of a table."""

    label: str | None = option(
        None, "the column of the labels", unset="the only column of words, or the one called label, class or target",
        group="samples of a .csv", metavar="COLUMN",
    )  # fmt: skip
    drop: list[str] | None = option(
        None, "columns to leave out, such as a time", unset="none", group="samples of a .csv", metavar="COLUMN"
    )
    missing: Literal["error", "skip"] = option(
        "error", "what a sample is that lacks a number or its label; skip: it is left out", group="samples of a .csv"
    )

    @property
    def selection(self) -> Any:
        """What these options say, for tables.read()."""
        from ..common.tables import Selection

        return Selection(self.label, tuple(self.drop or ()), self.missing == "skip")


class Daemon(Command):
    """A command that runs for long and logs."""

    log: Literal["text", "json"] = option("text", "form of the log", group="log")
    verbose: bool = option(False, "log details too", group="log")

    def begin_log(self, name: str) -> None:
        """Log from now on; the records bear the command's name."""
        log.start(name, self.log, self.verbose)


class Connected(Command):
    """A command that is a client of a broker. The profile says what its options leave open."""

    broker: str = option("mqtt://localhost:1883", "MQTT broker, [mqtt[s]://]HOST[:PORT]", metavar="URL")
    ca: str = file("", "certificate of the authority that signed the broker's", unset="the system's own", group="security")
    cert: str = file("", "our certificate, where the broker wants one (PEM)", group="security")
    key: str = file("", "our private key (PEM), readable by its owner alone", group="security")
    no_verify: bool = option(False, "trust any broker: for a first try only", group="security")
    user: str = option("", "user name", group="security")
    password_file: str = file(
        "", f"its password, readable by its owner alone; or the environment's {endpoint.PASSWORD}", group="security"
    )

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """The profile's broker, CA and user."""
        return dict(profile.defaults(words))

    @property
    def url(self) -> str:
        """The broker as mqtt[s]://HOST[:PORT]."""
        return self.broker

    def connection(self) -> endpoint.Endpoint:
        """The broker. UserError, naming the option, for what cannot be used; no secret is in it."""
        login = {name: getattr(self, name) for name in ("ca", "cert", "key", "password_file", "user")}
        return endpoint.resolve(self.url, **login, verify=not self.no_verify)


def address(text: str, name: str) -> tuple[str, int]:
    """(host, port) of PORT or HOST:PORT; the default host is this machine. UserError, naming the option, for other text."""
    host, _, port = text.rpartition(":")
    number = parse_integer(port, 65535)
    if not number:
        raise UserError(f"{name} {text}: want PORT or HOST:PORT")
    return host or "127.0.0.1", number
