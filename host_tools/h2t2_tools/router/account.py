"""What a router has decided, sample by sample, and what that cost: the report of a notebook."""

from __future__ import annotations

import base64
from array import array
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.node.account import Account

from ..fleet.monitoring import costs


class Log:
    """The decisions of a router, a few bytes each.

    Attributes:
        bins: Score bins.
        offloads: 1 where the remote model was asked.
        answered: 1 where it answered.
        local: Classes that the policy would have acted on, or acted on, without the remote model.
        acted: Classes that were acted on.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.account = Account(policy.bits)
        self.bins, self.offloads, self.answered, self.local, self.acted = (array("B") for _ in range(5))

    def add(self, k: int, *, offloaded: bool, answer: int | None, local: int, acted: int) -> None:
        """Take down a decision. answer: the remote model's class; None without one."""
        self.account.count_score(k)
        if offloaded:
            self.account.paid += self.policy.beta
        if answer is not None:
            self.account.count_answer(self.policy, k, local, answer, 0)
        self.bins.append(k)
        self.offloads.append(offloaded)
        self.answered.append(answer is not None)
        self.local.append(local)
        self.acted.append(acted)

    def report(self, labels: np.ndarray | None) -> Report:
        """Return the report.

        labels: True classes of all samples, (n,) numbers, which judge the local decisions; None: the answers estimate them.
        """
        offloads = np.array(self.offloads, bool)
        beta = self.policy.beta / ONE
        account = self.account
        estimate = costs.of_counters(account.scores, account.answered, account.local_cost, account.paid, self.policy.beta)
        local = acted = None
        if labels is not None:
            local = self._mistakes(np.array(self.local), labels)
        elif estimate:
            local = self._expected()
        if local is not None:
            acted = np.where(np.array(self.answered, bool), 0.0, local)
        accuracy = float(np.mean(np.array(self.acted) == labels)) if labels is not None and len(labels) else None
        return Report(
            samples=len(offloads),
            offloads=int(offloads.sum()),
            fallbacks=int((offloads & ~np.array(self.answered, bool)).sum()),
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
        account = self.account
        mean = sum(account.local_cost) / sum(account.answered)
        bins = [costs.local_decision(cost, n, mean) for cost, n in zip(account.local_cost, account.answered)]
        expected: np.ndarray = np.array(bins)[np.array(self.bins) >> account.shift]
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
        with BytesIO() as file:
            self.picture(file)
            content = base64.b64encode(file.getvalue()).decode()
        return f'<p>{self}</p><img alt="cost a sample" src="data:image/png;base64,{content}">'


def _compared(cost: float, reference: float) -> str:
    """Return a cost compared with another in words: "38 % cheaper"."""
    if not reference:
        return "as cheap" if not cost else "dearer"
    share = round(100 * (1 - cost / reference))
    return f"{share} % cheaper" if share >= 0 else f"{-share} % dearer"


NOTHING_DECIDED = Report(samples=0, offloads=0, fallbacks=0, always=0.0)
