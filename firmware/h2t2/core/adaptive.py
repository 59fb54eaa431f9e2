# The adaptive policy: H2T2 with a further expert, the forecaster, which knows how often each bin holds an event and applies
# Theorem 1 to it. It has no option for what needs no tuning.
from array import array

from . import defaults
from .experts import ROOM, Pairs
from .forecaster import AUDITS, COUNT, ETA, FLOOR, GAMMA, HIGH, LOW, SHARE, STEP, Forecaster, P, fade
from .numbers import ONE, ONE_Q29, divide, exp2, ratio, times
from .policy import BETA, BIN, CHANCE, EVERY, FIELDS, IS_BOARD, LOST, MOST, OFFLOAD, SIZE, add_question, answer_rate

if 0:  # for type checkers
    from ..annotations import Any, Int32s, Iterator
    from .miss_limit import Limit

FAR = 536870911  # of `lead`, 2^9 octaves
# effective costs, Q15: of an offload, a false positive and a false negative; P(event) between which an offload is cheapest;
# what the remote model's mistakes cost where there is no event, and where there is one; a cost of 1;
# P(an answer in time) that FEE counts with
FEE, FP, FN, LOWER, UPPER, WRONG_0, WRONG_1, UNIT, ANSWERED = 0, 1, 2, 3, 4, 5, 6, 7, 8


def asking(p: int, effective: "Int32s") -> int:
    """Return the cost of an offload with P(event) = p, the remote model's mistakes included; Q15."""
    return effective[FEE] + ((ONE - p) * effective[WRONG_0] >> 15) + (p * effective[WRONG_1] >> 15)


