"""`make release` refuses a tree that is not ready, cuts the changelog, and writes the same bytes twice."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import ran
from http_server import serving_folder
from support import ROOT, made_once, need, program

from h2t2 import __version__
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.boards.kinds import KINDS, STARTERS, modules
from h2t2_tools.common.errors import UserError

release = program(ROOT / "host_tools/release.py")

CHANGES = "# Changes\n\n## Unreleased\n\n- A new thing.\n\n## [0.9.0] - 2026-01-02\n\n- An old one.\n"
ADDRESS = "https://forge.example/us/edge"


def test_the_changelog_is_cut_once():
    text = release.cut(CHANGES, "1.0.0", "2026-11-25")
    assert text.startswith("# Changes\n\n## [Unreleased]\n\n## [1.0.0] - 2026-11-25\n\n- A new thing.\n\n## [0.9.0]")
    assert release.cut(text, "1.0.0", "2027-01-01") == text
    with pytest.raises(UserError, match=r"describe what 1\.1\.0 changes"):
        release.cut(text, "1.1.0", "2027-01-01")
    later = text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Later.\n")
    assert "## [Unreleased]\n\n## [1.1.0] - 2027-01-01\n\n- Later.\n\n## [1.0.0]" in release.cut(later, "1.1.0", "2027-01-01")


def test_a_version_is_set_wherever_it_is_stated(tmp_path):
    for name in release.STATED:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    release.set_version(tmp_path, "7.8.9")
    assert '__version__ = "7.8.9"\n' in (tmp_path / "firmware/h2t2/__init__.py").read_text()
    assert 'version: "7.8.9"\n' in (tmp_path / "host_tools/containers/home_assistant_addon/config.yaml").read_text()
    with pytest.raises(UserError, match="'next' is not a version"):
        release.set_version(tmp_path, "next")


@pytest.mark.parametrize("text", ["# Changes\n", "# Changes\n\n## [Unreleased]\n\n## [0.9.0] - 2026-01-02\n\n- An old one.\n"])
def test_a_release_without_changes_is_refused(text):
    with pytest.raises(UserError, match=r"nothing stands under '## \[Unreleased\]'; describe what 1\.0\.0 changes"):
        release.cut(text, "1.0.0", "2026-11-25")


@pytest.mark.parametrize("urls", ["", "[project.urls]\n", '[project.urls]\nSource = "http://forge.example"\n'])
def test_a_release_without_a_public_address_is_refused(urls, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "h2t2-edge"\n{urls}')
    with pytest.raises(UserError, match=r"\[project\.urls\] has no Source"):
        release.source_address(tmp_path)


def test_a_release_whose_authors_nobody_can_reach_is_refused():
    with pytest.raises(UserError, match="no author has an email"):
        release.check_authors(ROOT)


def test_a_release_without_artefacts_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"tests/compat/9\.9\.9 is missing; run: python tests/compat/artefacts\.py"):
        release.check_artefacts(tmp_path, "9.9.9")


def test_a_release_of_what_is_not_committed_is_refused(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    release.check_sources(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"not committed: notes\.txt"):
        release.check_sources(tmp_path)


def test_an_archive_has_no_times(tmp_path):
    for name in ("a.zip", "b.zip"):
        release.write_archive(tmp_path / name, {"h2t2/b.mpy": b"b", "h2t2/a.mpy": b"a"})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.zip").namelist() == ["h2t2/a.mpy", "h2t2/b.mpy"]


def test_the_version_has_one_place():
    places = [path for path in (ROOT / "firmware/h2t2", ROOT / "host_tools") for path in path.rglob("*.py")]
    stated = [path for path in places if re.search(r'__version__ = "\d', path.read_text())]
    assert stated == [ROOT / "firmware/h2t2/__init__.py"]


def test_a_device_installs_a_package_with_absolute_addresses(tmp_path):
    """MicroPython's mip, from a server of the sources as a tag has them."""
    need(UNIX)
    sources = tmp_path / "web/raw" / f"v{__version__}"
    sources.mkdir(parents=True)
    (sources / "firmware").symlink_to(ROOT / "firmware")
    target = tmp_path / "device"
    with serving_folder(tmp_path / "web") as url:
        (tmp_path / "web/h2t2-unix.json").write_text(release.mip_package(KINDS["unix"], url, __version__))
        script = tmp_path / "install.py"
        script.write_text(f"import mip\nmip.install({url + '/h2t2-unix.json'!r}, target={str(target)!r})\n")
        subprocess.run(UNIX.command(script, []), check=True, timeout=120)
    installed = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert installed == {*modules(KINDS["unix"]), "main.py", *STARTERS}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Two folders that `make release` wrote from a clone with a public address; the clone."""
    mkdocs = ROOT / ".venv-docs/bin/mkdocs"
    if not mkdocs.exists():
        pytest.skip("no .venv-docs here, which writes the documentation of a release; run: make docs")
    folder = made_once(tmp_path_factory, "releases", lambda folder: release_twice(folder, mkdocs))
    return folder / "first", folder / "second", folder / "clone"


def release_twice(folder, mkdocs):
    """Clone into `clone` and release into `first` and `second`."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    project = clone / "pyproject.toml"
    text = re.sub(r"^\[project\.urls\].*$", f'[project.urls]\nSource = "{ADDRESS}"', project.read_text(), flags=re.M)
    project.write_text(
        text.replace('name = "H2T2 Edge maintainers"', 'name = "H2T2 Edge maintainers", email = "a@forge.example"')
    )
    author = ["-c", "user.name=A", "-c", "user.email=a@forge.example"]
    subprocess.run(["git", *author, "commit", "-qam", "a public address"], check=True, cwd=clone)
    environment = {**os.environ, "PYTHONPATH": f"{clone}/firmware:{clone}/host_tools"}
    for name in ("first", "second"):
        command = [sys.executable, clone / "host_tools/release.py", mkdocs]
        ran(command, env=environment, timeout=580)
        shutil.move(clone / "dist" / __version__, folder / name)


