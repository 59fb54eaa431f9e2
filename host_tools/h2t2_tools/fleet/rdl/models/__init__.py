"""The remote models that a worker can serve: one class a file, one interface."""

from ....common.pairs import is_url
from .load import answers, load
from .model_source import ALL_OUTPUTS, SECOND_TOKEN, Source, of_pair
from .tensors import Batch, Detected, Model, OnServer, answered, as_batch, floats, integers, labels, picked, warmed

__all__ = [
    "ALL_OUTPUTS", "Batch", "Detected", "Model", "OnServer", "SECOND_TOKEN", "Source", "answered", "answers", "as_batch",
    "floats", "integers", "is_url", "labels", "load", "of_pair", "picked", "warmed",
]  # fmt: skip
