"""Cycles of a bundle's steps on an RP2040, predicted from a table that `h2t2-lab bench operators` measures on an emulated one.

A step's cycles are a sum of terms: so many for its call, for each window, output or product. amounts() counts them.
"""

import json
from collections.abc import Callable
from functools import lru_cache, partial
from math import log2
from typing import Any

from h2t2.ldl.bundle import Int8Model

from ..common import places
from .operators.step import LAYOUTS

TABLE = places.PACKAGE / "model/cycles.json"
WAYS = ("viper", "native")  # machine code by MicroPython's emitter; the module in C where it has the operator
RUN = "run"  # beside the steps: the sample's copy into the arena, and the loop over the steps
UNROLLED_WINDOW = (3, 3)  # of a depthwise convolution, for which the machine code has a loop of its own
UNROLLED = 8  # products of a convolution that the machine code computes together


def _of_trees(v: dict[str, int]) -> dict[str, float]:
    """Return the terms of decision trees."""
    nodes = v["size"] / v["record"] / max(1, v["count"])
    return {"outputs": v["outputs"], "trees": v["count"], "nodes": v["count"] * log2(nodes + 2)}


def amounts(kernel: str, p: Any) -> dict[str, float]:
    """Return what a step consists of: its terms and their numbers; {} for a kernel whose cycles nobody has measured.

    Args:
        kernel: Name of the kernel.
        p: Parameters of the step, as kernels.py describes them.
    """
    return {"call": 1, **TERMS[kernel](dict(zip(LAYOUTS[kernel], p)))} if kernel in TERMS else {}


def _of_windows(kernel: str, v: dict[str, int]) -> dict[str, float]:
    """Return the terms of a convolution or of a pooling."""
    windows = v["out_height"] * v["out_width"]
    outputs, taps = windows * v["channels"], v["kernel_height"] * v["kernel_width"]
    if kernel == "pool_2d":
        return {"windows": windows, "outputs": outputs, "products": outputs * taps}
    if kernel == "depthwise_conv_2d":
        lines = v["channels"] * v["out_height"]
        gathered = v["height"] * v["width"] * v["depth"]
        return {
            "channels": v["channels"],
            "lines": lines,
            "gathered_numbers": gathered,
            "outputs": outputs,
            "products": outputs * taps if (v["kernel_height"], v["kernel_width"]) == UNROLLED_WINDOW else 0,
            "other_products": 0 if (v["kernel_height"], v["kernel_width"]) == UNROLLED_WINDOW else outputs * taps,
        }
    products = taps * v["depth"]
    single = products % UNROLLED
    return {
        "window_lines": windows * v["kernel_height"],
        "gathered_numbers": windows * products,
        "outputs": outputs,
        "products": outputs * (products - single),
        "single_products": outputs * single,
    }


def _products(outputs: int, each: int) -> dict[str, float]:
    return {"outputs": outputs, "products": outputs * each}


# kernel -> the terms of a step by its parameters
TERMS: dict[str, Callable[[dict[str, int]], dict[str, float]]] = {
    "fully_connected": lambda v: _products(v["outputs"], v["inputs"]),
    **{kernel: partial(_of_windows, kernel) for kernel in ("conv_2d", "depthwise_conv_2d", "pool_2d")},
    "mean": lambda v: _products(v["channels"] * v["rows"], v["positions"]),
    **dict.fromkeys(("arithmetic", "extreme"), lambda v: {"numbers": v["outer"] * v["repeat"] * v["inner"]}),
    **dict.fromkeys(("rescale", "look_up"), lambda v: {"numbers": v["count"]}),
    "pad": lambda v: {"numbers": v["out_height"] * v["out_width"] * v["depth"]},
    "concatenate": lambda v: {"numbers": v["runs"] * v["size"]},
    "softmax": lambda v: {"outputs": v["rows"], "numbers": v["rows"] * v["classes"]},
    "view": lambda v: {"numbers": v["n0"] * v["n1"] * v["n2"] * v["n3"] * v["n4"]},
    "batch_matmul": lambda v: _products(v["batches"] * v["rows"] * v["columns"], v["inner"]),
    "lstm": lambda v: _products(v["times"] * v["cells"], 4 * (v["inputs"] + v["cells"])),
    "trees": _of_trees,
}


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """Return the table that ships in the package: {"clock_hz", "measured", "viper", "native"}, cycles by kernel and term."""
    content: dict[str, Any] = json.loads(TABLE.read_text())
    return content


def of_terms(terms: dict[str, float], counts: dict[str, float]) -> float:
    """Return the cycles of these counts."""
    return sum(terms[name] * number for name, number in counts.items())


def in_words(terms: dict[str, float]) -> str:
    """Return the terms of an operator in words: 8,446 a call, 18.1 a product. It leaves out those that are 0."""
    named = ((name.replace("_", " ").removesuffix("s"), number) for name, number in terms.items() if number)
    return ", ".join(f"{number:,.0f} a {name}" if number >= 100 else f"{number:.3g} a {name}" for name, number in named)


def beside(model: Int8Model) -> dict[str, float]:
    """Return the terms of RUN and their numbers."""
    return {"call": 1, "numbers": model.input_size, "steps": len(model.steps)}


def predict(model: Int8Model, way: str, content: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Predict the cycles of each step on an RP2040, and of what is beside them (RUN).

    Args:
        model: An open bundle.
        way: One of WAYS.
        content: A table; None: the one that ships.

    Returns:
        Rows {"operator", "products", "cycles"}; cycles: None for a kernel whose cycles the table lacks.
    """
    content = content or table()
    measured = content[WAYS[0]] | content[way]
    rows: list[dict[str, Any]] = []
    for step, p, _ in model.steps:
        counts = amounts(step.__name__, p)
        terms = measured.get(step.__name__)
        products = sum(number for name, number in counts.items() if name.endswith("products"))
        cycles = of_terms(terms, counts) if terms and counts else None
        rows.append({"operator": step.__name__, "products": int(products), "cycles": cycles})
    return [*rows, {"operator": RUN, "products": 0, "cycles": of_terms(measured[RUN], beside(model))}]
