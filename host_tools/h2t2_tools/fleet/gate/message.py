"""Turns an MQTT message into a detection, as a configuration says. Messages are untrusted."""

import base64
import binascii
from contextlib import suppress
from typing import Any

from ...common.untrusted import parse_json
from . import paths
from .detection import LONGEST_KEY, LONGEST_TEXT, Detection, Payload
from .gate_config import GateConfig
from .media import media_of

TENSOR = 65535  # numbers of a tensor
FEATURES = 40
SINGLE = "all"  # the stream of messages without a key


class Ignored(ValueError):
    """The configuration's `when` leaves this message out."""


class Reader:
    """Reads the messages that a configuration describes."""

    def __init__(self, config: GateConfig) -> None:
        self._config = config

    def read(self, topic: str, payload: bytes) -> Detection:
        """The detection in a message. Where only the score and the key can be read, there is nothing to ask about.

        Raises:
            Ignored: `when` leaves it out.
            ValueError: it is not what the configuration describes; the text says why.
        """
        config = self._config
        content = parse_json(payload)
        for path, accepted in config.when.items():
            entry = paths.value(content, topic, path)
            if not any(type(entry) is type(choice) and entry == choice for choice in accepted):
                raise Ignored(f"{path} is none of those in `when`")
        score = self.scores(paths.value(content, topic, config.score))
        shown = self._payload(content, topic)
        features: tuple[int, ...] = ()
        if config.features:
            try:
                features = self.features(paths.value(content, topic, config.features))
            except ValueError as error:
                shown, features = nothing(config.features, error), (0,) * config.feature_count
        key = paths.text(content, topic, config.key, LONGEST_KEY) if config.key else SINGLE
        return Detection(
            key,
            score,
            identity=self._identity(content, topic),
            topic=topic,
            label=paths.label(content, topic, config.label, LONGEST_TEXT) if config.label else "",
            payload=shown,
            features=features,
        )

    def scores(self, entry: Any) -> float | tuple[float, ...]:
        """A score, or the scores of all classes."""
        top = self._config.score_max
        if not isinstance(entry, list):
            if self._config.classes > 2:
                raise ValueError(f"score: want a list of {self._config.classes} scores")
            return paths.share(entry, top)
        if len(entry) != self._config.classes:
            raise ValueError(f"score: {len(entry)} scores for {self._config.classes} classes")
        scores = tuple(paths.share(number, top) for number in entry)
        return scores if len(scores) > 2 else scores[1]

    def features(self, entry: Any) -> tuple[int, ...]:
        """The features of a sample, in 1/32, cut to int8."""
        numbers = paths.numbers(entry, FEATURES)
        if len(numbers) != self._config.feature_count:
            raise ValueError(f"{len(numbers)} numbers; feature_count is {self._config.feature_count}")
        return tuple(max(-128, min(127, round(number * 32))) for number in numbers)

    def _identity(self, content: Any, topic: str) -> str:
        """The identity in a message; "" where it has none that can be used."""
        with suppress(ValueError):
            return paths.text(content, topic, self._config.identity, LONGEST_TEXT) if self._config.identity else ""
        return ""

    def _payload(self, content: Any, topic: str) -> Payload:
        """What the remote model is asked about; nothing, with the reason, where the message has not what is configured."""
        config = self._config
        path = config.picture or config.text or config.tensor
        try:
            if "://" in config.picture:
                return Payload(url=paths.filled(path, content, topic, LONGEST_TEXT))
            entry = paths.value(content, topic, path) if path else None
            if config.picture:
                return picture(entry)
            if config.text:
                return words(entry)
            return Payload(tensor=paths.numbers(entry, TENSOR)) if path else Payload()
        except ValueError as error:
            return nothing("" if "://" in path else path, error)


def nothing(path: str, error: ValueError) -> Payload:
    """The payload of a message that has not what is configured at a path; "": the error names it."""
    text = str(error)
    return Payload(why=text if text.startswith(f"{path}:") or not path else f"{path}: {text}")


def words(entry: Any) -> Payload:
    """The text in an entry of a message."""
    if not isinstance(entry, str):
        raise ValueError("want a text")
    if not entry:
        raise ValueError("the text is empty")
    return Payload(data=entry.encode(), media="text/plain")


def picture(entry: Any) -> Payload:
    """The picture in an entry of a message: a URL, a data URL, or base64."""
    if not isinstance(entry, str):
        raise ValueError("picture: want a URL or base64")
    if entry.startswith(("http://", "https://")):
        return Payload(url=entry)
    coded = entry.partition(";base64,")[2] if entry.startswith("data:") else entry
    try:
        data = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("picture: neither a URL nor base64") from None
    return Payload(data=data, media=media_of(data))
