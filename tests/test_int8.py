"""The integer LDL: its bundle, its arithmetic, and its bytes against TFLite's reference kernels and on MicroPython."""

import importlib.util
import json
from fractions import Fraction
from struct import pack_into
from zlib import crc32

import numpy as np
import pytest
import random_models
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT

from h2t2.ldl import kernels
from h2t2.ldl.bundle import HEADER_SIZE, STEP_SIZE, Int8Model
from h2t2.ldl.open import open_ldl
from h2t2_tools.boards.emulators import ARM32, MICROBIT, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle, plan, tflite
from h2t2_tools.model.plan import multiplier
from h2t2_tools.proof import ldl_check

MADE = sorted((ROOT / "tests/models").glob("*.tflite"))
RUN = [path for path in MADE if path.stem != "dilated"]
SHIPPED = sorted(places.models().glob("*/ldl.tflite"))


def oracle(path, samples, layers):
    need_oracle()
    return ldl_check.compare(path, None, samples, 3, layers, lambda *_: None)


@pytest.mark.parametrize("path", RUN, ids=lambda p: p.stem)
def test_every_layer_is_the_reference_kernels_byte_for_byte(path):
    report = oracle(path, 40, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 40


@pytest.mark.parametrize("first", range(0, 90, 10))
def test_random_models_over_every_operator(first, tmp_path):
    """Ten models each: shapes, strides, dilations, paddings, fused activations, per-channel and per-tensor scales drawn."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    path = tmp_path / "made.tflite"
    for seed in range(first, first + 10):
        path.write_bytes(random_models.random_model(seed))
        report = oracle(path, 12, True)
        assert report["differ"] == 0, (seed, report["first"])


@pytest.mark.parametrize("seed", [2, 7, 12, 40, 41])
def test_float_ends_are_left_to_the_host(seed, tmp_path):
    """A QUANTIZE at the start and a DEQUANTIZE at the end, as converters leave them, are not the board's."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    from dataclasses import replace

    from h2t2_tools.model.tflite import Operator, Tensor
    from h2t2_tools.model.tflite_write import write

    path = tmp_path / "made.tflite"
    path.write_bytes(random_models.random_model(seed))
    graph = tflite.load(path)
    n = len(graph.tensors)
    ends = [graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]]
    real = [Tensor(n + at, f"real{at}", t.shape, "float32", None, np.zeros(0), np.zeros(0), 0) for at, t in enumerate(ends)]
    first = Operator("QUANTIZE", 1, (n,), graph.inputs, {})
    last = Operator("DEQUANTIZE", 2, graph.outputs, (n + 1,), {})
    operators = (first, *graph.operators, last)
    path.write_bytes(write(replace(graph, tensors=(*graph.tensors, *real), operators=operators, inputs=(n,), outputs=(n + 1,))))
    report = oracle(path, 12, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 20


@pytest.mark.parametrize("made", [random_models.mobilenet_v1, random_models.resnet_8], ids=lambda f: f.__name__)
def test_known_networks(made, tmp_path):
    """MobileNet v1 of 96x96 and ResNet-8 of 32x32, random weights, every layer."""
    pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")
    path = tmp_path / "made.tflite"
    path.write_bytes(made())
    report = oracle(path, 5, True)
    assert report["differ"] == 0, report["first"]
    assert report["bytes"] > 400_000


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.parent.name)
def test_the_shipped_models(path):
    assert oracle(path, 100 if path.stat().st_size < 4000 else 5, True)["differ"] == 0


def test_a_difference_is_found_and_named(monkeypatch):
    """A test that cannot fail is a defect: one weight changed in the bundle."""
    path = ROOT / "tests/models/dense_relu.tflite"
    if ldl_check.oracle() != "tflite_runtime":
        pytest.skip("the oracle is tflite-runtime 2.14, which this Python has not")

    def spoiled(made):
        step = made.steps[1]
        step.weights = bytes([step.weights[0] ^ 64]) + step.weights[1:]
        return bundle_write(made)

    bundle_write = bundle.write
    monkeypatch.setattr(ldl_check, "write", spoiled)
    report = ldl_check.compare(path, None, 20, 1, True, lambda *_: None)
    assert report["differ"] and "step 1 (fully_connected" in report["first"]


