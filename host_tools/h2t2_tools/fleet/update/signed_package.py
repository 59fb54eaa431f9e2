"""`h2t2 update sign`: a pair's local model, and what belongs to it, or a runtime, as a signed package (.h2u)."""

import hashlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any
from zlib import crc32

import numpy as np

from h2t2.cpython.quantise import local_input
from h2t2.ldl.bundle import Int8Model
from h2t2.node import package
from h2t2.node.asking import PLACES
from h2t2.node.update import TRIAL_S

from ... import __version__
from ...common import prior_file
from ...common.errors import UserError, as_user_error, file_errors
from ...common.pairs import Pair
from ...common.policies import DEFAULTS
from ...common.sendable import sendable
from ...common.untrusted import parse_json
from .. import app as apps
from . import keys
from .rollout_options import PackageOptions

PRIOR = "prior.json"  # of a pair


@dataclass(frozen=True)
class Package:
    """A package. `details` is its JSON part, empty in one that brings a key; `program` the app's source, if it brings one."""

    content: bytes
    head: package.Head
    details: dict[str, Any]
    program: bytes | None = None

    @property
    def new_key(self) -> str:
        """The id of the key that it brings."""
        return package.key_id(self.content[package.SIGNED :])

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
        if head.rotates:
            return {"counter": head.counter, "key": self.new_key, "bytes": len(self.content)}
        content = {"counter": head.counter, "trial": head.trial, "bytes": len(self.content)}
        content["seconds"] = self.details.get("seconds", TRIAL_S)
        if head.runtime:
            return {**content, "chip" if head.firmware else "mpy": head.model, "version": self.details.get("version", "")}
        content |= {"model": head.model, "prior": "prior" in self.details["arguments"]}
        return {**content, "app": self.details["app"], "shares": bool(self.details["scores"])}


def build(
    pair: Pair,
    blob: bytes,
    key: Path,
    options: PackageOptions,
    *,
    costs: dict[str, int] | None = None,
    shares: list[int] | None = None,
    with_prior: bool = True,
) -> Package:
    """Build and sign a package.

    Args:
        blob: the pair's bundle.
        key: file of the private key.
        costs: Q15 by name, in place of the device's.
        shares: (16,) the expected distribution of the scores, Q15.
        with_prior: include the pair's prior table.

    Raises:
        UserError: a device would refuse the package.
    """
    if options.tests > len(pair.x):
        raise UserError(f"--tests {options.tests}: {pair.info.name} has {len(pair.x)} samples")
    program = None
    if options.app:
        program = apps.source(options.app, pair.info.remote.dtype == "raw")
        sendable(options.app)
    arguments: dict[str, Any] = dict(costs or {})
    prior = pair.folder / PRIOR
    if with_prior and prior.is_file() and not pair.info.costs:
        arguments["prior"] = [round(p * (1 << 15)) for p in prior_file.read(prior, DEFAULTS["bits"])]
    details = {
        "event": pair.info.event_output("ldl"),
        "arguments": arguments,
        "measured": apps.measured(pair.folder, pair.info),
        "scores": shares,
        "features": pair.info.features,
        "app": program is not None,
        "seconds": math.ceil(options.trial_time),
    }
    parts = {package.LDL: blob, package.TEST: _test(pair, blob, options.tests), package.DETAILS: _json(details)}
    if program is not None:
        parts[package.APP] = program
    return _packed(key, 0, pair.info.model_id, parts, options, details, program)


def _packed(
    key: Path, flags: int, model: int, parts: dict[bytes, bytes], options: PackageOptions, details: dict[str, Any],
    program: bytes | None = None,
) -> Package:  # fmt: skip
    """Sign parts. model: as in the head; the others as of build() and Package."""
    body = b"".join(pack("<4sI", tag, len(data)) + data for tag, data in parts.items())
    content = _signed(key, flags, (model, options.counter or int(time.time()), len(body), options.trial), body)
    return Package(content, package.Head(content), details, program)


def runtime(files: dict[str, bytes], mpy: int, key: Path, options: PackageOptions) -> Package:
    """Build the package of a runtime.

    Args:
        files: path on a board to content.
        mpy: lower 16 bits of the sys.implementation._mpy that loads them.
        key: file of the private key.
    """
    details = {"seconds": math.ceil(options.trial_time), "version": __version__}
    rows = [pack("<BI", len(path), len(data)) + path.encode() + data for path, data in sorted(files.items())]
    parts = {package.DETAILS: _json(details), package.FILES: b"".join(rows)}
    return _packed(key, package.RUNTIME, mpy, parts, options, details)


def firmware(path: Path, key: Path, options: PackageOptions) -> Package:
    """Build the package of an ESP32's firmware with the runtime frozen into it.

    Args:
        path: file of the image for its application partition.
        key: file of the private key.

    Raises:
        UserError: it is no such image.
    """
    with file_errors(path):
        image = path.read_bytes()
    if len(image) < 24 or image[0] != 0xE9:
        raise UserError(f"{path}: no image of an application, which begins with 0xE9: give micropython.bin, not firmware.bin")
    details = {"seconds": math.ceil(options.trial_time), "version": __version__}
    parts = {package.DETAILS: _json(details), package.IMAGE: image}
    return _packed(key, package.FIRMWARE, int.from_bytes(image[12:14], "little"), parts, options, details)


def rotation(new: Path, old: Path, counter: int) -> Package:
    """Build the package that replaces a key on devices.

    Args:
        new: file of the new public key.
        old: file of the private key that they trust.
        counter: a device takes only a higher one than that of its last such package.
    """
    body = bytes.fromhex(keys.modulus(new))
    content = _signed(old, package.ROTATES, (0, counter, len(body), 0), body)
    return Package(content, package.Head(content), {})


def _signed(key: Path, flags: int, numbers: tuple[int, int, int, int], body: bytes) -> bytes:
    """Head, signature and body. numbers: model, counter, bytes of the body and samples of the trial."""
    head = pack("<4sBBHIII32s", b"H2TU", package.VERSION, flags, *numbers, hashlib.sha256(body).digest())
    return head + keys.sign(key, head) + body


def read(path: Path) -> Package:
    """The package in a file. UserError for anything else. Only devices verify the signature."""
    with file_errors(path), as_user_error(path):
        content = path.read_bytes()
        head = package.Head(content[: package.SIGNED])
        if hashlib.sha256(content[package.SIGNED :]).digest() != head.digest:
            raise ValueError("the package is damaged")
        if head.rotates:
            return Package(content, head, {})
        with path.open("rb") as file:
            sections = {tag: content[at : at + size] for tag, at, size in package.parts(file)}
        if package.DETAILS not in sections:
            raise ValueError("the package is damaged")
        return Package(content, head, parse_json(sections[package.DETAILS]), sections.get(package.APP))


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
