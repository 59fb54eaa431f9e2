"""Reads the answer of a language model: which class its text names, and how probable the classes are. No network here.

A text that may mean another class is no answer, because a wrong label would teach: a refusal, a withdrawal, mere thinking.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ...failures import Cause, Refused

LEAD_IN = 3  # words that may stand before a colon, as in "My final answer: yes"
LEAD_INS = (["answer"], ["the", "answer", "is"], ["the", "final", "answer", "is"])  # without a colon
HALF = 0.5  # of the probability, which the classes must hold where the answer begins
QUOTED = 80  # characters of a text in an error
WORD = re.compile(r"-?\w+(?:['-]\w+)*")
TAG = re.compile(r"<[^<>\s]{1,40}>")  # <answer>, <|im_end|>
THINKING = "(?:think|thinking|thought|reasoning|seed:think)"
OPENED = re.compile(rf"<{THINKING}>|\[think\]|◁think▷|<\|channel\|>(?!final)")
THOUGHT = re.compile(rf".*(?:</{THINKING}>|\[/think\]|◁/think▷|<\|channel\|>final<\|message\|>)", re.DOTALL)
REASONING = ("reasoning", "reasoning_content")  # fields of a message in which servers return the thinking
# an explanation with one of these words may be a refusal or a withdrawal, or say that there was no picture
DOUBT = frozenset(
    "able actually afraid against apologies apologise apologize assist attached blank but cannot can't comply correction"
    " corrupted could couldn't decline determine discuss either help however impossible inappropriate information instead"
    " invalid know load loaded maybe might missing perhaps please policies policy possibly privacy provide provided rather"
    " receive received refuse share shared sorry sure too unable uncertain unclear unknown unsure upload uploaded violate"
    " violates violating wait won't".split()
)
CUT_DOUBT = DOUBT | {"as", "i", "i'm", "we"}  # where the text was cut: a refusal may begin with them
# "no image", "without an image", "see the image": of what the model was given, not of what it shows
WITHOUT_PICTURE = re.compile(
    r"\b(?:no|not|any|without|your|see|access)(?: (?:a|an|any|the|your))? (?:attachment|file|frame|image|photo|picture)s?\b"
)
# sentences that are no answers begin with these words, too: "no idea", "yes, happy to help"
REPLIES = frozenset("false no none true yes".split())
# what may follow them: of what the picture shows
EXPLANATION = re.compile(
    r"(?:a|an|and|at|because|both|clearly|definitely|four|he|here|in|indeed|it|just|of|on|one|only|several|she|some|the|there"
    r"|these|they|this|those|three|two|with|\d+"
    r"|i (?:can |could |did |do |didn't |don't |clearly |not )*(?:count|detect|notice|observe|recogni[sz]e|saw|see|spot))\b"
)
NEGATED = ("absent", "isn't", "is not", "never", "no", "not")  # after another name: "person not visible"


class NoAnswer(Refused):
    """A message that names no class."""


class EmptyAnswer(NoAnswer):
    """A message without a text. A server that answers so will do it again: the set-up is wrong."""

    cause = Cause.SETUP


class EndlessThinking(EmptyAnswer):
    """A message that holds thinking, and nothing after it."""


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        label: the class that the text names.
        scores: the probability of each class; without probabilities that fit the text, 1 for `label`.
    """

    label: int
    scores: list[float]


class _Candidate(BaseModel):
    """A token that was possible, as OpenAI documents it."""

    token: str
    logprob: float = Field(le=0)

    @property
    def text(self) -> str:
        """It in small letters."""
        return _folded(self.token)

    @property
    def probability(self) -> float:
        """The probability of it in its place."""
        return math.exp(self.logprob)


class _Token(_Candidate):
    """A token of a message, and the likeliest in its place."""

    top_logprobs: list[_Candidate] | None = None

    @property
    def candidates(self) -> list[_Candidate]:
        """The likeliest tokens in its place, itself among them."""
        top = self.top_logprobs or []
        return top if any(candidate.token == self.token for candidate in top) else [self, *top]


TOKENS = TypeAdapter(list[_Token])


