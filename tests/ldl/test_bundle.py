"""Bundles: what is damaged or a stranger's is refused, and the same bytes come out on every interpreter."""

import importlib.util
from zlib import crc32

import numpy as np
import pytest
import random_models
from bundles import SHIPPED, TEST_MODELS, Guarded, need_oracle, resealed
from interpreters import in_machine_code
from support import ROOT, need

from h2t2.ldl import bounds, buffers
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.ldl import Ldl
from h2t2.ldl.open import open_ldl
from h2t2.ldl.steps import HEADER_SIZE, STEP_SIZE
from h2t2.ldl.streamed import StreamedModel
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.checks import oracle
from h2t2_tools.common import pairs, places
from h2t2_tools.model import bundle
from h2t2_tools.model.exact import open_exact
from h2t2_tools.model.inspect import inspect

INPUTS = 4  # of each model: those that keep state see a sequence


def content(name="digits"):
    path = places.models() / name / "ldl.tflite"
    return bundle.from_tflite(path)


def test_a_damaged_or_newer_bundle_is_refused_by_name():
    good = content()
    Int8Model(good)
    for at in range(0, len(good), 7):
        bad = bytearray(good)
        bad[at] ^= 16
        with pytest.raises(ValueError, match="bundle"):
            Int8Model(bytes(bad))
    for size in range(0, len(good), 13):
        with pytest.raises(ValueError, match="bundle"):
            Int8Model(good[:size])
    newer = bytearray(good)
    newer[4] = 9
    with pytest.raises(ValueError, match="format 9, this runtime reads 3: make it again, h2t2 inspect --bundle"):
        Int8Model(newer)


def table_size(model):
    """Bytes of its steps and variables in the bundle."""
    return sum(STEP_SIZE + 4 * len(p) for p in [*(p for _, p, _ in model.steps), *model.variables])


def test_a_strangers_bundle_cannot_reach_outside_its_memory():
    """Any word of the header and the steps changed, the checksum right: refused, or it runs inside its own arena."""
    good = content()
    model = Int8Model(good)
    refused = ran = 0
    for at in range(16, HEADER_SIZE + table_size(model), 4):
        for value in (-1, 2**28, 2**31 - 1, -(2**31), 97):
            try:
                bad = Int8Model(resealed(good, at, value))
            except ValueError as error:
                refused += "bundle" in str(error)
                continue
            except MemoryError:
                pytest.fail(f"word {at} = {value} took memory")
            assert len(bad.arena) <= 2**26
            bad.arena = Guarded(bad.arena)
            assert -128 <= bad.run(bytes(bad.input_size)) <= 127
            ran += 1
    assert refused > 200 and ran > 40


OTHERS = "combined function moved attended padded joined mean reduced dilated remembered added_up recurrent".split()
OTHERS += ["padded_channels", "doubled", "log_scored"]
HEAVY = "attended", "doubled", "joined"  # four seconds each


@pytest.mark.slow
@pytest.mark.parametrize("make", [pytest.param(make, marks=pytest.mark.whole if make in HEAVY else ()) for make in OTHERS])
def test_a_strangers_bundle_of_other_operators_cannot_either(make, tmp_path):
    """The same of every other kernel, in the shapes of random models."""
    refused = ran = 0
    kernels_seen = set()
    for seed in range(14):
        lstm = make == "recurrent"
        maker = random_models.Maker(seed, (4, 3) if lstm else (4, 5, 2))
        (tmp_path / "made.tflite").write_bytes(maker.bytes(getattr(maker, make)(maker.first, **({"cells": 2} if lstm else {}))))
        good = bundle.from_tflite(tmp_path / "made.tflite")
        model = Int8Model(good, 0)
        kernels_seen |= {step.__name__ for step, _, _ in model.steps}
        for at in range(HEADER_SIZE, HEADER_SIZE + table_size(model), 4):
            for value in (-1, 0, 3, 97, 2**16, 2**31 - 1):
                try:
                    bad = Int8Model(resealed(good, at, value), 0)
                except ValueError as error:
                    refused += "bundle" in str(error)
                    continue
                if sum(bounds.extents(step.__name__, p)[4] for step, p, _ in bad.steps) < 1e5:
                    bad.arena, bad.blob = Guarded(bad.arena), Guarded(bad.blob)
                    size = len(bad.arena)
                    bad.reset()
                    bad.run(bytes(bad.input_size))
                    assert len(bad.arena) == size
                    ran += 1
    assert refused > 200 and ran > 200 and kernels_seen


