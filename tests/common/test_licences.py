"""docs/third-party.md names every file with data of others, and the packages hold what the licences named there allow."""

import re
import subprocess

import numpy as np
import pytest
from support import ROOT, program

from h2t2_lab import datasets
from h2t2_tools.common import toml_file

PAGE = (ROOT / "docs/third-party.md").read_text()
UNLICENSED = "none stated"
SCORES_ONLY = "scores and labels only"
SOURCES = {
    *".py .pyi .md .toml .cmake .properties .txt .sh .bash .fish .sql .css .js .html .conf .c .h .mjs .mk".split(),
    *".service .typed .cff .yml .yaml .json .ipynb".split(),
}
NAMES = {"Dockerfile", "LICENSE", "Makefile", ".gitignore", ".editorconfig", "run"}


def table(title):
    """The rows under a heading: {first column: the others}. Backquotes go."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in re.findall(r"^\| .*\|$", section, re.M)]
    return {row[0].strip("`| "): [cell.strip(" |") for cell in row[1:]] for row in rows[1:]}


SETS, FOLDERS, FILES = table("Data sets"), table("Derived files"), table("Other files with data")


def licences(folder):
    """The licences of the data sets that a folder of models/ comes from."""
    return {SETS[name][-1] for name in re.findall(r"`(\w+)`", FOLDERS[folder][0])}


def wheel_files():
    """Source path -> path in the wheel of the data that the build hook adds."""
    module = program(ROOT / "host_tools/wheel_data.py")
    return {str(path).removeprefix(f"{ROOT}/"): target for path, target in module.files(ROOT).items()}


def committed():
    listing = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if listing.returncode:
        pytest.skip("no git repository here")
    return listing.stdout.splitlines()


def test_every_data_set_that_can_be_read_has_an_entry():
    assert set(SETS) == set(datasets.LOADERS)


def test_every_folder_of_models_has_an_entry():
    assert set(FOLDERS) == {"/".join(name.split("/")[:2]) for name in committed() if re.match("models/.+/", name)}


def test_every_file_with_data_has_an_entry():
    for name in committed():
        last = name.rpartition("/")[2]
        if name.startswith("models/") and "/" in name.removeprefix("models/"):
            assert "/".join(name.split("/")[:2]) in FOLDERS, name
        elif last not in NAMES and f".{last.rpartition('.')[2]}" not in SOURCES:
            assert any(name.startswith(entry) for entry in FILES), f"{name} has no entry in docs/third-party.md"
    for entry in FILES:
        assert (ROOT / entry).exists(), entry


def test_an_entry_says_what_its_folder_holds():
    kinds = {"model": "ldl.tflite", "trace": "trace.npz", "recorded hours": "hours.csv.gz"}
    for folder, (_, contents, _) in FOLDERS.items():
        names = {name.rpartition("/")[2] for name in committed() if name.startswith(folder + "/")}
        held = [kind for kind, file in kinds.items() if file in names] or ["recipe"]
        assert contents == ("pair" if "pair.json" in names else ", ".join(held)), folder


def test_a_derived_file_keeps_the_licence_of_its_data():
    for folder, (_, contents, licence) in FOLDERS.items():
        if contents == "recipe":
            assert licence == "MIT"
        elif UNLICENSED in licences(folder):
            assert licence == SCORES_ONLY, folder
        else:
            assert licences(folder) == {"public domain" if licence == "MIT" else licence}, folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folders_own_page_agrees(folder):
    readme = ROOT / folder / "README.md"
    stated = re.search(r"^- Licence: (.*)$", readme.read_text(), re.M) if readme.exists() else None
    if stated:
        (licence,) = licences(folder)
        assert stated[1].startswith(licence)


def test_of_images_without_a_licence_only_scores_and_labels_are_anywhere():
    """In the repository and in the wheel; the arrays hold names, one score and one label per sample."""
    folders = [folder for folder, entry in FOLDERS.items() if entry[-1] == SCORES_ONLY]
    assert len(folders) >= 6
    for folder in folders:
        names = {name.rpartition("/")[2] for name in committed() if name.startswith(folder + "/")}
        assert names <= {"README.md", "trace.npz", "train.py", ".gitignore"}, folder
        assert {name for name in wheel_files() if name.startswith(folder + "/")} == {f"{folder}/trace.npz"}
        with np.load(ROOT / folder / "trace.npz", allow_pickle=False) as arrays:
            assert set(arrays.files) == {"name", "names", "score", "label"}
            assert (
                arrays["score"].ndim == arrays["label"].ndim == 1 and arrays["name"].ndim == 0 and arrays["names"].shape == (2,)
            )


def test_what_the_wheel_adds_from_models_has_an_entry():
    for name in wheel_files():
        if name.startswith("models/"):
            assert "/".join(name.split("/")[:2]) in FOLDERS


def test_the_packages_state_the_licence_and_carry_the_page():
    project = toml_file.read_entries(ROOT / "pyproject.toml")["project"]
    held = {entry[-1] for entry in (*FOLDERS.values(), *FILES.values())}
    assert held <= {"MIT", "CC BY 4.0", "MIT AND CC-BY-4.0", SCORES_ONLY}
    assert project["license"] == "MIT AND CC-BY-4.0"
    assert {"LICENSE", "docs/third-party.md"} <= set(project["license-files"])
