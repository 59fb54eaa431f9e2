"""Writes a policy's decide() and learn() in C for a native module of MicroPython, which works on the plain object.

A call reads the attributes of the policy and of its parts, and writes those that a step changes. Arrays stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from h2t2.core import policies

from ...common import places
from .c import REFUSED, Items, Kind, Program, Struct

POLICIES: dict[str, dict[str, Any]] = {"h2t2": {}, "adaptive": {}, "ordered": {"ordered": True}}  # further arguments
STEP = {"decide": ("k",), "learn": ("ticket", "label", "beta")}


class _Object(Struct):
    """An object as a function in C sees it: its numbers, pointers to its arrays, its lists, and the objects inside it."""

    def __init__(self, program: Program, value: Any) -> None:
        super().__init__(program, value)
        self.booleans = {name for name, inner in vars(value).items() if isinstance(inner, bool)}
        self.lists = {name: len(inner) for name, inner in vars(value).items() if isinstance(inner, list)}

    def sized(self, kind: Items, text: str) -> Items:
        return Items(kind.item, f"{text}_size")

    def is_constant(self, attribute: str) -> bool:
        return False

    def member(self, attribute: str, kind: Kind) -> str:
        if attribute in self.lists:
            return f"int32_t {attribute}[{self.lists[attribute]}]"
        if isinstance(kind, Items):
            return f"{kind.item} *{attribute};\n    int32_t {attribute}_size"
        return super().member(attribute, kind)

    def exchange(self, used: set[str]) -> str:
        """Return the functions that read an object of MicroPython and write what has changed. used: names of attributes."""
        read: list[str] = []
        write: list[str] = []
        for name, kind in self.types.items():
            if name not in used:
                continue
            n = len(read)
            attribute = f"read(map, MP_QSTR_{name}, hints + {n})"
            if isinstance(kind, Struct):
                read.append(f"{kind.name}_read(&self->{name}, {attribute});")
                write.append(f"{kind.name}_write(&self->{name}, map->table[hints[{n}]].value);")
            elif name in self.lists:
                read.append(f"numbers({attribute}, self->{name}, {self.lists[name]});")
            elif isinstance(kind, Items):
                size = f" self->{name}_size = array({attribute})->len;" if f"{name}_size" in used else ""
                read.append(f"self->{name} = array({attribute})->items;{size}")
            else:
                read.append(f"self->{name} = read_number(map, MP_QSTR_{name}, hints + {n});")
                if (self.name, name) in self.program.changed:
                    new = "mp_obj_new_bool" if name in self.booleans else "MP_OBJ_NEW_SMALL_INT"
                    write.append(f"map->table[hints[{n}]].value = {new}(self->{name});")
        lines = [f"H2T2_OWN uint8_t {self.name}_hints[{len(read)}];"]
        for verb, body in (("read", read), ("write", write)):
            lines += [f"static void {self.name}_{verb}({self.name} *self, mp_obj_t object)", "{"]
            lines += [f"    uint8_t *hints = {self.name}_hints;", "    mp_map_t *map = attributes(object);"]
            lines += [*(f"    {line}" for line in body), "}", ""]
        return "\n".join(lines)


class _Program(Program):
    """The functions of a step, for objects of MicroPython."""

    struct_class = _Object

    def write(self, policy: Struct) -> None:
        for text in STEP:
            self.instance(policy.kind.method(text), {"self": policy})


@cache
def source(name: str) -> str:
    """Return the C source of a policy's native module. name: in POLICIES."""
    policy = policies.make("h2t2" if name == "h2t2" else "adaptive", POLICIES[name])
    program = _Program([policy])
    struct = program.struct(policy)
    used = {*re.findall(r"(?:->|\.)(\w+)", "".join(each.text for each in program.order))}
    folder = places.PACKAGE / "boards/c"
    words = {
        "OPERATIONS": (folder / "operations.h").read_text(), "CORE": program.text(), "CLASS": type(policy).__name__,
        "OBJECTS": "\n".join(each.exchange(used) for each in program.structs.values()),  # type: ignore[attr-defined]
        "STEPS": "\n".join(_steps(struct)),
    }  # fmt: skip
    return re.sub("@([A-Z]+)@", lambda match: words[match[1]], (folder / "native.c").read_text())


def _steps(struct: Struct) -> Iterator[str]:
    """Yield the functions that MicroPython calls."""
    for name, parameters in STEP.items():
        new = "MP_OBJ_NEW_SMALL_INT" if name == "decide" else "mp_obj_new_bool"
        words = ", ".join(f"number(args[{n}])" for n, _ in enumerate(parameters, 1))
        yield f"""static mp_obj_t {name}(size_t count, const mp_obj_t *args)
{{
    {struct.name} self;
    int32_t result;
    {struct.name}_read(&self, args[0]);
    result = {struct.name}_{name}(&self, {words});
    {struct.name}_write(&self, args[0]);
    return result == {REFUSED} ? plain(MP_QSTR_plain_{name}, count, args) : {new}(result);
}}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN({name}_obj, {len(parameters) + 1}, {len(parameters) + 1}, {name});
"""