class Reader:
    """Reads the answers to one question.

    Args:
        names: of the classes, which differ as `plain` text.
        event: the class that a score of at least 1/2 means; None: the class of the largest score counts.
    """

    def __init__(self, names: Sequence[str], event: int | None = None) -> None:
        self._names, self._event = names, event
        self._words = [_words(name) for name in names]

    def read(self, choice: Any) -> Answer:
        """The answer in a chat completion's `choices[0]`. NoAnswer where there is none."""
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            raise NoAnswer("no choices[0].message in its answer")
        if message.get("refusal"):
            raise NoAnswer(f"it refuses: {str(message['refusal'])[:QUOTED]!r}")
        content, reason = _content(message), choice.get("finish_reason")
        text = _visible(content)
        if OPENED.search(text) or (not text.strip() and any(message.get(field) for field in REASONING)):
            raise EndlessThinking("it thinks, and gives no answer" + " within the limit of tokens" * (reason == "length"))
        if not text.strip():
            raise EmptyAnswer("it answered with an empty text")
        place = self._place(text, CUT_DOUBT if reason == "length" else DOUBT)
        if place is None or reason == "content_filter":
            raise NoAnswer(f"it answered {content[:QUOTED]!r}; want one of {', '.join(self._names)}")
        label, start = place
        scores = self._scores(_tokens(choice.get("logprobs")), text, label, start)
        if scores is None or not self._agrees(scores, label):
            scores = [float(n == label) for n in range(len(self._words))]
        return Answer(label, scores)

    def _place(self, text: str, doubt: frozenset[str]) -> tuple[int, int] | None:
        """The class that a text names, and where: alone, after a lead-in, before an explanation. None: it is in doubt."""
        matches = list(WORD.finditer(text))
        words = [match[0] for match in matches]
        first = _lead_in(text, matches)
        named = [n for n in range(len(self._words)) if words[first : first + len(self._words[n])] == self._words[n]]
        if not named:
            return None
        label = max(named, key=lambda n: len(self._words[n]))
        start = matches[first].start()
        following = words[first + len(self._words[label]) :]
        for around in (words[:first], following):
            if doubt.intersection(around) or any(_holds(around, self._words[n]) for n in range(len(self._words)) if n != label):
                return None
        return (label, start) if _explains(self._words[label], following) and "?" not in text[start:] else None

    def _scores(self, tokens: list[_Token], text: str, label: int, start: int) -> list[float] | None:
        """The probability of each class, from the tokens of the answer.

        Args:
            tokens: of the whole message, maybe with thinking.
            text: of the message, as _visible returns it.
            label, start: the class that it names, and where.

        Returns:
            None where the tokens are not those of the text, or where the classes hold less than half of the probability.
        """
        ends = list(accumulate(len(token.text) for token in tokens))
        whole, answer = _visible("".join(token.text for token in tokens)).rstrip(), text.strip()
        if not whole.endswith(answer):
            return None
        start += len(whole) - len(text.rstrip())
        sums, path, chance = [0.0] * len(self._words), "", 1.0
        for token in tokens[bisect_right(ends, start) :]:
            for candidate in token.candidates:
                possible = self._possible(path + candidate.text)
                if len(possible) == 1:
                    sums[possible[0]] += chance * candidate.probability
            path, chance = path + token.text, chance * token.probability
            if len(self._possible(path)) < 2:
                break
        else:
            sums[label] += chance  # the message ends with the name of a class with which a longer one begins
        total = sum(sums)
        return [value / total for value in sums] if total >= HALF else None

    def _possible(self, begun: str) -> list[int]:
        """The classes that a text may name which begins so."""
        text = " ".join(_words(begun))
        open_end = text if begun[-1:].isalnum() else f"{text} " * bool(text)  # the last word may be longer
        names = [" ".join(words) for words in self._words]
        whole = [n for n in range(len(names)) if f"{text} ".startswith(f"{names[n]} ")]
        longest = [max(whole, key=lambda n: len(names[n]))] if whole else []
        return longest + [n for n in range(len(names)) if n not in whole and names[n].startswith(open_end)]

    def _agrees(self, scores: list[float], label: int) -> bool:
        """Whether scores mean the class that the text names."""
        if self._event is None:
            return scores[label] == max(scores)
        return (scores[self._event] >= HALF) == (label == self._event)


def plain(text: str) -> str:
    """A text in small letters, without punctuation, with single spaces."""
    return " ".join(_words(text))


def _words(text: str) -> list[str]:
    return WORD.findall(_folded(text))


def _folded(text: str) -> str:
    return text.replace("’", "'").casefold()


def _content(message: dict[str, Any]) -> str:
    """The text of a message, which may come in parts."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _visible(text: str) -> str:
    """A text in small letters, with spaces in place of thinking that ended, and of tags. Each character keeps its place."""
    text = THOUGHT.sub(_blank, _folded(text), count=1)
    return text if OPENED.search(text) else TAG.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _lead_in(text: str, matches: list[re.Match[str]]) -> int:
    """The number of words before the answer."""
    for n in range(min(LEAD_IN, len(matches) - 1), 0, -1):
        if ":" in text[matches[n - 1].end() : matches[n].start()]:
            return n
    words = [match[0] for match in matches]
    return max((len(lead_in) for lead_in in LEAD_INS if words[: len(lead_in)] == lead_in), default=0)


def _explains(name: list[str], following: list[str]) -> bool:
    """Whether the words after a name leave it an answer."""
    while following[: len(name)] == name:
        following = following[len(name) :]
    text = " ".join(following)
    if WITHOUT_PICTURE.search(text):
        return False
    if len(name) == 1 and name[0] in REPLIES:
        return not following or EXPLANATION.match(text) is not None
    return not any(f"{text} ".startswith(f"{word} ") for word in NEGATED)


def _holds(words: list[str], name: list[str]) -> bool:
    """Whether a name's words stand among the words."""
    return any(words[n : n + len(name)] == name for n in range(len(words) - len(name) + 1))


def _tokens(logprobs: Any) -> list[_Token]:
    """The tokens in a choice's `logprobs`; none where they are not as OpenAI documents them."""
    try:
        return TOKENS.validate_python(logprobs["content"])
    except (ValidationError, KeyError, TypeError):
        return []
