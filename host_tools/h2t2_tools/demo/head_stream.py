"""The demo's second stream: the adaptive policy without and with a head, replayed on a pair whose features are at hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from h2t2.core import policies as core
from h2t2.core.policy import Policy
from h2t2.cpython.tflite import TFLiteModel
from h2t2.cpython.tflite_library import Interpreter, OpResolverType
from h2t2.node.asking import UNIT

from ..common import pairs, policies
from ..fleet.rdl import models
from ..model import tflite
from ..model.pair.features import STEP, features_source, whitening
from ..replay.simulation.policies.baselines import FullOffload, NoOffload, OfflinePair
from ..replay.simulation.stream import Costs, Stream, charged, outcome

SHIPPED = "digits"  # the pair that shows a head where the demo's own pair has no features
FEATURES = 16
MAX_SAMPLES = 2000
MAX_BITS = 8  # of the score, with a head
WITHOUT, WITH = "adaptive without a head", "adaptive with a head"


@dataclass(frozen=True)
class HeadStream:
    """What the policies do on the same samples.

    Attributes:
        pair: Name of the pair.
        features: Number of features of the head.
        actions: (T,) for each policy by its name, -1 for an offload.
        stream: The samples.
        costs: Costs of offloads and errors.
        truth: (T,) true labels.
        saved: What the head saved a sample, as the device estimates it.
    """

    pair: str
    features: int
    actions: dict[str, np.ndarray]
    stream: Stream
    costs: Costs
    truth: np.ndarray
    saved: float

    def running(self) -> dict[str, np.ndarray]:
        """Return the cost of each sample, (T,), by policy."""
        return {name: charged(actions, self.stream, self.costs)[0] for name, actions in self.actions.items()}

    def report(self) -> dict[str, Any]:
        """Return the entry `head` of the demo's report (docs/json.md)."""
        return {
            "pair": self.pair,
            "features": self.features,
            "samples": len(self.stream),
            "saved": self.saved,
            "policies": {name: averages(own, self.stream, self.costs, self.truth) for name, own in self.actions.items()},
        }


def play(pair: pairs.Pair, numbers: dict[str, Any], samples: int) -> HeadStream | None:
    """Replay both policies. Labels arrive at once. None for a pair of the user's own that has no features.

    Args:
        pair: The demo's pair of two classes. If it is a shipped one without features, SHIPPED plays.
        numbers: The demo's options of the policy; costs, bits and seed apply.
        samples: Number of samples; at most MAX_SAMPLES are played.
    """
    if not pair.info.features:
        if pair.folder not in map(pairs.folder_of, pairs.shipped_names()):
            return None
        pair = pairs.load(SHIPPED)
    table = head_samples(pair)
    seed = numbers.get("seed", policies.DEFAULTS["seed"])
    index = pairs.draw_indices(pair, min(samples, MAX_SAMPLES), seed)
    rows, label = table[index], models.labels(models.answers(pair))[index]
    stream = Stream(rows[:, 0] / 256, label, np.full(len(index), numbers["beta"]))
    costs = Costs.binary(numbers["beta"], numbers["delta_fp"], numbers["delta_fn"])
    chosen = {name: numbers[name] for name in ("beta", "delta_fp", "delta_fn")} | {"seed": seed}
    chosen["bits"] = bits = min(numbers["bits"], MAX_BITS)
    features = table.shape[1] - 1
    learner = _policy(chosen, features)
    actions = {
        WITHOUT: replayed(_policy(chosen, 0), (rows[:, 0] >> 8 - bits).tolist(), label),
        WITH: replayed(learner, rows.tolist(), label),
        "no offload": NoOffload().act(stream, costs, 0),
        "full offload": FullOffload().act(stream, costs, 0),
        "best thresholds (offline)": OfflinePair(bits).act(stream, costs, 0),
    }
    saved = learner.report()["head_saved"] / UNIT / len(index)
    return HeadStream(pair.info.name, features, actions, stream, costs, pair.y[index], saved)


def _policy(numbers: dict[str, Any], features: int) -> Policy:
    """Return an adaptive policy. features: of its head; 0: it has none."""
    arguments = policies.policy_arguments(policies.NAMES[0], numbers)
    return core.make(policies.NAMES[0], arguments | ({"features": features} if features else {}))


def averages(actions: np.ndarray, stream: Stream, costs: Costs, truth: np.ndarray) -> dict[str, float]:
    """Return the averages of a run, and the share of its classes that are not the true labels."""
    _, final, _ = charged(actions, stream, costs)
    return {**vars(outcome(actions, stream, costs)), "true_error": float(np.mean(final != truth))}


def replayed(policy: Policy, samples: list[Any], labels: np.ndarray) -> np.ndarray:
    """Return the actions of a policy, (T,), -1 for an offload. Labels arrive at once."""
    actions = np.zeros(len(samples), np.int64)
    for n, (sample, label) in enumerate(zip(samples, labels.tolist())):
        actions[n] = policy.decide(sample)
        if actions[n] < 0:
            policy.learn(policy.ticket, label)
    return actions


def head_samples(pair: pairs.Pair) -> np.ndarray:
    """Return what a policy with a head reads of each test sample: (n, 1 + d) integers, the score and the features.

    The features are those of the local model. A model without features gets FEATURES of them as `h2t2 pair --features` makes
    them, but whitened by the test samples, as a pair does not keep those that calibrated it. No label is used.
    """
    model = TFLiteModel(str(pair.ldl), pair.info.event_output("ldl"))
    inputs = [model.quantise(pair.model_input(x, "ldl")) for x in pair.x]
    levels, features = [], []
    for x in inputs:
        levels.append(model.level(model.run(x)))
        if model.features:
            features.append([model.arena[model.features_at + n] - 128 for n in range(model.features)])
    rows = np.array(features) if features else _whitened(pair, model, inputs)
    return np.column_stack([levels, rows]).astype(np.int64)


def _whitened(pair: pairs.Pair, model: TFLiteModel, inputs: list[np.ndarray]) -> np.ndarray:
    """Return at most FEATURES whitened components, (n, d) int8, of the input of the local model's last layer."""
    source = features_source(tflite.load(pair.ldl), None)
    interpreter = Interpreter(
        model_path=str(pair.ldl),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    scale, zero_point = source.quantisation
    values = []
    for x in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.reshape(model.input_shape))
        interpreter.invoke()
        values.append(scale * (interpreter.get_tensor(source.index).ravel().astype(float) - zero_point))
    table = np.array(values)
    weights, offsets = whitening(table, FEATURES)
    features: np.ndarray = np.clip(np.round((table @ weights.T + offsets) / STEP), -128, 127)
    return features
