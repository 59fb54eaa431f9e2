"""The machine code is what its generator writes: requantising and other shared code exist once, in host_tools/viper."""

import sys

from support import ROOT

sys.path.append(str(ROOT / "host_tools/viper"))
import generate  # noqa: E402


def test_the_viper_files_are_the_generators():
    files = generate.generated()
    assert len(files) == 14
    for path, text in files.items():
        assert path.read_text() == text, f"{path.name}: run `make pages`"


def test_a_snippet_replaces_the_line_that_calls_it():
    assert generate._snippet_code("    acc = clamp(acc, 0, q.high)\n") == (
        "    if acc < 0:\n        acc = 0\n    if acc > q.high:\n        acc = q.high\n"
    )
    *_, last = generate._snippet_code("acc = read_bias(o) - total\n").splitlines()
    assert last == "acc = ((m[3] ^ 128) - 128 << 24 | m[2] << 16 | m[1] << 8 | m[0]) - total"
    assert "shifts[0]" in generate._snippet_code("acc = requantise(acc, 0)\n")