@pytest.mark.parametrize("path", TEST_MODELS, ids=lambda path: path.stem)
def test_a_strangers_bundle_cannot_run_for_hours(path):
    """Any word of the steps changed, no channels, kernels of 2^31: refused, or the work it asks for is bounded by its size."""
    good = bundle.from_tflite(path)
    steps = table_size(Int8Model(good))
    refused = 0
    for at in range(HEADER_SIZE, HEADER_SIZE + steps, 4):
        for value in (0, 2**16, 2**31 - 1):
            try:
                bad = Int8Model(resealed(good, at, value))
            except ValueError as error:
                refused += "bundle" in str(error)
                continue
            asked = sum(bounds.extents(step.__name__, p)[4] for step, p, _ in bad.steps)
            assert 0 < asked <= bounds.WORK + len(good) * bounds.WORK_PER_BYTE
    assert refused > steps // 8


def test_wrong_inputs_are_refused():
    model = Int8Model(content())
    with pytest.raises(ValueError, match="takes 64"):
        model.run(bytes(63))
    with pytest.raises(ValueError, match="no class 2"):
        Int8Model(content(), event=2)


@pytest.mark.whole
@pytest.mark.parametrize(
    "emulator, fast",
    [(UNIX, True), (UNIX, False), (ARM32, True)],
    ids=["unix", "unix-bytecode", "arm32"],
)
def test_the_same_bytes_on_micropython(emulator, fast, tmp_path):
    """Every made model, some inputs each in a row, all outputs, the heap locked while one runs: as machine code on x86-64 and
    32-bit ARM, as bytecode."""
    need(emulator)
    paths, expected = [], []
    made = []
    if importlib.util.find_spec("ai_edge_litert"):
        for seed in range(150):
            made.append(tmp_path / f"{seed}.tflite")
            made[-1].write_bytes(random_models.random_model(seed))
        for seed in range(18):
            made.append(tmp_path / f"ended{seed}.tflite")
            made[-1].write_bytes(random_models.ended_model(seed))
        for kind in random_models.STEPLESS:
            made.append(tmp_path / f"{kind}.tflite")
            made[-1].write_bytes(random_models.stepless(kind))
    for path in [*TEST_MODELS, *made, *(p for p in SHIPPED if p.stat().st_size < 4000)]:
        blob = bundle.from_tflite(path)
        paths.append(tmp_path / f"{path.parent.name}-{path.stem}.h2m")
        paths[-1].write_bytes(blob)
        expected.append(_crc(blob))
    script = tmp_path / "run.py"
    script.write_text(
        f"PATHS = {[str(path) for path in paths]}\nINPUTS = {INPUTS}\nFAST = {fast}"
        """
import sys
from binascii import crc32
from h2t2.ldl import steps
if not FAST:
    sys.modules["h2t2.ldl.conv_viper"] = None
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.open import open_ldl
from h2t2.ldl.streamed import StreamedModel
from h2t2.core.numbers import Rng
from micropython import heap_lock, heap_unlock
for path in PATHS:
    with open(path, "rb") as file:
        model = Int8Model(file.read(), 0)
    assert all([steps.is_machine_code(step) == FAST for step, _, _ in model.steps])
    streamed = open_ldl(path, 0, stream=True)
    rng = Rng(9)
    crc = 0
    for _ in range(INPUTS):
        x = [(rng.draw() >> 7) - 128 for _ in range(model.input_size)]
        heap_lock()
        model.run(x)
        heap_unlock()
        streamed.run(x)
        for n in range(model.classes):
            assert streamed.score_of(n) == model.score_of(n)
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc) & 0xFFFFFFFF
    print(crc)
"""
    )
    out = emulator.run(script, [], in_machine_code(emulator, tmp_path) if fast else ROOT / "firmware")
    assert [int(line) for line in out.split()] == expected


def _crc(blob):
    from h2t2.core.numbers import Rng

    model, rng, crc = Int8Model(blob, 0), Rng(9), 0
    for _ in range(INPUTS):
        model.run([(rng.draw() >> 7) - 128 for _ in range(model.input_size)])
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc)
    return crc


