"""A remote model of scikit-learn that becomes no .tflite, such as a forest: a worker runs the estimator itself."""

import shutil
from pathlib import Path

from ...common import places
from ...common.errors import UserError
from ..convert.readers import PICKLES

PROGRAM = places.text("model/pair/served.py.txt")


def write_program(place: Path, file: str, order: int | list[int]) -> str:
    """Write a program beside a saved estimator. Return its function as FILE.py:FUNCTION.

    Args:
        place: The folder of both.
        file: Name of the estimator's file.
        order: The column of its scores that is class 1, or the columns of all classes in the local model's order.
    """
    (place / "served.py").write_text(PROGRAM.format(file=file, order=order))
    return f"{place}/served.py:scores"


def served_estimator(path: Path, place: Path, order: int | list[int]) -> tuple[str, str] | None:
    """(FILE.py:FUNCTION, kind in words) of an estimator in a file that no .tflite can express; None of any other file.

    Args:
        path: The remote model's file. Loading it runs code from it.
        place: An empty folder for the program and a copy of the file.
        order: As write_program() takes it.
    """
    if path.suffix.lower() not in PICKLES or not path.is_file():
        return None
    from ..convert.from_scikit import class_name, has_layers, trusted

    model = trusted(path)
    if has_layers(model):
        return None
    if not hasattr(model, "predict_proba") and not (hasattr(model, "predict") and hasattr(model, "classes_")):
        raise UserError(f"{path}: holds no classifier of scikit-learn: it has neither predict_proba nor classes_")
    program = write_program(place, shutil.copyfile(path, place / f"remote{path.suffix}").name, order)
    return program, f"scikit-learn {class_name(model)}"
