"""Float64 references of the policies with heads. They share only the random draws with the core."""

import math

import numpy as np

from h2t2.core import class_head_forecaster, head_forecaster
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.numbers import ONE
from h2t2_tools.checks.float_references import FloatAdaptive, FloatWatch
from h2t2_tools.checks.validate import follow, samples
from h2t2_tools.common import policies
from h2t2_tools.common.policies import DEFAULTS

FEATURES = 4
NEAR_LIMIT = 0.1  # if a surprise, a product of quotients, is closer to its limit than this, integers may decide either way
COSTS = [[0, 22938, 20000], [32768, 0, 22938], [30000, 22938, 0]]  # of three classes, Q15


def samples_with_features(rounds, seed):
    """A synthetic stream (samples, labels): scores in 1/256 and features in 1/32, of which two tell of the event."""
    scores, labels = samples(8, rounds, seed)
    rng = np.random.default_rng([seed, 2])
    features = rng.normal(size=(rounds, FEATURES))
    features[:, :2] += labels[:, None] - 0.4
    return np.column_stack([scores, np.clip(np.round(features * 32), -128, 127).astype(int)]), labels


def samples_of_classes(rounds, seed):
    """A synthetic stream (samples, labels) of three classes: scores in Q14, features in 1/32; two of these tell the class."""
    rng = np.random.default_rng([seed, 3])
    labels = rng.integers(0, len(COSTS), rounds)
    truth = np.eye(len(COSTS))[labels]
    logits = np.exp(rng.normal(size=truth.shape) + 1.5 * truth)
    features = rng.normal(size=(rounds, FEATURES))
    features[:, :2] += truth[:, :2] * 2
    scores = np.floor(logits / logits.sum(1, keepdims=True) * 16384).astype(int)
    return np.column_stack([scores, np.clip(np.round(features * 32), -128, 127).astype(int)]), labels


def finds_drift(surprise, limit, core_restarted):
    """Return whether a surprise reaches its limit. Near the limit rounding may decide, so the core does.

    Each label divides the surprise by a probability, which can be as small as 64 units of the core.
    """
    return core_restarted() if abs(surprise / limit - 1) < NEAR_LIMIT else surprise >= limit


class FloatHeads:
    """The reference of h2t2.core.head.Heads. It rounds the inputs as the device does."""

    RATES = (1.0, 0.5, 12 / 64)
    STORED, REPEATS, STRIDE = 64, 2, 27

    def __init__(self, features):
        self.weights, self.roots = np.zeros((len(self.RATES), features + 2)), np.ones((len(self.RATES), features + 2))
        self.stored = [(np.zeros(features + 2), 0.0, 0)] * self.STORED
        self.taught = self.turn = 0

    def see(self, score, features):
        """Take a sample: its score, 0..255, and its features in 1/32."""
        self.logit = math.log((score + 0.5) / (255.5 - score))
        self.x = np.array([*(x / 32 for x in features), 1.0, math.floor(self.logit * 16) / 32])
        self.g = self.predict(self.x, self.logit)

    def predict(self, x, logit):
        """(rates,): P(event)."""
        return 1 / (1 + np.exp(-np.clip(logit + self.weights @ x, -7, 7)))

    def descend(self, x, g, labels):
        """A step of each head. x: (samples, inputs). g: (samples, heads). labels: (samples,)."""
        gradients = (g - labels[:, None])[:, :, None] * x[:, None, :]
        self.roots = self.roots + (gradients**2).sum(axis=0) / (2 * self.roots)
        self.weights = np.clip(self.weights - np.array(self.RATES)[:, None] * gradients.sum(axis=0) / self.roots, -8, 8)

    def learn(self, label):
        """Learn the label of the sample together with some stored ones."""
        self.stored[self.taught % self.STORED] = (self.x, self.logit, label)
        self.taught += 1
        samples = [(self.x, self.g, label)]
        for _ in range(self.REPEATS):
            self.turn = (self.turn + self.STRIDE) % self.STORED
            x, logit, answer = self.stored[self.turn % min(self.taught, self.STORED)]
            samples.append((x, self.predict(x, logit), answer))
        self.descend(*(np.array(column) for column in zip(*samples)))


