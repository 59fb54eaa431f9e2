"""Parts of a page that a command writes: they stand between a mark of the command and the end mark."""

END = "<!-- end -->"


def between(text: str, begin: str, content: str) -> str:
    """Return a text with other content between a mark and the end mark; without the mark as it was."""
    head, mark, tail = text.partition(begin)
    return f"{head}{mark}\n{content}\n{END}{tail.partition(END)[2]}" if mark else text


def inside(text: str, begin: str) -> str:
    """Return what stands between a mark and the end mark; "" without the mark."""
    return text.partition(begin)[2].partition(END)[0].strip()
