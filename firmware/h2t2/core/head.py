# The head: a logistic model on features of the local model, which learns on the device from the labels of offloads.
#
# It begins as the local model itself: logit = logit of the score + w . x with w = 0. Heads of several learning rates stand side
# by side. No head acts: head_forecaster weighs their outputs.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .adaptive import logistic
from .logarithm import log2
from .policy import IS_BOARD

if 0:  # for type checkers
    from ..annotations import Int16s, Int32s, Iterator

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


def logit_table() -> "Int16s":
    """Return the logits of the scores (n + .5) / 256 for n of 128..255, Q12."""
    return array("h", [(log2(odd) - log2(512 - odd)) * 11357 + 8192 >> 14 for odd in range(257, 512, 2)])


def outputs(weights: "Int32s", x: "Int32s", row: int, g: "Int32s", inputs: int) -> None:
    """Compute the probabilities that the heads give to an event.

    Args:
        weights: (heads, inputs), Q20, at most LIMIT either way.
        x: (SAMPLES, inputs + 2): the inputs, Q5, -128..127, then the logit of the score, Q14, and the score, 0..255.
        row: Of x, with the sample.
        g: (SAMPLES, heads), its row becomes P(event), Q15, between .0009 and .9991.
        inputs: Their number.
    """
    i = 0
    first = row * len(RATES)
    row *= inputs + 2
    score_logit = x[row + inputs]
    for head in range(first, first + len(RATES)):
        logit = 0
        for column in range(inputs):
            logit += (weights[i] >> 6) * x[row + column]
            i += 1
        logit = max(min(score_logit + (logit >> 5), FURTHEST), -FURTHEST)
        g[head] = logistic(logit + (logit * 7253 >> 14), 0)