class FloatAdaptiveHead(FloatAdaptive):
    """The reference of h2t2.core.adaptive_head.AdaptiveHead: FloatAdaptive with a forecast of each head."""

    BEHIND_HEAD, LEAD = 16, 16  # labels that a head's forecast counts more than its bin has; its weight beside one by the bin

    def __init__(self, *, features, core_restarted, **options):
        super().__init__(**options)
        self.heads = FloatHeads(features)
        self.head_losses = np.zeros(len(self.heads.RATES))
        self.surprise = 1.0
        self.core_restarted = core_restarted

    def observe(self, sample):
        """Begin a round with a sample: its score, 0..255, and its features in 1/32."""
        self.heads.see(sample[0], sample[1:])
        super().observe(sample[0] >> 8 - self.bits)

    def labels_behind(self):
        """(forecasts,): the labels that count for each in the interval, first of the bin, then of the heads."""
        bin_labels = self.counts[:, 0, len(self.prior) + self.k]
        by_bin = bin_labels[:, None] + np.array(self.BEHIND)
        return np.append(by_bin, [bin_labels[1] + self.BEHIND_HEAD] * len(self.head_losses))

    def mixture(self):
        """(weights, probabilities) of all forecasts."""
        smallest = min(np.min(self.losses), np.min(self.head_losses))
        by_bin, by_heads = (np.exp2(-6 * (losses - smallest)) for losses in (self.losses, self.head_losses))
        w = np.append(by_bin, self.LEAD * by_heads)
        return w / w.sum(), np.append(self.forecasts(), self.heads.g)

    def believe(self):
        w, each = self.mixture()
        p = float(w @ each)
        behind = float(w @ self.labels_behind()) + 1
        width = math.sqrt(p * (1 - p) / behind + float(w @ (each - p) ** 2)) + 0.5 / behind
        return p, max(0.0, p - width), min(1.0, p + width), behind / 4

    def learn(self, chance, label):
        w, each = self.mixture()
        p = float(w @ each)
        self.surprise = max(1.0, self.surprise / 2 / max(p if label else 1 - p, 64 / 32768))
        drift = finds_drift(self.surprise, 64, self.core_restarted)
        audits = self.audits
        if drift:
            self.surprise = 1.0
            self.restart()
            self.losses, self.head_losses = self.losses / 4, self.head_losses / 4
            self.heads.roots = np.maximum(1.0, self.heads.roots / 2)
        super().learn(chance, label)
        if drift:  # the device counts the audit at the offload, before the label
            self.audits = min(1, audits + self.sure)
        self.head_losses += (label - self.heads.g) ** 2 - self.head_losses * 5 / 1024
        self.heads.learn(label)