def offload_wish(belief: "Int32s", effective: "Int32s", floor: int) -> int:
    """Return wish << 1 | guess: with which probability, Q15, the forecaster wants to offload, and its class.

    It offloads where the interval meets the bounds of Theorem 1. Elsewhere the wish is the gain that the other class could have
    inside the interval, divided by what an offload costs more, and decreases with the number of labels.

    Args:
        belief: P, LOW, HIGH and COUNT of forecaster.mean().
        effective: FEE to ANSWERED.
        floor: Smallest wish.
    """
    event = belief[P]
    low = belief[LOW]
    high = belief[HIGH]
    fp = effective[FP]
    fn = effective[FN]
    cost_0 = event * fn
    cost_1 = (ONE - event) * fp
    guess = 1 if cost_1 <= cost_0 else 0
    if effective[LOWER] < effective[UPPER] and high > effective[LOWER] and low < effective[UPPER]:
        return ONE << 1 | guess
    if guess:
        gain = ((ONE - low) * fp >> 15) - (low * fn >> 15)
    else:
        gain = (high * fn >> 15) - ((ONE - high) * fp >> 15)
    if gain > 0:
        wrong = (ONE - event) * effective[WRONG_0] + event * effective[WRONG_1]
        extra = max(33, effective[FEE] - (min(cost_0, cost_1) - wrong >> 15))
        gain = min((gain << 14) // extra, 4194304) * 200 // (200 + belief[COUNT]) << 1
        floor = max(floor, min(ONE, gain))
    return floor << 1 | guess


def logistic(lead: int, unit: int) -> int:
    """Return 1 / (1 + 2^-lead) in Q15, for a logarithm |lead| < 2^30 in units of 2^unit of its last place."""
    odds = exp2(abs(lead), unit) >> 14
    return (ONE_Q29 if lead >= 0 else odds << 14) // (ONE + odds) << 1


class Adaptive(Pairs):
    """All pairs of thresholds and the forecaster, each with its weight; the forecaster begins with .99 of the total.

    The losses of the pairs are H2T2's with feedback "all" and eta = .05, divided by P(offload) + .02, and halved every 1000
    rounds; those of the forecaster are estimated the same way. The policy always offloads with a probability of at least .005.
    Costs may change at any time: the forecaster keeps counts, so it follows them at once.

    Attributes:
        lead: Logarithm (Q20 octaves) of the forecaster's weight relative to the pair (0, 0), without its start.
        wish, guess: With which probability the forecaster wanted to offload in the last round, Q15, and its class.
        certain: Whether that wish was the smallest.
        chance: P(offload) of the last round, Q15.
        positive, negative: Weights of the answers 1 and 0 in the last round.
        floor: Smallest P(offload), Q15.
        effective: Costs that the forecaster decides by: FEE to ANSWERED.
        limited: Whether it has a limit; machine code cannot test an object.
    """

    kind = 3
    name = "adaptive"
    reprices = True
    if 0:  # for type checkers and the compiler
        limit: "Limit"

    def __init__(
        self, bits: int = defaults.BITS, *, beta: int = defaults.BETA, delta_fp: int = defaults.DELTA_FP,
        delta_fn: int = defaults.DELTA_FN, seed: int = defaults.SEED, window: int = defaults.WINDOW,
        rdl_fp: int = defaults.RDL_FP, rdl_fn: int = defaults.RDL_FN, prior: "list[int] | None" = None, limit: "Any" = None,
    ):  # fmt: skip
        """Make the policy in its first state.

        Args:
            prior: P(event) of each of the 2^bits bins before any label, Q15; None: its scores.
            limit: MissRate or MissGuarantee, of this policy alone; None: it may miss what is cheapest.
            bits, beta, delta_fp, delta_fn, seed, window, rdl_fp, rdl_fn: As for H2T2.
        """
        self.forecaster = self.new_forecaster(bits, prior, window)
        self.answers = array("H", [0] * SIZE)
        self.lead = 0
        self.wish = self.guess = self.chance = 0
        self.certain = False
        self.limited = False
        self.positive = self.negative = 0
        self.floor = FLOOR
        self.effective = array("i", [0, 0, 0, 0, 0, 0, 0, ONE, ONE])
        Pairs.__init__(
            self, bits, beta=beta, delta_fp=delta_fp, delta_fn=delta_fn, eta=ETA, epsilon=ONE, seed=seed,
            window=window, rdl_fp=rdl_fp, rdl_fn=rdl_fn,
        )  # fmt: skip
        self.wishes = array("i", [0] * window)  # wish << 1 | guess of each outstanding ticket
        if limit:
            limit.join(self)

    def new_forecaster(self, bits: int, prior: "list[int] | None", window: int) -> Forecaster:
        """Return the forecaster that this policy begins with. Arguments as for the class."""
        return Forecaster(bits, prior)

    def set_deltas(self, fp: int, fn: int) -> None:
        """Set the costs of a false positive and of a false negative, for labels to come and for the forecaster at once."""
        Pairs.set_deltas(self, fp, fn)
        self.effective[FP] = fp
        self.effective[FN] = fn
        self.set_charge(self.charge)
        if self.limited:
            self.limit.take_rates(self)

    def set_prior(self, prior: "list[int]") -> None:
        """Set the forecaster's P(event) of each bin before any label. Labels keep their effect."""
        self.forecaster.set_prior(prior)

    def set_charge(self, beta: int) -> None:
        """Set what an offload is charged, and the bounds between which the forecaster offloads."""
        Pairs.set_charge(self, beta)
        self.set_bounds()

    def set_bounds(self) -> None:
        """Compute what follows from the charge, FP and FN: Theorem 1 for a remote model that errs (docs/algorithm.md)."""
        effective = self.effective
        effective[FEE] = fee = ratio(times(self.charge, effective[UNIT]), effective[ANSWERED])
        effective[WRONG_0] = wrong_0 = times(effective[FP], self.rdl_fp)
        effective[WRONG_1] = wrong_1 = times(effective[FN], self.rdl_fn)
        effective[LOWER] = ratio(fee + wrong_0, effective[FN] - wrong_1 + wrong_0)
        effective[UPPER] = ONE - ratio(fee + wrong_1, effective[FP] - wrong_0 + wrong_1)

    def estimate(self, k: int) -> "Int32s":
        """Return the forecaster's belief about bin k, corrected for errors of the remote model."""
        self.forecaster.estimate(k)
        belief = self.forecaster.belief
        if self.rdl_fp or self.rdl_fn:
            for n in range(COUNT):  # P, LOW, HIGH
                belief[n] = corrected(belief[n], self.rdl_fp, self.rdl_fn)
        return belief

    def _forecast(self, k: int, total: int) -> int:
        """Set `guess`, `wish` and `certain` for bin k; return the forecaster's share of the weight, Q15.

        total: As experts.regions() returns it.
        """
        floor = max(self.floor, AUDITS[self.forecaster.audits])
        wish = offload_wish(self.estimate(k), self.effective, floor)
        self.guess = wish & 1
        self.wish = wish >> 1
        self.certain = self.wish == floor
        unit = self.experts.unit
        return logistic((SHARE + (2 * self.bits - 1 << 20) + self.lead >> 6 + unit) - total, unit)

    def decide(self, k: int) -> int:
        """Play a round for a sample in bin k, by pairs and forecaster; return 0, 1 or OFFLOAD (then `ticket` is set)."""
        experts = self.experts
        if not 0 <= k < experts.n:
            raise ValueError("bin %r is not in 0..%d" % (k, experts.n - 1))
        self.forecaster.count_score(k)
        age = self.forecaster.age
        if not age % 1000:
            self.forget()
        if not age & EVERY - 1:
            fade(self.answers, 0, SIZE, 1)
            self._expect_answer(k)
        if self.answers[LOST]:
            self._expect_answer(k)
        if experts.bound > ROOM:
            experts.coarsen()
        share = self._forecast(k, experts.regions(k))
        pairs = ONE - share
        floor = self.floor
        if self.limited:
            floor = self.limit.raise_wish(self, share)
        wish = self.wish
        positive = pairs * (experts.positive >> 1)
        negative = pairs * (experts.negative >> 1)
        if self.guess:
            positive += share * (ONE - wish >> 1)
        else:
            negative += share * (ONE - wish >> 1)
        self.positive = positive = positive >> 14
        self.negative = negative = negative >> 14
        self.chance = chance = max(floor, (share * (wish >> 1) + pairs * (experts.offload >> 1)) >> 14)
        self.local = self.guess if share >= pairs else experts.local
        psi = self.rng.draw()
        if psi < chance:
            action = OFFLOAD
            self.ticket = self.tickets.open(k, self.charge, self.local, min(ONE_Q29, chance + GAMMA << 14))
            if self.certain:
                self.forecaster.count_audit()
        else:
            self.ticket = 0
            action = self.guess
            if positive + negative:
                action = 1 if (psi - chance) * (positive + negative) < positive * (ONE - chance) else 0
        experts.charge(k, self.offload_loss)
        self._move(-times(self.rate >> 6, (self.charge >> 1) * wish >> 14))
        if self.limited:
            action = self.limit.check(self, k, action)
        if action == OFFLOAD:
            self.wishes[self.ticket % self.tickets.window] = wish << 1 | self.guess
        return action

    def _expect_answer(self, k: int) -> None:
        """Set the bounds to the fee of a question about bin k."""
        rate = answer_rate(self.answers, k, self.bits)
        if rate != self.effective[ANSWERED]:
            self.effective[ANSWERED] = rate
            self.set_bounds()

    def likely(self, k: int) -> int:
        """Return the class of the forecaster or of the pairs, whichever weighs more."""
        if not 0 <= k < self.experts.n:
            raise ValueError("bin %r" % k)
        if self.experts.bound > ROOM:
            self.experts.coarsen()
        share = self._forecast(k, self.experts.regions(k))
        return self.guess if share >= ONE - share else self.experts.local

    def _move(self, octaves: int) -> None:
        """Add to `lead`."""
        self.lead = min(max(self.lead + octaves, -FAR), FAR)

    def count_question(self, k: int, came: int) -> None:
        """Count whether a question about bin k got its answer in time, which the fee of later ones depends on."""
        if not 0 <= k < self.experts.n or not 0 <= came <= 1:
            raise ValueError("no such question: bin %r" % k)
        add_question(self.answers, k, self.bits, came)

    def forget(self) -> None:
        """Halve every cumulative loss of the experts."""
        Pairs.forget(self)
        self.lead -= self.lead >> 1

    def _correct(self, at: int, beta: int) -> None:
        """Charge the pairs, and the forecaster by its wish to offload, what an offload really cost."""
        Pairs._correct(self, at, beta)
        beta -= self.tickets.slots[at + BETA]
        moved = times(self.rate >> 6, (abs(beta) >> 1) * (self.wishes[at // FIELDS] >> 1) >> 14)
        self._move(-moved if beta > 0 else moved)

    def _teach(self, at: int, label: int) -> None:
        """Charge the pairs and the forecaster what a label costs them, and let the forecaster count it."""
        Pairs._teach(self, at, label)
        guess = self.wishes[at // FIELDS] & 1
        wish = self.wishes[at // FIELDS] >> 1
        slots = self.tickets.slots
        own = self.rates[label << 1 | guess]
        own = times(own, ONE - wish) if own > 0 else -times(-own, ONE - wish)
        loss = self.label_loss
        divide(self.rates[label << 1 | 1] - own, slots[at + CHANCE], loss, 0)
        self._move((min(max(loss[0], -STEP), STEP) << 6) + (loss[1] >> 8))
        self.forecaster.learn(slots[at + BIN], label)
        if self.limited:
            self.limit.learn(at // FIELDS, label)

    def settings(self) -> "tuple[int, ...]":
        """Return the bits, and the settings of the limit. Costs are none, since they may change at any time."""
        own = self.bits, 0, 0  # of release 1.0 the error rates, without which all that labels taught remains right
        return own + self.limit.settings() if self.limit else own

    def offload_chance(self) -> int:
        """Return P(offload) of the last round, Q15, of pairs, forecaster and limit together."""
        return self.chance

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of the pairs, `lead`, and those of the forecaster and the limit."""
        yield from Pairs.number_rows(self)
        yield self, "lead", -FAR, FAR
        yield from self.forecaster.number_rows()
        if self.limited:
            yield from self.limit.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of the pairs, the answers, and those of the forecaster and the limit."""
        yield from Pairs.array_rows(self)
        yield self.answers, 0, SIZE, 0, MOST, 0
        yield from self.forecaster.array_rows()
        if self.limited:
            yield from self.limit.array_rows()

    def derive(self) -> None:
        """Compute costs, sums and weights anew. Until the next round the fee is that of questions that get an answer."""
        self.effective[ANSWERED] = ONE
        Pairs.derive(self)
        self.forecaster.derive()

    def reset(self) -> None:
        """Forget all labels, answers and what the limit has counted. The prior of the bins remains."""
        Pairs.reset(self)
        self.lead = 0
        fade(self.answers, 0, SIZE, 15)
        self._expect_answer(0)
        self.forecaster.clear()
        if self.limited:
            self.limit.clear(self)

    if not IS_BOARD:

        def columns(self, ticket: int) -> "dict[str, tuple[array[int], int]]":
            """Return the columns of a ticket, with the forecaster's wish, and the round that the limit counts from."""
            at = ticket % self.tickets.window
            columns = dict(Pairs.columns(self, ticket), wish=(self.wishes, at))
            return dict(columns, round=(self.limit.rounds, at)) if self.limit else columns


def corrected(p: int, rdl_fp: int, rdl_fn: int) -> int:
    """Return P(event) for a share p of labels 1, with a remote model of those error rates: Q15, 1..ONE - 1."""
    return min(max((p - rdl_fp << 14) // (ONE - rdl_fp - rdl_fn) << 1, 1), ONE - 1)
