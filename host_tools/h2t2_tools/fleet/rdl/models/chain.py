"""Two remote models in a chain: the second answers samples of which the first is unsure."""

from collections.abc import Callable

import numpy as np

from h2t2.core.adaptive_classes import checked_costs
from h2t2.core.defaults import DELTA_FN, DELTA_FP
from h2t2.core.policy import OFFLOAD
from h2t2.units import matrix, q15

from ....common.calibrated import decide_multiclass
from ....common.log import is_logged
from ....common.score_rules import Q14
from ...failures import Partial, is_of_sample
from .model_source import Source
from .tensors import Batch, Model, OnServer, answered


class Chain(Model):
    """Asks the second model where the best answer of the first is expected to cost more than asking.

    This is the calibrated rule, Theorem 3 of the paper (for two classes Theorem 1). Where the second fails, the first one's
    answer stands.

    Attributes:
        asked_count: number of samples that the second was asked about.
        failed_count: number of those that it did not answer.
    """

    def __init__(self, first: Model, second: Model, source: Source, log: Callable[[str], None]) -> None:
        """source: of the first model, with the costs of the second and of wrong answers."""
        costs = matrix(source.costs) if source.costs else [[0, DELTA_FP], [DELTA_FN, 0]]
        self._costs, self._beta = np.array(checked_costs(costs)), q15(source.second_beta, "then-beta")
        self._first, self._second, self._log = first, second, log
        self.raw = first.raw and second.raw
        self.shape = first.shape
        self.asked_count = self.failed_count = 0

    def scores(self, batch: Batch) -> np.ndarray:
        scores, errors = self._first_answers(batch)
        if scores.ndim == 2 and scores.shape[1] != len(self._costs):
            raise ValueError(f"the first model has {scores.shape[1]} classes; costs are of {len(self._costs)}")
        unsure = np.array([n for n in range(len(scores)) if self._unsure(scores[n])], int)
        if len(unsure):
            self.asked_count += len(unsure)
            samples = [batch[n] for n in unsure] if isinstance(batch, list) else batch[unsure]
            try:
                answers, _ = answered(self._second, samples)
                if len(errors) == len(batch):  # the first has answered about no sample, so nobody knows its shape
                    scores = np.full(answers.shape, np.nan)
                if answers.shape != scores[unsure].shape:
                    raise ValueError(f"scores of shape {answers.shape}; the first model's are {scores[unsure].shape}")
            except Exception as error:  # a user's model
                answers = np.full(scores[unsure].shape, np.nan)
                if is_logged(self.failed_count + 1):
                    self._log(f"the second model failed on {len(unsure)} samples, the first one's answers stand: {error}")
            valid = ~np.isnan(answers.reshape(len(unsure), -1)).any(1)
            scores[unsure[valid]] = answers[valid]
            self.failed_count += int((~valid).sum())
            errors = {n: error for n, error in errors.items() if n not in unsure[valid]}
        if errors:
            raise errors[0] if len(batch) == 1 else Partial(scores, errors)
        return scores

    def _first_answers(self, batch: Batch) -> tuple[np.ndarray, dict[int, Exception]]:
        """As answered(), of the first model; a single sample on which it fails has NaN, as one of several has."""
        try:
            return answered(self._first, batch)
        except Exception as error:  # a user's model
            if not is_of_sample(error):
                raise
            return np.full(len(batch), np.nan), dict.fromkeys(range(len(batch)), error)

    def test(self, timeout_s: float) -> None:
        """As OnServer.test, of both models."""
        for model in (self._first, self._second):
            if isinstance(model, OnServer):
                model.test(timeout_s)

    def close(self) -> None:
        """As Model.close()."""
        self._first.close()
        self._second.close()

    def _unsure(self, score: np.ndarray) -> bool:
        if np.isnan(score).any():
            return True
        rows = np.atleast_1d(score) if score.ndim else np.array([1 - score, score])
        q14 = np.round(np.clip(rows, 0, 1) * Q14).astype(int)
        return bool(decide_multiclass(q14[None], self._beta, self._costs)[0] == OFFLOAD)
