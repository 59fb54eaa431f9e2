"""The table of kinds in docs/your-board.md: `make pages` writes it from KINDS."""

from pathlib import Path

from h2t2.node.ports import PORTS
from h2t2_tools.boards.kinds import KINDS, Kind
from h2t2_tools.common import places

from . import page_parts

LINKS = {"mqtt": "MQTT", "serial": "a line to `h2t2 gateway`", "wifi": "Wi-Fi"}
COLUMNS = ("`--board`", "link", "heap it usually has free", "longest `watchdog`", "machine code", "oldest MicroPython")


def table() -> str:
    """Return the table in Markdown."""
    return page_parts.markdown_table(COLUMNS, map(_row, KINDS.values()))


def _row(kind: Kind) -> tuple[str, ...]:
    port = PORTS.get(kind.platform)
    links = " and ".join(LINKS[link] for link in reversed(kind.links)) or LINKS["serial"]
    watchdog = f"{port.watchdog_ms}ms" if port else "-"
    oldest = ".".join(map(str, kind.oldest))
    return f"`{kind.name}`", links, f"{kind.heap >> 10:,} KB", watchdog, f"`{kind.arch}`" if kind.arch else "-", oldest


def write(page: Path) -> None:
    """Put the table between its two marks in a page."""
    page.write_text(page_parts.between(page.read_text(), "<!-- kinds: make pages -->", table()))


if __name__ == "__main__":
    write(places.SOURCE_TREE / "docs/your-board.md")
