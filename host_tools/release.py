"""`make release`: writes what a release consists of into dist/VERSION. `make version` sets its version and cuts the changelog.
docs/releasing.md explains the steps.

The version stands in firmware/h2t2/__init__.py, the public address in `[project.urls]` of pyproject.toml. Everything that is
written depends on the sources alone, so that two runs give the same bytes.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from datetime import date, datetime, timezone
from pathlib import Path

from h2t2 import __version__
from h2t2.cpython.interpreter import python
from h2t2_lab.boards import native_build
from h2t2_lab.emulators import built, install
from h2t2_lab.pages import mip_packages
from h2t2_tools.boards import frozen, native, packages
from h2t2_tools.boards.cross import compiled_file
from h2t2_tools.boards.emulators.catalogue import PICO
from h2t2_tools.boards.kinds import KINDS, STARTERS, Kind, modules
from h2t2_tools.common import places, toml_file
from h2t2_tools.common.errors import Failure, UserError

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "host_tools/locks/dev.txt"
SBOM_TOOL = "cyclonedx-bom==7.5.0"
UNRELEASED = "## [Unreleased]\n"
UNRELEASED_HEADING = re.compile(r"^## \[?Unreleased\]?\n", re.M)
STATED = {
    "firmware/h2t2/__init__.py": '__version__ = "{}"',
    "host_tools/containers/home_assistant_addon/config.yaml": 'version: "{}"',
}
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in an archive
SUMS = "SHA256SUMS"


def source_address(root: Path) -> str:
    """The public address of the repository. UserError while nobody has set it."""
    address = toml_file.read_entries(root / "pyproject.toml")["project"].get("urls", {}).get("Source", "")
    if not address.startswith("https://"):
        raise UserError('pyproject.toml: [project.urls] has no Source = "https://..."; a release names where its sources are')
    return str(address).rstrip("/")


def check_authors(root: Path) -> None:
    """Raise UserError while no author of the package can be reached."""
    authors = toml_file.read_entries(root / "pyproject.toml")["project"]["authors"]
    if not any("email" in author for author in authors):
        raise UserError("pyproject.toml: no author has an email; a release names whom to reach")


def cut(changelog: str, version: str, today: str) -> str:
    """The changelog with a section of this version, as keepachangelog.com writes its heading.

    Args:
        changelog: Text of CHANGELOG.md. If it has the section already, it stays as it is.
        version: The release.
        today: Its date, year-month-day.

    Raises:
        UserError: `## Unreleased` is missing or empty.
    """
    if f"\n## [{version}] - " in changelog:
        return changelog
    before, *later = UNRELEASED_HEADING.split(changelog, maxsplit=1)
    if not later or not later[0].partition("\n## ")[0].strip():
        raise UserError(f"CHANGELOG.md: nothing stands under {UNRELEASED.strip()!r}; describe what {version} changes")
    return f"{before}{UNRELEASED}\n## [{version}] - {today}\n{later[0]}"


def cut_changelog(root: Path) -> None:
    """Move the lines under Unreleased into a section of this version, unless it is there. Raise UserError if there are none."""
    changelog = root / "CHANGELOG.md"
    changelog.write_text(cut(changelog.read_text(encoding="utf-8"), __version__, today()), encoding="utf-8")


def set_version(root: Path, version: str) -> None:
    """Write the version where the runtime states it, and into the add-on, whose description cannot ask the runtime.

    Raises:
        UserError: It is not three numbers.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UserError(f"{version!r} is not a version; give three numbers, such as 1.0.0")
    for name, line in STATED.items():
        text = (root / name).read_text(encoding="utf-8")
        pattern = re.escape(line).replace(re.escape("{}"), '[^"]*')
        (root / name).write_text(re.sub(pattern, line.format(version), text, count=1), encoding="utf-8")


