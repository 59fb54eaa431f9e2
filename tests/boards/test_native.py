"""The native module of the kernels: the same bytes as the plain kernels on every processor, and its cycles on an RP2040."""

import json
import re
import sys

import pytest
import random_models
from interpreters import replayed
from portable.replay import RUNS
from support import ROOT, need

from h2t2.ldl.bounds import CONVOLUTIONS
from h2t2.ldl.bundle import Int8Model
from h2t2_lab.bench import c as bench_c
from h2t2_lab.bench import convolutions
from h2t2_lab.boards import drive, native_build
from h2t2_lab.emulators import built, source
from h2t2_tools.boards import kinds, native
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle

sys.path.append(str(ROOT / "host_tools"))
import wheel_data  # noqa: E402

MODELS = 12  # random ones
slowly = pytest.mark.timeout(1200)  # a busy machine, and a Pico whose flash is written first
# runs each step of each bundle on a random arena; says whether the native module did
ALL_STEPS = """
import sys
from binascii import crc32
from h2t2.core.numbers import Rng
from h2t2.ldl.open import open_ldl
crc = 0
for name in MODELS:
    model = open_ldl(FOLDER + name, 0)
    rng = Rng(9)
    for n in range(len(model.arena)):
        model.arena[n] = rng.draw() >> 7
    for step, p, k in model.steps:
        step(model.arena, model.blob, p, k)
    print(crc32(model.arena) & 0xFFFFFFFF)
print("h2t2_native" in sys.modules, "h2t2.ldl.conv_viper" in sys.modules)
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The module for each processor, built beside a copy of its source: other tests see the source tree as it is."""
    if reason := native_build.lacking():
        pytest.skip(reason)
    copy = tmp_path_factory.mktemp("native") / "kernels.c"
    copy.write_bytes(native.source().read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "source", lambda: copy)
        native_build.build(print)
        yield {(arch, name): native.content(arch, name) for arch in native.ARCHITECTURES for name in native.NAMES}


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """Bundles of random convolutions, dilated, strided, depthwise, some with a dense layer behind; their arenas' CRCs."""
    folder, bundles = tmp_path_factory.mktemp("networks"), {}
    for seed in range(MODELS):
        make = random_models.Maker(seed, (6, 7, 1 + seed % 9))
        y = make.convolution(make.convolution(make.first, depthwise=seed % 3 == 0), depthwise=seed % 3 == 1)
        if seed % 3 == 2:
            y = make.dense(make.mean(y), 5)
        (folder / "made.tflite").write_bytes(make.bytes(y))
        bundles[f"{seed}.h2m"] = bundle.from_tflite(folder / "made.tflite")
    return bundles, [convolutions.arena_crc(blob) for blob in bundles.values()]


@slowly
@pytest.mark.whole
@pytest.mark.parametrize(
    "board, arch",
    [(catalogue.PICO, "armv6m"), (built.RV32, "rv32imc"), (built.CORTEX_M3, "armv6m"), (built.CORTEX_M33, "armv7emsp")],
)
def test_the_same_bytes_on_the_boards(board, arch, modules, networks):
    if arch == "armv7emsp":  # a Cortex-M4 and -M33 have two products in one instruction
        assert re.search(rb"[\x20-\x2f]\xfb", modules[arch, native.KERNELS])  # smlad of any register
    check_kernels(need(board), networks, {native.MODULE: modules[arch, native.KERNELS]})


def check_kernels(board, networks, files):
    script = f"MODELS = {[*networks[0]]}\n{ALL_STEPS}"
    *crcs, loaded = drive.run(board, script, {**networks[0], **files}, count=True).splitlines()
    assert [int(crc) for crc in crcs] == networks[1] and loaded == "True False"


BOARDS = [(catalogue.PICO, "armv6m"), (catalogue.ARM32, "armv6m"), (built.CORTEX_M33, "armv7emsp"), (built.RV32, "rv32imc")]
REFUSED = """
from h2t2.core import policies
policy = policies.make("h2t2" if NAME == "h2t2" else "adaptive", {"ordered": True} if NAME == "ordered" else {})
for call in (lambda: policy.decide(-1), lambda: policy.learn(1, 2), lambda: policy.learn(1, 0, 40000)):
    try:
        call()
    except ValueError as error:
        print(error)
print(policy.learn(9, 1), policy.tickets.refused)
"""


