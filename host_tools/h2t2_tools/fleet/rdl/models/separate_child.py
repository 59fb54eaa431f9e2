"""The process that loads one model for separate.Separate, and answers its batches."""

import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ....common import end_with_parent
from ...failures import describe, of_error
from .load import load
from .separate import Raised
from .tensors import Model


def main() -> None:
    """The process: it gets a source, then batches, and answers each."""
    end_with_parent.apply_environment()
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    model: Model | None = None
    while True:
        try:
            content = connection.recv()
        except EOFError:
            return
        try:
            if model is None:
                model = load(content)
                answer: Any = model.raw, model.shape
            else:
                answer = np.asarray(model.scores(content), dtype=float)
        except Exception as error:  # a user's model may raise anything
            answer = Raised(of_error(error), describe(error))
        connection.send(answer)