@pytest.mark.parametrize("name", ["digits", "chest_xray"])
def test_a_streamed_bundle_says_the_same(tmp_path, name):
    from h2t2.core.numbers import Rng

    path = tmp_path / "ldl.h2m"
    path.write_bytes(content(name))
    whole, streamed, rng = Int8Model(content(name)), open_ldl(str(path), stream=True), Rng(4)
    assert isinstance(streamed, StreamedModel) and len(streamed.weights) < 0.9 * len(content(name))
    for _ in range(5):
        x = [(rng.draw() >> 7) - 128 for _ in range(whole.input_size)]
        assert streamed.run(x) == whole.run(x)
        assert [streamed.level(q) for q in range(-128, 128)] == [whole.level(q) for q in range(-128, 128)]
    assert streamed.input_quantisation() == whole.input_quantisation()


@pytest.mark.parametrize("kind", random_models.STEPLESS)
def test_a_model_without_a_step_runs(kind, tmp_path):
    path = tmp_path / "made.tflite"
    path.write_bytes(random_models.stepless(kind))
    blob = bundle.from_tflite(path)
    (tmp_path / "made.h2m").write_bytes(blob)
    for model in (Int8Model(blob, 2), open_ldl(tmp_path / "made.h2m", 2, stream=True), open_exact(path, 2), open_ldl(path, 2)):
        assert model.run(np.array([-128, 0, 127, 5, 6, 7], np.int8)) == 127
    board = inspect(path)["board"]
    assert board["steps"] == 0 and board["ram_bytes"] > board["ram_bytes_mapped"] > 0


def test_a_streamed_bundle_whose_file_is_cut_short_is_said(tmp_path):
    path = tmp_path / "ldl.h2m"
    path.write_bytes(content("chest_xray"))  # more than CPython reads ahead
    streamed = open_ldl(str(path), stream=True)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(OSError, match="shorter"):
        streamed.run([0] * streamed.input_size)
    with pytest.raises(ValueError, match="ldl.h2m: bundle: 100 bytes, want"):
        open_ldl(str(path), stream=True)


def test_scores_and_bins_are_those_of_the_pi():
    need_oracle()
    from h2t2.cpython.tflite import TFLiteModel

    for name in ("breast_cancer", "digits"):
        pair = pairs.load(name)
        pi = TFLiteModel(str(pair.ldl), event=pair.info.event_index["ldl"])
        board = Int8Model(content(name), event=pair.info.event_index["ldl"])
        for x in pair.x[:50]:
            q = pi.quantise(pair.model_input(x, "ldl"))
            assert board.level(board.run(q.ravel().tolist())) >> 4 == pi.level(pi.run(q)) >> 4


def test_one_interface_for_every_kind_of_model(tmp_path):
    """A .tflite, a .h2m and an Ldl of one's own give the same scores; open_ldl() refuses anything else by name."""
    exact = oracle.name() == "tflite_runtime"  # ai-edge-litert's kernels round once, and may be a step away
    pair = pairs.load("breast_cancer")
    event = pair.info.event_index["ldl"]
    (tmp_path / "m.h2m").write_bytes(content("breast_cancer"))
    pi, board = open_ldl(pair.ldl, event), open_ldl(tmp_path / "m.h2m", event)
    own = Ldl()
    own.run = board.run
    assert board.input_quantisation() == (pytest.approx(pi.input_scale), pi.input_zero_point)
    for x in pair.x[:30]:
        q = pi.quantise(pair.model_input(x, "ldl")).ravel()
        bins = {ldl.level(ldl.run(sample)) >> 4 for ldl, sample in ((board, q.tolist()), (own, q.tolist()))}
        assert bins == {pi.level(pi.run(q)) >> 4} if exact else len(bins) == 1
    with pytest.raises(ValueError, match="m.onnx: want a .tflite"):
        open_ldl("m.onnx")
    for score in (0.5, 128):
        with pytest.raises(ValueError, match=f"score {score} is no integer"):
            own.level(score)
    (tmp_path / "bad.h2m").write_bytes(b"H2M1")
    with pytest.raises(ValueError, match="bad.h2m: bundle"):
        open_ldl(tmp_path / "bad.h2m")


def test_room_for_a_model_that_an_update_replaced_is_given_back(tmp_path):
    """A board takes room for the flashed model before it knows of an update; both together may not fit."""
    for name, pair in (("flashed", "digits"), ("updated", "breast_cancer")):
        (tmp_path / name).write_bytes(bundle.from_tflite(places.models() / pair / "ldl.tflite"))
    with open(tmp_path / "flashed", "rb") as file:
        buffers.reserve(file, False)
    flashed = set(buffers._reserved)
    with open(tmp_path / "updated", "rb") as file:
        buffers.reserve(file, False)
    assert flashed and len(buffers._reserved) == 2 and not flashed & set(buffers._reserved)
    buffers.release()
    assert not buffers._reserved