@given(st.integers(-(2**29) + 1, 2**29 - 1), st.floats(1e-9, 1.0, exclude_max=True))
def test_requantise_is_gemmlowps_two_roundings(x, real):
    m, exponent = multiplier(real)
    left, right = max(0, exponent), max(0, -exponent)
    if abs(x) << left >= 2**29:
        return
    limbs = (m >> 20, m >> 10 & 1023, m & 1023)
    ab = (x << left) * m
    high = (ab + 2**30) >> 31 if ab >= 0 else -((-ab + 2**30 - 1) >> 31)
    half = (abs(high) + (1 << right - 1)) >> right if right else abs(high)
    assert kernels.requantise(x, 0, limbs, (left, right)) == (half if high >= 0 else -half)


@given(st.floats(1e-12, 1000.0))
def test_multiplier_is_the_nearest_of_31_bits(real):
    m, exponent = multiplier(real)
    if m:
        assert 2**30 <= m < 2**31
        assert abs(Fraction(m) * Fraction(2) ** (exponent - 31) - Fraction(real)) <= Fraction(2) ** (exponent - 32)


def test_products_stay_within_small_ints():
    """requantise() at its limits: the largest accumulator, multipliers of all ones and of one bit."""
    seen = []

    class Watched(int):
        pass

    def watch(value):
        seen.append(abs(int(value)))
        return Watched(value)

    for name in ("add", "sub", "mul", "lshift", "rshift", "and", "or"):
        plain = getattr(int, f"__{name}__")
        setattr(Watched, f"__{name}__", lambda a, b, plain=plain: watch(plain(int(a), int(b))))
        setattr(Watched, f"__r{name}__", lambda a, b, plain=plain: watch(plain(int(b), int(a))))
    for x in (2**29 - 1, -(2**29) + 1, 2**29 - 32768):
        for limbs in ((2047, 1023, 1023), (1024, 0, 0), (2047, 0, 1023)):
            for shifts in ((0, 0), (0, 30), (0, 5)):
                kernels.requantise(Watched(x), 0, tuple(map(Watched, limbs)), tuple(map(Watched, shifts)))
    assert max(seen) < 2**30 and len(seen) > 100


@given(st.integers(1, 12), st.data())
def test_softmax_without_wide_integers_is_gemmlowps(bits, data):
    """reciprocal() and share() against the same steps in wide integers."""
    low = 1 << 31 - bits
    total = data.draw(st.one_of(st.integers(low, 2 * low - 1), st.sampled_from([low, 2 * low - 1])))
    high = plan.doubling_high
    half = total << bits - 1
    r = 1515870810 + high(half, -1010580540)
    for _ in range(3):
        r += high(r, 536870912 - high(half, r)) << 2
    assert kernels.reciprocal(total, bits) == (r if r < 2**30 else -1)
    e = data.draw(st.integers(0, 2**31 - 1))
    for each in (r, 2**30):
        wide = plan.rounding_shift(high(min(2 * each, 2**31 - 1), e), 35 - bits)
        assert kernels.share(each if each < 2**30 else -1, e >> 1, e & 1, 35 - bits) == wide


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
    with pytest.raises(ValueError, match="format 9, this runtime reads 1"):
        Int8Model(newer)


def resealed(blob, at, value):
    """The bundle with one 32-bit word changed and the checksum made right again: a stranger's, not a damaged one."""
    bad = bytearray(blob)
    pack_into("<i", bad, at, value)
    pack_into("<I", bad, 12, crc32(bytes(bad[16:])))
    return bytes(bad)


def test_a_strangers_bundle_cannot_reach_outside_its_memory():
    """Any word of the header and the steps changed, the checksum right: refused, or it runs inside its own arena."""
    good = content()
    model = Int8Model(good)
    steps = sum(STEP_SIZE + 4 * len(p) for _, p, _ in model.steps)
    refused = 0
    for at in range(16, HEADER_SIZE + steps, 4):
        for value in (-1, 2**28, 2**31 - 1, -(2**31), 97):
            try:
                bad = Int8Model(resealed(good, at, value))
            except ValueError as error:
                refused += "bundle" in str(error)
                continue
            except MemoryError:
                pytest.fail(f"word {at} = {value} took memory")
            assert len(bad.arena) <= 2**26
    assert refused > 200