class FloatAdaptiveClassHead(FloatWatch):
    """The reference of h2t2.core.adaptive_class_head.AdaptiveClassHead.

    `counts` holds the labels of each class at every cell, then at every predicted class, then at all.
    """

    ETA, RECENT, WIDTH = 0.05, 524288, 22938 / 32768
    WORTH, BEHIND, BEHIND_OWN = (1, 8, 64), (0.5, 4, 32, 0.5), 256  # labels

    def __init__(self, *, features, costs, bits, beta, core_restarted):
        self.costs, self.bits, self.beta, self.classes = costs, bits, beta, len(costs)
        cells = self.classes << bits
        super().__init__(cells, (cells + self.classes + 1, self.classes))
        self.sums = np.zeros((cells, self.classes), int)
        self.losses = np.zeros((len(self.HALF_LIVES) * 4 + len(FloatHeads.RATES),))  # half Brier, of every forecast
        self.heads = [FloatHeads(features) for _ in range(self.classes)]
        self.expert_losses = np.zeros(2**bits + 2)  # times eta
        self.ahead = math.log(2) * (6950945 / 2**20 + bits)
        self.want, self.guess, self.surprise = 0.0, 0, 1.0
        self.core_restarted = core_restarted

    def observe(self, sample):
        """Begin a round with a sample: the scores of all classes, Q14, and its features in 1/32."""
        scores = sample[: self.classes]
        for score, heads in zip(scores, self.heads):
            heads.see(min(score >> 6, 255), sample[self.classes :])
        self.top = int(np.argmax(scores))
        share = (scores[self.top] * self.classes / 16384 - 1) / (self.classes - 1)
        self.k = min(max(math.floor(share * 2**self.bits), 0), 2**self.bits - 1)
        self.cell = self.top << self.bits | self.k
        self.sums[self.cell] += scores
        if self.sums[self.cell].sum() >= self.RECENT:
            self.sums[self.cell] >>= 1
        self.watch(self.cell)
        if self.t % 1000 == 0:
            self.expert_losses = (self.expert_losses - np.min(self.expert_losses)) / 2

    def forecasts(self):
        """(forecasts, classes): by the cell in each memory, then by the heads of each rate."""
        prior = self.sums[self.cell] / self.sums[self.cell].sum()
        rows = []
        for counts in self.counts:
            mean = np.full(self.classes, 1 / self.classes)
            for node in (-1, (self.classes << self.bits) + self.top, self.cell):
                mean = (counts[node] + mean) / (counts[node].sum() + 1)
            own = counts[self.cell]
            rows += [*((own + worth * prior) / (own.sum() + worth) for worth in self.WORTH), mean]
        g = np.stack([heads.g for heads in self.heads], 1)
        return np.concatenate([rows, g / g.sum(1, keepdims=True)])

    def mixture(self):
        """(weights, forecasts)."""
        w = np.exp2(-6 * (self.losses - np.min(self.losses)))
        return w / w.sum(), self.forecasts()

    def believe(self):
        """Set `guess`; return (its expected cost, the interval, how much dearer the next answer is)."""
        w, each = self.mixture()
        labels = self.counts[:, self.cell].sum(1)
        behind = [*(labels[:, None] + np.array(self.BEHIND)).ravel(), *[min(labels[1] + self.BEHIND_OWN, 8000)] * 3]
        n = float(w @ np.array(behind)) + 1
        mean = w @ each
        expected = mean @ self.costs
        self.guess = int(np.argmin(expected))
        cost, column = float(expected[self.guess]), self.costs[:, self.guess]
        variance = max(0.0, float(mean @ column**2) - cost**2) / n + float(w @ (each @ column - cost) ** 2)
        return cost, self.WIDTH * (math.sqrt(variance) + 0.5 / n), float(np.partition(expected, 1)[1]) - cost

    def chance(self):
        """Return (P(offload), P(`guess` | not offloaded), distance from the boundary where the forecaster changes its mind)."""
        cost, interval, gap = self.believe()
        self.answers = self.guess, self.top
        self.want = 1.0 if cost + interval > self.beta else self.floor()
        logarithms = -self.expert_losses
        logarithms[-1] += self.ahead
        w = np.exp(logarithms - np.max(logarithms))
        share, asking = float(w[-1] / w.sum()), float(w[self.k + 1 : -1].sum() / w[:-1].sum())
        own, thresholds = share * (1 - self.want), (1 - share) * (1 - asking)
        guessed = own / (own + thresholds) if own + thresholds > 1e-4 else 1.0
        return max(self.FLOOR, share * self.want + (1 - share) * asking), guessed, min(gap, abs(cost + interval - self.beta))

    def charged(self):
        """Charge the round's beta."""
        self.expert_losses[self.k + 1 : -1] += self.ETA * self.beta
        self.expert_losses[-1] += self.ETA * self.beta * self.want

    def learn(self, chance, label):
        """Learn from the label of this round's offload, which was made with probability `chance`."""
        self.audits = min(self.audits + (self.want < 1), len(self.AUDITS))
        scale = self.ETA / min(1.0, chance + 655 / 32768)
        self.expert_losses[: self.k + 1] += scale * self.costs[label, self.top]
        self.expert_losses[-1] += scale * self.costs[label, self.guess] * (1 - self.want)
        self._doubt(label)
        wrong = self.forecasts() - np.eye(self.classes)[label]
        self.losses += (wrong**2).sum(1) / 2 - self.losses * 5 / 1024
        self.counts[:, [self.cell, (self.classes << self.bits) + self.top, -1], label] += 1
        for k, heads in enumerate(self.heads):
            heads.learn(int(k == label))

    def _doubt(self, label):
        """Let the past count less after labels that the forecasts did not expect."""
        w, each = self.mixture()
        self.surprise = max(1.0, self.surprise / max(float((w @ each)[label]) * self.classes, 1 / 8))
        if finds_drift(self.surprise, 512, self.core_restarted):
            self.surprise = 1.0
            self.restart()
            self.losses = self.losses / 4
            for heads in self.heads:
                heads.roots = np.maximum(1.0, heads.roots / 2)


def follow_head(bits, rounds, seed):
    """Compare AdaptiveHead with its reference. Return as follow()."""
    arguments = policies.policy_arguments("adaptive", {**DEFAULTS, "bits": bits, "seed": seed})
    exact = {name: arguments[name] / ONE for name in ("beta", "delta_fp", "delta_fn")}
    core = AdaptiveHead(FEATURES, **arguments)
    reference = FloatAdaptiveHead(
        features=FEATURES, bits=bits, core_restarted=lambda: core.forecaster.surprise == head_forecaster.DOUBT, **exact
    )
    return follow(core, reference, samples_with_features(rounds, seed))


def follow_class_head(bits, rounds, seed):
    """Compare AdaptiveClassHead with its reference. Return as follow()."""
    beta = round(DEFAULTS["beta"] * ONE)
    core = AdaptiveClassHead(FEATURES, COSTS, bits, beta=beta, seed=seed)
    reference = FloatAdaptiveClassHead(
        features=FEATURES,
        costs=np.array(COSTS) / ONE,
        bits=bits,
        beta=beta / ONE,
        core_restarted=lambda: core.forecaster.surprise == class_head_forecaster.DOUBT,
    )
    return follow(core, reference, samples_of_classes(rounds, seed))
