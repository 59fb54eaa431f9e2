"""Loads a user's own function, named FILE.py:FUNCTION, and copies it with the files that it reads."""

import ast
import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import UserError, file_errors

LONGEST_NAME = 200  # characters of a text that may name a file


def is_user_function(path: str) -> bool:
    """Whether a text has the form FILE.py:FUNCTION."""
    return path.rpartition(":")[0].endswith(".py")


def load_user_function(path: str) -> Callable[..., Any]:
    """Run a Python file, which may import modules beside it, and return one of its functions.

    Args:
        path: FILE.py:FUNCTION.

    Raises:
        UserError: the file or the function does not exist, or the file raises an exception.
    """
    file, _, name = path.rpartition(":")
    spec = importlib.util.spec_from_file_location("h2t2_rdl_model", file)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: want FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    folder = str(Path(file).resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
        user_function: Callable[..., Any] = getattr(module, name)
    except Exception as error:  # the user's program may raise anything
        raise UserError(f"{path}: {type(error).__name__}: {error}") from None
    return user_function


def reporting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function such that what it raises becomes a UserError, which names the function and the exception."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (UserError, ModuleNotFoundError):
            raise
        except Exception as error:  # the user's program may raise anything
            raise UserError(f"{name}: {type(error).__name__}: {error}") from error

    return call


def import_app(name: str) -> None:
    """Import the program of a node, which the runtime then finds. UserError for what it raises, also later in its setup()."""
    try:
        program = reporting(f"{name}.py", import_module)(name)
    except ModuleNotFoundError as error:
        raise UserError(f"{name}.py: {error}") from error
    if hasattr(program, "setup"):
        program.setup = reporting(f"{name}.py: setup()", program.setup)


def copy_program(path: Path, folder: Path, name: str) -> None:
    """Copy a Python file and the files that it needs: modules that it imports, and files that a text in it names.

    Args:
        path: the file. What lies in its folder, or below it, can be copied along.
        folder: where the copies go, under the names and in the subfolders of the originals.
        name: of the copy of the file itself.

    Raises:
        UserError: there is no such file, or it is no Python.
    """
    with file_errors(path):
        shutil.copyfile(path, folder / name)
    for needed in sorted(needed_files(path)):
        target = folder / needed.relative_to(path.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        if needed.resolve() != target.resolve():
            shutil.copyfile(needed, target)


def needed_files(path: Path) -> set[Path]:
    """The files in the folder of a Python file, and below it, that the file imports or names in a text, and theirs."""
    needed: set[Path] = set()
    unread = [path]
    while unread:
        file = unread.pop()
        for named in _named(file, path.parent):
            files = [named] if named.is_file() else [each for each in named.rglob("*") if each.is_file()]
            fresh = {each for each in files if "__pycache__" not in each.parts} - needed - {path}
            needed |= fresh
            unread += [each for each in fresh if each.suffix == ".py"]
    return needed


def _named(file: Path, folder: Path) -> Iterator[Path]:
    """The files and folders inside `folder` that a Python file names."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{file}: {error}") from None
    for node in ast.walk(tree):
        texts: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) <= LONGEST_NAME:
            texts = [node.value]
        elif isinstance(node, ast.Import):
            texts = [name for alias in node.names for name in _module_files(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            texts = _module_files(node.module or "")
        for text in texts:
            candidate = folder / text
            if "\0" not in text and candidate.exists() and folder.resolve() in candidate.resolve().parents:
                yield candidate


def _module_files(module: str) -> list[str]:
    """The file and the folder that may hold a module's code."""
    first = module.partition(".")[0]
    return [f"{first}.py", first] if first else []
