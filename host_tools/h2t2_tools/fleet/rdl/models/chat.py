"""A language model that sees pictures, behind an endpoint as OpenAI has it (Ollama, vLLM, llama.cpp's server).

POST {url}/chat/completions with one picture and a prompt; the answer must be one of the classes.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ....common import toml_file
from ....common.errors import UserError
from .pictures import data_url
from .source import Source
from .spending import Spending
from .tensors import Batch, picked
from .web import Later, Web, token

CLASSES = "{classes}"  # in a prompt: stands for the names of the classes
LEAST_S = 0.5  # that must remain of the time-out for one more try
TRIES = 4


class Described(BaseModel):
    """The entries of NAME.toml.

    Args:
        prompt: may hold {classes}.
        classes: the answers, class 0 first.
        timeout_s: of an answer, with repetitions.
        logprobs: ask for probabilities; without them the answer counts as certain.
        parallel: requests at a time.
        price_in, price_out: of a million tokens.
        a_day: the most that may be spent a day, in the same currency.
        requests_a_day: the most requests a day.
        secret: a file with the token.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = Field(pattern=r"^https?://\S+$")
    model: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    classes: list[str] = Field(min_length=2, max_length=64)
    timeout_s: float = Field(8.0, gt=0, le=300)
    logprobs: bool = True
    parallel: int = Field(4, ge=1, le=64)
    price_in: float = Field(0.0, ge=0)
    price_out: float = Field(0.0, ge=0)
    a_day: float | None = Field(None, gt=0)
    requests_a_day: int | None = Field(None, ge=1)
    secret: str = ""

    @field_validator("classes")
    @classmethod
    def _differ(cls, words: list[str]) -> list[str]:
        words = [_plain(word) for word in words]
        if not all(words) or len(set(words)) < len(words):
            raise ValueError("want words that differ not only in capitals and punctuation")
        return words

    @model_validator(mode="after")
    def _priced(self) -> Described:
        if self.a_day and not (self.price_in or self.price_out):
            raise ValueError("a_day limits the spending: give the prices of a million tokens, price_in and price_out")
        return self


class Chat:
    """A language model: a score a class, from the probabilities of the first token where the server returns them."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        path = Path(source.path)
        self._source, self._media = source, source.media
        self.about = toml_file.load(path, Described)
        secret = self.about.secret and str(path.parent / self.about.secret)
        self._url = self.about.url.rstrip("/") + "/chat/completions"
        self._web = Web(token(self._url, secret or source.secret, source.variable), self.about.timeout_s)
        self._spending = Spending(path.with_suffix(".spent.json"), self.about.a_day, self.about.requests_a_day)
        self._words = [_plain(word) for word in self.about.classes]
        if source.event is not None and source.event >= len(self._words):
            raise UserError(f"{path}: {len(self._words)} classes, and class {source.event} is the event")
        self._threads = ThreadPoolExecutor(self.about.parallel, "chat")

    def scores(self, batch: Batch) -> np.ndarray:
        """(n,) or (n, K); NaN where an answer is no class."""
        urls = [data_url(entry, self._media) for entry in batch]
        rows = np.array(list(self._threads.map(self._ask_or_nan, urls)))
        if np.isnan(rows).all():
            raise self._last_error
        return picked(rows, self._source.event)

    def _ask_or_nan(self, url: str) -> list[float]:
        try:
            return self._ask(url)
        except (ValueError, OSError) as error:
            self._last_error: Exception = error
            return [math.nan] * len(self._words)

    def _ask(self, url: str) -> list[float]:
        """A probability for each class. It asks an overloaded server again until the time-out."""
        about = self.about
        prompt = about.prompt.replace(CLASSES, ", ".join(about.classes))
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": url}}]
        max_tokens = max(8, 2 * max(map(len, about.classes)))
        request: dict[str, Any] = {
            "model": about.model, "messages": [{"role": "user", "content": content}], "temperature": 0,
            "max_tokens": max_tokens,
        }  # fmt: skip
        if about.logprobs:
            request.update(logprobs=True, top_logprobs=min(20, max(5, 2 * len(self._words))))
        end = time.monotonic() + about.timeout_s
        for n in range(TRIES):
            self._spending.count_request()
            try:
                answer = self._web.json(self._url, request, max(LEAST_S, end - time.monotonic()))
                break
            except Later as error:
                if n == TRIES - 1 or time.monotonic() + error.retry_s + LEAST_S > end:
                    raise
                time.sleep(error.retry_s)
        self._count(answer.get("usage"))
        return self._read(answer)

    def _count(self, usage: Any) -> None:
        tokens = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
        words, output_tokens = (n if isinstance(n, int) and n >= 0 else 0 for n in tokens)
        self._spending.add_cost((words * self.about.price_in + output_tokens * self.about.price_out) / 1e6)

    def _read(self, answer: dict[str, Any]) -> list[float]:
        """The probabilities in an answer. ValueError for an answer that is no class."""
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"]
            text_words = _plain(text)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError(f"{self._url}: no choices[0].message.content in its answer") from None
        chosen = [n for n, word in enumerate(self._words) if text_words == word or text_words.startswith(word + " ")]
        if not chosen:
            raise ValueError(f"{self._url}: it answered {text[:80]!r}; want one of {', '.join(self.about.classes)}")
        best = max(chosen, key=lambda n: len(self._words[n]))
        return _by_tokens(choice.get("logprobs"), self._words) or [float(n == best) for n in range(len(self._words))]


def _by_tokens(logprobs: Any, words: list[str]) -> list[float] | None:
    """The classes' probabilities by the first token that begins a class: a token counts for the only class that begins with it.

    None where there are none, or where they do not distinguish the classes.
    """
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list):
        return None
    for entry in tokens:
        if not isinstance(entry, dict) or not _plain(str(entry.get("token", ""))):
            continue  # a space, a quotation mark
        sums = [0.0] * len(words)
        for choice in entry.get("top_logprobs") or []:
            token_text = _plain(str(choice.get("token", ""))) if isinstance(choice, dict) else ""
            meant = [n for n, word in enumerate(words) if token_text and word.startswith(token_text)]
            chance = choice.get("logprob") if meant else None
            if len(meant) == 1 and isinstance(chance, (int, float)) and chance <= 0:
                sums[meant[0]] += math.exp(chance)
        total = sum(sums)
        return [value / total for value in sums] if total > 0 else None
    return None


def _plain(text: str) -> str:
    """A text in small letters, without punctuation, with single spaces."""
    return " ".join("".join(c if c.isalnum() or c in "-_" else " " for c in text.casefold()).split())