@pytest.mark.evidence
@pytest.mark.timeout(1200)
def test_two_releases_have_the_same_bytes(releases):
    first, second, clone = releases
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []
    assert f"## [{__version__}] - " in (clone / "CHANGELOG.md").read_text()


@pytest.mark.evidence
def test_a_release_is_complete(releases):
    first, _, clone = releases
    sums = dict(reversed(line.split("  ")) for line in (first / "SHA256SUMS").read_text().splitlines())
    for name, digest in sums.items():
        assert hashlib.sha256((first / name).read_bytes()).hexdigest() == digest
    assert len(sums) + 1 == len([path for path in first.rglob("*") if path.is_file()])
    assert {re.sub(r".*-mpy-(.*)\.zip", r"\1", name) for name in sums if name.endswith(".zip")} >= {
        "armv6m",
        "x64",
        "xtensawin",
    }
    with zipfile.ZipFile(first / f"h2t2-edge-{__version__}-docs.zip") as site:
        assert {"index.html", f"{__version__}/index.html", f"{__version__}/models/RESULTS.html"} <= set(site.namelist())
        assert json.loads(site.read("versions.json"))[0] == {"version": __version__, "title": __version__, "aliases": []}
    bill = json.loads((first / f"h2t2-edge-{__version__}.cdx.json").read_text())
    assert {"numpy", "paho-mqtt", "pydantic"} <= {component["name"] for component in bill["components"]}
    for _, address in json.loads((first / "mip/h2t2-pico_w.json").read_text())["urls"]:
        path = address.removeprefix(f"{ADDRESS}/raw/v{__version__}/")
        assert path != address and (clone / path).is_file(), address


# the tool's package, what it needs beside it, and its command for a wheel or a source archive
PYTHONS_OWN = {
    "twine": ("twine==6.2.0", "", "twine check --strict", "*"),
    "check-wheel-contents": ("check-wheel-contents==0.6.3", "", "check-wheel-contents", "*.whl"),
    "pyroma": ("pyroma==5.0.1", "hatchling==1.28.0", "pyroma --min 10", "*.tar.gz"),
}


@pytest.mark.evidence
@pytest.mark.parametrize("tool", PYTHONS_OWN)
def test_the_packages_pass_the_checks_of_pythons_tools(releases, tool):
    """Their metadata is complete (pyroma: 10 of 10), their page renders, and the wheel holds what it should."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("no uv beside this Python, which fetches the tools; run: make setup")
    package, beside, command, pattern = PYTHONS_OWN[tool]
    environment = [str(uv), "tool", "run", "--from", package, *(["--with", beside] if beside else [])]
    files = sorted(path for path in releases[0].glob(f"h2t2_edge-{pattern}") if path.suffix in (".whl", ".gz"))
    assert files
    done = subprocess.run(
        [*environment, *command.split(), *files], capture_output=True, text=True, cwd=ROOT / "tests/common", timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
