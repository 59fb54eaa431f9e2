"""The verdict of `h2t2 run`: the failures on the board, and accuracy and cost on labelled samples."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..fleet.config import NodeConfig

# orderly causes of a start: reset_cause() as h2t2.node.board names it
ORDERLY = ("", "pwron", "hard", "soft", "deepsleep", "brownout", "update")
AGAIN = "starting again in "  # part of a message of h2t2.node.run
SENSOR = " sensor: "  # part of a message about a failure of sense()
COUNTERS = {
    "errors": "exceptions in the node",
    "sensor_errors": "failures of sense()",
    "act_errors": "failures of act()",
    "unsaved": "snapshots that could not be written",
}


class Verdict:
    """Collects a board's decisions and the other lines that it prints.

    labels: Classes of the board's samples in order; None if unknown.
    """

    def __init__(self, config: NodeConfig, labels: Sequence[int] | None = None) -> None:
        self.config = config
        self.labels = labels
        self.class_costs = config.numbers(config.folder)["costs"]
        self.decided: list[dict[str, Any]] = []
        self.tracebacks = 0
        self.restarts = 0
        self.fruitless = 0  # restarts since the last decision
        self.compared: int | None = None  # decisions before the first failure of sense(); None: it has not failed

    def take(self, line: dict[str, Any]) -> None:
        """Record a decision: {"n", "bin", "decision", "source"}."""
        self.decided.append(line)
        self.fruitless = 0

    def hear(self, text: str) -> None:
        """Record a line that is not a decision."""
        if SENSOR in text and self.compared is None:
            self.compared = len(self.decided)
        self.tracebacks += "Traceback (most recent call last)" in text
        self.restarts += AGAIN in text
        self.fruitless += AGAIN in text

    def trouble(self, summary: dict[str, Any]) -> list[str]:
        """Return a sentence for each failure."""
        words = []
        start = str(summary.get("start", ""))
        if self.restarts or start not in ORDERLY:
            words.append(f"the board started again{f' ({start})' if start not in ORDERLY else ''}")
        elif self.tracebacks:
            words.append("the board printed a traceback")
        if self.labels and self.compared is not None:
            words.append("labels after the first failure of sense() were not compared, as it may have taken a sample with it")
        return words + [f"{summary[name]} {text}" for name, text in COUNTERS.items() if summary.get(name)]

    def report(self) -> dict[str, Any]:
        """Return the decisions by source. With labels add `labelled`, `accuracy` and `cost`, the mean of a labelled sample.

        After a failure of sense() nobody knows which label belongs to which sample: only decisions before it are compared.
        An offload costs beta, whatever its answer. A wrong decision costs its error.
        """
        report: dict[str, Any] = {"decisions": dict(Counter(line["source"] for line in self.decided))}
        if not self.labels:
            return report
        labelled = [
            (line, self.labels[line["n"]]) for line in self.decided[: self.compared] if 0 <= line["n"] < len(self.labels)
        ]
        if labelled:
            right = sum(line["decision"] == label for line, label in labelled)
            cost = sum(self._cost(line, label) for line, label in labelled)
            report.update(labelled=len(labelled), accuracy=right / len(labelled), cost=cost / len(labelled))
        return report

    def _cost(self, line: dict[str, Any], label: int) -> float:
        config, decision = self.config, line["decision"]
        offload_cost = config.beta if line["source"] == "remote" else 0.0
        if self.class_costs is not None:
            return offload_cost + float(self.class_costs[label][decision])
        wrong = config.delta_fn if label else config.delta_fp
        return offload_cost + (wrong if decision != label else 0.0)
