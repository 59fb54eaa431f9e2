"""Heads that devices have taught: read from snapshots, averaged, and kept in a file with which new heads begin."""

from __future__ import annotations

import io
from array import array
from binascii import crc32
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from struct import error as StructError
from struct import pack, unpack, unpack_from
from typing import Any

from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.head import RATES, Heads
from h2t2.core.numbers import ONE
from h2t2.core.restoring import restore
from h2t2.node import head_start, snapshot
from h2t2.node.store import file_store

from .errors import UserError, as_user_error, file_errors

MAX_CLASSES = 16
MODEL_BITS = 0xFFFFFFF  # of a model's checksum: its number in a head


@dataclass(frozen=True)
class Start:
    """What heads begin with.

    Attributes:
        classes, features: Their numbers.
        model: Number of the local model that gives the features.
        learners: The heads of each class; of two classes one. Only their weights and roots count.
    """

    classes: int
    features: int
    model: int
    learners: list[Heads]

    def to_json(self) -> dict[str, int]:
        """Return what they are of, for a report."""
        return {"classes": self.classes, "features": self.features, "model": self.model}

    def encode(self) -> bytes:
        """Return the content of the file."""
        numbers = [int(n) for heads in self.learners for values in (heads.weights, heads.roots) for n in values]
        kind = head_start.MAGIC, head_start.VERSION, self.classes, self.features, len(RATES), self.model
        content = pack(head_start.HEADER, *kind) + pack(f"<{len(numbers)}i", *numbers)
        return content + pack("<I", crc32(content))


def read(path: Path, classes: int, features: int) -> bytes:
    """Return the content of a file, for a node with these numbers of classes and features. UserError if it does not fit."""
    with file_errors(path), as_user_error(path):
        content = path.read_bytes()
        head_start.fill(_learners(classes, features), io.BytesIO(content), model_of(content))
    return content


def model_of(content: bytes) -> int:
    """Return the number of the local model that a file is made for."""
    return head_start.of_header(content[: head_start.SIZE])[2]


def taught(path: str) -> Start:
    """Return the heads in the snapshot of a device.

    Args:
        path: As the entry `snapshot`: the files are PATH.0 and PATH.1, of which the newer intact one counts.

    Raises:
        UserError: There is no snapshot, or none of a node whose head a label has taught.
    """
    with file_errors(path):
        content = file_store(path).load()
    if content is None:
        raise UserError(f"{path}: no snapshot: neither {path}.0 nor {path}.1 is there and intact")
    try:
        policy = _restored(content)
    except (ValueError, StructError) as error:
        raise UserError(f"{path}: {error}") from None
    heads = policy.forecaster.heads
    learners = heads.of_class if policy.classes > 2 else [heads]
    if not learners[0].taught:
        raise UserError(f"{path}: no label has taught this head yet")
    if not heads.model:
        raise UserError(f"{path}: this head does not say whose features it learned from: no node wrote the snapshot")
    return Start(policy.classes, policy.features, heads.model, learners)


def _restored(content: bytes) -> Any:
    """Return the policy of a snapshot. ValueError if it has no head, or the snapshot is damaged."""
    magic, version, kind, fixed, size = unpack_from(snapshot.HEADER, content)
    if magic != snapshot.MAGIC or version not in (6, snapshot.VERSION):
        raise ValueError(f"not a snapshot of version {snapshot.VERSION}")
    if kind not in (AdaptiveHead.kind, AdaptiveClassHead.kind):
        raise ValueError("the snapshot of a policy without a head")
    numbers = unpack(f"<{size // 4}i", content[snapshot.SIZE : snapshot.SIZE + size])
    bits, classes, _, features = numbers[fixed - 4 : fixed]
    if kind == AdaptiveHead.kind:
        policy: Any = AdaptiveHead(features, bits, window=1)
    elif 2 < classes <= MAX_CLASSES:
        any_costs = [[ONE * (i != j) for j in range(classes)] for i in range(classes)]
        policy = AdaptiveClassHead(features, any_costs, bits, window=1)
    else:
        raise ValueError(f"the snapshot of {classes} classes")
    restore(policy, numbers[fixed:], absent=policy.answers if version < snapshot.VERSION else None)
    return policy


def _learners(classes: int, features: int) -> list[Heads]:
    return [Heads(features, 1) for _ in range(classes if classes > 2 else 1)]


def averaged(starts: dict[str, Start]) -> Start:
    """Return the mean of heads, weights and roots.

    Args:
        starts: Of each device, by the path of its snapshot.

    Raises:
        UserError: They are not of one local model; the message names the first two that differ.
    """
    first_path, first = next(iter(starts.items()))
    for path, start in starts.items():
        if start.to_json() != first.to_json():
            unlike = f"that of {first_path} of {_text(first)}"
            raise UserError(f"{path}: its head is of {_text(start)}, {unlike}: want heads of one local model")
    learners = _learners(first.classes, first.features)
    for n, heads in enumerate(learners):
        for name in ("weights", "roots"):
            getattr(heads, name)[:] = mean([getattr(start.learners[n], name) for start in starts.values()])
    return Start(first.classes, first.features, first.model, learners)


def mean(arrays: Iterable[Iterable[int]]) -> array[int]:
    """Return the mean of arrays of integers, item by item and rounded."""
    return array("i", [round(sum(items) / len(items)) for items in zip(*arrays)])


def _text(start: Start) -> str:
    return f"{start.classes} classes, {start.features} features and the local model {start.model:07x}"
