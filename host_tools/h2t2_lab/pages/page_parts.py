"""Parts of a page that a command writes: they stand between a mark of the command and the end mark."""

from collections.abc import Iterable, Sequence

from h2t2_tools.common.report import grid

END = "<!-- end -->"


def markdown_table(header: Sequence[str], rows: Iterable[Iterable[str]], mark: str = "---") -> str:
    """A table in Markdown. mark: of the columns after the first."""
    return grid([header, ["---", *[mark] * (len(header) - 1)], *rows])


def between(text: str, begin: str, content: str) -> str:
    """Return a text with other content between a mark and the end mark; without the mark as it was."""
    head, mark, tail = text.partition(begin)
    return f"{head}{mark}\n{content}\n{END}{tail.partition(END)[2]}" if mark else text


def inside(text: str, begin: str) -> str:
    """Return what stands between a mark and the end mark; "" without the mark."""
    return text.partition(begin)[2].partition(END)[0].strip()
