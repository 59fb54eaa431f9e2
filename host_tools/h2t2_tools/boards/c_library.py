"""The folder of `h2t2 export-c`: the policies in C for a pair, with its numbers, the wire format, and an example.

Arduino reads library.properties, Zephyr zephyr/module.yml, ESP-IDF CMakeLists.txt.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import h2t2
from h2t2.core import policies
from h2t2.link import wire
from h2t2.node import snapshot

from ..common.pairs import PairInfo
from .compiler.c import ITEMS, Program, row

TEMPLATES = Path(__file__).with_name("c")
# the policies of a library: name, further arguments, title
POLICIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("h2t2", {}, "H2T2: Algorithm 1 with its options"),
    ("adaptive", {}, "The adaptive policy: H2T2 with a forecaster among its experts"),
    ("adaptive", {"ordered": True}, "The adaptive policy for samples in the order of time: it reads its past"),
)


@cache
def program() -> Program:
    """Return the C program of all policies, which is the same for every pair."""
    return Program([policies.make(name, {**more}) for name, more, _ in POLICIES])


def files(info: PairInfo, arguments: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the files of a library, by path.

    Args:
        info: Of the pair.
        arguments: Of each policy, by name, as policies.make() takes them.
    """
    objects = [policies.make(name, {**arguments[name], **more}) for name, more, _ in POLICIES]
    words = {
        "VERSION": snapshot.VERSION, "WIRE": wire.VERSION, "LATER": wire.LATER, "PAIR": info.name, "RELEASE": h2t2.__version__,
        "ITEMS": "\n".join(_filled("items.h", {"ITEM": item}) for item in sorted({*ITEMS.values()})),
        "OPERATIONS": (TEMPLATES / "operations.h").read_text(), "CORE": program().text(),
        "POLICIES": "".join(_policy(policy, title) for policy, (_, _, title) in zip(objects, POLICIES)),
        "REQUESTS": "".join(_requests(policy, title) for policy, (_, _, title) in zip(objects, POLICIES)),
    }  # fmt: skip
    names = {f"src/{name}.h": f"{name}.h" for name in ("h2t2", "h2t2_wire")}
    names |= {name: name for name in ("main.c", "library.properties", "CMakeLists.txt")} | {"zephyr/module.yml": "module.yml"}
    filled = {path: _filled(template, words) for path, template in names.items()}
    return {**filled, "src/h2t2_pair.h": _numbers(info, objects)}


def _filled(template: str, words: dict[str, Any]) -> str:
    """Return a template with the words in place of their names."""
    return re.sub("@([A-Za-z]+)@", lambda match: str(words[match[1]]), (TEMPLATES / template).read_text())


def _policy(policy: Any, title: str) -> str:
    """Return the functions of a policy that its core does not have: start, snapshot, restore."""
    name = program().struct(policy).name
    numbers = sum(1 for _ in policy.number_rows())
    words = {"name": name, "NAME": name.upper(), "TITLE": title, "KIND": policy.kind, "NUMBERS": numbers}
    return _filled("policy.h", {**words, "COUNT": len(policy.settings())})


def _requests(policy: Any, title: str) -> str:
    """Return the functions of a policy that write its requests and read its replies."""
    reading = "score" if policy.steps() == 256 else "k"
    return _filled("requests.h", {"name": program().struct(policy).name, "TITLE": title, "READING": reading})


def _numbers(info: PairInfo, objects: list[Any]) -> str:
    """Return the header of a pair's numbers."""
    first, remote = objects[0], info.remote
    dtype, raw = wire.DTYPES.index(remote.dtype), remote.dtype == "raw"
    prior = next(policy.forecaster.prior for policy in objects if hasattr(policy, "forecaster"))
    numbers = {
        "BETA": first.beta, "DELTA_FP": first.delta_fp, "DELTA_FN": first.delta_fn, "BINS": 1 << first.bits,
        "PRIOR": row(prior), "MODEL": info.model_id, "MODEL_TEXT": f'"{info.model_id}"', "DTYPE": dtype,
        "SHAPE": row(remote.shape), "DIMENSIONS": 1 if raw else len(remote.shape), "RAW": int(raw),
        "DATA_SIZE": wire.size_of(dtype, remote.shape), "DATA_LIMIT": remote.limit,
        "MEDIA": f'"{remote.media}"', "MEDIA_SIZE": len(remote.media),
    }  # fmt: skip
    lines = {f"H2T2_{name}": value for name, value in numbers.items()}
    for policy in objects:
        struct = program().struct(policy)
        name = struct.name.upper()
        lines |= dict(struct.constants(policy))
        lines[f"{name}_SETTINGS"] = row(map(int, policy.settings()))
        lines[f"{name}_SNAPSHOT"] = snapshot.encode(policy, policy.cost_list())[0]
        cleared = deepcopy(policy)
        struct.clear(cleared)
        cleared.reset()  # as the policy's begin() in C does
        lines[f"{name}_BEGIN"] = struct.start(policy, cleared)
    words = {"PAIR": info.name, "EVENT": info.event, "NUMBERS": "\n".join(f"#define {name} {lines[name]}" for name in lines)}
    return _filled("h2t2_pair.h", words)
