"""Prints the tests of what has changed since the last commit, or since a commit that is named: for `make quick`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("firmware/h2t2", "host_tools/h2t2_tools")  # tests/ has a folder of the same name for each of their folders
TOGETHER = {
    "firmware/examples": "tests/examples",
    "firmware/boards": "tests/boards",
    "models": "tests/lab",
    "docs": "tests/cli",
}


def changed(since: str) -> list[str]:
    """Files that differ from a commit, and new ones, relative to the repository."""
    listed = []
    for command in (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"]):
        listed += subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return [path for path in listed if path]


def tests_of(path: str) -> str | None:
    """The test file or folder of tests of a file; None: no tests belong to it."""
    if path.startswith("tests/") and path.endswith(".py"):
        name = Path(path).name
        return path if name.startswith("test_") else str(Path(path).parent)
    for package in PACKAGES:
        if path.startswith(f"{package}/"):
            folder = Path(path).relative_to(package).parts[0]
            return f"tests/{folder}" if (ROOT / "tests" / folder).is_dir() else "tests/cli"
    return next((tests for folder, tests in TOGETHER.items() if path.startswith(f"{folder}/")), None)


def main() -> None:
    """Print the tests, one a line. A folder stands for the files in it."""
    found = {tests for path in changed(*(sys.argv[1:] or ["HEAD"])) if (tests := tests_of(path)) and (ROOT / tests).exists()}
    print("\n".join(sorted(tests for tests in found if not any(tests.startswith(f"{other}/") for other in found))))


if __name__ == "__main__":
    main()
