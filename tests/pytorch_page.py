"""Writes the tables of docs/from-pytorch.md, models as int8 beside their own framework: `make pytorch`.

results/pytorch keeps the finished rows of a version of the product: a run that was cut off goes on there.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from on_boards import (
    BOOSTERS,
    NETWORKS,
    PIPELINES,
    PUBLIC,
    TRAINED,
    Case,
    board_scores,
    booster,
    compared,
    host_scores,
    network,
    pipeline,
)

from h2t2.cpython.quantise import quantised
from h2t2_tools.cli.execute import execute
from h2t2_tools.model.convert.readers import open_source
from h2t2_tools.model.convert.scaling import scaled
from h2t2_tools.model.inspect import inspect
from h2t2_tools.model.tflite import load

BEGIN, END = "<!-- networks: make pytorch -->", "<!-- end of networks -->"
PARTS = {
    "perceptron": "two linear layers", "mobile": "depthwise convolutions, Hardswish", "squeeze": "squeeze-and-excitation",
    "normed_first": "batch normalisation before the first convolution", "grouped": "a convolution in four groups",
    "autoencoder": "two transposed convolutions", "group_norm": "group and instance normalisation, LeakyReLU",
    "activations": "ELU, Mish, Softplus, GELU, SELU, SiLU", "select": "slices, constant indices, splits, maxima",
    "lstm": "a bidirectional LSTM", "gru": "a GRU", "mixer": "layer normalisation, an MLP over time and channels",
    "attention": "a transformer's layer with two heads",
}  # fmt: skip
HEADER = "accuracy | as int8 | decisions that change | scores differ: mean, 99 % | beyond .05 | RAM of a board |"
PRODUCT = ("firmware/h2t2", "host_tools/h2t2_tools")
COMMIT = subprocess.run(["git", "log", "-1", "--format=%h", "--", *PRODUCT], capture_output=True, text=True).stdout.strip()
Cases = dict[str, Callable[[Path], Case]]  # the first columns of a row -> opens its model, given an empty folder


def h2t2(*words: object) -> None:
    """Run a command in this process, which has loaded its libraries."""
    with contextlib.redirect_stdout(io.StringIO()):
        if execute([str(word) for word in words]):
            sys.exit(1)


def measured(open_case: Callable[[Path], Case], scores: Callable[..., object]) -> str:
    """The columns behind the first ones."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        case = open_case(folder)
        os.chdir(folder)
        row = compared(case.scores, scores(h2t2, folder, case), case.test[1])
        ram = inspect(folder / "pair/ldl.tflite")["board"]["ram_bytes"]
        alone = f", {by_the_input(case, folder / 'pair/ldl.tflite'):.1%} by the input" if scores is host_scores else ""
    return (
        f"{row['float']:.1%} | {row['int8']:.1%} | {row['changed']:.1%} | {row['mean']:.3f}, {row['most']:.3f} "
        f"| {row['beyond']:.1%}{alone} | {ram / 1024:.0f} KB"
    )


def by_the_input(case: Case, int8: Path) -> float:
    """The share of the float model's scores that change by more than .05 where its input alone is that of the int8 model."""
    source = open_source(case.path)
    prepared = scaled(source, case.fit[0])
    ends = load(int8)
    scale, zero = ends.tensors[ends.inputs[0]].quantisation
    rounded = (quantised(prepared.prepared(case.test[0]), scale, zero).astype(float) - zero) * scale
    x = ((rounded - prepared.offset) / prepared.factor).astype(np.float32)
    return compared(case.scores, source.scores(x)[:, -1], case.test[1])["beyond"]


def rows(cases: Cases, scores: Callable[..., object] = board_scores) -> Iterator[str]:
    """A row for each model."""
    path = TRAINED / f"rows-{COMMIT}.json"
    finished = json.loads(path.read_text()) if path.exists() else {}
    for name, open_case in cases.items():
        began = time.monotonic()
        if name not in finished:
            finished[name] = measured(open_case, scores)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(finished))
        print(f"{time.monotonic() - began:4.0f} s  {name} | {finished[name]}", flush=True)
        yield f"| {name} | {finished[name]} |"


def tables() -> str:
    """The three tables as Markdown."""
    networks: Cases = {f"{name} | {PARTS[name]}": lambda _, name=name: network(name) for name in NETWORKS}
    others: Cases = {text: lambda _, name=name: booster(name) for name, text in BOOSTERS.items()}
    others |= {name: lambda folder, name=name: pipeline(name, folder) for name in PIPELINES}
    public: Cases = {
        f"[{name}](https://github.com/{of['repository']}/blob/{of['commit']}/{of['file']}), {of['field']} "
        f"| {of['what']}": lambda _, name=name: network(name)
        for name, of in PUBLIC.items()
    }
    lines = [f"| network | has | {HEADER}", "|---" * 8 + "|", *rows(networks), ""]
    lines += [f"| trees or pipeline | {HEADER}", "|---" * 7 + "|", *rows(others), ""]
    lines += [f"| public network | has | {HEADER}", "|---" * 8 + "|", *rows(public, host_scores)]
    return "\n".join(lines)


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.partition(END)[2]}")
