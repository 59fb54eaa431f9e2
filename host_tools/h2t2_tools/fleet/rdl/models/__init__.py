"""The remote models that a worker can serve: one class a file, one interface."""

from .load import answers, load
from .source import ALL, Source, Then, is_url, of_pair
from .tensors import Batch, Model, as_batch, floats, integers, labels, picked, warmed

__all__ = [
    "ALL", "Batch", "Model", "Source", "Then", "answers", "as_batch", "floats", "integers", "is_url", "labels", "load",
    "of_pair", "picked", "warmed",
]  # fmt: skip
