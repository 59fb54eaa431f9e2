"""Damaged .tflite files by number: mutation(n) changes the bytes or the meaning of one of ten networks; examine() lets every
reader read it. `python tests/mutations.py FIRST END` examines a range and prints a line a mutation. A test runs it in a process
of its own, which a crash of the interpreter may end."""

import contextlib
import io
import struct
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / name) for name in ("firmware", "host_tools", "tests")]

from h2t2.ldl.open import open_ldl
from h2t2_tools.cli.main import main
from h2t2_tools.model.tflite import load
from h2t2_tools.model.tflite_write import pack, schema_of_tflite

MUTATIONS = 2000
FILES = sorted((ROOT / "tests/material/networks").glob("*.tflite"))
KINDS = {"meaning": 0.55, "byte": 0.15, "word": 0.15, "bit": 0.1, "cut": 0.05}
TABLES = {
    "tensor": 0.24, "operator": 0.22, "options": 0.2, "quantization": 0.12, "code": 0.08, "buffer": 0.08, "graph": 0.03,
    "signature": 0.03,
}  # fmt: skip
WORDS = (0, 1, 2, 3, 4, 5, 7, 8, 127, 255, 256, 65535, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4)
NUMBERS = (-(2**31), -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 16, 127, 255, 1000, 65536, 2**24, 2**31 - 1)
REALS = (0.0, -0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 1e-45, 0.5)


def mutation(n):
    """Return the original file, the bytes of mutation n, and a description of the change."""
    path = FILES[n % len(FILES)]
    rng = np.random.default_rng(n)
    content = path.read_bytes()
    kind = _pick(rng, KINDS)
    if kind == "meaning":
        return path, *_meaning(content, rng)
    changed = bytearray(content)
    at = _structural(path, len(content), rng)
    if kind == "byte":
        for _ in range(int(rng.integers(1, 5))):
            changed[_structural(path, len(content), rng)] = int(rng.integers(256))
    elif kind == "bit":
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == "word":
        at -= at % 4
        old = int.from_bytes(changed[at : at + 4], "little")
        value = int(rng.choice(WORDS)) if rng.random() < 0.6 else old + int(rng.choice([-16, -4, -1, 1, 4, 16]))
        changed[at : at + 4] = (value % 2**32).to_bytes(4, "little")
    else:
        end = min(len(content), at + int(rng.integers(1, 400)))
        changed[at:end] = b"" if rng.random() < 0.5 else changed[at:end] * 2
    return path, bytes(changed), f"{kind} near {at}"


def _pick(rng, chances):
    return str(rng.choice(list(chances), p=list(chances.values())))


def _structural(path, size, rng):
    """Return a place in the file, mostly outside the constants, because a changed weight leaves a good model."""
    for _ in range(50):
        at = int(rng.integers(size))
        if not any(start <= at < end for start, end in _constants(path)):
            break
    return at


@cache
def _constants(path):
    """Return the places of the file's constants."""
    content = path.read_bytes()
    data = [tensor.data.tobytes() for tensor in load(path).tensors if tensor.data is not None and tensor.data.nbytes > 16]
    return [(content.find(each), content.find(each) + len(each)) for each in data]


def _meaning(content, rng):
    """Change one to three fields and write the model again with a valid structure. Return it and a description."""
    model = schema_of_tflite().ModelT.InitFromPackedBuf(content, 0)
    words = ", ".join([_change(model, rng) for _ in range(int(rng.choice([1, 1, 1, 2, 3])))])
    try:
        return pack(model), words
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:  # a value the field cannot hold
        return content[: len(content) // 2], f"cut, since {words} cannot be written ({error})"


def _change(model, rng):
    graph = model.subgraphs[int(rng.integers(len(model.subgraphs)))]
    where = _pick(rng, TABLES)

    def any_of(tables):
        return tables[int(rng.integers(len(tables)))] if tables else None

    if where in ("tensor", "quantization"):
        table = any_of(graph.tensors)
        table = table if where == "tensor" else table.quantization
    elif where in ("operator", "options"):
        table = any_of(graph.operators)
        table = table if where == "operator" else table.builtinOptions
    elif where == "graph":
        table = graph
    else:
        table = any_of({"code": model.operatorCodes, "buffer": model.buffers, "signature": model.signatureDefs}[where])
    names = [name for name in sorted(vars(table)) if name not in ("tensors", "operators")] if table else []
    if not names:
        return "nothing"
    name = str(rng.choice(names))
    old = getattr(table, name)
    new = _another_value(old, rng)
    setattr(table, name, new)
    return f"{where}.{name}: {str(old)[:40]} to {str(new)[:40]}"


def _another_value(old, rng):
    """Return another value for a field."""
    if isinstance(old, (bool, np.bool_)):
        return not old
    if isinstance(old, (int, np.integer)):
        return int(rng.choice(NUMBERS)) if rng.random() < 0.4 else int(rng.integers(-2, 30))
    if isinstance(old, float):
        return float(rng.choice(REALS))
    if isinstance(old, (list, np.ndarray)) and len(old) and isinstance(old[0], (int, float, np.number)):
        values = [float(v) if isinstance(v, (float, np.floating)) else int(v) for v in old]
        at, change = int(rng.integers(len(values))), int(rng.integers(6))
        if change == 0:
            return values[:at]
        if change == 1:
            return [*values, values[at]]
        if change == 2:
            return values[::-1]
        values[at] = _another_value(values[at], rng)
        return values
    return None


def examine(content, folder):
    """Return each reader's exit status or refusal of a damaged file. Any failure without a message raises."""
    path = Path(folder) / "damaged.tflite"
    path.write_bytes(content)
    report = ["--json", str(path.with_suffix(".json"))]
    answers = {}
    for arguments in (
        ["inspect", str(path), *report],
        ["inspect", str(path), "--bundle", str(path.with_suffix(".h2m")), *report],
        ["ldl-check", str(path), "--samples", "3", "--layers", *report],
    ):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            answers[arguments[0]] = main(arguments)
        assert answers[arguments[0]] in (0, 2), errors.getvalue()  # 1: it runs, but a board computes something else
    for resolver in ("reference", "optimised"):
        try:
            model = open_ldl(path, 0, resolver=resolver)
        except ValueError as error:
            answers["open_ldl"] = f"refused: {error}"[-160:]
            break
        for fill in (-128, 127, 3):
            model.run(np.full(model.input_size, fill, np.int8))
        answers["open_ldl"] = "runs"
    return answers


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for n in range(int(sys.argv[1]), int(sys.argv[2])):
            path, content, words = mutation(n)
            print("begins", n, path.stem, words, flush=True)
            try:
                print("ends", n, examine(content, folder), flush=True)
            except Exception:
                print("raises", n, traceback.format_exc().replace("\n", " | "), flush=True)