def test_wrong_inputs_are_refused():
    model = Int8Model(content())
    with pytest.raises(ValueError, match="takes 64"):
        model.run(bytes(63))
    with pytest.raises(ValueError, match="no class 2"):
        Int8Model(content(), event=2)


def test_the_memory_plan_never_lets_living_tensors_touch():
    for path in RUN:
        made = plan.plan(tflite.load(path))
        alive = {made.graph.inputs[0]}
        for n, step in enumerate(made.steps):
            reads = {step.p[0], *(t for at, t in step.others.items() if at >= 0)}
            alive = {
                t for t in alive if any(t in (s.p[0], *(o for at, o in s.others.items() if at >= 0)) for s in made.steps[n:])
            } | reads
            spans = [(made.offsets[t], made.offsets[t] + made.graph.tensors[t].size, t) for t in alive - {step.p[1]}]
            start = made.offsets[step.p[1]]
            end = start + made.graph.tensors[step.p[1]].size
            for low, high, tensor in spans:
                shares = (
                    made.offsets[tensor] == start and made.graph.tensors[tensor].size == end - start and tensor not in reads
                )
                assert high <= start or end <= low or shares, (path.stem, step.kernel)
            assert end <= made.arena
            alive.add(step.p[1])


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda e: e.name)
def test_the_same_bytes_on_micropython(emulator, tmp_path):
    """Every made model, ten inputs each, all outputs, the heap locked while one runs: x86-64 and 32-bit ARM."""
    if emulator.missing():
        pytest.skip(emulator.missing())
    paths, expected = [], []
    made = []
    if importlib.util.find_spec("ai_edge_litert"):
        for seed in range(40):
            made.append(tmp_path / f"{seed}.tflite")
            made[-1].write_bytes(random_models.random_model(seed))
    for path in [*RUN, *made, *(p for p in SHIPPED if p.stat().st_size < 4000)]:
        blob = bundle.from_tflite(path)
        paths.append(tmp_path / f"{path.parent.name}-{path.stem}.h2m")
        paths[-1].write_bytes(blob)
        expected.append(_crc(blob))
    script = tmp_path / "run.py"
    script.write_text(
        f"PATHS = {[str(path) for path in paths]}"
        """
from binascii import crc32
from h2t2.ldl.bundle import HEADER_SIZE, STEP_SIZE, Int8Model
from h2t2.ldl.open import open_ldl
from h2t2.core.rng import Rng
from micropython import heap_lock, heap_unlock
for path in PATHS:
    with open(path, "rb") as file:
        model = Int8Model(file.read(), 0)
    rng = Rng(9)
    crc = 0
    for _ in range(10):
        x = [(rng.draw() >> 7) - 128 for _ in range(model.input_size)]
        heap_lock()
        model.run(x)
        heap_unlock()
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc) & 0xFFFFFFFF
    print(crc)
"""
    )
    out = emulator.run(script, [], ROOT / "firmware")
    assert [int(line) for line in out.split()] == expected


def _crc(blob):
    from h2t2.core.rng import Rng

    model, rng, crc = Int8Model(blob, 0), Rng(9), 0
    for _ in range(10):
        model.run([(rng.draw() >> 7) - 128 for _ in range(model.input_size)])
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc)
    return crc


def need_oracle():
    if ldl_check.oracle() != "tflite_runtime":
        pytest.skip("the oracle is tflite-runtime 2.14, which this Python has not")


def test_scores_and_bins_are_those_of_the_pi(tmp_path):
    need_oracle()
    from h2t2.ldl.tflite import TFLiteModel

    for name in ("breast_cancer", "digits"):
        pair = pairs.load(name)
        pi = TFLiteModel(str(pair.ldl), event=pair.about.event_index["ldl"])
        board = Int8Model(content(name), event=pair.about.event_index["ldl"])
        for x in pair.x[:50]:
            q = pi.quantise(pair.view(x, "ldl"))
            assert board.bin(board.run(q.ravel().tolist())) == pi.bin(pi.run(q))


