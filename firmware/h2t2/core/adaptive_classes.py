# The adaptive policy for more than two classes. Beside the forecaster stand, in place of all pairs, experts of one confidence
# threshold each: they offload below it and answer the local model's class from it on.
from array import array

from . import defaults
from .adaptive import UNIT
from .class_forecaster import COST, GUESS, INTERVAL, ClassForecaster, confidence, likeliest
from .forecaster import AUDITS, ETA, FLOOR, GAMMA, HIGH, SHARE, STEP, P, fade
from .numbers import ONE, ONE_Q29, divide, exp2, log2e, ratio, times
from .policy import BETA, BIN, CHANCE, EVERY, IS_BOARD, MOST, OFFLOAD, SIZE, Policy, add_question, answer_rate, checked_integer

if 0:  # for type checkers
    from ..annotations import Any, Int32s, Iterator, Sequence
    from .miss_limit import Limit

MAX_LABEL_COST = 46340  # sqrt 2 in Q15: the largest cost, either way, that a label may attribute to an answer
FAR = 268435455  # 2^8 octaves, Q20: limit of an expert's loss


def weights(losses: "Int32s", x: "Int32s", head: int, k: int) -> None:
    """Compute the weights of the experts.

    Args:
        losses: Q20 octaves, of the thresholds, then of the forecaster.
        x: Becomes the forecaster's share of the weight, and the share of the thresholds that offload in bin k of the weight of
            all thresholds; both Q15.
        head: Q20 octaves that the forecaster began ahead of a threshold.
        k: The bin.
    """
    last = len(losses) - 1
    minimum = losses[last] - head
    for i in range(last):
        minimum = min(minimum, losses[i])
    total = offload = 0
    for i in range(last):
        w = exp2(losses[i] - minimum >> 6, 0) >> 14
        total += w
        if k < i:
            offload += w
    own = exp2(losses[last] - head - minimum >> 6, 0) >> 14
    while own + total > ONE:
        own >>= 1
        total >>= 1
        offload >>= 1
    x[0] = (own << 14) // (own + total) << 1
    x[1] = (offload << 14) // total << 1 if total else 0


def charge(losses: "Int32s", start: int, stop: int, octaves: int) -> None:
    """Add a loss, Q20 octaves, to experts start to stop - 1."""
    for i in range(start, stop):
        losses[i] = min(max(losses[i] + octaves, -FAR), FAR)


def reduced(costs: "Sequence[int]", at: int, classes: int, normal: int, unit: int) -> int:
    """Return a cost of a matrix as count_labels() counts it. at: Its index."""
    return costs[at] if at % classes == normal else times(costs[at], unit)


def count_labels(costs: "Sequence[int]", rates: "Int32s", counted: "Int32s", classes: int, normal: int, unit: int) -> int:
    """Compute what a label counts for each answer; return the largest count, either way.

    With a remote model that errs it counts an answer's cost beyond that of asking, rates^-1 (costs - remote), where remote[i]
    is what the remote model's answer costs in class i (Natarajan et al., NeurIPS 2013, for two classes).

    Args:
        costs: (classes, classes), Q15: of answering the second when the class is the first.
        rates: As AdaptiveClasses.confusion.
        counted: (classes, classes), becomes what a label, the first, counts for the second.
        classes: Number of classes.
        normal, unit: The costs of all answers but `normal` count times `unit`, Q15.
    """
    size = classes * classes
    for at in range(size):
        counted[at] = 0 if len(rates) else reduced(costs, at, classes, normal, unit)
    if len(rates):
        for i in range(classes):
            remote = 0
            for at in range(i * classes, (i + 1) * classes):
                remote += times(reduced(costs, at, classes, normal, unit), rates[at])
            for j in range(classes):
                cost = reduced(costs, i * classes + j, classes, normal, unit) - remote
                for label in range(classes):
                    counted[label * classes + j] += times(rates[size + label * classes + i], cost)
    largest = 0
    for at in range(size):
        largest = max(largest, abs(counted[at]))
    return largest


