"""Two remote models in a chain: the second is asked where the first is unsure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from h2t2.core.defaults import DELTA_FN, DELTA_FP
from h2t2.core.policy import OFFLOAD
from h2t2.units import matrix, q15

from ....common.calibrated import CalibratedRule
from .source import Source
from .tensors import Batch, Model

SAID = 20  # failures in the log


class Chain:
    """The second is asked where the best that the first could say is expected to cost more than asking (Theorem 3 of the paper,
    the calibrated rule, which of two classes is Theorem 1). Where the second fails, the first one's answer stands.

    asked, failed: samples of the second, and those of them that it did not answer.
    """

    def __init__(self, first: Model, second: Model, source: Source, log: Callable[[str], None]) -> None:
        """source: of the first, with what the second costs and what a wrong answer does."""
        costs = matrix(source.costs) if source.costs else [[0, DELTA_FP], [DELTA_FN, 0]]
        self._rule, self._beta = CalibratedRule(costs), q15(source.then_beta, "then-beta")
        self._first, self._second, self._log = first, second, log
        self.raw = first.raw and second.raw
        self.shape = first.shape
        self.asked = self.failed = 0

    def scores(self, batch: Batch) -> np.ndarray:
        made = np.array(self._first.scores(batch), dtype=float)
        if made.ndim == 2 and made.shape[1] != len(self._rule.costs):
            raise ValueError(f"the first model has {made.shape[1]} classes; costs are of {len(self._rule.costs)}")
        unsure = np.array([n for n in range(len(made)) if self._unsure(made[n])], int)
        if len(unsure):
            self.asked += len(unsure)
            part = [batch[n] for n in unsure] if isinstance(batch, list) else batch[unsure]
            try:
                answers = np.asarray(self._second.scores(part), dtype=float)
                if answers.shape != made[unsure].shape:
                    raise ValueError(f"scores of shape {answers.shape}; the first model's are {made[unsure].shape}")
            except Exception as error:  # a model of somebody's own
                answers = np.full(made[unsure].shape, np.nan)
                self._say(f"the second model failed on {len(unsure)} samples, the first one's answers stand: {error}")
            good = ~np.isnan(answers.reshape(len(unsure), -1)).any(1)
            made[unsure[good]] = answers[good]
            self.failed += int((~good).sum())
        return made

    def _unsure(self, score: np.ndarray) -> bool:
        if np.isnan(score).any():
            return True
        rows = np.atleast_1d(score) if score.ndim else np.array([1 - score, score])
        return bool(self._rule.decide([round(float(p) * 16384) for p in np.clip(rows, 0, 1)], self._beta) == OFFLOAD)

    def _say(self, text: str) -> None:
        if self.failed < SAID:
            self._log(text)
