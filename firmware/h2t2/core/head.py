# The head: a logistic model on features of the local model, which learns on the device from the labels of offloads.
#
# It begins as the local model itself: logit = logit of the score + w . x with w = 0. Heads of several learning rates stand side
# by side. No head acts: head_forecaster makes each of them a view of the sample.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .adaptive import logistic
from .logarithm import log2
from .numbers import MACHINE_CODE

if 0:  # for type checkers
    from collections.abc import Iterator

RATES = (64, 32, 12)  # learning rates of the heads, in 64ths
MAX_FEATURES = 40  # 32 of the local model and 8 of the application
CONSTANT = 32  # the input 1, Q5
LIMIT = 8388607  # of a weight: 8 in Q20
FURTHEST = 114688  # of a logit: 7 in Q14
FRESH_ROOT = 262144  # 1 in Q18
LAST_ROOT = 536870911
STORED = 64  # labelled samples that the heads learn again
REPEATS = 2  # of stored samples that each label repeats
STRIDE = 27  # from one repeated sample to the next: coprime to STORED
SAMPLES = 1 + REPEATS  # from which a step of AdaGrad learns


def logit_table() -> "array[int]":
    """Return the logits of the scores (128.5 + i) / 256 for i of 0..127, Q12."""
    return array("h", [(log2(257 + 2 * i) - log2(255 - 2 * i)) * 11357 + 8192 >> 14 for i in range(128)])


def outputs(weights: "array[int]", x: "array[int]", column: int, logit: int, g: "array[int]") -> None:
    """Compute the probabilities that the heads give to an event.

    Args:
        weights: (heads, inputs), Q20, at most LIMIT either way.
        x: (inputs, SAMPLES), Q5, -128..127.
        column: Of x, with the sample.
        logit: Of its score, Q14.
        g: (SAMPLES, heads), its row becomes P(event), Q15, between .0009 and .9991.
    """
    i = 0
    heads = len(g) // SAMPLES
    for r in range(heads):
        z = 0
        n = column
        while n < len(x):  # MicroPython allocates a range with such a step
            z += (weights[i] >> 6) * x[n]
            n += SAMPLES
            i += 1
        z = min(max(logit + (z >> 5), -FURTHEST), FURTHEST)
        g[column * heads + r] = logistic(z + (z * 7253 >> 14), 0)


