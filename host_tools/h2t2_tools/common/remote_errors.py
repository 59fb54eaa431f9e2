"""The error rates of a remote model with which a gate and a Router count: a pair's, and what people say beside its answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2t2.core.adaptive import Adaptive
from h2t2.core.miss_guarantee import MissGuarantee
from h2t2.cpython.pair import error_rate
from h2t2.units import q15

from . import pairs

RATES = "rdl_fp", "rdl_fn"
OPTIONS = {*RATES, "rdl_confusion"}
LARGEST = 0.4  # of a rate; above it labels would hardly teach


class RemoteErrors:
    """Counts how often a remote model of two classes was right and wrong where its sample's true class is known.

    Args:
        remote: The remote model. If it is a file of a pair, and the classes have the pair's names, the pair's test counts.
        names: Names of class 0 and 1; None: they have none.
        fixed: Whether the user has set the rates, which neither a pair nor a person changes.

    Attributes:
        judged: What people told: [class 0 right, class 0 wrong, class 1 right, class 1 wrong].
        confusion: `rdl_confusion` of a pair of more classes, where the user has not set it; else {}.
    """

    def __init__(self, remote: Any, names: Sequence[Any] | None, fixed: bool = False) -> None:
        self.judged = [0, 0, 0, 0]
        self._fixed = fixed
        self._tested = [0.0, 0.0, 0.0, 0.0]  # as `judged`, of the pair's test
        self.confusion: dict[str, Any] = {}
        folder = Path(remote).parent if isinstance(remote, (str, Path)) and "://" not in str(remote) else None
        if folder and not fixed and names and (folder / "pair.json").is_file():
            info = pairs.load_info(str(folder))
            if list(names) == info.class_names and info.costs:
                self.confusion = info.error_rates()
            elif list(names) == info.class_names:
                samples = info.class_samples or [info.test_samples // 2] * 2
                for n, name in enumerate(RATES):
                    wrong = info.rates[name] * samples[n]
                    self._tested[2 * n : 2 * n + 2] = samples[n] - wrong, wrong

    def judge(self, answer: int, truth: int) -> None:
        """Count an answer of the remote model whose sample is of class `truth`, 0 or 1."""
        self.judged[2 * truth + (answer != truth)] += 1

    def rates(self) -> dict[str, float]:
        """Return rdl_fp and rdl_fn, as far as something is known of them."""
        counts = [tested + judged for tested, judged in zip(self._tested, self.judged)]
        known = {} if self._fixed else dict(zip(RATES, zip(counts[::2], counts[1::2])))
        return {
            name: min(LARGEST, error_rate(wrong / (right + wrong), right + wrong))
            for name, (right, wrong) in known.items()
            if right + wrong
        }

    def tell(self, policy: Any) -> None:
        """Let an adaptive policy of two classes count with the rates. A guarantee for misses keeps those that it began with."""
        rates = self.rates()
        if rates and isinstance(policy, Adaptive) and not isinstance(policy.limit, MissGuarantee):
            for name, rate in rates.items():
                setattr(policy, name, q15(rate))
            policy.set_deltas(policy.delta_fp, policy.delta_fn)
