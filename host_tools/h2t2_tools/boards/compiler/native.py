"""Writes a policy's decide() and learn() in C for a native module of MicroPython, which works on the plain object.

A call reads the attributes of the policy and of its parts, and writes those that a step changes. Arrays stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from h2t2.core import policies

from ...common import places
from .c import Items, Kind, Program, Struct
from .program import INT, reached

POLICIES: dict[str, dict[str, Any]] = {"h2t2": {}, "adaptive": {}, "ordered": {"ordered": True}}  # further arguments
NO_STEP = {"decide": "!is_decide", "learn": "is_decide"}  # method -> condition in C of the other one


class _Object(Struct):
    """An object as a function in C sees it: its numbers, pointers to its arrays, its lists, and the objects inside it."""

    program: _Program

    def __init__(self, program: Program, value: Any) -> None:
        super().__init__(program, value)
        self.booleans = {name for name, inner in vars(value).items() if isinstance(inner, bool)}
        self.lists = {name: len(inner) for name, inner in vars(value).items() if isinstance(inner, list)}

    def sized(self, kind: Items, text: str) -> Items:
        return Items(kind.item, f"{text}_size")

    def is_constant(self, attribute: str) -> bool:
        return False

    def declaration(self) -> str:
        self.types = {name: kind for name, kind in sorted(self.types.items(), key=self._order) if name in self.program.used()}
        return super().declaration()

    def _order(self, item: tuple[str, Kind]) -> int:
        """Numbers that change, numbers, arrays, and the rest: native.c reads and writes each part in one loop."""
        name, kind = item
        if kind == INT:
            return 0 if self._changes(name) and name not in self.booleans else 1
        return 2 if isinstance(kind, Items) and name not in self.lists else 3

    def _changes(self, name: str) -> bool:
        return (self.name, name) in self.program.changed

    def member(self, attribute: str, kind: Kind) -> str:
        if attribute in self.lists:
            return f"int32_t {attribute}[{self.lists[attribute]}]"
        if isinstance(kind, Items):
            return f"{kind.item} *{attribute};\n    int32_t {attribute}_size"
        return super().member(attribute, kind)

    def exchange(self, names: list[str]) -> str:
        """Return the functions that read an object of MicroPython and write what has changed; add its names to `names`."""
        orders = [self._order(item) for item in self.types.items()]
        start, changed, arrays, end = (len(names) + sum(order < part for order in orders) for part in range(4))
        read = [f"read(object, {start}, {arrays}, {end}, (word *)self);"]
        write = [f"write(object, {start}, {changed}, (const word *)self);"]
        for n, (name, kind) in enumerate(self.types.items(), start):
            test = "".join(f"if ({no_step}) " for step, no_step in NO_STEP.items() if name not in self.program.used([step]))
            if isinstance(kind, Struct):
                read.append(f"{test}{kind.name}_read(&self->{name}, value(object, {n}), is_decide);")
                write.append(f"{test}{kind.name}_write(&self->{name}, value(object, {n}), is_decide);")
            elif name in self.lists:
                read.append(f"{test}read_list(value(object, {n}), self->{name}, {self.lists[name]});")
            elif name in self.booleans and self._changes(name):
                write.append(f"table(object)[places[{n}]].value = mp_obj_new_bool(self->{name});")
        names += self.types
        lines = []
        for verb, body in (("read", read), ("write", write)):
            lines += [f"static void {self.name}_{verb}({self.name} *self, mp_obj_t object, int is_decide)", "{"]
            lines += [*(f"    {line}" for line in body), "}", ""]
        return "\n".join(lines)


class _Program(Program):
    """The functions of a step, for objects of MicroPython."""

    struct_class = _Object

    def write(self, policy: Struct) -> None:
        for text in NO_STEP:
            self.instance(policy.kind.method(text), {"self": policy})

    def used(self, methods: Iterable[str] = tuple(NO_STEP)) -> set[str]:
        """Return the attributes that methods of the policy, and the functions that they call, name."""
        texts = {each.name: each.text for each in self.order}
        functions = reached(
            [f"{self.policies[0].name}_{method}" for method in methods],
            lambda name: texts.keys() & re.findall(r"\w+(?=\()", texts[name]),
        )
        return {*re.findall(r"(?:->|\.)(\w+)", "".join(texts[name] for name in functions))}


@cache
def source(name: str) -> str:
    """Return the C source of a policy's native module. name: in POLICIES."""
    policy = policies.make("h2t2" if name == "h2t2" else "adaptive", POLICIES[name])
    program = _Program([policy])
    folder = places.PACKAGE / "boards/c"
    words = {"CORE": program.text(), "CLASS": type(policy).__name__, "STRUCT": program.struct(policy).name}
    names: list[str] = []
    words["OBJECTS"] = "\n".join(each.exchange(names) for each in program.structs.values())  # type: ignore[attr-defined]
    words["NAMES"], words["SIZE"] = " ".join(f"NAME({each})" for each in names), str(len(names))
    words["OPERATIONS"] = (folder / "operations.h").read_text()
    return re.sub("@([A-Z]+)@", lambda match: words[match[1]], (folder / "native.c").read_text())