def check_artefacts(root: Path, version: str) -> None:
    """Raise UserError unless the formats' files of this version are kept."""
    if not (root / "tests/compat" / version).is_dir():
        raise UserError(f"tests/compat/{version} is missing; run: python tests/compat/artefacts.py")


def check_sources(root: Path) -> None:
    """Raise UserError if files other than the changelog are not committed: the source archive would contain them."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True)
    changed = [line[3:] for line in status.stdout.splitlines() if line[3:] != "CHANGELOG.md"]
    if status.returncode or changed:
        raise UserError(
            f"not committed: {', '.join(changed[:5]) or 'no git repository here'}; a release is made of what is committed"
        )


def check_boards() -> None:
    """Raise UserError if a board's package.json is not of this version."""
    for kind in KINDS.values():
        path = places.boards() / kind.name / "package.json"
        if path.exists() and path.read_text() != mip_packages.content(kind):
            raise UserError(f"{path} is not of version {__version__}; run: make pages")


def write_archive(path: Path, content: dict[str, bytes]) -> None:
    """Write a .zip of files by name; it has no times and no owners."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)


def compiled_tree(arch: str) -> dict[str, bytes]:
    """Path on the board -> content: the runtime of all boards with that processor as .mpy, and the files' digests.

    The native module is among them if it is built for that processor.
    """
    paths = {path for kind in KINDS.values() if kind.arch == arch for path in modules(kind)}
    tree = dict(compiled_file(path, (places.RUNTIME.parent / path).read_bytes(), arch) for path in sorted(paths))
    if module := native.content(arch):
        tree[native.MODULE] = module
    tree[SUMS] = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(tree.items())).encode()
    return tree


def mip_package(kind: Kind, address: str, version: str) -> str:
    """package.json that mip of a board installs from anywhere: each file has its whole address.

    Args:
        kind: Kind of the board.
        address: Public address of the repository.
        version: The release, whose tag is v and the version.
    """
    raw = f"{address}/raw/v{version}/firmware"
    urls = [[path, f"{raw}/{path}"] for path in modules(kind)]
    urls += [*([name, f"{raw}/boards/{name}"] for name in STARTERS), ["main.py", f"{raw}/boards/{kind.folder.name}/main.py"]]
    return json.dumps({"version": version, "urls": urls, "deps": []}, indent=1) + "\n"


def run(*command: str | Path, **environment: str) -> None:
    """Run a program in the source tree, with further environment variables. Failure, with its last words, if it fails."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-800:]}")


