"""A pair that is not whole is refused by name."""

import pytest
from command_line import h2t2

from h2t2_tools.common import pairs


def broken(tmp_path, **changes):
    pair = pairs.load("digits")
    for path in pair.folder.iterdir():
        if path.suffix in (".tflite", ".npz", ".json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    for name, content in changes.items():
        (tmp_path / name.replace("_", ".")).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"pair_json": b"{"}, "pair"),
        ({"pair_json": b'{"name": "x"}'}, "pair"),
        ({"test_npz": b"nothing"}, "pair"),
        ({"ldl_tflite": b"nothing"}, "TFL3"),
    ],
)
def test_a_broken_pair_is_refused(tmp_path, changes, word):
    run = h2t2("node", "--pair", broken(tmp_path, **changes), "--samples", 3)
    assert run.returncode == 2
    assert word in run.stderr and "Traceback" not in run.stderr
