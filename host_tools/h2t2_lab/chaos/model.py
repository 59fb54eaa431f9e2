"""The remote model of the storm's workers: that of the pair, which hangs while a file exists.

It is used as `h2t2 rdl --remote .../model.py:scores`. Environment: H2T2_CHAOS_MODEL is the .tflite, H2T2_CHAOS_EVENT its event,
H2T2_CHAOS_HANG the file that makes it hang.
"""

import os
import time

import numpy as np

from h2t2.cpython.tflite import TFLiteModel

_model = TFLiteModel(os.environ["H2T2_CHAOS_MODEL"], event=int(os.environ["H2T2_CHAOS_EVENT"]))


def scores(batch: np.ndarray) -> np.ndarray:
    """Return the event's score of each sample."""
    while os.path.exists(os.environ["H2T2_CHAOS_HANG"]):
        time.sleep(0.05)
    return np.array([_model.score(_model.run(x)) for x in batch.reshape(len(batch), *_model.input_shape[1:])])