def descend(weights: "Int32s", roots: "Int32s", x: "Int32s", g: "Int32s", labels: int, inputs: int) -> None:
    """Take a step of AdaGrad (Duchi, Hazan and Singer, JMLR 2011) on the log loss of each head, over all samples of x.

    A root grows by squares / (2 root), which costs one division. That is more than the growth of the square root of the sum of
    squares while this is small, and so the first steps are shorter.

    Args:
        weights, x, g, inputs: As for outputs().
        roots: (heads, inputs), Q18, at first 1.
        labels: Bit n is the label of row n.
    """
    row_1 = inputs + 2
    row_2 = 2 * row_1
    i = 0
    for head in range(len(RATES)):
        rate = RATES[head]
        error_0 = g[head] - ((labels & 1) << 15)
        error_1 = g[head + len(RATES)] - ((labels & 2) << 14)
        error_2 = g[head + 2 * len(RATES)] - ((labels & 4) << 13)
        for column in range(inputs):
            slope = error_0 * x[column]  # Q20
            gradient = slope
            slope >>= 9
            squares = slope * slope
            slope = error_1 * x[row_1 + column]
            gradient += slope
            slope >>= 9
            squares += slope * slope
            slope = error_2 * x[row_2 + column]
            gradient += slope
            slope >>= 9
            squares += slope * slope
            root = roots[i + column]
            root = min(root + (squares << 2) // (root >> 11), LAST_ROOT)
            roots[i + column] = root
            step = (gradient << 6) // (root >> 10)
            weights[i + column] = min(max(weights[i + column] - (step * rate + 8 >> 4), -LIMIT), LIMIT)
        i += inputs


def pack(x: "Int32s", features: int, rows: "Int32s", at: int) -> None:
    """Store the features of the current sample in rows[at], rows[at + 1] ..., three in a word."""
    feature = 0
    while feature < features:
        rows[at] = x[feature] + 128 | x[feature + 1] + 128 << 8 | x[feature + 2] + 128 << 16
        at += 1
        feature += 3
    rows[at - 1] &= 16777215 >> 8 * (feature - features)  # further inputs follow the features


def unpack(rows: "Int32s", at: int, x: "Int32s", first: int, features: int) -> None:
    """Read the features that pack() stored into x[first], x[first + 1] ...; the two inputs after them become undefined."""
    features += first
    while first < features:
        word = rows[at]
        x[first] = (word & 255) - 128
        x[first + 1] = (word >> 8 & 255) - 128
        x[first + 2] = (word >> 16) - 128
        at += 1
        first += 3


def words(features: int) -> int:
    """Return in how many integers pack() stores a sample."""
    return (features + 2) // 3


class Heads:
    """Logistic models of one event, one for each learning rate, on the same inputs.

    The inputs are the features, a constant, and the logit of the score. A label teaches them its sample together with REPEATS
    of the last STORED labelled samples.

    Attributes:
        features: Number of features, 1..MAX_FEATURES.
        slot: Of the ticket whose sample is the current one; -1: none, or not yet.
        x: As for outputs(): of the current sample and of those that a label repeats.
        g: P(event), Q15: of each head for the current sample, after predict(); then for the repeated ones.
        rows, answers: Features and score << 1 | label of the stored samples, then of the outstanding tickets.
        taught: Labels so far; from 2 STORED it goes back to STORED.
        turn: The next sample to be repeated.
        model: Number of the local model that gives the features, 0..2^28 - 1; 0: unknown.
    """

    if 0:  # for type checkers
        rows: "Int32s"
        logits: "Int16s"

    def __init__(self, features: int, window: int, other: "Heads | None" = None):
        """features: 1..MAX_FEATURES. window: most outstanding tickets. other: shares its stored features and its table."""
        self.features = features
        self.slot = -1
        self.x = array("i", [0] * (SAMPLES * (features + 4)))
        self.g = array("i", [0] * (SAMPLES * len(RATES)))
        self.weights = array("i", [0] * (len(RATES) * (features + 2)))
        self.roots = array("i", self.weights)
        self.rows = other.rows if other else array("i", [0] * ((STORED + window) * words(features)))
        self.answers = array("H", [0] * (STORED + window))
        self.logits = other.logits if other else logit_table()
        self.taught = self.turn = self.model = 0
        self.clear()

    def clear(self) -> None:
        """Forget all labels."""
        self.taught = self.turn = 0
        for i in range(len(self.weights)):
            self.weights[i] = 0
            self.roots[i] = FRESH_ROOT
        for i in range(STORED * words(self.features)):
            self.rows[i] = 0
        for i in range(STORED):
            self.answers[i] = 0

    def enter(self, score: int, at: int) -> None:
        """Set what follows the features of a sample with a score, 0..255, from x[at] on."""
        inputs = self.x
        logit = self.logits[score - 128] if score >= 128 else -self.logits[127 - score]
        inputs[at] = CONSTANT
        inputs[at + 1] = logit >> 8  # half the logit, Q5
        inputs[at + 2] = logit << 2
        inputs[at + 3] = score

    def see(self, sample: "Int16s") -> None:
        """Make a sample the current one: its score, 0..255, then its features, Q5, -128..127."""
        self.slot = -1
        self.enter(sample[0], self.features)
        for i in range(self.features):
            self.x[i] = min(max(sample[i + 1], -128), 127)  # as pack() stores it

    def store(self, at: int, label: int) -> None:
        """Store the current sample, with a label, as number `at`."""
        features = self.features
        self.answers[at] = self.x[features + 3] << 1 | label
        pack(self.x, features, self.rows, at * words(features))

    def fetch(self, at: int, row: int) -> int:
        """Read the stored sample number `at` into a row of x; return its label."""
        features = self.features
        answer = self.answers[at]
        first = row * (features + 4)
        unpack(self.rows, at * words(features), self.x, first, features)
        self.enter(answer >> 1, first + features)
        return answer & 1

    def keep(self, at: int) -> None:
        """Store the current sample for the ticket in slot `at`."""
        self.slot = at
        self.store(STORED + at, 0)

    def recall(self, at: int) -> bool:
        """Make the sample of the ticket in slot `at` the current one; return whether it is another one than before."""
        if self.slot == at:
            return False
        self.slot = at
        self.fetch(STORED + at, 0)
        return True

    def predict(self) -> None:
        """Set `g` for the current sample."""
        outputs(self.weights, self.x, 0, self.g, self.features + 2)

    def learn(self, label: int) -> None:
        """Learn the label, 0 or 1, of the current sample, for which `g` is set."""
        inputs = self.features + 2
        taught = self.taught
        self.store(taught % STORED, label)
        taught += 1
        self.taught = taught if taught < 2 * STORED else STORED
        taught = min(taught, STORED)
        turn = self.turn
        for row in range(1, SAMPLES):
            turn = (turn + STRIDE) % STORED
            label |= self.fetch(turn % taught, row) << row
            outputs(self.weights, self.x, row, self.g, inputs)
        self.turn = turn
        descend(self.weights, self.roots, self.x, self.g, label, inputs)

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
        yield self.rows, 0, STORED * words(self.features), 0, (1 << 24) - 1, 0
        yield self.answers, 0, STORED, 0, 511, 0

    if not IS_BOARD:

        def sample(self, at: int) -> "tuple[int, ...]":
            """Return the sample of the ticket in slot `at`: its score, 0..255, and its features, Q5."""
            at += STORED
            inputs = array("i", [0] * (self.features + 2))
            unpack(self.rows, at * words(self.features), inputs, 0, self.features)
            return (self.answers[at] >> 1,) + tuple(inputs[: self.features])
