# What a new model's trial is judged by: what the node's account and its counters say since its start, beside what they said of
# the model before. A trial lasts for its samples and for its time; one that falls silent, or that fails, ends at once.
from ..clock import Stopwatch
from .node import UP

AWAY = 125  # thousandths of the offloads that had no answer, above those of the model before
DEARER = 10  # thousandths that a sample may cost more
SPREAD = 300  # thousandths of the scores that lie in other places than the package says
FEW = 30  # answers, below which a cost says nothing, and offloads, below which the share of those without one does not
SECONDS = 600  # of a trial, where the package does not say
LONGEST = 1 << 22  # seconds that a package may ask for, 48 days
SPARE, MORE = 3, 20  # errors that a program may have beside those before it: so many, and thousandths of its tries
OPENING_S = 60  # of a start, in which a sensor may still be warming up
QUIET_S = 60  # seconds without a decision that end a trial, at least
UNKNOWN_S = 600  # so many where no longer stretch is known of the program before
PATIENCE = 4  # times its usual silence, and its usual time, before a trial fails
LATE_S = 3600  # a trial may take so long whatever the model before did


class Stretch:
    """What the node has done since its start, as far as a trial is compared by it. look() once a turn.

    Offloads while nobody can be asked (no broker, no worker) do not count for `asked` and `missed`: they say nothing of a
    model, and a start has many of them. A policy that has yet to learn asks more often than one that has learned, and finds
    its window full more often; so the share without an answer is taken of the offloads, not of all samples.
    """

    def __init__(self):
        self.watch = Stopwatch()
        self.samples = 0  # at the last look, as are the next two
        self.offloads = self.fallbacks = 0
        self.asked = self.missed = 0  # offloads; those that had no answer
        self.at = 0  # seconds, at the last sample
        self.gap = 0  # the longest time between two, seconds
        self.opening = 0  # errors of the sensor by the end of the first OPENING_S

    def look(self, running) -> None:
        node = running.node
        if running.standing == UP:
            self.asked += node.offloads - self.offloads
            self.missed += node.fallbacks - self.fallbacks
        self.offloads = node.offloads
        self.fallbacks = node.fallbacks
        now = self.watch.seconds()
        if now <= OPENING_S:
            self.opening = running.sensing.errors
        self.gap = max(self.gap, now - self.at)
        if node.samples != self.samples:
            self.samples = node.samples
            self.at = now

    def measured(self, running) -> dict:
        """measured(), and what look() has counted: `seconds` since the start, `answers`, `asked` and `missed`, the longest
        `gap` between two samples, and errors of sense() and act(), thousandths of the tries, those of the start apart."""
        node = running.node
        errors = running.sensing.errors
        figures = measured(node)
        figures.update(
            seconds=self.watch.seconds(),
            answers=sum(node.account.answered),
            asked=self.asked,
            missed=self.missed,
            gap=max(self.gap, running.sensing.every_us // 1000000 + 1),
            opening=self.opening,
            sense=errors * 1000 // max(1, node.samples + errors),
            act=_act_errors(node) * 1000 // max(1, node.samples),
        )
        return figures

    def failing(self, running, record) -> str:
        """Why a trial need not go on, "" where nothing speaks against it. record: `old`, measured() of the model before, or
        None; `trial` and `seconds`, what the trial lasts."""
        node = running.node
        old = record["old"] or {}
        errors = running.sensing.errors
        tries = node.samples + errors
        if errors > old.get("opening", 0) + _allowed(tries, old.get("sense", 0)):
            return "sense() failed %d times in %d tries, %d of 1000 before" % (errors, tries, old.get("sense", 0))
        errors = _act_errors(node)
        if errors > _allowed(node.samples, old.get("act", 0)):
            return "act() failed %d times in %d, %d of 1000 before" % (errors, node.samples, old.get("act", 0))
        seconds = self.watch.seconds()
        if seconds - self.at > patience(record, running.sensing.every_us):
            return "no sample for %d s, after %d" % (seconds - self.at, node.samples)
        longest = record["seconds"]
        for name, count in (("samples", record["trial"]), ("answers", FEW)):
            if old.get(name):
                longest = max(longest, count * old.get("seconds", 0) // old[name])
        if seconds > max(LATE_S, PATIENCE * longest):
            answers = sum(node.account.answered)
            return "%d samples and %d answers in %d s: too few to judge by" % (node.samples, answers, seconds)
        return ""

    def over(self, running, record) -> bool:
        """Whether a trial has had its samples, its time, and, where the model before had them, the answers that a comparison
        takes. It ends with a sample: a sensor that has just died has yet to be noticed. record: as for failing()."""
        node = running.node
        seconds = self.watch.seconds()
        if node.samples < record["trial"] or seconds < record["seconds"] or seconds > self.at or running.sensing.retry_ms:
            return False
        return not record["old"] or record["old"]["cost"] < 0 or sum(node.account.answered) >= FEW


def patience(record, every_us) -> int:
    """Seconds without a sample that a trial bears. record: as for Stretch.failing(). every_us: between two samples, 0: no
    schedule."""
    old = record["old"] or {}
    usual = PATIENCE * old["gap"] if old.get("seconds", 0) >= QUIET_S else UNKNOWN_S
    return max(QUIET_S, usual, PATIENCE * every_us // 1000000)


def _act_errors(node):
    return node.complain.counts.get("act", 0)


def _allowed(tries, before):
    """Errors that are not more than before (thousandths), of so many tries."""
    return SPARE + tries * (before + MORE) // 1000


def measured(node) -> dict:
    """What a node's account tells of its model: `samples`, `cost` and `variance` (thousandths a sample, and millionths; cost
    -1: too few answers)."""
    account = node.account
    samples = sum(account.scores)
    answers = sum(account.answered)
    figures = {"samples": samples, "cost": -1, "variance": 0}
    if answers < FEW:
        return figures
    mean = sum(account.local_cost) // answers
    cost = account.paid * 1000 >> 15
    variance = 0
    for n, asked, local in zip(account.scores, account.answered, account.local_cost):
        each = (4 * local + mean) // (4 * asked + 1)  # a place with few answers leans on the mean of all
        cost += (n - asked) * each
        variance += n * n * each * max(0, 1000 - each) // (asked + 1)
    figures["cost"] = cost // samples
    figures["variance"] = variance // samples // samples
    return figures


def worse(now, scores, record) -> str:
    """Why a model is not to be kept after its trial, "" where nothing speaks against it.

    now: Stretch.measured(); scores: the account's.
    """
    old = record["old"]
    if old and min(now["asked"], old.get("asked", 0)) >= FEW:
        missed = now["missed"] * 1000 // now["asked"]
        before = old["missed"] * 1000 // old["asked"]
        if missed > before + AWAY:
            return "%d of 1000 offloads have no answer, %d before" % (missed, before)
    if record["scores"]:
        apart = spread(scores, record["scores"])
        if apart > SPREAD:
            return "its scores drift: %d of 1000 lie elsewhere than where it was signed" % apart
    if old and old["cost"] >= 0 and now["cost"] >= 0:
        more = now["cost"] - old["cost"] - DEARER
        if more > 0 and more * more > 4 * (now["variance"] + old["variance"]):
            return "a sample costs %d thousandths, %d before" % (now["cost"], old["cost"])
    return ""


def spread(a, b) -> int:
    """Half the sum of the differences of two histograms' shares (total variation), in thousandths; 0 where they do not fit."""
    if len(a) != len(b) or not sum(a) or not sum(b):
        return 0
    n = sum(a)
    m = sum(b)
    return sum([abs(x * 1000 // n - y * 1000 // m) for x, y in zip(a, b)]) // 2


def in_words(now) -> str:
    """measured(), for the log."""
    cost = "" if now["cost"] < 0 else ", %d thousandths a sample" % now["cost"]
    return "%d samples%s" % (now["samples"], cost)
