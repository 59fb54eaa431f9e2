"""A hook of mkdocs: pages of the repository outside docs/ which the site shows under their own paths."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("models/RESULTS.md", "firmware/boards/*/README.md", "firmware/examples/README.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages. The site has the content of docs/ at its root, so links lose that part."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        files.append(File.generated(config, name, content=text))
    return files
