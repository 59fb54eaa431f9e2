"""What a router has decided, sample by sample, and what that cost: the report of a notebook."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.node.asking import Asking

from ..fleet.monitoring import costs


class Log:
    """The decisions of a router, a few bytes each.

    Attributes:
        bins: Score bins.
        offloads: 1 where the remote model was asked.
        answers: 1 + the remote model's class, also one that came late; 0 without an answer.
        late: 1 where the answer came after the decision.
        local: Classes that the policy would have acted on, or acted on, without the remote model.
        acted: Classes that were acted on.
    """

    COLUMNS = ("bins", "offloads", "answers", "late", "local", "acted")

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.asking = Asking(policy.bits)
        self.bins, self.offloads, self.answers, self.late, self.local, self.acted = (array("B") for _ in self.COLUMNS)

    def add(self, k: int, *, offloaded: bool, local: int, acted: int, answer: int | None = None) -> int:
        """Take down a decision, and return its number. answer: the remote model's class; None without one."""
        self.asking.count_score(k)
        if offloaded:
            self.asking.pay(self.policy, 0)
        for name, entry in zip(self.COLUMNS, (k, offloaded, 0, 0, local, acted)):
            getattr(self, name).append(entry)
        number = len(self.bins) - 1
        if answer is not None:
            self._count_answer(number, answer)
        return number

    def add_late_answer(self, number: int, answer: int) -> bool:
        """Take down the remote model's class of an earlier decision. Returns False if it has one."""
        if not 0 <= number < len(self.bins) or not self.offloads[number] or self.answers[number]:
            return False
        self.late[number] = 1
        self._count_answer(number, answer)
        return True

    def _count_answer(self, number: int, answer: int) -> None:
        self.answers[number] = answer + 1
        self.asking.count_answer(self.policy, self.bins[number], self.local[number], answer, 0)

    def columns(self) -> dict[str, np.ndarray]:
        """Return all decisions, an array (decisions,) a column."""
        return {name: np.array(getattr(self, name), np.uint8) for name in self.COLUMNS}

    @classmethod
    def of_columns(cls, policy: Any, columns: dict[str, np.ndarray]) -> Log:
        """Return a log with the decisions that columns() gave."""
        log = cls(policy)
        for k, offloaded, answer, late, local, acted in zip(*(columns[name].tolist() for name in cls.COLUMNS)):
            in_time = answer - 1 if answer and not late else None
            number = log.add(k, offloaded=bool(offloaded), local=local, acted=acted, answer=in_time)
            if late:
                log.add_late_answer(number, answer - 1)
        return log

    @property
    def decided_remotely(self) -> np.ndarray:
        """Whether the remote model's answer was the decision, (decisions,) bool."""
        in_time: np.ndarray = (np.array(self.answers) > 0) & (np.array(self.late) == 0)
        return in_time

    def report(self, labels: np.ndarray | None) -> Report:
        """Return the report.

        labels: True classes of all samples, (n,) numbers, which judge the local decisions; None: the answers estimate them.
        """
        offloads = np.array(self.offloads, bool)
        beta = self.policy.beta / ONE
        asking = self.asking
        estimate = costs.of_counters(asking.scores, asking.answered, asking.local_cost, asking.paid, self.policy.beta)
        local = acted = None
        if labels is not None:
            local = self._mistakes(np.array(self.local), labels)
        elif estimate:
            local = self._expected()
        if local is not None:
            acted = np.where(self.decided_remotely, 0.0, local)
        accuracy = float(np.mean(np.array(self.acted) == labels)) if labels is not None and len(labels) else None
        return Report(
            samples=len(offloads),
            offloads=int(offloads.sum()),
            fallbacks=int((offloads & ~self.decided_remotely).sum()),
            always=beta,
            own=None if acted is None else float(np.mean(beta * offloads + acted)),
            never=None if local is None else float(np.mean(local)),
            error=estimate.error if estimate and labels is None else 0.0,
            accuracy=accuracy,
            measured=labels is not None,
            paid=None if acted is None else beta * offloads + acted,
            unasked=local,
        )

    def _mistakes(self, classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.array([self.policy.mistake_cost(int(c), int(y)) / ONE for c, y in zip(classes, labels)])

    def _expected(self) -> np.ndarray:
        """Return what a local decision is expected to cost at each sample, by the answers in its bin."""
        asking = self.asking
        mean = sum(asking.local_cost) / sum(asking.answered)
        bins = [costs.local_decision(cost, n, mean) for cost, n in zip(asking.local_cost, asking.answered)]
        expected: np.ndarray = np.array(bins)[np.array(self.bins) >> asking.shift]
        return expected


@dataclass(frozen=True, repr=False, kw_only=True)
class Report:
    """What a router's decisions cost. Printed, it is a sentence; a notebook also shows the picture.

    Attributes:
        samples: Number of decisions.
        offloads: Number of samples for which the remote model was asked.
        fallbacks: Number of samples for which it gave no answer.
        own, always, never: Costs a sample, 0..1, of the router, of always asking, of never asking; None: nothing tells them.
        error: Upper bound of the standard error of `own` and `never`; 0 where they are measured.
        measured: Whether labels tell what local decisions cost. Otherwise the answers of the remote model estimate it. An
            answer itself counts as right, and costs beta.
        accuracy: Share of the decisions that the labels call right, or None.
        paid, unasked: Costs of the router and of never asking at each sample, (samples,), for the picture.
    """

    samples: int
    offloads: int
    fallbacks: int
    always: float
    own: float | None = None
    never: float | None = None
    error: float = 0.0
    measured: bool = False
    accuracy: float | None = None
    paid: np.ndarray | None = None
    unasked: np.ndarray | None = None

    def __str__(self) -> str:
        if not self.samples:
            return "no decision yet"
        share = f"asked for {self.offloads / self.samples:.0%} of {self.samples:,} samples".replace("%", " %")
        if self.own is None or self.never is None:
            return f"{share}; without an answer nothing tells what the decisions cost"
        source = f"measured by labels, {self.accuracy:.1%} right" if self.measured else "estimated from the answers"
        compared = f"{_compared(self.own, self.always)} than always asking, {_compared(self.own, self.never)} than never asking"
        missing = f"; {self.fallbacks} without an answer" if self.fallbacks else ""
        return f"{share}, {compared} ({source.replace('%', ' %')}{missing})"

    __repr__ = __str__

    def picture(self, path: str | Path | BinaryIO) -> None:
        """Draw the cost a sample so far, beside that of always and of never asking, as a PNG.

        Raises:
            ValueError: Nothing tells the costs.
        """
        from ..common import plots

        if self.paid is None or self.unasked is None:
            raise ValueError(f"no picture: {self}")
        always = np.full(self.samples, self.always)
        references = {"always asking": always, "never asking": self.unasked}
        where = Path(path) if isinstance(path, str) else path
        plots.running_cost(where, "router", self.paid, references, str(self).partition(" (")[0].replace(", ", "\n", 1))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        if self.paid is None:
            return f"<p>{self}</p>"
        return f"<p>{self}</p>{embedded(self.picture, 'cost a sample')}"


def embedded(draw: Callable[[BinaryIO], None], alternative: str) -> str:
    """Return a picture as HTML that holds it. draw: writes its PNG; alternative: the text in its place."""
    with BytesIO() as file:
        draw(file)
        content = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{alternative}" src="data:image/png;base64,{content}">'


def _compared(cost: float, reference: float) -> str:
    """Return a cost compared with another in words: "38 % cheaper"."""
    if not reference:
        return "as cheap" if not cost else "dearer"
    share = round(100 * (1 - cost / reference))
    return f"{share} % cheaper" if share >= 0 else f"{-share} % dearer"


NOTHING_DECIDED = Report(samples=0, offloads=0, fallbacks=0, always=0.0)
