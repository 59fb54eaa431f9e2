# What a device saw and heard a moment ago, as inputs of heads: the scores before this sample, and the answers, which fade.
#
# A trace of the answers moves to 1 with the answer "event" and to -1 with "none". In a round without an answer it fades.
# What the device decided or believed is no answer and moves nothing. The heads are those of h2t2.core.head, without stored
# samples; head_forecaster weighs them.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .adaptive import FN, FP, asking, logistic
from .forecaster import BINS, KINDS
from .head import CONSTANT, FRESH_ROOT, FURTHEST, LAST_ROOT, LIMIT, Heads
from .logarithm import log2
from .numbers import ONE, exp2, times

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator

RATES = (45, 22, 8)  # learning rates of the heads, in 64ths
TRACE = 3  # index of the first trace in the inputs: the last score and two means of the scores come before
STEPS = (0, 1, 3)  # an answer moves a trace by 2^-n of the way
FADES = (2, 3, 5)  # a round without one takes 2^-n of it
FADING = array("i", (6800, 3156, 750))  # -log2(1 - 2^-n) for n of FADES, Q14
MEANS = (3, 6)  # a score moves a mean by 2^-n of the way
AGE = 6  # index of the rounds since an answer
PAST = 7  # inputs that are the past; the constant and the logit of the score follow
INPUTS = PAST + 2
LOGIT = INPUTS  # what else x holds
FIRST = BINS + 3  # index of the forecasts by cells of a head's output, KINDS of them, after one of each head
ROW = PAST + 1  # what a ticket keeps of its sample: the past, and the score in 256ths, less 128
LONGEST = 4095  # rounds since an answer
CLOCK = 268435455  # rounds, modulo 2^28
GAP_MS, GAP = 1000, 4  # a longer time, and so many times the usual one between two samples, counts as rounds
LONGEST_USUAL = 67108864  # ms
FORGOTTEN = 256  # rounds without a sample after which nothing is left of the past
SAVED = 2  # samples for which what an answer tells is taken to hold


def log_odds(x: int, whole: int) -> int:
    """Return log2(x / (whole - x)), Q12."""
    return log2(x) - log2(whole - x)


def event_chances(weights: "Int32s", x: "Int32s", z: "Int32s", g: "Int32s") -> None:
    """Compute the probabilities that the heads give to an event.

    Args:
        weights: (heads, INPUTS), Q20, at most LIMIT either way.
        x: (INPUTS + 1,), Q5, -128..127, and the logit of the score, Q14.
        z: (heads,), become the logits, Q14, at most FURTHEST either way.
        g: (heads,), become P(event), Q15.
    """
    i = 0
    for head in range(len(RATES)):
        logit = 0
        for column in range(INPUTS):
            logit += (weights[i] >> 6) * x[column]
            i += 1
        logit = min(max(x[LOGIT] + (logit >> 5), -FURTHEST), FURTHEST)
        z[head] = logit
        g[head] = logistic(logit + (logit * 7253 >> 14), 0)


