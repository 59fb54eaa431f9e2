"""Declares options as pydantic fields, with default, range, unit and help.

`option()` declares one. The command line, the commented h2t2.toml, the reference pages and the checks read it.
"""

import types
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from h2t2.cpython import device_names

from . import durations

MARKS = "positional", "repeat", "const", "hidden", "example", "runtime"  # settings of option() that are not pydantic's
UNBOUNDED = 10**9  # an upper bound that only keeps a number representable: texts leave it out


class Options(BaseModel):
    """A set of options. An unknown name, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)


@dataclass(frozen=True)
class OneOf:
    """A validator that accepts only these names."""

    names: tuple[str, ...]

    def __call__(self, value: str) -> str:
        if value not in self.names:
            raise ValueError(f"want one of {', '.join(self.names)}")
        return value


def option(
    default: Any, text: str, *, unset: str = "", group: str = "", metavar: str = "", flag: str = "", **settings: Any
) -> Any:
    """Declare an option.

    Args:
        default: its default; `...` for an option that must be given.
        text: what it means, with its unit. The range and the default are added where it is shown.
        unset: what holds where it is not given, if the default does not say so.
        group: heading under which `--help` and h2t2.toml list it.
        metavar: name of its value in `--help`.
        flag: its name on the command line, if another than the field's; "" for a positional argument.
        settings: `positional`, `repeat` (may be given several times), `const` (value of a bare flag), `hidden` (not on the
            command line), `example` (value in a commented h2t2.toml), `runtime` (a board's config.json has the entry as it is),
            and pydantic's constraints.
    """
    extra: dict[str, Any] = {"unset": unset, "group": group, "metavar": metavar, "flag": flag}
    extra |= {name: settings.pop(name) for name in MARKS if name in settings}
    return Field(default, description=text, json_schema_extra=extra, **settings)


def about(field: FieldInfo, name: str) -> Any:
    """A setting that option() recorded in a field; None without it."""
    extra = field.json_schema_extra
    return extra.get(name) if isinstance(extra, dict) else None


def file(default: Any, text: str, **settings: Any) -> Any:
    """Declare an option that names a file."""
    return option(default, text, metavar="FILE", **settings)


Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=UNBOUNDED)]
NotNegative = Annotated[int, Field(ge=0, le=UNBOUNDED)]
Bits = Annotated[int, Field(ge=1, le=8)]
Port = Annotated[int, Field(ge=1, le=65535)]
LocalPort = Annotated[int, Field(ge=0, le=65535)]  # 0: what `unset` of the option says
Duration = Annotated[float, BeforeValidator(durations.parse)]  # seconds; people write 2h, 5 min, 500ms
Seconds = Annotated[Duration, Field(ge=0, le=UNBOUNDED)]
DAY_S = 86400
EVENT, TITLE = 1, "the event"  # index of class 1 among a model's outputs, and its name, unless something else is said
COMPLEMENT = -1  # in place of that index: class 1 has what the only output leaves of 1
TfliteKernels = Literal["reference", "optimised"]
KERNELS: TfliteKernels = "reference"
LONGEST_NAME = 40  # characters of a class's name
ClassName = Annotated[str, Field(pattern=rf"^[\w .+-]{{1,{LONGEST_NAME}}}$")]  # no character of a template, a topic or HTML
Seed = Annotated[int, Field(ge=0, lt=2**28)]
ModelNumber = Annotated[int, Field(ge=0, le=65535)]
Device = Annotated[str, AfterValidator(device_names.checked_device)]


@dataclass(frozen=True)
class Domain:
    """The values that an option accepts.

    Attributes:
        kind: type of one value.
        choices: the accepted names, if they are listed.
        low: lower bound; None without one.
        high: upper bound; None without one.
        open_low: the lower bound itself is refused.
        open_high: the upper bound itself is refused.
        count: number of values; "+" for one or more.
        duration: it is a time, in seconds.
    """

    kind: type
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    count: int | str = 1
    _: KW_ONLY
    duration: bool = False

    def show(self, value: float) -> str:
        """A value as people write it."""
        return durations.text(value) if self.duration else f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def text(self) -> str:
        """The range in words; "" if every value of the type is accepted."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        if self.kind not in (int, float) or self.low is None:
            return ""
        number = durations.text if self.duration else _number
        low, high = number(self.low), "" if self.high is None or self.high >= UNBOUNDED else number(self.high)
        if self.open_low:
            return f"above {low}, at most {high}" if high else f"above {low}"
        if not high:
            return f"{low} or more"
        return f"{low} to {'below ' if self.open_high else ''}{high}"


def domain(field: FieldInfo) -> Domain:
    """The values that a field accepts; for a repeated option, those of one occurrence."""
    if about(field, "repeat"):
        return _domain(get_args(field.annotation)[0], [])
    return _domain(field.annotation, field.metadata)


def _domain(annotation: Any, metadata: list[Any]) -> Domain:
    if get_origin(annotation) is Annotated:
        arguments = get_args(annotation)
        inner = [mark for item in arguments[1:] for mark in (item.metadata if isinstance(item, FieldInfo) else [item])]
        return _domain(arguments[0], [*metadata, *inner])
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return Domain(str) if str in kinds else _domain(kinds[0], metadata)
    if get_origin(annotation) is Literal:
        return Domain(str, get_args(annotation))
    if get_origin(annotation) in (list, tuple):
        elements = get_args(annotation)
        element = _domain(elements[0], [])
        count = len(elements) if get_origin(annotation) is tuple and elements[-1] is not Ellipsis else "+"
        return replace(element, count=count)
    bounds: dict[str, Any] = {}
    for mark in metadata:
        for name in ("ge", "gt", "le", "lt"):
            if (bound := getattr(mark, name, None)) is not None:
                side = "low" if name[0] == "g" else "high"
                bounds |= {side: bound, f"open_{side}": name[1] == "t"}
        function = getattr(mark, "func", None)
        if isinstance(function, OneOf):
            bounds["choices"] = function.names
        bounds |= {"duration": True} if function is durations.parse else {}
    return Domain(annotation if isinstance(annotation, type) else str, **bounds)


def _number(value: float) -> str:
    power = round(value).bit_length() - 1
    if value > 1 << 20 and value == 1 << power:
        return f"2^{power}"
    return f"{value:,.10g}".rstrip("0").rstrip(".") if isinstance(value, float) and "." in f"{value:.10g}" else f"{value:.10g}"


def default_text(field: FieldInfo) -> str:
    """The default in words; "" without one."""
    unset = about(field, "unset")
    if unset:
        return str(unset)
    value = field.default
    if value in (None, "", [], ()) or isinstance(value, bool) or value is PydanticUndefined:
        return ""
    values = value if isinstance(value, (list, tuple)) else [value]
    accepted = domain(field)
    return "default " + " ".join(map(accepted.show, values))


def help_text(field: FieldInfo, choices: bool = False) -> str:
    """The meaning of an option, its range and its default, in a line.

    Args:
        choices: list the accepted names even where `--help` shows them in place of the value.
    """
    accepted = domain(field)
    values = accepted.text if choices or about(field, "metavar") or not accepted.choices else ""
    notes = "; ".join(filter(None, (values, default_text(field))))
    return f"{field.description} ({notes})" if notes else str(field.description)


def stated(value: object, error: ErrorDetails) -> object:
    """What an error refuses, as it was stated: a single value before its conversion, of several values the wrong one."""
    return error["input"] if isinstance(value, (list, tuple, dict)) else value


def reason(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Why pydantic refuses a value, in the words that `--help` uses for the range."""
    field = model.model_fields.get(str(error["loc"][0])) if error["loc"] else None
    if field is not None and error["type"].startswith(("greater", "less", "int_", "float_", "finite", "literal")):
        accepted = domain(field)
        kind = "a whole number, " if accepted.kind is int else "a number, " if accepted.kind is float else ""
        kind = "a time, " if accepted.duration else kind
        if accepted.text:
            return f"want {kind}{accepted.text}"
        if kind:
            return f"want {kind.rstrip(', ')}"
    return error["msg"].removeprefix("Value error, ")
