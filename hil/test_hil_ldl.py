"""Local models on every board's processor, in machine code and in bytecode: their outputs equal the host's."""

from zlib import crc32

import pytest
from board_features import needs
from bundles import NETWORKS
from rig import ROOT

from h2t2.ldl.bundle import Int8Model
from h2t2_lab import material
from h2t2_lab.boards import drive
from h2t2_lab.emulators import source
from h2t2_lab.networks import resnet_8
from h2t2_tools.model import bundle
from h2t2_tools.model.footprint import FILE, footprint

LARGE = "resnet8.h2m"  # 133 KB, but a Pico has 132 KB beside the runtime
MODELS = [
    ("dense.h2m", ["whole"], 3),
    ("cnn.h2m", ["whole", "streamed"], 2),
    ("pools.h2m", ["whole"], 2),
    *[(f"{path.stem}.h2m", ["whole"], 3) for path in NETWORKS],  # three runs of a network with state are a sequence
    (LARGE, ["whole"], 1),
]
QUICK = ("dense.h2m", "cnn.h2m", "pools.h2m", "lstm.h2m", "wake_word.h2m")


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """A dense model, a small CNN, others, and the largest: ResNet-8 (MLPerf Tiny's image model, random weights)."""
    large = tmp_path_factory.mktemp("models") / "resnet8.tflite"
    large.write_bytes(resnet_8())
    files = {"dense": ROOT / "models/breast_cancer/ldl.tflite", "cnn": ROOT / "models/digits/ldl.tflite", "resnet8": large}
    files["pools"] = ROOT / "tests/material/pools.tflite"
    files.update({path.stem: path for path in NETWORKS})
    return {f"{name}.h2m": bundle.from_tflite(path) for name, path in files.items()}


def expected(blob, runs):
    model, draw, crc = Int8Model(blob, 0), 9, 0
    for _ in range(runs):
        x = bytearray(model.input_size)
        for n in range(len(x)):
            draw = draw * 1103 + 12345 & 0xFFFF
            x[n] = draw >> 8
        model.run(bytes(x))
        crc = crc32(bytes(model.arena[model.output : model.output + model.classes]), crc)
    return crc


@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs("ldl")
def test_outputs_equal_the_hosts(board, blobs, figures, request):
    """The outputs' CRC-32 equals the host's, and opening a bundle takes the estimated heap within 5 % and 96 bytes.

    --quick: a slow board leaves out the larger models.
    """
    models = [model for model in MODELS if board.kind != "pico" or model[0] != LARGE]
    if "slow" in board.features and request.config.getoption("--quick"):
        models = [model for model in MODELS if model[0] in QUICK]
    assert compare(board, blobs, models, figures, compiled=True) == set()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs("ldl", "compiler")
def test_outputs_equal_the_hosts_compiled_on_the_board(board, blobs, figures, request):
    """The board compiles the runtime's source itself, with the same outputs: to bytecode, but for the convolutions.

    Compilers before 1.26 cannot compile their machine code: on Xtensa it would crash, so they run as bytecode, too.

    --quick, and always on the Pico: leave out the larger models.
    """
    quick = request.config.getoption("--quick") or "slow" in board.features
    models = [model for model in MODELS if model[0] in QUICK or not quick]
    older = source.RECIPES[board.emulator.name].release == source.DEBIAN_13
    in_bytecode = compare(board, blobs, models, figures, compiled=False)
    assert {"fully_connected", "softmax"} <= in_bytecode and ("conv_2d" in in_bytecode) == older


def compare(board, blobs, models, figures, compiled):
    """Compare outputs and heap. Return the operators that ran only as bytecode.

    On QEMU's boards each model has a start of its own, because their heap has no room for the kernels of all models.
    """
    mapped = board.id in ("cortex-m3", "cortex-m33", "rv32")
    rows, in_bytecode = [], set()
    for chosen in [[model] for model in models] if mapped else [models]:
        script = f"MODELS = {chosen}\n" + (material.ON_DEVICE / "ldl_outputs.py").read_text()
        output = drive.run(board.emulator, script, {name: blobs[name] for name, *_ in chosen}, 3000, compiled=compiled)
        *measured, (_, *slow) = [line.split() for line in output.splitlines()]
        rows += measured
        in_bytecode |= {*slow}
    assert [row[:2] for row in rows] == [[name, kind] for name, kinds, _ in models for kind in kinds]
    checksums = {name: expected(blobs[name], runs) for name, _, runs in models}
    for name, kind, crc, heap in rows:
        figures[f"heap_{name}_{kind}"] = int(heap)
        assert int(crc) == checksums[name], (name, kind)
        if not compiled:  # operators in bytecode copy their constants, which adds to the estimate
            continue
        streamed = kind == "streamed" and not mapped
        reckoned = footprint(blobs[name], mapped=mapped, streamed=streamed)
        if streamed and board.kind == "xtensa":  # its files are Linux's, without a cache of littlefs
            reckoned -= FILE - 16
        over = reckoned - int(heap)
        assert -0.05 * reckoned - 96 <= over <= 0.1 * reckoned + 96, (name, kind, heap, reckoned)
    return in_bytecode
