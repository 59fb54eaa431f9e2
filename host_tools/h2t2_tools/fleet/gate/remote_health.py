"""Judges a remote model by the outcome of its last questions: not by a connection, nor by questions a minute."""

import random
import time

from h2t2.link.backoff import Backoff

from ...common.durations import Clock

FAILURES = 3  # questions in a row without an answer in time, from which on the state says why
AWAY = 5  # in a row without an answer, from which on the remote model counts as away
LONGEST_TEXT = 200  # characters of `unanswered`


class Health:
    """The health of a remote model.

    A model that is away gets probes: a question at a time, after waits that double.

    Attributes:
        unanswered: why the last questions had no answer in time, in words; "": they had one.
        answers: whether the last answer is newer than the last failure of the remote model as a whole.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._backoff = Backoff(random.SystemRandom().randrange(1 << 28))
        self._retry_at = 0.0  # when a remote model that is away is asked again; 0: it is not away
        self._failures = self._late = 0  # in a row
        self.answers = False
        self.unanswered = ""

    @property
    def is_away(self) -> bool:
        """Whether the remote model is away."""
        return self._retry_at > 0

    @property
    def is_due(self) -> bool:
        """Whether the remote model may be asked."""
        return self._clock() >= self._retry_at

    def may_ask(self) -> bool:
        """Whether the remote model may be asked now. Of one that is away, the next question must wait."""
        if not self.is_due:
            return False
        if self.is_away:
            self._retry_at = self._clock() + self._backoff.wait_ms / 1000  # unless the answer comes before
        return True

    def note_failure(self, why: str, *, server: bool, retry_s: float = 0.0) -> None:
        """Note a question without an answer.

        Args:
            server: whether the remote model as a whole is away, or wrongly set up.
            retry_s: seconds after which it wants to be asked again; 0: it does not say.
        """
        self._failures += 1
        if server or self._failures >= AWAY:
            self.answers = False
            self._retry_at = self._clock() + max(self._backoff.draw() / 1000, retry_s)
        if server or self._failures + self._late >= FAILURES:
            self._say(why)

    def note_answer(self, late_s: float, deadline_s: float) -> None:
        """Note an answer. late_s: seconds after which it came, if it came too late to decide; 0: it did not."""
        self.answers = True
        self._retry_at = 0.0
        self._backoff.reset()
        self._failures = 0
        self._late = self._late + 1 if late_s else 0
        if not late_s:
            self.unanswered = ""
        elif self._late >= FAILURES:
            self._say(f"its answers come too late, the last one after {late_s:.1f} s; `deadline` is {deadline_s:g} s")

    def _say(self, why: str) -> None:
        self.unanswered = "".join(c if c.isprintable() else " " for c in why)[:LONGEST_TEXT]
