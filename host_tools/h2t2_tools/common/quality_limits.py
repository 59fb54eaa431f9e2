"""Limits below which a model or its samples are suspicious."""

MAX_LOSS = 3.0  # percentage points of accuracy that int8 may lose without an error
FEWEST_SAMPLES = 20  # of a class: fewer tell little about it