def checked_costs(costs: "list[list[int]]") -> "list[list[int]]":
    """Return a cost matrix, or raise a ValueError that says what is wrong with it.

    Args:
        costs: K rows of K Q15 integers, 2 <= K <= 16: costs[i][j] of answering j when the class is i; the diagonal is 0.
    """
    n = len(costs)
    if not 2 <= n <= 16:
        raise ValueError("costs: %d classes, want 2 to 16" % n)
    for i in range(n):
        if len(costs[i]) != n:
            raise ValueError("costs: row %d has %d entries, want %d" % (i, len(costs[i]), n))
        for j in range(n):
            if not 0 <= costs[i][j] <= ONE or (i == j and costs[i][j]):
                raise ValueError("costs[%d][%d] is %r: want 0..32768, and 0 on the diagonal" % (i, j, costs[i][j]))
    return costs


class AdaptiveClasses(Policy):
    """Confidence thresholds and the forecaster of many classes, each with its weight; the forecaster begins with .99 of it.

    A cell is the class of the largest score and its confidence in 2^bits bins. The state has O(K^2 2^bits) integers; a step
    takes O(K^2 + 2^bits).

    Attributes:
        costs: (K, K), Q15: of answering the second when the class is the first.
        label_costs: (K, K), Q15: what a label, the first, counts for the second: `costs`, unless the remote model errs or a
            limit raises what misses cost, which is to reduce all other costs.
        confusion: What set_confusion() was given, flat; empty: the remote model makes no errors.
        forecaster: With its `belief` of the last round.
        wish: With which probability, Q15, the forecaster wanted to offload in the last round.
        chance: P(offload) of the last round, Q15.
        losses: Q20 octaves, of thresholds 0 (never offloads) to 2^bits (always), then of the forecaster.
        limited: As Adaptive.limited. What else a limit reads and sets: floor, wish, certain, chance, rates (the losses of
            pairs, which there are none of), effective (of which UNIT counts) and rdl_fp and rdl_fn of the remote model, the
            latter the largest of any class; guess: 0 if the forecaster's class is the normal one, 1 for others; negative and
            positive: how many draws answer the normal class, and another one; after a round the forecaster's `belief` is that
            of an event, as Adaptive's.
        event_costs: (K, K), Q15: ONE where the class is an event.
        unit: What a cost of 1 counts, Q15.
    """

    kind = 4
    name = "adaptive-classes"
    reprices = True
    if 0:  # for type checkers and the compiler
        limit: "Limit"

    def __init__(
        self, costs: "list[list[int]]", bits: int = defaults.BITS, *, beta: int = defaults.BETA, seed: int = defaults.SEED,
        window: int = defaults.WINDOW, confusion: "list[list[int]] | None" = None, limit: "Any" = None,
    ):  # fmt: skip
        """Make the policy in its first state.

        Args:
            costs: As checked_costs() takes them.
            bits: Bins of the confidence are 2^bits, 1..6.
            beta: Cost of an offload, Q15.
            seed: Of the draws.
            window: Number of labels that may be outstanding.
            confusion: As set_confusion() takes it; None: the remote model makes no errors.
            limit: MissRate or MissGuarantee, of this policy alone; None: it may miss what is cheapest.
        """
        checked_integer("bits", bits, 1, 6)
        Policy.__init__(self, seed, window)
        self.classes = n = len(checked_costs(costs))
        self.costs = array("i", [0] * (n * n))
        self.label_costs = self.costs
        self.confusion = array("i")
        self.limited = self.certain = False
        self.unit = ONE
        self.normal = self.guess = self.positive = self.negative = 0
        self.floor = FLOOR
        self.event_costs = array("i")
        self.set_costs([cost for row in costs for cost in row])
        if confusion:
            self.set_confusion(confusion)
        self.bits = bits
        self.forecaster = self.new_forecaster(bits, window)
        self.answers = array("H", [0] * SIZE)
        self.rate = log2e(ETA)  # octaves a unit of cost, Q26
        self.head = SHARE + (bits << 20)
        self.losses = array("i", [0] * ((1 << bits) + 2))
        self.shares = array("i", [0, 0])  # of weights()
        self.wishes = array("i", [0] * window)  # wish << 4 | class of each outstanding ticket
        self.label_loss = array("i", [0, 0])  # scratch of learn()
        self.wish = self.chance = 0
        self.set_beta(beta)
        if limit:
            self._take_limit(limit)

    def _take_limit(self, limit: "Any") -> None:
        """Let a limit join this policy. ValueError where it cannot hold, or has no such class."""
        n = self.classes
        self.normal = normal = limit.normal
        checked_integer("normal", normal, 0, n - 1)
        self.event_costs = array("i", [0 if at // n == normal else ONE for at in range(n * n)])
        self.label_costs = array("i", self.label_costs)
        self.effective = array("i", [0] * (UNIT + 1))
        self.rates = []  # type: list[int]
        self.rdl_fp = self.rdl_fn = 0
        if self.confusion:
            missed = list(self.confusion[normal : n * n : n])
            self.rdl_fp = ONE - min(ONE, missed.pop(normal))
            self.rdl_fn = max(missed)
        limit.join(self)
        self.set_costs(self.costs)

    def new_forecaster(self, bits: int, window: int) -> ClassForecaster:
        """Return the forecaster that this policy begins with. Arguments as for the class."""
        return ClassForecaster(bits, self.classes)

    def set_deltas(self, fp: int, fn: int) -> None:
        """Refuse other deltas than it has, as the losses come from the cost matrix."""
        if (fp, fn) != (self.delta_fp, self.delta_fn):
            raise ValueError("policy %s has a cost matrix, not deltas" % self.name)

    def set_costs(self, costs: "Sequence[int]") -> None:
        """Set the cost matrix, flat, for the decisions and labels to come. ValueError for a wrong one."""
        if len(costs) != len(self.costs):
            raise ValueError("costs: %d numbers, want %d" % (len(costs), len(self.costs)))
        for cost in costs:
            checked_integer("costs", cost, 0, ONE)
        self._check_labels(costs, self.confusion)
        for i in range(len(costs)):
            self.costs[i] = costs[i]
        if self.limited:
            self.limit.alarm = self.safest_class(self.normal)
            self.limit.take_rates(self)
        else:
            self.set_bounds()

    def set_bounds(self) -> None:
        """Compute label_costs, from `costs`, `confusion` and what the limit says."""
        if self.limited:
            self.unit = self.effective[UNIT]
        if self.limited or len(self.confusion):
            count_labels(self.costs, self.confusion, self.label_costs, self.classes, self.normal, self.unit)

    def set_confusion(self, confusion: "list[list[int]]") -> None:
        """Count with a remote model that errs, from now on.

        Args:
            confusion: 2K rows, Q15, as units.confusion() makes them: how often it says each class, for each true class, then
                the inverse of this matrix.

        Raises:
            ValueError: It errs so often that a label would count for more than sqrt 2.
        """
        rates = array("i", [rate for row in confusion for rate in row])
        if len(rates) != 2 * len(self.costs):
            raise ValueError("confusion: %d numbers, want %d" % (len(rates), 2 * len(self.costs)))
        self._check_labels(self.costs, rates)
        if not self.limited:
            self.label_costs = array("i", self.costs)
        self.confusion = rates
        self.set_bounds()

    def _check_labels(self, costs: "Sequence[int]", rates: "Int32s") -> None:
        """Raise ValueError where a label would count for more than sqrt 2, also with the largest stake of a limit."""
        n = self.classes
        counted = array("i", costs)
        for unit in (ONE, ONE >> 4) if self.limited else (ONE,):
            largest = count_labels(costs, rates, counted, n, self.normal, unit)
            if largest > MAX_LABEL_COST:
                raise ValueError(
                    "the remote model errs too often: a label would count %d.%02d, at most 1.41"
                    % divmod(largest * 100 >> 15, 100)
                )

    def change_costs(self, entries: "list[list[int]]") -> None:
        """Change entries of the cost matrix: [label, answer, Q15]; answer -1 stands for all other classes.

        Raises:
            ValueError: A class does not exist, or an entry is on the diagonal. No cost changes then.
        """
        n = self.classes
        costs = list(self.costs)
        for label, answer, cost in entries:
            if not 0 <= label < n or not -1 <= answer < n or answer == label:
                raise ValueError("no cost of saying %r for %r among %d classes" % (answer, label, n))
            for j in range(n):
                if j == answer or (answer < 0 and j != label):
                    costs[label * n + j] = cost
        self.set_costs(costs)

    def cost_list(self) -> "tuple[int, ...]":
        """Return the costs in force, Q15: beta, then the K x K matrix, a row for each label."""
        return (self.beta,) + tuple(self.costs)

    def set_cost_list(self, costs: "Sequence[int]") -> None:
        """Put the costs of a cost_list() in force: beta and the matrix."""
        self.set_costs(costs[1:])
        self.set_beta(costs[0])

    def safest_class(self, excluded: int = -1) -> int:
        """Return the class whose column of the matrix has the least sum: the one to act on without a score."""
        n = self.classes
        return min([j for j in range(n) if j != excluded], key=lambda j: sum([self.costs[i * n + j] for i in range(n)]))

    def mistake_cost(self, local: int, label: int) -> int:
        """Return the cost, Q15, of acting on class `local` where the remote model says `label`."""
        return self.costs[label * self.classes + local]

    def reading(self, output: "Any", level: int) -> "Any":
        """Return what decide() takes: the scores of all classes, as the local model gave them."""
        return output

    def bin(self, f: "list[int]") -> int:
        """Return the bin of the largest score: how confident the local model is."""
        return confidence(f[likeliest(f)], self.classes, self.bits)

    def likely(self, f: "list[int]") -> int:
        """Return the class to act on without an offload. f: as decide() takes it. This draws, charges and learns nothing."""
        top = likeliest(f)
        k = confidence(f[top], self.classes, self.bits)
        cell = top << self.bits | k
        weights(self.losses, self.shares, self.head, k)
        if self.shares[0] < ONE - self.shares[0] or not self.forecaster.totals[cell]:  # the cell is new
            return top
        self.forecaster.estimate(self.label_costs, cell)
        return self.forecaster.belief[GUESS]

    def decide_score(self, score: "Sequence[Any]") -> int:
        """Play a round as decide() does, for K scores of 0 to 1. ValueError for another number of scores."""
        if len(score) != self.classes:
            raise ValueError("%d scores, want %d" % (len(score), self.classes))
        from .score import cut

        return self.decide([cut(x, 16384) for x in score])

    def decide(self, f: "list[int]") -> int:
        """Play a round and return the class to act on, or OFFLOAD (then `ticket` is set).

        f: K integers in Q14 that sum to at most 32767.
        """
        forecaster = self.forecaster
        top = likeliest(f)
        k = confidence(f[top], self.classes, self.bits)
        cell = top << self.bits | k
        forecaster.observe(f, cell)
        if not forecaster.age % 1000:
            self.forget()
        if not forecaster.age & EVERY - 1:
            fade(self.answers, 0, SIZE, 1)
        forecaster.estimate(self.label_costs, cell)
        belief = forecaster.belief
        guess = belief[GUESS]
        beta = self.charge
        fee = times(ratio(beta, answer_rate(self.answers, k, self.bits)), self.unit)
        floor = self.floor
        self.wish = wish = ONE if belief[COST] + belief[INTERVAL] > fee else max(floor, AUDITS[forecaster.audits])
        shares = self.shares
        weights(self.losses, shares, self.head, k)
        share = shares[0]
        if self.limited:
            self.guess = 0 if guess == self.normal else 1
            floor = self.limit.raise_wish(self, share)
            wish = self.wish
        self.chance = chance = max(floor, (share * (wish >> 1) + (ONE - share) * (shares[1] >> 1)) >> 14)
        own = share * (ONE - wish >> 1) >> 14
        thresholds = (ONE - share) * (ONE - shares[1] >> 1) >> 14
        # of the ONE - chance draws that do not offload, so many answer the forecaster's class
        guesses = (own * (ONE - chance) + own + thresholds - 1) // (own + thresholds) if own + thresholds else 0
        self.local = guess if share >= ONE - share else top
        psi = self.rng.draw()
        if psi < chance:
            action = OFFLOAD
            self.ticket = self.tickets.open(cell, beta, self.local, min(ONE_Q29, chance + GAMMA << 14))
            if wish < ONE:
                forecaster.count_audit()
        else:
            self.ticket = 0
            action = guess if psi - chance < guesses else top
        self._charge_offload(k, wish, beta)
        if self.limited:
            self.negative = (guesses if guess == self.normal else 0) + (ONE - chance - guesses if top == self.normal else 0)
            self.positive = ONE - chance - self.negative
            forecaster.estimate(self.event_costs, cell)
            belief[P] = belief[COST]
            belief[HIGH] = min(ONE, belief[COST] + belief[INTERVAL])
            action = self.limit.check(self, cell, action)
        if action == OFFLOAD:
            self.wishes[self.ticket % self.tickets.window] = wish << 4 | guess
        return action

    def _charge_offload(self, k: int, wish: int, beta: int) -> None:
        """Charge beta, Q15, which may be negative, to the experts that offload in bin k."""
        losses = self.losses
        last = len(losses) - 1
        sign = 1 if beta > 0 else -1
        beta = times(abs(beta), self.unit)
        charge(losses, k + 1, last, times(self.rate >> 6, beta) * sign)
        charge(losses, last, last + 1, times(self.rate >> 6, (beta >> 1) * wish >> 14) * sign)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """Learn the label of an offload; return whether it was outstanding. beta: its cost, Q15; -1: as charged."""
        if not 0 <= label < self.classes:
            raise ValueError("label %r is not in 0..%d" % (label, self.classes - 1))
        checked_integer("beta", beta, -1, ONE)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        slots = self.tickets.slots
        cell = slots[at + BIN]
        chance = slots[at + CHANCE]
        wish = self.wishes[ticket % self.tickets.window] >> 4
        guess = self.wishes[ticket % self.tickets.window] & 15
        k = cell & (1 << self.bits) - 1
        if beta >= 0:
            self._charge_offload(k, wish, beta - slots[at + BETA])
        row = label * self.classes
        losses = self.losses
        charge(losses, 0, k + 1, self._octaves(self.label_costs[row + (cell >> self.bits)], chance))
        last = len(losses) - 1
        cost = self.label_costs[row + guess]
        cost = times(cost, ONE - wish) if cost > 0 else -times(-cost, ONE - wish)
        charge(losses, last, last + 1, self._octaves(cost, chance))
        self.forecaster.learn(cell, label)
        if self.limited:
            self.limit.learn(ticket % self.tickets.window, label)
        self.lessons += 1
        return True

    def _octaves(self, cost: int, chance: int) -> int:
        """Return the Q20 octaves of a cost, Q15, divided by the chance, Q29, of its sample to be offloaded."""
        x = times(self.rate, min(abs(cost), ONE)) + times(self.rate, max(abs(cost) - ONE, 0))
        loss = self.label_loss
        divide(x if cost > 0 else -x, chance, loss, 0)
        return (min(max(loss[0], -STEP), STEP) << 6) + (loss[1] >> 8)

    def count_question(self, k: int, came: int) -> None:
        """Count whether a question about a sample in bin k was answered in time."""
        add_question(self.answers, k, self.bits, came)

    def forget(self) -> None:
        """Halve every loss; only the differences of losses matter."""
        losses = self.losses
        minimum = losses[0]
        for i in range(len(losses)):
            minimum = min(minimum, losses[i])
        for i in range(len(losses)):
            losses[i] = losses[i] - minimum >> 1

    def settings(self) -> "tuple[int, ...]":
        """Return the bits, the number of classes, and what the limit depends on."""
        own = self.bits, self.classes, 0  # of release 1.0 whether the remote model errs
        return own + (self.normal,) + self.limit.settings() if self.limited else own

    def offload_chance(self) -> int:
        """Return the probability, Q15, with which the last round offloaded."""
        return self.chance

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield a row for each number of the state: those of Policy, then those of the forecaster."""
        yield from Policy.number_rows(self)
        yield from self.forecaster.number_rows()
        if self.limited:
            yield from self.limit.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield a row for each array of the state: costs, losses, then those of the forecaster."""
        yield self.costs, 0, len(self.costs), 0, ONE, 0
        yield self.losses, 0, len(self.losses), -FAR, FAR, 0
        yield self.answers, 0, SIZE, 0, MOST, 0
        yield from self.forecaster.array_rows()
        if self.limited:
            yield from self.limit.array_rows()

    def derive(self) -> None:
        """Compute anew what follows from the state: the charge of an offload, label_costs and what the forecaster derives."""
        self.set_costs(self.costs)
        self.set_beta(self.beta)
        self.forecaster.derive()

    def reset(self) -> None:
        """Forget all labels: losses and forecaster begin anew. Costs, draws and ticket numbers continue."""
        Policy.reset(self)
        for i in range(len(self.losses)):
            self.losses[i] = 0
        fade(self.answers, 0, SIZE, 15)
        self.forecaster.clear()
        if self.limited:
            self.limit.clear(self)

    if not IS_BOARD:

        def columns(self, ticket: int) -> "dict[str, tuple[array[int], int]]":
            """Return where a ticket keeps what its label teaches: Policy's columns, `wish`, and `round` of a limit."""
            at = ticket % self.tickets.window
            columns = dict(Policy.columns(self, ticket), wish=(self.wishes, at))
            return dict(columns, round=(self.limit.rounds, at)) if self.limited else columns
