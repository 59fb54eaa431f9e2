"""The files that an app needs on a board: what it imports or opens, and what the project names."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..common.errors import UserError
from ..common.sendable import sendable

LARGEST = 1 << 20  # bytes of the largest file that goes onto a board beside the program
READING = {"", "r", "rb", "rt"}  # modes of open(): a file that is opened otherwise is written by the app


def of_app(folder: Path, app: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return path on the board -> content of the files of a project that its app needs, without the app itself.

    Args:
        folder: Folder of the project.
        app: The app's file, relative to it.
        names: Further files, relative to it.

    Raises:
        UserError: A named file does not exist, lies outside the folder, is too large, or may not go onto a board.
    """
    for name in names:
        if not (folder / name).is_file() or not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise UserError(f"files: {folder / name}: no such file in the project")
    content: dict[str, bytes] = {}
    waiting = [app, *(Path(name).as_posix() for name in names)]
    while waiting:
        name = waiting.pop()
        if name in content:
            continue
        content[name] = sendable(folder / name)
        if len(content[name]) > LARGEST:
            raise UserError(f"{folder / name}: more than {LARGEST:,} bytes, too large for a board")
        if name.endswith(".py"):
            waiting += [path for path in _mentioned(folder, name, content[name]) if (folder / path).is_file()]
    del content[app]
    return content


def _mentioned(folder: Path, name: str, source: bytes) -> Iterator[str]:
    """Yield the files that a module imports or opens, relative to the project; some may not exist."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{folder / name}: {error}") from None
    texts = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            package = Path(name).parts[: -node.level] if node.level else ()
            module = [*package, *(node.module.split(".") if node.module else ())]
            for alias in node.names:
                yield from _modules([*module, alias.name])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            arguments: dict[str | None, ast.expr] = {word.arg: word.value for word in node.keywords}
            arguments.update(zip(("file", "mode"), node.args))
            path, mode = (_text(arguments.get(key), texts) for key in ("file", "mode"))
            if path and mode in READING and not path.startswith("/"):
                yield Path(path).as_posix()


def _modules(names: Sequence[str]) -> Iterator[str]:
    """Yield the files that `import a.b` may read: a.py, a/__init__.py, a/b.py, a/b/__init__.py."""
    for n in range(1, len(names) + 1):
        base = "/".join(names[:n])
        yield from (f"{base}.py", f"{base}/__init__.py")


def _text(node: ast.expr | None, texts: dict[str, ast.expr]) -> str:
    """Return the text of a literal, or of a name that the module sets to one; "" for anything else."""
    if isinstance(node, ast.Name):
        node = texts.get(node.id)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
