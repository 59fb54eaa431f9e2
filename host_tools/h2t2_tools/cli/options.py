"""The base of all commands: a command is a model of its options. Here are its declaration and the common options."""

from typing import Any, ClassVar, Literal, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..common import durations, log
from ..common.errors import UserError
from ..common.fields import Options, about, domain, file, help_text, option, reason, stated
from ..common.untrusted import parse_integer
from ..fleet import endpoint, profile
from .command_line import Argument, Declaration
from .commands import COMMANDS
from .output import write_json

Chosen = TypeVar("Chosen", bound="Command")


class Command(Options):
    """A command: its fields are its options, run() performs it.

    Attributes:
        examples: command lines.
    """

    examples: ClassVar[tuple[str, ...]] = ()

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
    return {name: field for name, field in model.model_fields.items() if not about(field, "hidden")}


def declaration(name: str, model: type[Command]) -> Declaration:
    """The options and examples of a command, as its command line, help and completion need them."""
    return {
        "program": f"h2t2 {name}",
        "summary": f"{COMMANDS[name][1]}. {' '.join((model.__doc__ or '').split())}".rstrip(),
        "arguments": arguments_of(model),
        "examples": [*model.examples],
    }


def arguments_of(model: type[Command]) -> list[Argument]:
    """The declarations of a command's options."""
    return [_argument(name, field) for name, field in visible(model).items()]


def _argument(name: str, field: FieldInfo) -> Argument:
    """The declaration of a field. The values stay text: pydantic converts and checks them."""
    accepted = domain(field)
    positional, required = about(field, "positional"), field.is_required() and not about(field, "unset")
    settings: dict[str, Any] = {"help": help_text(field).replace("%", "%%")}
    if not positional:
        settings["dest"] = name
    if accepted.kind is bool:
        settings["action"] = "store_true"
    else:
        settings |= {"metavar": metavar(name, field), **_value_count(field)}
        if about(field, "repeat"):
            settings["action"] = "append"
        if required and not positional:
            settings["required"] = True
    return {
        "name": name if positional else flag(name, field),
        "section": about(field, "group") or "",
        "choices": [str(choice) for choice in accepted.choices],
        "settings": settings,
    }


def _value_count(field: FieldInfo) -> dict[str, Any]:
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
        files = endpoint.Files(self.ca or None, self.cert or None, self.key or None, self.password_file or None)
        return endpoint.resolve(self.url, files, self.user or None, not self.no_verify)


def address(text: str, name: str) -> tuple[str, int]:
    """(host, port) of PORT or HOST:PORT; the default host is this machine. UserError, naming the option, for other text."""
    host, _, port = text.rpartition(":")
    number = parse_integer(port, 65535)
    if not number:
        raise UserError(f"{name} {text}: want PORT or HOST:PORT")
    return host or "127.0.0.1", number
