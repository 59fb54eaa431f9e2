"""A language model that sees pictures, behind an endpoint as OpenAI has it (Ollama, vLLM, llama.cpp's server).

POST {url}/chat/completions with one picture and a prompt; the answer must be one of the classes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from ....common import toml_file
from ....common.errors import UserError
from ....common.untrusted import is_inside
from ...failures import Misconfigured, Refused
from .chat_answer import EmptyAnswer, NoAnswer, Reader, plain
from .model_source import Source
from .pictures import BLANK_PNG, data_url
from .spending import Spending
from .tensors import Batch, Detected, Model, gathered, picked
from .web import Web, token

TIMEOUT_S = 8.0  # less than a worker may hang
CLASSES = "{classes}"  # in a prompt: stands for the names of the classes
TOKENS = 64  # of an answer: a name, the JSON around it, some words before it
OWN_ENTRIES = {"model", "messages", "stream"}  # of a request, which `extra` does not replace


class Described(BaseModel):
    """The entries of NAME.toml.

    Args:
        prompt: may hold {classes}.
        classes: the answers, class 0 first.
        timeout_s: of an answer, with repetitions. None: a gate's `patience`, and TIMEOUT_S for a worker.
        logprobs: ask for probabilities; without them the answer counts as certain.
        structured: ask for a JSON object with one of the classes, which a server with structured output then enforces.
        parallel: requests at a time.
        price_in, price_out: of a million tokens.
        a_day: the most that may be spent a day, in the same currency.
        requests_a_day: the most requests a day.
        secret: a file with the token.
        extra: further entries of a request. They replace ours, such as temperature; max_completion_tokens replaces max_tokens.
    """

    model_config = ConfigDict(extra="forbid")

    url: str = Field(pattern=r"^https?://\S+$")
    model: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    classes: list[str] = Field(min_length=2, max_length=64)
    timeout_s: float | None = Field(None, gt=0, le=300)
    logprobs: bool = True
    structured: bool = True
    parallel: int = Field(4, ge=1, le=64)
    price_in: float = Field(0.0, ge=0)
    price_out: float = Field(0.0, ge=0)
    a_day: float | None = Field(None, gt=0)
    requests_a_day: int | None = Field(None, ge=1)
    secret: str = ""
    extra: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("extra")
    @classmethod
    def _leaves_ours(cls, entries: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if OWN_ENTRIES & entries.keys():
            raise ValueError(f"want other entries than {', '.join(sorted(OWN_ENTRIES))}")
        return entries

    @field_validator("classes")
    @classmethod
    def _differ(cls, words: list[str]) -> list[str]:
        words = [plain(word) for word in words]
        if not all(words) or len(set(words)) < len(words):
            raise ValueError("want words that differ not only in capitals and punctuation")
        return words

    @model_validator(mode="after")
    def _priced(self) -> Described:
        if self.a_day and not (self.price_in or self.price_out):
            raise ValueError("a_day limits the spending: give the prices of a million tokens, price_in and price_out")
        return self


class Chat(Model):
    """A language model: a score a class, from the probabilities of the first token where the server returns them."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        path = Path(source.path)
        self._source, self._media = source, source.media
        self.about = toml_file.load(path, Described)
        secret = self.about.secret and str(path.parent / self.about.secret)
        if secret and not source.named and not is_inside(path.parent, self.about.secret):
            raise UserError(f"{path}: secret: {self.about.secret} lies outside the pair's folder")
        self._url = self.about.url.rstrip("/") + "/chat/completions"
        self._spending = Spending(path.with_suffix(".spent.json"), self.about.a_day, self.about.requests_a_day)
        classes = self.about.classes
        if source.event is not None and source.event >= len(classes):
            raise UserError(f"{path}: {len(classes)} classes, and class {source.event} is the event")
        self._reader = Reader(classes, source.event)
        key = token(self._url, source, secret)
        self._timeout = self.about.timeout_s or source.patience_s or TIMEOUT_S
        count = self._spending.count_request if self._spending.limited else None
        self._web = Web(key, self._timeout, count, pauses=not source.patience_s)
        self._optional = _optional_entries(self.about)
        self._threads = ThreadPoolExecutor(self.about.parallel, "chat")

    def scores(self, batch: Batch) -> np.ndarray:
        """(n,) or (n, K). It raises as gathered(), with the failures of Web.call() and Spending.count_request()."""
        urls = [data_url(entry, entry.media if isinstance(entry, Detected) else self._media) for entry in batch]
        answers = list(self._threads.map(self._ask, urls))
        return gathered([row if isinstance(row, Exception) else picked(np.array([row]), self._source.event) for row in answers])

    def close(self) -> None:
        """As Model.close()."""
        self._web.close()
        self._threads.shutdown(cancel_futures=True)

    def _ask(self, url: str) -> list[float] | Exception:
        """A probability for each class, or why there is none. The client asks an overloaded server until the time-out."""
        try:
            answer = self._answer(self._request(url), self._timeout)
            self._count(answer.get("usage"))
            return self._read(answer)
        except (ValueError, OSError) as error:
            return error

    def test(self, timeout_s: float) -> None:
        """As OnServer.test: ask about a grey picture. What the model says of it does not matter."""
        try:
            answer = self._answer(self._request(data_url(BLANK_PNG, "image/png")), timeout_s)
        except Refused as error:
            raise Misconfigured(str(error)) from None  # a grey picture is valid
        self._count(answer.get("usage"))
        try:
            self._read(answer)
        except EmptyAnswer:
            raise
        except NoAnswer:
            return

    def _answer(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The server's answer. Until the first one, a request that it refuses is repeated without optional entries."""
        refusal: Refused | None = None
        for optional in list(self._optional):
            try:
                entries = {**request, **optional, **self.about.extra}
                answer = self._web.json(self._url, entries, repeat_s=timeout_s, timeout_s=timeout_s)
            except Refused as error:
                refusal = refusal or error
            else:
                self._optional = [optional]
                return answer
        assert refusal
        raise refusal

    def _request(self, url: str) -> dict[str, Any]:
        """The request about a picture."""
        about = self.about
        prompt = about.prompt.replace(CLASSES, ", ".join(about.classes))
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": url}}]
        request: dict[str, Any] = {
            "model": about.model, "messages": [{"role": "user", "content": content}], "temperature": 0,
            "max_tokens": TOKENS + 2 * max(map(len, about.classes)),
        }  # fmt: skip
        if "max_completion_tokens" in about.extra:
            del request["max_tokens"]
        return request

    def _count(self, usage: Any) -> None:
        tokens = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
        words, output_tokens = (n if isinstance(n, int) and n >= 0 else 0 for n in tokens)
        self._spending.add_cost((words * self.about.price_in + output_tokens * self.about.price_out) / 1e6)

    def _read(self, answer: dict[str, Any]) -> list[float]:
        """The probabilities in an answer. NoAnswer for an answer that is no class."""
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        try:
            return self._reader.read(choice).scores
        except EmptyAnswer as error:
            remedy = 'extra = {reasoning_effort = "none"} turns thinking off, extra = {max_tokens = 2000} allows more of it'
            raise type(error)(f"{self._url}: {error}; {remedy}") from None
        except NoAnswer as error:
            raise NoAnswer(f"{self._url}: {error}") from None


def _optional_entries(about: Described) -> list[dict[str, Any]]:
    """Entries of a request that some servers refuse: all of them, then fewer."""
    schema = {
        "type": "object", "properties": {"answer": {"type": "string", "enum": about.classes}}, "required": ["answer"],
        "additionalProperties": False,
    }  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    structured = {"response_format": form} if about.structured else {}
    probable = {"logprobs": True, "top_logprobs": min(20, max(5, 2 * len(about.classes)))} if about.logprobs else {}
    entries: list[dict[str, Any]] = []
    for each in ({**structured, **probable}, probable, structured, {}):
        if each not in entries:
            entries.append(each)
    return entries
