"""The router: decides each sample with the local model, or asks the remote one where that pays."""

import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.core.policy import OFFLOAD
from h2t2.core.score import cut
from h2t2.units import q15

from ..common import policies
from ..common.errors import UserError
from ..common.matrices import equal_costs
from ..common.policies import DEFAULTS
from .account import NOTHING_DECIDED, Log, Report
from .models import RouterModel

MOST_CLASSES = 16
KEPT = 2000  # samples for export()
MOST_BITS = 8  # of a score on a device
Q14 = 16384


@dataclass(frozen=True)
class Decision:
    """What a router says of a sample.

    Attributes:
        label: The class as the models name it (`classes`), otherwise its number from 0.
        source: "local", "remote", or "fallback" if the remote model failed.
        score: The local model's score of class 1; of more than two classes its largest score.
        number: The class's number from 0.
    """

    label: Any
    source: str
    score: float
    number: int


class Router:
    """Decides samples between a local model, which is cheap, and a remote one, which is right.

    It uses the policy that runs on devices, and learns from each answer of the remote model.

    Args:
        local: An object with predict_proba, a Keras model, a function, a path or a URL. A function takes a batch (n, ...) and
            returns n scores of class 1, or (n, K) scores.
        remote: One of those, or an object with predict. A function may return n class names. A path or a URL may be all
            that `h2t2 rdl` serves.
        beta: Cost of asking the remote model, 0..1.
        delta_fp, delta_fn: Costs of a false alarm and of a missed event, 0..1, of two classes.
        costs: (K, K), of more than two classes: `costs[i][j]` of saying j where i is true, 0..1; None: each mistake costs 1.
        classes: Names of the classes in the order of the local model's scores; None: its classes_, or numbers from 0.
        local_columns, remote_columns: Which numbers of a sample the models read; None: all.
        policy: "adaptive" or "h2t2".
        keep: Number of the latest samples that it remembers for export().
        options: Further options of the policy, such as bits, seed, miss_rate or prior.

    Raises:
        UserError: A model is of no known kind.
        ValueError: A number is out of range. decide() raises it as well, for models that do not fit each other.
    """

    def __init__(
        self,
        local: Any,
        remote: Any,
        *,
        beta: float = DEFAULTS["beta"],
        delta_fp: float = DEFAULTS["delta_fp"],
        delta_fn: float = DEFAULTS["delta_fn"],
        costs: Sequence[Sequence[float]] | None = None,
        classes: Sequence[Any] | None = None,
        local_columns: Sequence[int] | None = None,
        remote_columns: Sequence[int] | None = None,
        policy: str = "adaptive",
        keep: int = KEPT,
        **options: Any,
    ) -> None:
        self.local = RouterModel(local, "local", local_columns)
        self.remote = RouterModel(remote, "remote", remote_columns)
        for name, value in (("beta", beta), ("delta_fp", delta_fp), ("delta_fn", delta_fn)):
            q15(value, name)
        unknown = set(options) - policies.option_names(policy)
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: policy {policy} has no such option")
        self.beta, self.costs = beta, None if costs is None else [list(row) for row in costs]
        self._numbers = {"beta": beta, "delta_fp": delta_fp, "delta_fn": delta_fn, **options}
        self._kind = policy
        self.classes = list(classes) if classes is not None else self.local.classes or self.remote.classes
        # with the remote model's class, if it was asked
        self._samples: deque[tuple[np.ndarray, int | None]] = deque(maxlen=keep)
        self._policy: Any = None
        self._log: Log | None = None

    @property
    def policy(self) -> Any:
        """The runtime's policy. It exists from the first decision on, which tells the number of classes."""
        return self._policy

    def decide(self, x: Any) -> Decision:
        """Decide a sample, and learn from the remote model's answer if it was asked.

        Args:
            x: The sample as both models read it, without a batch.

        Raises:
            ValueError: A model gives no scores of this sample.
        """
        batch = np.asarray(x)[None]
        scores = self.local.scores(batch)
        if scores.dtype.kind == "O":
            raise ValueError(f"local model {self.local.name}: it gives names; the policy needs its scores")
        row = scores[0]
        if row.ndim and len(row) == 2:
            row = row[1]
        if self._policy is None:
            self._start(len(row) if row.ndim else 2)
        policy, log = self._policy, self._log
        assert log is not None
        score = float(row.max() if row.ndim else row)
        if (len(row) if row.ndim else 2) != policy.classes:
            raise ValueError(f"local model {self.local.name}: it gives another number of scores than before")
        reading = [cut(f, Q14) for f in row.tolist()] if row.ndim else cut(score, 1 << policy.bits)
        k = policy.bin(reading)
        action = policy.decide(reading)
        if action != OFFLOAD:
            self._samples.append((batch[0], None))
            log.add(k, offloaded=False, answer=None, local=action, acted=action)
            return self._decision(action, "local", score)
        ticket, fallback = policy.ticket, policy.local
        answer = self._ask(batch)
        self._samples.append((batch[0], answer))
        if answer is None:
            policy.lose(ticket)
            log.add(k, offloaded=True, answer=None, local=fallback, acted=fallback)
            return self._decision(fallback, "fallback", score)
        policy.learn(ticket, answer)
        log.add(k, offloaded=True, answer=answer, local=fallback, acted=answer)
        return self._decision(answer, "remote", score)

    def report(self, labels: Sequence[Any] | None = None) -> Report:
        """Return what the decisions so far cost.

        Args:
            labels: The true class of each sample so far, in their order: they judge the local decisions. None: the answers of
                the remote model do.

        Raises:
            ValueError: There are more or fewer labels than decisions, or a label is none of the classes.
        """
        decided = len(self._log.bins) if self._log else 0
        if labels is not None and len(labels) != decided:
            raise ValueError(f"{len(labels)} labels for {decided} decisions; report() wants one for each")
        if self._log is None:
            return NOTHING_DECIDED
        return self._log.report(None if labels is None else np.array([self._number(label) for label in labels]))

    def export(self, folder: str | Path, board: str = "", *, samples: tuple[Any, Any] | None = None) -> list[str]:
        """Write a project that `h2t2 run` starts: both models, a configuration, and an app that reads the first samples.

        Args:
            folder: New or empty; its name becomes the device's.
            board: Kind of a board that gets a section, such as "pico_w"; "": none. `h2t2 new FOLDER --board KIND` adds one.
            samples: Samples (n, ...) and their true labels (n,), which calibrate and judge the models. None: the samples
                decided so far; the remote model is asked about each of them once, and counts as right.

        Returns:
            The names of the files that were written.

        Raises:
            UserError: A model cannot go onto a device, or there are too few samples. The message names a remedy.
            Failure: The local model loses too much accuracy as int8.
            ValueError: No sample has been decided yet.
        """
        from .export import export

        if self._policy is None:
            raise ValueError("export: no decision yet; the first ones tell the number of classes, and what the sensor measures")
        if samples is None:
            x = np.stack([sample for sample, _ in self._samples])
            unasked = [n for n, (_, answer) in enumerate(self._samples) if answer is None]
            labels = [answer for _, answer in self._samples]
            for n, row in zip(unasked, self.remote.scores(x[unasked]) if unasked else ()):
                labels[n] = self._remote_class(row)
        else:
            x, labels = np.asarray(samples[0]), [self._number(label) for label in samples[1]]
        many = self._policy.classes > 2
        return export(
            Path(folder),
            board,
            models=(self.local, self.remote),
            classes=self.classes,
            samples=(x, np.array(labels)),
            costs=(self.costs or equal_costs(self._policy.classes)) if many else None,
            beta=self.beta,
        )

    def _start(self, classes: int) -> None:
        """Create the policy and the log."""
        if self.classes is not None and len(self.classes) != classes:
            raise ValueError(f"classes: {len(self.classes)} names; the local model scores {classes} classes")
        if classes > MOST_CLASSES:
            raise ValueError(f"local model {self.local.name}: {classes} classes; want 2 to {MOST_CLASSES}")
        numbers = dict(self._numbers)
        if classes > 2:
            numbers["costs"] = self.costs or equal_costs(classes)
        elif self.costs is not None:
            raise ValueError("costs: of three classes or more; of two, delta_fp and delta_fn say it")
        policy = policies.make(self._kind, numbers)
        if policy.bits > MOST_BITS:
            raise ValueError(f"bits {policy.bits}: want 1 to {MOST_BITS}, as on a device")
        self._policy = policy
        self._log = Log(self._policy)

    def _ask(self, batch: np.ndarray) -> int | None:
        """Return the remote model's class of a sample, or None, with a warning, where it fails."""
        try:
            scores = self.remote.scores(batch)
        except Exception as error:  # a model of any library
            name = "" if isinstance(error, (OSError, ValueError, UserError)) else f"{type(error).__name__}: "
            warnings.warn(f"no answer of the remote model: {name}{error}", stacklevel=3)
            return None
        return self._remote_class(scores[0])

    def _remote_class(self, row: Any) -> int:
        """Return the class of the remote model's scores, or of its answer in words."""
        if np.ndim(row) == 0 and not isinstance(row, (float, np.floating)):
            return self._number(row)
        if np.ndim(row) == 0:
            if self._policy.classes > 2:
                raise ValueError(f"remote model {self.remote.name}: one score for {self._policy.classes} classes")
            return int(row >= 0.5)
        best = int(np.argmax(row))
        if self.remote.classes is not None and self.classes is not None:
            return self._number(self.remote.classes[best])
        if len(row) != self._policy.classes:
            raise ValueError(f"remote model {self.remote.name}: {len(row)} scores for {self._policy.classes} classes")
        return best

    def _number(self, label: Any) -> int:
        """Return the number of a class as the models name it."""
        label = label.item() if hasattr(label, "item") else label
        names = self.classes if self.classes is not None else list(range(self._policy.classes))
        if isinstance(label, int) and all(isinstance(name, str) for name in names) and 0 <= label < len(names):
            return label
        if label not in names:
            raise ValueError(f"label {label!r} is none of the classes {names}")
        return names.index(label)

    def _decision(self, number: int, source: str, score: float) -> Decision:
        return Decision(self.classes[number] if self.classes else number, source, score, number)