def descend(weights: "Int32s", roots: "Int32s", x: "Int32s", g: "Int32s", label: int) -> None:
    """Take a step of AdaGrad on the log loss of each head, as head.descend() does. Arguments as for event_chances().

    roots: (heads, INPUTS), Q18, at first 1. label: 0 or 1.
    """
    i = 0
    for head in range(len(RATES)):
        rate = RATES[head]
        error = g[head] - (label << 15)
        for column in range(INPUTS):
            gradient = error * x[column]  # Q20
            root = min(roots[i] + ((gradient >> 9) * (gradient >> 9) << 2) // (roots[i] >> 11), LAST_ROOT)
            roots[i] = root
            step = (gradient << 6) // (root >> 10)
            weights[i] = min(max(weights[i] - (step * rate + 8 >> 4), -LIMIT), LIMIT)
            i += 1


def answer(traces: "Int32s", label: int, age: int) -> None:
    """Move the traces, Q15, by a label that a sample `age` rounds ago has got: by less, the more they have faded since.

    label: 0 or 1. age: 0..LONGEST.
    """
    sign = 2 * label - 1
    for trace in range(len(STEPS)):
        shift = STEPS[trace]
        fading = FADING[trace]
        step = exp2(age * fading, 0) >> 14 + shift
        traces[trace] += sign * times(ONE - sign * traces[trace], step)


def answered(p: int, effective: "Int32s") -> int:
    """Return what the better answer costs with P(event) = p, Q15. effective: As for adaptive.offload_wish()."""
    return min(p * effective[FN] >> 15, (ONE - p) * effective[FP] >> 15)


def expected(p: int, effective: "Int32s") -> int:
    """Return what a sample costs with P(event) = p at best, Q15. effective: As for adaptive.offload_wish()."""
    return min(answered(p, effective), asking(p, effective))


def follow_up(weights: "Int32s", weight: "Int32s", x: "Int32s", z: "Int32s", g: "Int32s", effective: "Int32s") -> int:
    """Return what an answer would save on the samples that follow, Q15, by the head that forecasts best.

    That is what SAVED samples like this one would cost less at best if the traces had just got the answer, on average over the
    two answers; and as large a share of it as the weight that all heads' forecasts have beside those of the bins.

    Args:
        weights, x, z, g: As for event_chances().
        weight: Of every forecast, Q15: those by the bin, then each head's, then further ones of heads.
        effective: As for adaptive.offload_wish().
    """
    best = BINS
    heads = 0
    for i in range(BINS, FIRST + KINDS):
        heads += weight[i]
        if i < FIRST and weight[i] > weight[best]:
            best = i
    best -= BINS
    at = best * INPUTS + TRACE
    event = share = g[best]
    cost = 0
    for full in range(64, -128, -128):  # the trace to which the answers move
        logit = 0
        for trace in range(len(STEPS)):
            shift = STEPS[trace]
            logit += (weights[at + trace] >> 6) * (full - x[TRACE + trace] >> shift)
        logit = min(max(z[best] + (logit >> 5), -FURTHEST), FURTHEST)
        cost += share * expected(logistic(logit + (logit * 7253 >> 14), 0), effective)
        share = ONE - share
    saving = max(0, expected(event, effective) - (cost >> 15))
    return (saving * heads >> 15) * SAVED


class Past(Heads):
    """Heads that read the past of a stream.

    Attributes:
        traces: Of the answers, Q15, -ONE..ONE.
        means: Of the scores before this sample, Q15.
        last: The score of the current sample, Q15.
        unanswered: 1 until the current sample's label comes.
        since: Rounds since the sample of the last answer.
        clock: Rounds, modulo 2^28.
        usual: Milliseconds from one sample to the next, a running mean; 0: unknown.
        current: Past of the current sample, then its score in 256ths, less 128.
        x: Inputs of the sample that is forecast: the current one, or that of a late label. LOGIT of its score, Q14, follows.
        level: Its score in 256ths.
        z, g: Logits, Q14, and P(event), Q15, of the heads for it, after predict().
        slot: Of the ticket whose sample is forecast; -1: the current one, without a ticket so far.
        rows: As `current`, of each outstanding ticket's sample.
        rounds: Round of each outstanding ticket.
    """

    def __init__(self, bits: int, window: int):
        """bits: 2^bits bins. window: most outstanding tickets."""
        self.bits = bits
        self.traces = array("i", [0] * len(STEPS))
        self.means = array("i", [0] * len(MEANS))
        self.current = array("h", [0] * ROW)
        self.x = array("i", [0] * (INPUTS + 1))
        self.z = array("i", [0] * len(RATES))
        self.g = array("i", self.z)
        self.weights = array("i", [0] * (len(RATES) * INPUTS))
        self.roots = array("i", self.weights)
        self.rows = array("h", [0] * (ROW * window))
        self.rounds = array("i", [0] * window)
        self.slot = -1
        self.level = self.last = self.unanswered = self.since = self.clock = self.usual = 0
        self.clear()

    def clear(self) -> None:
        """Forget all rounds and labels."""
        for i in range(len(self.weights)):
            self.weights[i] = 0
            self.roots[i] = FRESH_ROOT
        self.usual = 0
        self.forget_past()

    def forget_past(self) -> None:
        """Continue as if nothing was seen or heard before; what the labels have taught remains."""
        for i in range(len(STEPS)):
            self.traces[i] = 0
        for i in range(len(MEANS)):
            self.means[i] = ONE >> 1
        self.last = ONE >> 1
        self.unanswered = 0
        self.since = LONGEST

    def pass_time(self, ms: int) -> None:
        """Fade the past where a gap between two samples is long, as by the rounds that it would usually have held."""
        if ms < 0:
            self.forget_past()
            return
        usual = self.usual if self.usual else min(ms, LONGEST_USUAL)
        if ms >= GAP_MS and ms >= GAP * usual:
            rounds = ms // usual - 1  # beside that of the next sample
            if rounds >= FORGOTTEN:
                self.forget_past()
            else:
                for i in range(len(FADING)):
                    fading = FADING[i]
                    left = exp2(rounds * fading, 0) >> 14
                    trace = self.traces[i]
                    self.traces[i] = times(trace, left) if trace > 0 else -times(-trace, left)
                self.since = min(self.since + rounds, LONGEST)
                self.clock = self.clock + rounds & CLOCK
        usual += min(ms, GAP * usual) - usual + 15 >> 4
        self.usual = min(usual, LONGEST_USUAL)

    def begin(self, level: int) -> None:
        """Begin a round with a sample by its score in 256ths, 0..255."""
        current = self.current
        current[0] = self.last - 16384 >> 8
        score = 2 * level + 1 << 6
        for mean in range(len(MEANS)):
            shift = MEANS[mean]
            current[1 + mean] = self.means[mean] - 16384 >> 8
            self.means[mean] += score - self.means[mean] >> shift
        unanswered = self.unanswered
        for trace in range(len(FADES)):
            shift = FADES[trace]
            if unanswered:
                self.traces[trace] -= self.traces[trace] >> shift
            current[TRACE + trace] = self.traces[trace] >> 9
        self.since = since = min(self.since + 1, LONGEST)
        self.clock = self.clock + 1 & CLOCK
        current[AGE] = 32 - min(since, 64)
        current[PAST] = level - 128
        self.last = score
        self.unanswered = 1
        self.show_current()

    def show_current(self) -> None:
        """Make the current sample the one that is forecast."""
        self.slot = -1
        self.level = self.current[PAST] + 128
        for column in range(PAST):
            self.x[column] = self.current[column]

    def see_score(self, k: int, prior: int) -> None:
        """Set the inputs that a score in bin k gives: that of the sample that is forecast, or the middle of another bin.

        The heads begin as the prior of the bin says, Q15.
        """
        level = self.level
        if level >> 8 - self.bits != k:
            level = (2 * k + 1 << 7) >> self.bits
        logit = log_odds(2 * level + 1, 512) * 11357 + 8192 >> 14  # Q12
        inputs = self.x
        inputs[LOGIT] = logit << 2
        if prior != (2 * k + 1 << 14) >> self.bits:
            prior = min(max(prior, 64), ONE - 64)
            odds = log_odds(prior, ONE) - log_odds(2 * k + 1, 2 << self.bits)
            inputs[LOGIT] += (odds * 11357 + 8192 >> 14) << 2
        inputs[PAST] = CONSTANT
        inputs[PAST + 1] = logit >> 8  # half of it: at most 100 either way

    def keep_past(self, at: int) -> None:
        """Store the past of the current sample for the ticket in slot `at`."""
        self.slot = at
        self.rounds[at] = self.clock
        at *= ROW
        for column in range(ROW):
            self.rows[at + column] = self.current[column]

    def recall(self, at: int) -> bool:
        """Make the sample of the ticket in slot `at` the one that is forecast; return whether it is another one than before."""
        if self.slot == at:
            return False
        self.slot = at
        at *= ROW
        for column in range(PAST):
            self.x[column] = self.rows[at + column]
        self.level = self.rows[at + PAST] + 128
        return True

    def predict(self) -> None:
        """Set `z` and `g`."""
        event_chances(self.weights, self.x, self.z, self.g)

    def learn(self, label: int) -> None:
        """Learn the label, 0 or 1, of the sample that is forecast. The past takes it unless a later sample has got one."""
        descend(self.weights, self.roots, self.x, self.g, label)
        slot = self.slot
        age = self.clock - self.rounds[slot] & CLOCK if slot >= 0 else 0
        if age <= self.since:
            answer(self.traces, label, age)
            self.since = age
            if not age:
                self.unanswered = 0

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "last", 0, ONE
        yield self, "unanswered", 0, 1
        yield self, "since", 0, LONGEST
        yield self, "clock", 0, CLOCK
        yield self, "usual", 0, LONGEST_USUAL

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield self.weights, 0, len(self.weights), -LIMIT, LIMIT, 0
        yield self.roots, 0, len(self.roots), FRESH_ROOT, LAST_ROOT, 0
        yield self.traces, 0, len(self.traces), -ONE, ONE, 0
        yield self.means, 0, len(self.means), 0, ONE, 0
