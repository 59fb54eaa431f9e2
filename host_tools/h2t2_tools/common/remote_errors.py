"""The error rates of a remote model with which a gate and a Router count: a pair's, and what people say beside its answers."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.miss_guarantee import MissGuarantee
from h2t2.cpython.pair import error_table

from . import pairs

RATES = "rdl_fp", "rdl_fn"
OPTIONS = {*RATES, "rdl_confusion"}
LARGEST = 0.4  # of a rate; above it labels would hardly teach


class RemoteErrors:
    """Counts what a remote model answered where its sample's true class is known.

    Args:
        remote: The remote model. If it is a file of a pair, and the classes have the pair's names, the pair's test counts.
        names: Names of the classes; None: they have none.
        fixed: Whether the user has set the rates, which neither a pair nor a person changes.

    Attributes:
        judged: What people told: [true class, answer, how often].
    """

    def __init__(self, remote: Any, names: Sequence[Any] | None, fixed: bool = False) -> None:
        self.judged: list[list[int]] = []
        self._fixed = fixed
        self._tested: list[list[float]] = []  # as error_counts() returns it
        folder = Path(remote).parent if isinstance(remote, (str, Path)) and "://" not in str(remote) else None
        if folder and names and (folder / "pair.json").is_file():
            info = pairs.load_info(str(folder))
            if list(names) == info.class_names:
                self._tested = info.error_counts()

    def judge(self, answer: int, truth: int) -> None:
        """Count an answer of the remote model whose sample is of class `truth`."""
        for entry in self.judged:
            if entry[:2] == [truth, answer]:
                entry[2] += 1
                return
        self.judged.append([truth, answer, 1])

    def rates(self, classes: int = 2) -> dict[str, Any]:
        """Return rdl_fp and rdl_fn, of more classes rdl_confusion, as far as something is known of them."""
        counts = [list(row) for row in self._tested] or [[0.0] * classes for _ in range(classes)]
        for truth, answer, times in self.judged:
            counts[truth][answer] += times
        table = error_table(counts)
        if self._fixed:
            return {}
        if classes == 2:
            return {name: min(LARGEST, table[k][1 - k]) for k, name in enumerate(RATES) if any(counts[k])}
        return {"rdl_confusion": table} if any(map(any, counts)) else {}

    def tell(self, policy: Any) -> None:
        """Let an adaptive policy count with the rates, but for such that leave nothing to learn.

        A guarantee for misses keeps those that it began with.
        """
        rates = self.rates(policy.classes) if not isinstance(policy.limit, MissGuarantee) else {}
        if rates and isinstance(policy, AdaptiveClasses):
            with suppress(ValueError):
                policy.set_confusion(units.confusion(rates["rdl_confusion"]))
        elif rates and isinstance(policy, Adaptive):
            for name, rate in rates.items():
                setattr(policy, name, units.q15(rate))
            policy.set_deltas(policy.delta_fp, policy.delta_fn)
