"""Writes firmware/h2t2/cpython/tflite_schema.txt from LiteRT's schema: python host_tools/tflite_schema.py"""

import ast
import importlib.util
import re
from pathlib import Path

OUT = Path(__file__).parents[1] / "firmware/h2t2/cpython/tflite_schema.txt"
SIZES = {"Bool": 1, "Int8": 1, "Uint8": 1, "Int16": 2, "Uint16": 2, "Int32": 4, "Uint32": 4, "Float32": 4}
SIZES |= {"Int64": 8, "Uint64": 8, "Float64": 8}
# field -> its union, which the generated reader does not name
UNIONS = {
    "BuiltinOptions": "BuiltinOptions", "BuiltinOptions2": "BuiltinOptions2", "Details": "QuantizationDetails",
    "ArraySegments": "SparseIndexVector", "ArrayIndices": "SparseIndexVector",
}  # fmt: skip
HEAD = """\
# The tables of a .tflite, for tflite_check.py. Written by host_tools/tflite_schema.py from LiteRT's schema; not by hand.
# A table: its fields in order. A number is a scalar of so many bytes, vN a vector of them, s a string, Name a table, *Name a
# vector of tables, ?Union a table whose kind the field before it names, _ nothing.
# ?Union: the kinds of table it may hold, from 1 on.
"""


def source() -> str:
    """The file's text."""
    spec = importlib.util.find_spec("ai_edge_litert")
    assert spec and spec.submodule_search_locations
    tree = ast.parse(Path(spec.submodule_search_locations[0], "schema_py_generated.py").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    tables = {name: _fields(reader) for name, reader in classes.items() if _is_table(reader)}
    unions = {name: _members(classes[name]) for name in dict.fromkeys(UNIONS.values())}
    lines = [f"{name}: {' '.join(fields)}" for name, fields in tables.items()]
    lines += [f"?{name}: {' '.join(members)}" for name, members in unions.items()]
    return HEAD + "".join(line.rstrip() + "\n" for line in lines)


def _is_table(reader: ast.ClassDef) -> bool:
    return any(isinstance(method, ast.FunctionDef) and method.name == "GetRootAs" for method in reader.body)


def _fields(reader: ast.ClassDef) -> list[str]:
    """What each slot of a table holds, as the methods of its reader show it; the first method of a slot is the field itself."""
    kinds: dict[int, str] = {}
    for method in reader.body:
        text = ast.unparse(method)
        offset = re.search(r"_tab\.Offset\((\d+)\)", text)
        slot = int(offset[1]) // 2 - 2 if offset else -1
        if isinstance(method, ast.FunctionDef) and offset and slot not in kinds:
            kinds[slot] = _kind(method.name, text)
    return [kinds.get(slot, "_") for slot in range(max(kinds, default=-1) + 1)]


def _kind(name: str, text: str) -> str:
    vector = "_tab.Vector(o)" in text
    if "_tab.String(" in text:
        return "s"
    if "_tab.Union(" in text:
        return "?" + UNIONS[name]
    table = re.search(r"obj = (\w+)\(\)", text)
    if table:
        return "*" * vector + table[1]
    number = re.search(r"_tab\.Get\(flatbuffers\.number_types\.(\w+)Flags", text)
    assert number, text
    return "v" * vector + str(SIZES[number[1]])


def _members(reader: ast.ClassDef) -> list[str]:
    """The names of a union's members by their numbers, but for NONE, which is 0."""
    return [statement.targets[0].id for statement in reader.body if isinstance(statement, ast.Assign)][1:]  # type: ignore


if __name__ == "__main__":
    OUT.write_text(source())
