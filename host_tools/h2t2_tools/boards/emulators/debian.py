"""Fetches Debian's binary and source packages of any release.

It uses an apt configuration of its own and leaves the machine's package state alone. apt checks every signature.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...common.errors import Failure
from ...common.places import temporary_folder


def run(command: list[str], cwd: Path) -> str:
    """Return the output of a command. Raise Failure with its last output if it fails."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{' '.join(command[:1] + command[-2:])}: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout


def absent() -> str | None:
    """Return why Debian's packages cannot be fetched here, or None."""
    lacking = [name for name in ("apt-get", "dpkg") if not shutil.which(name)]
    return f"no {' and no '.join(lacking)} here: Debian's packages need Debian or a derivative" if lacking else None


@contextmanager
def apt(release: str, architecture: str) -> Iterator[tuple[Callable[..., str], Path]]:
    """Open apt for a Debian release and architecture, with fresh lists.

    Yields:
        A function that runs apt-get, and the folder into which it downloads.

    Raises:
        Failure: The machine has no apt, no Debian mirror among its sources, or no keys.
    """
    reason = absent()
    if reason:
        raise Failure(reason)
    with temporary_folder("apt") as name:
        folder = Path(name)
        (folder / "lists/partial").mkdir(parents=True)
        (folder / "archives/partial").mkdir(parents=True)
        (folder / "status").touch()
        options, where = f"signed-by={_key()}", f"{_mirror()} {release} main\n"
        (folder / "sources.list").write_text(f"deb [{options} arch={architecture}] {where}deb-src [{options}] {where}")
        settings = [
            f"Dir::Etc::sourcelist={folder}/sources.list",
            "Dir::Etc::sourceparts=-",
            f"Dir::State::Lists={folder}/lists",
            f"Dir::State::status={folder}/status",
            f"Dir::Cache={folder}",
            f"APT::Architecture={architecture}",
            f"APT::Architectures::={architecture}",
            "APT::Sandbox::User=",
            "Acquire::Check-Valid-Until=false",  # a mirror may be weeks old; apt still checks the signatures
        ]
        command = ["apt-get", *(word for setting in settings for word in ("-o", setting)), "-q"]
        run([*command, "update"], folder)
        yield lambda *words: run([*command, *words], folder), folder


def _mirror() -> str:
    """Return the mirror that this machine uses for Debian's main packages."""
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(COMPONENT)"], Path("/"))
    mirrors = [line.split()[0] for line in listed.splitlines() if line.endswith(" Debian main")]
    mirrors += [u for u in (line.split()[0] for line in listed.splitlines()) if u.rstrip("/").endswith("/debian")]
    mirrors = [uri for uri in mirrors if "security" not in uri]
    if not mirrors:
        raise Failure("no Debian mirror among this machine's apt sources")
    return mirrors[0]


def _key() -> Path:
    keys = [p for p in Path("/usr/share/keyrings").glob("debian-archive-keyring.*") if p.suffix in (".gpg", ".pgp")]
    if not keys:
        raise Failure("no Debian archive keyring; run: sudo apt-get install debian-archive-keyring")
    return sorted(keys)[0]


def unpack(releases: Sequence[str], architecture: str, packages: list[str], target: Path) -> None:
    """Unpack binary packages into the folder `target`, whose old content is deleted.

    Args:
        releases: Debian releases in the order of preference. While a mirror is updated, its index does not match its signature
            and apt refuses the release; then the next one serves.
        architecture: Debian's name of the processor.
        packages: Names of the packages.
        target: Folder for their files.

    Raises:
        Failure: No release serves; the message quotes each reason.
    """
    trouble = []
    for release in releases:
        try:
            _unpack(release, architecture, packages, target)
            return
        except Failure as error:
            trouble.append(str(error))
    raise Failure("; ".join(dict.fromkeys(trouble)))


def _unpack(release: str, architecture: str, packages: list[str], target: Path) -> None:
    with apt(release, architecture) as (get, folder):
        get("download", *packages)
        partial = target.with_name(target.name + ".part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for package in sorted(folder.glob("*.deb")):
            run(["dpkg", "-x", str(package), str(partial)], folder)
        if (partial / "usr/lib").exists() and not (partial / "lib").exists():
            (partial / "lib").symlink_to("usr/lib")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
