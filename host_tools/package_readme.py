"""README.md as package indexes show it: each link to a file of the repository becomes absolute.

`[project.urls]` in pyproject.toml holds the address of the repository as `Source`. Without that entry the links stay relative.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")


def absolute(text: str, source: str, version: str) -> str:
    """The text with links to the files of a release.

    Args:
        text: Markdown with links relative to the root of the repository.
        source: address of the repository, as GitHub, GitLab and Gitea extend it by `blob` and `raw`.
        version: of the release; its tag is v and the version.
    """

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        return f"{picture}{words}({source.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return LINK.sub(link, text)


class CustomMetadataHook(MetadataHookInterface):
    """Sets `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        if source:
            text = absolute(text, source, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
