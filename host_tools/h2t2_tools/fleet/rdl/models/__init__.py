"""The remote models that a worker can serve: one class a file, one interface."""

from .load import answers, load
from .source import ALL_OUTPUTS, SecondModel, Source, is_url, of_pair
from .tensors import Batch, Detected, Model, as_batch, floats, integers, labels, picked, warmed

__all__ = [
    "ALL_OUTPUTS", "Batch", "Detected", "Model", "SecondModel", "Source", "answers", "as_batch", "floats", "integers", "is_url",
    "labels", "load", "of_pair", "picked", "warmed",
]  # fmt: skip