POLICIES = [pytest.param(name, marks=[pytest.mark.evidence] * (name != "adaptive")) for name in native.NAMES[1:]]


@slowly
@pytest.mark.whole
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("board, arch", BOARDS, ids=lambda each: getattr(each, "name", each))
def test_a_step_in_c_has_the_integers_of_python(board, arch, name, modules, capsys):
    check_steps(need(board), name, {native.POLICY: modules[arch, name]}, capsys)


def check_steps(board, name, files, capsys):
    """The shared vectors, 2,000 rounds among them, and the errors of wrong arguments."""
    numbers = [n for n, run in enumerate(RUNS) if run[0] == name]
    vectors = (ROOT / "tests/vectors/core.jsonl").read_text().splitlines()
    assert replayed(board, numbers, files) == [json.loads(vectors[n]) for n in numbers]
    script = f"NAME = {name!r}\n{REFUSED}"
    exec(script, {})
    here = capsys.readouterr().out
    assert drive.run(board, f"{script}print(type(policy).__name__)\n", files) == here + "InC\n"


@pytest.fixture(scope="module")
def firmware():
    """The emulated Pico with the firmware of `h2t2 firmware pico`."""
    if reason := source.lacking(source.PICO):
        pytest.skip(reason)
    built.PICO_FROZEN.build(lambda step: None)
    return need(built.PICO_FROZEN)


@slowly
@pytest.mark.whole
@pytest.mark.parametrize("name", POLICIES)
def test_a_firmware_has_the_integers_of_python(firmware, name, capsys):
    check_steps(firmware, name, {}, capsys)


@slowly
@pytest.mark.whole
def test_a_firmware_has_the_kernels(firmware, networks):
    check_kernels(firmware, networks, {})


@slowly
@pytest.mark.whole
def test_the_goals_for_cycles_on_an_rp2040(modules):
    """A layer of each kind; `h2t2-lab bench device` measures the networks."""
    need(catalogue.PICO)
    person_detect = convolutions.layers("person_detect")
    first, *others = (layer.excerpt() for layer in (person_detect[0], person_detect[5], person_detect[6]))
    blobs = {layer: layer.bundle() for layer in (first, *others)}
    counts = convolutions.run(blobs, modules["armv6m", native.KERNELS])["native"]
    limits = {first: convolutions.PER_KIND[convolutions.FIRST], others[0]: convolutions.PER_KIND[convolutions.DEPTHWISE]}
    for layer, (cycles, crc) in counts.items():
        assert crc == convolutions.arena_crc(blobs[layer])
        assert cycles < limits.get(layer, convolutions.PER_NETWORK["native"])


@slowly
@pytest.mark.whole
def test_a_step_of_adaptive_takes_at_most_20000_cycles_on_an_rp2040(modules):
    need(catalogue.PICO)
    assert bench_c.in_micropython("adaptive", {native.POLICY: modules["armv6m", "adaptive"]}) <= bench_c.LONGEST


def test_goals_that_are_missed_are_said():
    row = {"network": "made", "depthwise": True, "first": False, "products": 10, "same": True, "viper": 46.0, "native": None}
    other = {**row, "depthwise": False, "first": True, "products": 30, "viper": 20.0}
    (missed,) = convolutions.broken([row, other])
    assert missed.startswith("a depthwise convolution, at most: 46.0 cycles a MAC by viper, goal 45.0; the native module")
    (average, *_) = convolutions.goals([row, other])
    assert average["viper"] == 26.5 and average["native"] is None
    assert convolutions.broken([{**row, "native": 30.0, "same": False}, {**other, "native": 21.0}])[0].startswith(
        "convolutions: outputs"
    )


