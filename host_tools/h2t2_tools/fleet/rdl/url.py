"""A remote model behind a URL, as TensorFlow Serving and KServe have it: POST {"instances": []} gives {"predictions": []}."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

import numpy as np

TIMEOUT_S = 5.0  # less than a worker may hang
LARGEST = 1 << 24  # bytes of an answer


def predictions(url: str, instances: np.ndarray | list[bytes]) -> np.ndarray:
    """(n,) or (n, K) floats. instances: (n, *sample) floats, or bytes, which travel as {"b64": ...}.

    OSError where nobody answers, ValueError for an answer that is none.
    """
    samples: list[Any] = (
        [{"b64": base64.b64encode(data).decode()} for data in instances] if isinstance(instances, list) else instances.tolist()
    )
    body = json.dumps({"instances": samples}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        content = answer.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{url}: an answer of more than {LARGEST:,} bytes")
    told = json.loads(content)
    if not isinstance(told, dict) or "predictions" not in told:
        raise ValueError(f'{url}: no "predictions" in its answer')
    return np.asarray(told["predictions"], dtype=float)
