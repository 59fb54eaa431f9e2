"""Files and messages as one release writes them, and what a reader makes of them.

`python tests/compat/artefacts.py` writes those of this release into a folder of its version, once: a release never changes
afterwards. test_compat.py reads the folders of all releases.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2 import __version__
from h2t2.core import policies
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.h2t2 import H2T2
from h2t2.core.policy import OFFLOAD
from h2t2.cpython.worker_wire import decode_request, encode_reply
from h2t2.ldl.bundle import Int8Model
from h2t2.link import wire
from h2t2.node import package as packages
from h2t2.node import restoring, snapshot
from h2t2.node.store import file_store
from h2t2_lab import material
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.common.policies import PAPER
from h2t2_tools.fleet import config, template
from h2t2_tools.fleet.update import signed_package
from h2t2_tools.model import bundle

HERE = Path(__file__).parent
COSTS = 9830, 22938, 32768
CLASS_COSTS = [[0, 9000, 20000], [32768, 0, 15000], [7000, 11000, 0]]
POLICIES: dict[str, Callable[[], Any]] = {
    "adaptive": lambda: Adaptive(beta=9830),
    "adaptive-classes": lambda: AdaptiveClasses(CLASS_COSTS),
    "h2t2": lambda: H2T2(**PAPER),
    "miss-limited": lambda: policies.make("adaptive", {"beta": 9830, "miss_rate": 900}),
}
BUNDLES = {"dense": places.models() / "breast_cancer/ldl.tflite", "convolution": places.models() / "digits/ldl.tflite"}
PAIR_FILES = "pair.json", "test.npz"
PAIR_SAMPLES = 40


def play(policy: Any, rounds: int, seed: int) -> str:
    """Decisions of a policy, a digit per round; each offload is answered at once."""
    stream = random.Random(seed)
    actions = []
    for _ in range(rounds):
        cuts = sorted(stream.randrange(16385) for _ in range(2))
        scores = [cuts[0], cuts[1] - cuts[0], 16384 - cuts[1]]
        action = policy.decide(scores if policy.classes > 2 else scores[0] >> 10 & 15)
        actions.append(str(action))
        if action == OFFLOAD:
            policy.learn(policy.ticket, stream.randrange(policy.classes))
    return "".join(actions)


def write_wire(folder: Path) -> None:
    """A request with a tensor, one with raw bytes, and a reply."""
    tensor = wire.encode_request(
        3, 0x12345678, 9, (2, 3), bytes(range(250, 256)), remaining_ms=1500, chance=8192, k=11, dtype=wire.INT8
    )
    (folder / "request.bin").write_bytes(tensor)
    (folder / "request_raw.bin").write_bytes(
        wire.encode_request(3, 0x12345678, 10, (5,), b"\xff\xd8abc", k=4, dtype=wire.RAW, media="image/jpeg")
    )
    (folder / "reply.bin").write_bytes(encode_reply(wire.OK, 0x12345678, 9, 1, 30000))


def read_wire(folder: Path) -> dict[str, Any]:
    """The fields of all three."""
    content: dict[str, Any] = {"reply": list(wire.decode_reply((folder / "reply.bin").read_bytes()))}
    for name in ("request", "request_raw"):
        request = decode_request((folder / f"{name}.bin").read_bytes())
        content[name] = {key: getattr(request, key) for key in ("model", "boot", "sequence", "remaining_ms", "chance", "k")}
        content[name] |= {"dtype": request.dtype, "shape": list(request.shape), "media": request.media}
        content[name]["data"] = bytes(request.data).hex()
    return content


def write_snapshot(folder: Path) -> None:
    """The slots of every policy after 300 samples."""
    for name, policy_of in POLICIES.items():
        policy = policy_of()
        play(policy, 300, 1)
        list(file_store(str(folder / f"{name}.state")).writing(*snapshot.encode(policy, COSTS)))


def read_snapshot(folder: Path) -> dict[str, Any]:
    """What every restored policy decides next."""
    decisions = {}
    for name, policy_of in POLICIES.items():
        policy = policy_of()
        content = file_store(str(folder / f"{name}.state")).open()
        assert content is not None, f"{folder}: no intact slot of {name}"
        try:
            restoring.restore(policy, content, COSTS)
        finally:
            content.close()
        decisions[name] = play(policy, 100, 2)
    return decisions


def write_bundle(folder: Path) -> None:
    """The local models of two shipped pairs."""
    for name, path in BUNDLES.items():
        (folder / f"{name}.h2m").write_bytes(bundle.from_tflite(path))


def read_bundle(folder: Path) -> dict[str, Any]:
    """Their outputs for one random input."""
    outputs = {}
    for name in BUNDLES:
        model = Int8Model((folder / f"{name}.h2m").read_bytes())
        model.run(memoryview(random.Random(7).randbytes(model.input_size)).cast("b"))
        outputs[name] = list(model.arena[model.output : model.output + model.classes])
    return outputs


def write_update(folder: Path) -> None:
    """The signed package that the fuzzer starts from, and the modulus of its key."""
    for name in ("update.h2u", "update.modulus"):
        shutil.copy(material.ON_DEVICE / name, folder / name)


def read_update(folder: Path) -> dict[str, Any]:
    """What it says, and whether a device takes its signature for genuine."""
    update = signed_package.read(folder / "update.h2u")
    genuine = packages.genuine(update.content, bytes.fromhex((folder / "update.modulus").read_text()))
    return {**update.to_json(), "details": update.details, "genuine": genuine}


def write_pair(folder: Path) -> None:
    """Description and test samples of a pair that `h2t2 pair` makes of the models of `digits`."""
    source = places.models() / "digits"
    with tempfile.TemporaryDirectory() as temporary:
        with np.load(source / "test.npz") as samples:
            np.savez(f"{temporary}/samples.npz", x=samples["x"][:PAIR_SAMPLES], y=samples["y"][:PAIR_SAMPLES])
        models = [str(source / "ldl.tflite"), str(source / "rdl.tflite")]
        assert main(["pair", *models, "--test", f"{temporary}/samples.npz", "--out", f"{temporary}/digits"]) == 0
        for name in PAIR_FILES:
            shutil.copy(f"{temporary}/digits/{name}", folder / name)


def read_pair(folder: Path) -> dict[str, Any]:
    """Its entries, and what an offload of the first sample sends."""
    pair = pairs.load(str(folder))
    content = pair.info.model_dump(mode="json", exclude_defaults=True)
    return {"info": content, "labels": pair.y.tolist(), "payload": pair.test_payload(0).hex()}


def write_project(folder: Path) -> None:
    """The h2t2.toml of a new project with sections for two boards."""
    text = template.render("porch", {"device": "porch", "pair": "digits", "app": "app.py", "beta": 0.25})
    (folder / config.FILE).write_text(text + "".join(template.section(board) for board in ("pico_w", "pi")))


def read_project(folder: Path) -> dict[str, Any]:
    """Its boards, and the entries for each."""
    path = folder / config.FILE
    file = config.ProjectFile(path)
    return {"boards": [*file.tables], "entries": {board: file.entries(board) for board in file.tables}}


WRITERS = {
    "wire": write_wire,
    "snapshot": write_snapshot,
    "bundle": write_bundle,
    "update": write_update,
    "pair": write_pair,
    "project": write_project,
}
READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "wire": read_wire,
    "snapshot": read_snapshot,
    "bundle": read_bundle,
    "update": read_update,
    "pair": read_pair,
    "project": read_project,
}
CONTENTS = "contents.json"  # what a reader of that release found in a format's files


def write(release: Path) -> None:
    """Write the artefacts of this release into a new folder."""
    for name, writer in WRITERS.items():
        folder = release / name
        folder.mkdir(parents=True)
        writer(folder)
        (folder / CONTENTS).write_text(json.dumps(READERS[name](folder)) + "\n")


if __name__ == "__main__":
    target = HERE / __version__
    if target.exists():
        sys.exit(f"{target}: this release has its artefacts already")
    write(target)
