"""`h2t2 sign`: a pair's local model, and what belongs to it, as a signed package (.h2u)."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any
from zlib import crc32

import numpy as np

from h2t2.cpython.quantise import local_input
from h2t2.ldl.bundle import Int8Model
from h2t2.node import package
from h2t2.node.account import PLACES
from h2t2.node.slots import MAX_SECONDS
from h2t2.node.update import TRIAL_S

from ...common import prior_file
from ...common.errors import UserError
from ...common.pairs import Pair
from ...common.policies import DEFAULTS
from .. import app as apps
from . import keys

PRIOR = "prior.json"  # of a pair


@dataclass(frozen=True)
class Options:
    """What a package is made with.

    Args:
        counter: a device takes only a higher one than its last.
        trial, seconds: the shortest trial, in samples and seconds.
        tests: number of inputs of the self-test.
        costs: Q15 by name, in place of the device's.
        app: a program.
        shares: (16,) the expected distribution of the scores, Q15.
    """

    counter: int
    trial: int = 500
    seconds: int = TRIAL_S
    tests: int = 4
    costs: dict[str, int] | None = None
    app: Path | None = None
    shares: list[int] | None = None


@dataclass(frozen=True)
class Package:
    """A package. `details` is its JSON part; `program` the app's source, if it brings one."""

    content: bytes
    head: package.Head
    details: dict[str, Any]
    program: bytes | None = None

    @property
    def id(self) -> int:
        """The number that its chunks bear."""
        return package.id_of(self.content[: package.SIGNED])

    def chunk(self, offset: int) -> bytes:
        """The chunk that begins there."""
        return self._chunk(offset, self.content[offset : offset + package.MOST_DATA])

    def question(self) -> bytes:
        """A chunk without data, which asks the device for its offset."""
        return self._chunk(0, b"")

    def _chunk(self, offset: int, data: bytes) -> bytes:
        return pack("<4sIIII", package.CHUNK, self.id, len(self.content), offset, crc32(data)) + data

    def to_json(self) -> dict[str, Any]:
        """The package in a report of --json."""
        head = self.head
        content = {"counter": head.counter, "model": head.model, "trial": head.trial, "bytes": len(self.content)}
        return {
            **content,
            "seconds": self.details.get("seconds", TRIAL_S),
            "prior": "prior" in self.details["arguments"],
            "app": self.details["app"],
            "shares": bool(self.details["scores"]),
        }


def build(pair: Pair, blob: bytes, key: Path, options: Options, with_prior: bool = True) -> Package:
    """Build and sign a package.

    Args:
        blob: the pair's bundle.
        key: file of the private key.
        with_prior: include the pair's prior table.

    Raises:
        UserError: a device would refuse the package.
    """
    if not 0 < options.counter < 1 << 32 or not 0 < options.trial < 1 << 20 or not 0 < options.tests <= len(pair.x):
        raise UserError(f"counter {options.counter}, trial {options.trial}, tests {options.tests}: out of range")
    if not 0 <= options.seconds <= MAX_SECONDS:
        raise UserError(f"a trial of {options.seconds} s: want 0 to {MAX_SECONDS}")
    program = apps.source(options.app, pair.info.remote.dtype == "raw") if options.app else None
    arguments: dict[str, Any] = dict(options.costs or {})
    prior = pair.folder / PRIOR
    if with_prior and prior.is_file() and not pair.info.costs:
        arguments["prior"] = [round(p * (1 << 15)) for p in prior_file.read(prior, DEFAULTS["bits"])]
    details = {
        "event": pair.info.event_output("ldl"),
        "arguments": arguments,
        "measured": apps.measured(pair),
        "scores": options.shares,
        "features": pair.info.features,
        "app": program is not None,
        "seconds": options.seconds,
    }
    parts = {package.LDL: blob, package.TEST: _test(pair, blob, options.tests), package.DETAILS: _json(details)}
    if program is not None:
        parts[package.APP] = program
    body = b"".join(pack("<4sI", tag, len(data)) + data for tag, data in parts.items())
    numbers = pair.info.model_id, options.counter, len(body), options.trial
    head = pack("<4sBBHIII32s", b"H2TU", package.VERSION, 0, *numbers, hashlib.sha256(body).digest())
    content = head + keys.sign(key, head) + body
    return Package(content, package.head_of(content), details, program)


def read(path: Path) -> Package:
    """The package in a file. UserError for anything else. Only devices verify the signature."""
    try:
        content = path.read_bytes()
        head = package.head_of(content[: package.SIGNED])
        with path.open("rb") as file:
            sections = {tag: content[at : at + size] for tag, at, size in package.parts(file)}
            intact = package.body_digest(file) == head.digest
        if not intact or package.DETAILS not in sections:
            raise ValueError("the package is damaged")
        return Package(content, head, json.loads(sections[package.DETAILS]), sections.get(package.APP))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None


def shares(scores: np.ndarray, weight: np.ndarray) -> list[int]:
    """The weighted distribution of scores over a node's places, Q15.

    Args:
        scores: (n,) of class 1, 0 to 1; or (n, K), of which the largest counts.
        weight: (n,).
    """
    values = scores if scores.ndim == 1 else (scores.max(1) - 1 / scores.shape[1]) / (1 - 1 / scores.shape[1])
    places = min(PLACES, 1 << DEFAULTS["bits"])
    counts = np.bincount(np.clip((values * places).astype(int), 0, places - 1), weight, places)
    return [int(n) for n in np.round(counts / counts.sum() * (1 << 15))]


def _test(pair: Pair, blob: bytes, count: int) -> bytes:
    """CRC-32 of the bundle's outputs, then the inputs."""
    ldl = Int8Model(blob, pair.info.event_output("ldl"))
    inputs, crc = b"", 0
    for sample in pair.x[:count]:
        x = local_input(ldl, pair.model_input(sample, "ldl")).tobytes()
        ldl.reset()
        ldl.run(memoryview(x).cast("b"))
        crc = crc32(bytes(ldl.arena[ldl.output : ldl.output + ldl.classes]), crc)
        inputs += x
    return pack("<I", crc) + inputs


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
