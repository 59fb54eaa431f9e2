"""Hooks of mkdocs: pages of the repository outside docs/, which the site shows under their own paths at the root of docs/."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("models/RESULTS.md", "firmware/boards/*/README.md", "firmware/examples/README.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, with links into docs/ as the site has them."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of a page of docs/ to these pages, as the site has them."""
    return markdown if "/" in page.file.src_uri else markdown.replace("](../", "](")
