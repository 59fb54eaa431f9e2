"""Local models on every board's processor, in bytecode and in machine code: their outputs equal the host's."""

from zlib import crc32

import pytest
from bundles import NETWORKS
from marks import needs
from rig import ROOT

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators import drive, source
from h2t2_tools.common import places
from h2t2_tools.model import bundle
from h2t2_tools.model.footprint import FILE, footprint
from h2t2_tools.proof.networks import resnet_8

LARGE = "resnet8.h2m"  # 133 KB, but a Pico has 132 KB beside the runtime
MODELS = [
    ("dense.h2m", ["viper", "plain"], 3),
    ("cnn.h2m", ["viper", "plain", "streamed"], 2),
    ("pools.h2m", ["viper", "plain"], 2),
    *[(f"{path.stem}.h2m", ["viper"], 3) for path in NETWORKS],  # three runs of a network with state are a sequence
    (LARGE, ["viper"], 1),
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
    """The board compiles the runtime's source itself, with the same outputs.

    Compilers before 1.26 cannot compile the convolutions: on Xtensa their machine code would crash, so they run as bytecode.

    --quick, and always on the Pico: leave out the larger models.
    """
    quick = request.config.getoption("--quick") or "slow" in board.features
    models = [model for model in MODELS if model[0] in QUICK or not quick]
    older = source.RECIPES[board.emulator.name].release == source.DEBIAN_13
    in_bytecode = compare(board, blobs, models, figures, compiled=False)
    assert in_bytecode == ({"conv_2d", "depthwise_conv_2d"} if older else set())


def compare(board, blobs, models, figures, compiled):
    """Compare outputs and heap. Return the operators that ran only as bytecode."""
    script = f"MODELS = {models}\n" + (places.on_device() / "ldl_outputs.py").read_text()
    output = drive.run(board.emulator, script, {name: blobs[name] for name, *_ in models}, 3000, compiled=compiled)
    assert "no viper" not in output
    *rows, (_, *in_bytecode) = [line.split() for line in output.splitlines()]
    assert [row[:2] for row in rows] == [[name, kind] for name, kinds, _ in models for kind in kinds]
    checksums = {name: expected(blobs[name], runs) for name, _, runs in models}
    for name, kind, crc, heap in rows:
        figures[f"heap_{name}_{kind}"] = int(heap)
        assert int(crc) == checksums[name], (name, kind)
        if not compiled:  # operators in bytecode copy their constants, which adds to the estimate
            continue
        mapped = board.id in ("cortex-m3", "rv32")
        streamed = kind == "streamed" and not mapped
        reckoned = footprint(blobs[name], mapped=mapped, streamed=streamed)
        if streamed and board.kind == "xtensa":  # its files are Linux's, without a cache of littlefs
            reckoned -= FILE - 16
        assert abs(int(heap) - reckoned) <= 0.05 * reckoned + 96, (name, kind, heap, reckoned)
    return set(in_bytecode)
