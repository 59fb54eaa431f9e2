"""Downloads files: of other projects, and of this version's release."""

import urllib.request
from importlib import metadata
from pathlib import Path

from ... import __version__
from ...common.errors import Failure
from ...common.places import SOURCE_TREE, written_whole

LONGEST = 4_000_000  # bytes of a file
TIMEOUT_S = 60


def content(url: str) -> bytes:
    """Return a file's content. Raise Failure without a network or without the file."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return bytes(answer.read(LONGEST))
    except OSError as error:
        raise Failure(f"{url}: {error}") from error


def release() -> str | None:
    """Return the address of this version's release; None in a clone, and as long as the project has no public address."""
    if (SOURCE_TREE / "host_tools/h2t2_lab").is_dir():
        return None
    entries = metadata.metadata("h2t2-edge").get_all("Project-URL") or []
    source = next((entry.partition(", ")[2] for entry in entries if entry.startswith("Source, ")), None)
    return source and f"{source.rstrip('/')}/releases/download/v{__version__}"


def of_release(name: str, target: Path, command: str) -> None:
    """Fetch a file of this version's release. Raise Failure if there is none; it names the command that builds it in a clone.

    Args:
        name: End of its name in the release.
        target: Where to write it.
        command: The command that builds it in a clone of the repository.
    """
    address = release()
    if not address:
        raise Failure(f"no release to fetch it from; in a clone of H2T2 Edge, run: {command}")
    data = content(f"{address}/h2t2-{__version__}-{name}")
    with written_whole(target) as partial:
        partial.write_bytes(data)