def descend(weights: "array[int]", roots: "array[int]", x: "array[int]", g: "array[int]", labels: "array[int]") -> None:
    """Take a step of AdaGrad (Duchi, Hazan and Singer, JMLR 2011) on the log loss of each head, over all samples of x.

    A root grows by squares / (2 root), which costs one division. That is more than the growth of the square root of the sum of
    squares while this is small, and so the first steps are shorter.

    Args:
        weights, x, g: As for outputs().
        roots: (heads, inputs), Q18, at first 1.
        labels: (SAMPLES,), 0 or 1.
    """
    i = 0
    heads = len(g) // SAMPLES
    for r in range(heads):
        n = 0
        while n < len(x):
            gradient = squares = 0
            for s in range(SAMPLES):
                a = (g[s * heads + r] - (labels[s] << 15)) * x[n + s]  # Q20
                gradient += a
                squares += (a >> 9) * (a >> 9)
            root = min(roots[i] + (squares << 2) // (roots[i] >> 11), LAST_ROOT)
            roots[i] = root
            step = (gradient << 6) // (root >> 10)
            weights[i] = min(max(weights[i] - (step * RATES[r] + 8 >> 4), -LIMIT), LIMIT)
            n += SAMPLES
            i += 1


def pack(x: "array[int]", features: int, rows: "array[int]", at: int) -> None:
    """Store the features of the current sample in rows[at], rows[at + 1] ..., three in a word."""
    word = shift = 0
    for n in range(features):
        word |= x[n * SAMPLES] + 128 << shift
        shift += 8
        if shift == 24 or n == features - 1:
            rows[at] = word
            at += 1
            word = shift = 0


def unpack(rows: "array[int]", at: int, x: "array[int]", column: int, features: int) -> None:
    """Read the features that pack() stored into a column of x."""
    shift = 0
    for n in range(features):
        x[n * SAMPLES + column] = (rows[at] >> shift & 255) - 128
        shift += 8
        if shift == 24:
            at += 1
            shift = 0


class Heads:
    """Logistic models of one event, one for each learning rate, on the same inputs.

    The inputs are the features, a constant, and the logit of the score. A label teaches them its sample together with REPEATS
    of the last STORED labelled samples.

    Attributes:
        features: Number of features, 1..MAX_FEATURES.
        slot: Of the ticket whose sample is the current one; -1: none, or not yet.
        score: Of the current sample, 0..255.
        x: Inputs, Q5: SAMPLES for each, of the current sample and of those that a label repeats.
        g: P(event), Q15: of each head for the current sample, after predict(); then for the repeated ones.
        rows, answers: Features and score << 1 | label of the stored samples, then of the outstanding tickets.
        taught: Labels so far; from 2 STORED it goes back to STORED.
        turn: The next sample to be repeated.
        model: Number of the local model that gives the features, 0..2^28 - 1; 0: unknown.
    """

    if 0:  # for type checkers
        rows: "array[int]"
        logits: "array[int]"

    def __init__(self, features: int, window: int, other: "Heads | None" = None):
        """features: 1..MAX_FEATURES. window: most outstanding tickets. other: shares its stored features and its table."""
        self.features = features
        self.width = (features + 2) // 3
        self.score = self.logit = 0
        self.slot = -1
        self.x = array("i", [0] * (SAMPLES * (features + 2)))
        self.g = array("i", [0] * (SAMPLES * len(RATES)))
        self.labels = array("i", [0] * SAMPLES)  # scratch of learn()
        self.weights = array("i", [0] * (len(RATES) * (features + 2)))
        self.roots = array("i", self.weights)
        self.rows = other.rows if other else array("i", [0] * ((STORED + window) * self.width))
        self.answers = array("H", [0] * (STORED + window))
        self.logits = other.logits if other else logit_table()
        self.taught = self.turn = self.model = 0
        if MACHINE_CODE:
            self.places = head_viper.places_of_heads(self)  # type: ignore[no-untyped-call]
        self.clear()

    def clear(self) -> None:
        """Forget all labels."""
        self.taught = self.turn = 0
        for i in range(len(self.weights)):
            self.weights[i] = 0
            self.roots[i] = FRESH_ROOT
        for i in range(STORED * self.width):
            self.rows[i] = 0
        for i in range(STORED):
            self.answers[i] = 0

    def enter(self, score: int, column: int) -> int:
        """Set the inputs that a score, 0..255, gives the sample in a column of x; return its logit, Q14."""
        logit = self.logits[score - 128] if score >= 128 else -self.logits[127 - score]
        n = self.features * SAMPLES + column
        self.x[n] = CONSTANT
        self.x[n + SAMPLES] = logit >> 8  # half the logit, Q5
        return logit << 2

    def see(self, sample: "array[int]") -> None:
        """Make a sample the current one: its score, 0..255, then its features, Q5, -128..127."""
        self.slot = -1
        self.score = sample[0]
        self.logit = self.enter(self.score, 0)
        for n in range(self.features):
            self.x[n * SAMPLES] = sample[n + 1]

    def keep(self, at: int) -> None:
        """Store the current sample for the ticket in slot `at`."""
        self.slot = at
        at += STORED
        self.answers[at] = self.score << 1
        pack(self.x, self.features, self.rows, at * self.width)

    def recall(self, at: int) -> bool:
        """Make the sample of the ticket in slot `at` the current one; return whether it is another one than before."""
        if self.slot == at:
            return False
        self.slot = at
        at += STORED
        self.score = self.answers[at] >> 1
        self.logit = self.enter(self.score, 0)
        unpack(self.rows, at * self.width, self.x, 0, self.features)
        return True

    def predict(self) -> None:
        """Set `g` for the current sample."""
        outputs(self.weights, self.x, 0, self.logit, self.g)

    def learn(self, label: int) -> None:
        """Learn the label, 0 or 1, of the current sample, for which `g` is set."""
        at = self.taught % STORED
        self.answers[at] = self.score << 1 | label
        pack(self.x, self.features, self.rows, at * self.width)
        self.taught += 1
        if self.taught == 2 * STORED:
            self.taught = STORED
        self.labels[0] = label
        for column in range(1, SAMPLES):
            self.repeat(column)
        descend(self.weights, self.roots, self.x, self.g, self.labels)

    def repeat(self, column: int) -> None:
        """Read a stored sample into a column of x and set its `g` and label."""
        self.turn = (self.turn + STRIDE) % STORED
        at = self.turn % min(self.taught, STORED)
        answer = self.answers[at]
        self.labels[column] = answer & 1
        logit = self.enter(answer >> 1, column)
        unpack(self.rows, at * self.width, self.x, column, self.features)
        outputs(self.weights, self.x, column, logit, self.g)

    def quicken(self) -> None:
        """Halve the roots, as far as 1, so that the next steps are up to twice as long."""
        for i in range(len(self.roots)):
            self.roots[i] = max(FRESH_ROOT, self.roots[i] >> 1)

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "taught", 0, 2 * STORED - 1
        yield self, "turn", 0, STORED - 1
        yield self, "model", 0, (1 << 28) - 1

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield self.weights, 0, len(self.weights), -LIMIT, LIMIT, 0
        yield self.roots, 0, len(self.roots), FRESH_ROOT, LAST_ROOT, 0
        yield self.rows, 0, STORED * self.width, 0, (1 << 24) - 1, 0
        yield self.answers, 0, STORED, 0, 511, 0


if MACHINE_CODE:
    from . import head_viper

    Heads.see = head_viper.see  # type: ignore[has-type, method-assign]
    Heads.keep = head_viper.keep  # type: ignore[has-type, method-assign]
    Heads.recall = head_viper.recall  # type: ignore[has-type, method-assign]
    Heads.predict = head_viper.predict  # type: ignore[has-type, method-assign]
    Heads.learn = head_viper.learn_label  # type: ignore[has-type, method-assign]
    del Heads.enter, Heads.repeat, outputs, descend, pack, unpack