def test_only_a_board_with_convolutions_gets_it(tmp_path, monkeypatch):
    module = tmp_path / "module.mpy"
    monkeypatch.setattr(native, "folder", lambda: tmp_path)
    monkeypatch.setattr(native, "built", lambda arch, name="kernels": module)
    files = {}
    for name in ("breast_cancer", "digits"):
        pair = pairs.load(name)
        (tmp_path / name).write_bytes(bundle.from_tflite(pair.ldl))
        config = NodeConfig(remote_shape=pair.info.remote.shape, model_id=pair.info.model_id)
        for state in ("absent", "built"):
            if state == "built":
                module.write_bytes(b"M")
            for kind in ("pico", "esp32"):
                contents = kinds.Contents(tmp_path / name, config)
                files[name, state, kind] = native.MODULE in kinds.payload(kinds.KINDS[kind], contents)
        module.unlink()
        convolved = {step.__name__ for step, _, _ in Int8Model((tmp_path / name).read_bytes(), 0).steps} & {*CONVOLUTIONS}
        assert bool(convolved) == (name == "digits")
    assert [key for key, there in files.items() if there] == [("digits", "built", "pico")]


def test_a_board_gets_the_module_of_its_policy(tmp_path, monkeypatch):
    """And bytecode of the plain classes; none without machine code, for a policy that has none, or where nobody wants it."""
    monkeypatch.setattr(native, "folder", lambda: tmp_path)
    monkeypatch.setattr(native, "built", lambda arch, name: tmp_path / f"{arch}-{name}")
    (tmp_path / "model").write_bytes(bundle.from_tflite(pairs.load("breast_cancer").ldl))
    for name in native.NAMES:
        (tmp_path / f"armv6m-{name}").write_text(name)

    def files(kind="pico", taken=True, **options):
        info = pairs.load_info("breast_cancer")
        config = NodeConfig(remote_shape=info.remote.shape, model_id=info.model_id, **options)
        return kinds.payload(kinds.KINDS[kind], kinds.Contents(tmp_path / "model", config, native=taken))

    plain = files(taken=False)
    for options, name in (({"policy": "h2t2"}, "h2t2"), ({"ordered": False}, "adaptive"), ({"ordered": True}, "ordered")):
        copied = files(**options)
        assert copied[native.POLICY] == name.encode()
        assert len(copied["h2t2/core/experts.mpy"]) < len(plain["h2t2/core/experts.mpy"]) / 2
    for copied in (files("esp32"), files(machine_code=False), files(miss_rate=0.1), plain):
        assert native.POLICY not in copied
    assert plain["h2t2/core/experts.mpy"] == files(miss_rate=0.1)["h2t2/core/experts.mpy"]


def test_a_wheel_has_the_c_file_and_what_is_built_of_the_sources_as_they_are(tmp_path, monkeypatch):
    """Kernels and policies; nothing older."""
    source, folder = tmp_path / "kernels.c", tmp_path / "build"
    folder.mkdir()
    (tmp_path / "models").mkdir()
    source.write_bytes(b"code")
    monkeypatch.setattr(native, "source", lambda: source)
    current = [folder / "armv6m-5694d08a2e53.mpy", native.built("rv32imc", "ordered")]
    for path in (*current, folder / "armv6m-000000000000.mpy", folder / "h2t2-armv6m-000000000000.mpy"):
        path.write_bytes(b"M")
    names = {path: target for path, target in wheel_data.files(tmp_path).items() if "_native" in target}
    targets = [f"h2t2_tools/_native/{name}" for name in ("kernels.c", "armv6m.mpy", "ordered-rv32imc.mpy")]
    assert names == dict(zip(map(str, [source, *current]), targets))
    monkeypatch.setattr(native, "folder", lambda: tmp_path / native.INSTALLED)
    assert native.built("rv32imc", "ordered").name == "ordered-rv32imc.mpy"


def test_without_its_linker_the_reason_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "built", lambda arch, name: tmp_path / arch)
    monkeypatch.setattr(native_build.shutil, "which", lambda command: None)
    with pytest.raises(Failure, match="apt-get install gcc-arm-none-eabi gcc-riscv64-unknown-elf make"):
        native_build.build(print)
    assert native_build.main() == 1
    monkeypatch.setattr(native_build.shutil, "which", lambda command: command)
    monkeypatch.setattr(native_build.importlib.util, "find_spec", lambda name: None)
    assert "pip install pyelftools" in native_build.lacking()
