"""A pair that is not whole is refused by name."""

import io
import json
import zipfile

import numpy as np
import pytest
from command_line import h2t2

from h2t2_tools.common import npz, pairs
from h2t2_tools.common.errors import UserError


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


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(
    "entries",
    [{"model": "{}id_rsa"}, {"model": "{}own.py:scores"}, {"dtype": "raw", "media": "x/y", "encode": "{}own.py:encode"}],
)
def test_a_pair_takes_and_runs_no_file_outside_its_folder(tmp_path, entries, absolute):
    home, folder = tmp_path / "home", tmp_path / "pair"
    home.mkdir()
    folder.mkdir()
    (home / "id_rsa").write_text("a private key")
    (home / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nencode = scores = bytes\n")
    broken(folder)
    description = json.loads((folder / "pair.json").read_text())
    description["remote"].update({name: text.format(f"{home}/" if absolute else "../home/") for name, text in entries.items()})
    (folder / "pair.json").write_text(json.dumps(description))
    for command in (["new", tmp_path / "mine", "--from", folder], ["node", "--pair", folder, "--samples", 3]):
        run = h2t2(*command)
        assert run.returncode == 2 and "outside its folder" in run.stderr and "Traceback" not in run.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", ["README.md", "prior.json", "ldl.tflite", "rdl.tflite", "test.npz"])
def test_a_link_of_a_pair_leads_nowhere_else(tmp_path, name):
    (tmp_path / "secret").write_text("a private key")
    folder = tmp_path / "pair"
    folder.mkdir()
    broken(folder)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=f"{name} lies outside its folder"):
        pairs.load(str(folder))


def test_a_test_part_that_asks_for_gigabytes_is_refused_by_its_header(tmp_path):
    """Nothing of it is read: the file holds a header and no numbers."""
    with io.BytesIO() as header:
        np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 1 << 10)})
        content = header.getvalue()
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as file:
        file.writestr("x.npy", content)
    with pytest.raises(ValueError, match="ask for 4,294,967,296 bytes"):
        npz.open_npz(tmp_path / "bomb.npz")
    (tmp_path / "pair").mkdir()
    broken(tmp_path / "pair", test_npz=(tmp_path / "bomb.npz").read_bytes())
    with pytest.raises(UserError, match="not a model pair: .*ask for"):
        pairs.load(str(tmp_path / "pair"))


def test_arrays_are_read_as_they_were_written(tmp_path):
    for number, arrays in enumerate(
        [{}, {"x": np.zeros((0, 3))}, {"x": np.arange(6).reshape(2, 3), "y": np.array(["a", "bc"])}]
    ):
        for save in (np.savez, np.savez_compressed):
            save(tmp_path / f"{number}.npz", **arrays)
            with npz.open_npz(tmp_path / f"{number}.npz") as content:
                assert {name: content[name].tolist() for name in content} == {name: x.tolist() for name, x in arrays.items()}
    (tmp_path / "no.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a zip file"):
        npz.open_npz(tmp_path / "no.npz")