def write_sbom(path: Path) -> None:
    """Write the CycloneDX list of what an installation with all extras contains. Needs uv, which fetches the tool."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        raise UserError("uv is missing, which writes the SBOM; run: make setup")
    locked = path.with_suffix(".txt")
    options = ["--extra", "all", "--universal", "--python-version", "3.10", "--generate-hashes", "--no-emit-index-url"]
    run(uv, "pip", "compile", "pyproject.toml", *options, "--no-header", "--no-annotate", "-c", LOCK, "-o", locked)
    tool = [uv, "tool", "run", "--from", SBOM_TOOL, "cyclonedx-py", "requirements", "--output-reproducible"]
    run(*tool, "--pyproject", "pyproject.toml", "--mc-type", "library", "-o", path, locked)
    locked.unlink()


def commit_time() -> str:
    """The time of the last commit, in seconds since 1970."""
    return subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def released() -> list[str]:
    """Return the versions that have a tag, the newest first."""
    tags = subprocess.run(["git", "tag", "--list", "v*", "--sort=-v:refname"], cwd=ROOT, capture_output=True, text=True)
    return [tag.removeprefix("v") for tag in tags.stdout.split()]


def write_site(path: Path, mkdocs: Path, version: str) -> None:
    """Write the documentation of a version as an archive: VERSION/ with its pages, and an index.html that leads there.

    A server that unpacks the archives of several versions into one folder, the newest last, offers all of them: each page has
    a switch between the versions of versions.json.

    Args:
        path: The archive.
        mkdocs: The program.
        version: The release.
    """
    if not mkdocs.exists():
        raise UserError(f"{mkdocs} is missing, which writes the documentation; run: make docs")
    with tempfile.TemporaryDirectory() as folder:
        times = {"SOURCE_DATE_EPOCH": commit_time(), "NO_MKDOCS_2_WARNING": "1"}
        run(mkdocs, "build", "--strict", "-q", "-f", ROOT / ".mkdocs.yml", "-d", folder, **times)
        pages = sorted(page for page in Path(folder).rglob("*") if page.is_file())
        content = {f"{version}/{page.relative_to(folder)}": page.read_bytes() for page in pages}
    content["index.html"] = f'<!doctype html><meta http-equiv="refresh" content="0; url={version}/index.html">\n'.encode()
    versions = [{"version": name, "title": name, "aliases": []} for name in dict.fromkeys([version, *released()])]
    content["versions.json"] = (json.dumps(versions, indent=1) + "\n").encode()
    write_archive(path, content)


def write_release(folder: Path, address: str, version: str, mkdocs: Path) -> None:
    """Write packages, trees of .mpy, firmware, mip's packages, documentation, SBOM and checksums into a new folder."""
    folder.mkdir(parents=True)
    run(*python("-m", "hatchling", "build", "-d", folder))
    for arch in sorted({kind.arch for kind in KINDS.values() if kind.links and kind.arch}):
        write_archive(folder / f"h2t2-{version}-mpy-{arch}.zip", compiled_tree(arch))
    for path in (PICO.content(), frozen.pico_uf2()):
        if path.exists():
            shutil.copyfile(path, folder / f"h2t2-{version}-pico{path.suffix}")
    packages.write_index(folder / "mip")
    for kind in KINDS.values():
        if kind.links:
            (folder / "mip" / f"{packages.name_of(kind)}.json").write_text(mip_package(kind, address, version))
    write_site(folder / f"h2t2-edge-{version}-docs.zip", mkdocs, version)
    write_sbom(folder / f"h2t2-edge-{version}.cdx.json")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    (folder / SUMS).write_text("".join(digests))


def today() -> str:
    """The date of a release: of SOURCE_DATE_EPOCH where it is set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return str(datetime.fromtimestamp(int(epoch), timezone.utc).date() if epoch else date.today())


def make_release(mkdocs: Path) -> None:
    """Check, cut the changelog, write the folder.

    Args:
        mkdocs: The program, of the documentation's environment.
    """
    address = source_address(ROOT)
    check_authors(ROOT)
    check_sources(ROOT)
    check_artefacts(ROOT, __version__)
    check_boards()
    folder = ROOT / "dist" / __version__
    if folder.exists():
        raise UserError(f"{folder} is there already; remove it to write it again")
    cut_changelog(ROOT)
    if reason := native_build.lacking():
        print(f"without the native module: {reason}", file=sys.stderr)
    else:
        native_build.build(lambda step: print(f"native module: {step}", file=sys.stderr))
    for name, reason in install.install([PICO, built.PICO_FROZEN], lambda step: print(step, file=sys.stderr)).items():
        print(f"without the firmware {name}: {reason}", file=sys.stderr)
    write_release(folder, address, __version__, mkdocs)
    print(f"{folder}: {len(list(folder.rglob('*')))} files. Next: docs/releasing.md, step 4")


def main(words: list[str]) -> int:
    """Run one of: `--set VERSION`, `--cut`, MKDOCS (make the release)."""
    try:
        if words[:1] == ["--set"]:
            set_version(ROOT, " ".join(words[1:]))
        elif words == ["--cut"]:
            cut_changelog(ROOT)
        else:
            make_release(Path(words[0] if words else ROOT / ".venv-docs/bin/mkdocs").absolute())
    except (UserError, Failure) as error:
        print(f"make release: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
