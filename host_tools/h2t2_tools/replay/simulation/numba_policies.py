"""The core's own policies, compiled with numba: the simulator has no arithmetic of its own.

freeze() copies a policy of h2t2.core into a structure for compiled code. The methods of the structure are those of the policy,
and they call the functions of the core: numba compiles both from the device's source. An attribute must be an integer, a bool,
an array or a list of integers, or an object of the core. Compiled code does not see other attributes.
"""

import operator
import threading
from array import array
from collections.abc import Callable
from functools import cache, wraps
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.experimental import structref
from numba.extending import overload, overload_method

from h2t2.core import policy
from h2t2.core.miss_limit import Limit

from ...common.jit import njit

Fields = tuple[tuple[str, Any], ...]  # name and numba type of each attribute
_LOCK = threading.RLock()  # several threads play, but a class has one structure
REFUSALS = (policy.checked_integer,)  # functions that check arguments; the constructor has called them before


class _NoLimit(Limit):
    """The limit of a policy that has none: numba compiles the branches that such a policy never takes, too."""

    def __init__(self) -> None:
        self.zero = 0  # a structure needs an attribute


def freeze(core_object: Any) -> Any:
    """Copy an object of the core for compiled code."""
    values = {name: _value(value) for name, value in vars(core_object).items() if not isinstance(value, (str, tuple, dict))}
    if getattr(core_object, "limited", True) is False:
        values |= {"limited": 0, "limit": freeze(_NoLimit())}
    core_class: Any = type(core_object)
    fields = tuple((name, numba.typeof(value)) for name, value in values.items())
    with _LOCK:
        constructor = _constructor(core_class, fields)
    return constructor(*values.values())


def _value(value: Any) -> Any:
    if isinstance(value, (int, bool)):
        return int(value)
    if isinstance(value, (array, list)) and not (value and hasattr(value[0], "__dict__")):
        return np.array(value, np.int64)
    if isinstance(value, list):
        return numba.typed.List([freeze(each) for each in value])
    return freeze(value)


@cache
def _constructor(core_class: Any, fields: Fields) -> Any:
    """Return a compiled function that makes the structure of a class from the values of its fields."""
    names = [name for name, _ in fields]
    kind = _structure(core_class)(fields)
    body = "".join(f"    self.{name} = {name}\n" for name in names)
    source = f"def {core_class.__name__}({', '.join(names)}):\n    self = new(structure)\n{body}    return self\n"
    scope = {"new": structref.new, "structure": kind, "__name__": __name__}
    exec(compile(source, __file__, "exec"), scope)  # numba caches a function beside the file that it names
    return njit(scope[core_class.__name__])


@cache
def _structure(core_class: Any) -> Any:
    """Return the numba type of a class, with the methods that it has and inherits."""

    class Structure(types.StructRef):  # type: ignore[misc]
        def __init__(self, fields: Fields) -> None:
            super().__init__(fields)
            self.name = core_class.__qualname__  # part of the name of each compiled function

        @property
        def key(self) -> tuple[Any, ...]:
            return core_class, self._fields

        def __reduce__(self) -> tuple[Any, ...]:  # for the cache of compiled functions
            return _rebuild, self.key

    structref.register(Structure)
    structref.define_boxing(Structure, structref.StructRefProxy)
    for name, method in _methods(core_class).items():
        overload_method(Structure, name, strict=False)(_implementation(method))
    return Structure


def _rebuild(core_class: type, fields: Fields) -> Any:
    with _LOCK:
        return _structure(core_class)(fields)


def _methods(core_class: type) -> dict[str, FunctionType]:
    members = {name: getattr(core_class, name) for name in dir(core_class)}
    return {name: member for name, member in members.items() if isinstance(member, FunctionType) and name != "__init__"}


def _implementation(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def overloaded(*args: Any, **kwargs: Any) -> FunctionType:
        return _compilable(function)

    return overloaded


@cache
def _compilable(function: FunctionType) -> FunctionType:
    """Return the function with globals that numba knows: tables are arrays, classes are modules that hold their methods."""
    named = {name: value for name, value in function.__globals__.items() if name in function.__code__.co_names}
    scope = {name: _value(value) if isinstance(value, array) else _global(value) for name, value in named.items()}
    scope["__name__"] = function.__module__
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


@cache
def _global(value: Any) -> Any:
    if isinstance(value, tuple):
        return np.array(value, np.int64)
    if isinstance(value, FunctionType) and value.__module__.startswith("h2t2"):
        overload(value, strict=False)(_implementation(_nothing if value in REFUSALS else value))
    if isinstance(value, type) and value.__module__.startswith("h2t2"):
        module = ModuleType(value.__name__)
        for name, method in _methods(value).items():
            setattr(module, name, _global(method))
        return module
    return value


def _nothing(*args: Any) -> None:
    """Stand in for a function that refuses arguments."""


def _format(text: Any, values: Any) -> Any:
    """Make the text of an error without its numbers, which compiled code cannot format."""
    return (lambda text, values: text) if isinstance(types.unliteral(text), types.UnicodeType) else None


overload(operator.mod, strict=False)(_format)