def test_one_interface_for_every_kind_of_model(tmp_path):
    """.tflite, .h2m and a function give the same bins; anything else is refused by name."""
    exact = ldl_check.oracle() == "tflite_runtime"  # ai-edge-litert's kernels round once, and may be a step away
    pair = pairs.load("breast_cancer")
    event = pair.about.event_index["ldl"]
    (tmp_path / "m.h2m").write_bytes(content("breast_cancer"))
    pi, board = open_ldl(pair.ldl, event), open_ldl(tmp_path / "m.h2m", event)
    function = open_ldl(lambda x: board.run(x))
    assert board.input_quantisation() == (pytest.approx(pi.input_scale), pi.input_zero_point)
    for x in pair.x[:30]:
        q = pi.quantise(pair.view(x, "ldl")).ravel()
        bins = {ldl.bin(ldl.run(sample)) for ldl, sample in ((board, q.tolist()), (function, q.tolist()))}
        assert bins == {pi.bin(pi.run(q))} if exact else len(bins) == 1
    with pytest.raises(ValueError, match="m.onnx: want a .tflite"):
        open_ldl("m.onnx")
    with pytest.raises(ValueError, match="gave 0.5"):
        open_ldl(lambda x: 0.5).run(None)
    (tmp_path / "bad.h2m").write_bytes(b"H2M1")
    with pytest.raises(ValueError, match="bad.h2m: bundle"):
        open_ldl(tmp_path / "bad.h2m")


def test_inspect_says_what_is_there_and_what_is_missing(capsys):
    assert main(["inspect", str(places.models() / "digits/ldl.tflite"), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["parameters"] == 86 and report["board"]["arena_bytes"] == 96 and not report["problems"]
    assert report["multiply_accumulates"] == 16 * 2 * 9 + 64 and report["policy"] == ["yes: 2 class scores in [0, 1]"]
    assert main(["inspect", str(ROOT / "tests/models/dilated.tflite")]) == 0
    out = capsys.readouterr().out
    assert "SPACE_TO_BATCH_ND" in out and "feeds the policy: no" in out


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_bench_ldl_computes_the_same_everywhere(name, capsys):
    """A convolution with softmax, and a dense layer with logistic: here, on MicroPython and on the emulated micro:bit."""
    assert main(["bench", "ldl", str(places.models() / name / "ldl.tflite"), "--json", "-"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    ours = {row["crc"] for what, row in rows.items() if what.startswith("ours")}
    assert len(ours) == 1 and all(row["us"] is None or row["us"] > 0 for row in rows.values())
    if ldl_check.oracle() == "tflite_runtime":
        assert ours == {rows["TFLite reference"]["crc"]}
    if UNIX.missing() is None:
        assert {"ours, MicroPython viper", "ours, MicroPython plain"} <= set(rows)
    if MICROBIT.missing() is None:
        assert rows["ours, emulated micro:bit"]["instructions"] > 1000


def test_bundle_and_check_on_the_command_line(tmp_path, capsys):
    model = str(places.models() / "breast_cancer/ldl.tflite")
    out = tmp_path / "m.h2m"
    assert main(["bundle", model, "--out", str(out), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == len(out.read_bytes())
    assert main(["bundle", str(ROOT / "tests/models/dilated.tflite")]) == 2
    assert "SPACE_TO_BATCH_ND" in capsys.readouterr().err
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 5), np.float32))
    assert main(["ldl-check", model, "--inputs", str(tmp_path / "x.npz")]) == 2
    assert "float32" in capsys.readouterr().err
    if ldl_check.oracle() == "tflite_runtime":
        np.savez(tmp_path / "x.npz", x=np.zeros((2, 5), np.int8))
        assert main(["ldl-check", model, "--inputs", str(tmp_path / "x.npz"), "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)["differ"] == 0


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damaged_models_are_refused_without_a_crash(data):
    good = (ROOT / "tests/models/joined.tflite").read_bytes()
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path = ROOT / ".pytest_cache/damaged.tflite"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(bad))
    try:
        bundle.from_tflite(path)
    except UserError as error:
        assert str(path) in str(error)
