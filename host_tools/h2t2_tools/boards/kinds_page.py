"""The table of kinds in docs/your-board.md: `make pages` writes it from KINDS."""

from pathlib import Path

from h2t2.node.ports import PORTS

from ..common import places
from .kinds import KINDS, Kind

BEGIN, END = "<!-- kinds: make pages -->", "<!-- end -->"
LINKS = {"mqtt": "MQTT", "serial": "a line to `h2t2 gateway`", "wifi": "Wi-Fi"}
COLUMNS = ("`--board`", "link", "heap it usually has free", "longest `watchdog`", "machine code", "oldest MicroPython")


def table() -> str:
    """Return the table in Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(_row, KINDS.values())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _row(kind: Kind) -> tuple[str, ...]:
    port = PORTS.get(kind.chip)
    links = " and ".join(LINKS[link] for link in reversed(kind.links)) or LINKS["serial"]
    watchdog = f"{port.watchdog_ms}ms" if port else "-"
    oldest = ".".join(map(str, kind.oldest))
    return f"`{kind.name}`", links, f"{kind.heap >> 10:,} KB", watchdog, f"`{kind.arch}`" if kind.arch else "-", oldest


def write(page: Path) -> None:
    """Put the table between its two marks in a page."""
    text = page.read_text()
    before, after = text.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after.split(END, 1)[1]}")


if __name__ == "__main__":
    write(places.SOURCE_TREE / "docs/your-board.md")
