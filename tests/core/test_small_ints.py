"""Laws of the policy core: small ints only, no floats, no drift, the size of it, and how random its draws are."""

import ast
import io
import sys
import tokenize
import types
from array import array
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_ints import run_watched
from support import ROOT

from h2t2 import units
from h2t2.core.forecaster import FULL
from h2t2.core.numbers import ONE

FOLDER = ROOT / "firmware/h2t2/core"


CORE = """
    defaults numbers policy experts h2t2 forecaster adaptive miss_rate logarithm
    miss_guarantee head head_forecaster adaptive_head class_forecaster adaptive_classes class_heads
    class_head_forecaster adaptive_class_head past ordered budget
""".split()


UNWATCHED = "__init__ policies restoring introspect score head_saving curves miss_limit".split()  # no arithmetic of a step


# what a board with H2T2 loads
BINARY = "defaults curves numbers policy experts h2t2".split()


@pytest.fixture(scope="module")
def watched():
    """The core, every integer it computes checked against the 31 bits of a small int."""
    package = types.ModuleType("watched")
    package.__path__ = [str(FOLDER)]
    sys.modules["watched"] = package
    for name in CORE:
        module = types.ModuleType(f"watched.{name}")
        module.__package__ = "watched"
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        run_watched((FOLDER / f"{name}.py").read_text(), module, f"watched/{name}.py")
    yield package
    for name in [n for n in sys.modules if n.split(".")[0] == "watched"]:
        del sys.modules[name]


def test_all_of_the_core_is_watched():
    modules = {path.stem for path in FOLDER.glob("*.py")}
    assert modules == {*CORE, *UNWATCHED}


def test_the_watch_sees_an_overflow(watched):
    """A test that cannot fail is a defect: 2^30 must trip it."""
    with pytest.raises(AssertionError, match="small int"):
        watched.numbers.scale(2**31, 32768, [0, 0], 0)


def live(policy, rounds, sample, label=lambda n: n & 1):
    """Let a policy decide and learn, at its own price, none and the highest; sample(n), label(n): of round n."""
    for n in range(rounds):
        if policy.decide(sample(n)) < 0:
            policy.learn(policy.ticket, label(n), (-1, 0, 32768)[n % 3])


q15 = st.sampled_from([0, 1, 2, 9830, 32767, 32768])


@pytest.mark.slow
@settings(max_examples=40)
@given(
    bits=st.sampled_from([1, 2, 4, 8]),
    epsilon=st.sampled_from([1, 2, 33, 2048, 32768]),
    eta=st.sampled_from([1, 2**20, 2**26, 372000000]),
    beta=q15,
    fp=q15,
    fn=q15,
    feedback=st.sampled_from(["explored", "all"]),
    exploration=st.sampled_from(["epsilon", "anytime"]),
    half_life=st.sampled_from([0, 7, 2**28 - 1]),
    seed=st.integers(0, 2**28 - 1),
    rates=st.sampled_from([(0, 0), (3000, 500), (0, 16000)]),
    full=st.booleans(),
)
def test_h2t2_keeps_to_small_ints(
    watched, bits, epsilon, eta, beta, fp, fn, feedback, exploration, half_life, seed, rates, full
):
    """Smallest epsilon, largest eta, b = 8, losses at the cap: every intermediate is watched."""
    try:
        policy = watched.h2t2.H2T2(
            bits, beta=beta, delta_fp=fp, delta_fn=fn, eta=eta, epsilon=epsilon, seed=seed, feedback=feedback,
            exploration=exploration, half_life=half_life, window=4, rdl_fp=rates[0], rdl_fn=rates[1],
        )  # fmt: skip
    except ValueError as error:
        assert "rdl_fp" in str(error)  # eta too large for the correction
        return
    experts = policy.experts
    if full:  # prefix sums as large as they may be before a charge, in the directions that pull hardest
        room = sys.modules["watched.experts"].ROOM
        for at, word in ((0, seed), (experts.n, seed >> 9)):
            prefix = [room if (k * 2654435761 ^ word) >> k % 13 & 1 else -room for k in range(experts.n)]
            prefix[0] = 0
            for n in range(1, experts.n):
                width = experts.n >> n.bit_length()  # bins in half of node n
                first = 2 * width * n - experts.n
                experts.losses[at + n] = prefix[first + width] - prefix[first]
        experts.bound = room + (seed & 1)
        experts.unit = seed % 9
        experts.rebuild(False, False)
    live(policy, 60, lambda n: (seed + n * 7919) % experts.n)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    beta=q15,
    fp=q15,
    fn=q15,
    rates=st.sampled_from([(0, 0), (1000, 2000), (0, 30000)]),
    labels=st.sampled_from([0, 1, 31996]),
    prior=st.sampled_from([1, 16000, 32767]),
    loss=st.sampled_from([0, 6500000]),
    lead=st.sampled_from([-(2**29) + 1, 0, 2**29 - 1]),
    age=st.sampled_from([0, 31, 3999]),
    counted=st.sampled_from([(0, 0), (16383, 0), (16383, 16383)]),
)
def test_the_adaptive_policy_keeps_to_small_ints(watched, beta, fp, fn, rates, labels, prior, loss, lead, age, counted):
    policy = watched.adaptive.Adaptive(
        beta=beta, delta_fp=fp, delta_fn=fn, window=4, rdl_fp=rates[0], rdl_fn=rates[1], prior=[prior] * 16
    )
    seen = policy.forecaster
    for node in range(len(seen.labels)):
        seen.labels[node], seen.events[node] = labels, labels * (node % 3) // 2
    for n in range(0, len(seen.loss), 2):
        seen.loss[n] = loss
    for k in range(16):
        seen.fast[k], seen.slow[k] = 8192 * (k % 2), 131072 * (k % 3 > 1)
    seen.age, seen.quiet, policy.lead = age, 128, lead
    seen.derive()
    for n in range(0, 34, 4):
        policy.answers[n], policy.answers[n + 1] = counted
    for n in range(40):
        if policy.decide(n % 16) < 0:
            policy.count_question(n % 16, n & 1)
            policy.learn(policy.ticket, n & 1, (-1, 0, 32768)[n % 3])


@pytest.mark.slow
@settings(max_examples=25)
@given(
    beta=q15,
    fp=q15,
    fn=q15,
    labels=st.sampled_from([0, 1, 31996]),
    prior=st.sampled_from([1, 16000, 32767]),
    weight=st.sampled_from([-8388607, 0, 900000, 8388607]),
    root=st.sampled_from([262144, 536870911]),
    trace=st.sampled_from([-32768, 0, 31, 32768]),
    best=st.integers(0, 66),
    since=st.sampled_from([0, 30, 4095]),
)
def test_a_past_keeps_to_small_ints(watched, beta, fp, fn, labels, prior, weight, root, trace, best, since):
    policy = watched.ordered.Ordered(beta=beta, delta_fp=fp, delta_fn=fn, window=4, prior=[prior] * 16)
    forecaster, past = policy.forecaster, policy.forecaster.heads
    for node in range(len(forecaster.labels)):
        forecaster.labels[node], forecaster.events[node] = labels, labels * (node % 3) // 2
    for n in range(len(forecaster.loss)):
        forecaster.loss[n] = 0 if n == best else 6500000
    for n in range(len(past.weights)):
        past.weights[n], past.roots[n] = (weight, -weight)[n % 3 > 1], root
    for traces in (past.traces, past.means):
        for n in range(len(traces)):
            traces[n] = abs(trace) if traces is past.means else trace
    past.since, forecaster.age = since, 249
    forecaster.derive()
    late = 0
    for n in range(40):
        if policy.decide(n * 85 % 256) < 0:  # 0 and 255 as well
            if n % 5:
                policy.learn(policy.ticket, n & 1, (-1, 0, 32768)[n % 3])
                policy.learn(late, n & 1)
            else:
                late = policy.ticket


@pytest.mark.whole
@settings(max_examples=20)
@given(
    beta=q15, features=st.sampled_from([1, 3, 40]), weight=st.sampled_from([-8388607, 0, 8388607]),
    root=st.sampled_from([262144, 536870911]), labels=st.sampled_from([0, 4, 31996]), surprise=st.sampled_from([512, 32767]),
    sign=st.sampled_from([-1, 1]), taught=st.sampled_from([0, 63, 127]), age=st.sampled_from([0, 3999]),
)  # fmt: skip
def test_heads_keep_to_small_ints(watched, beta, features, weight, root, labels, surprise, sign, taught, age):
    """From the largest weights, roots and counts, with the largest features."""
    policy = watched.adaptive_head.AdaptiveHead(features, beta=beta, window=4)
    seen = policy.forecaster
    heads = seen.heads
    for n in range(len(heads.weights)):
        heads.weights[n], heads.roots[n] = weight * (sign if n % 2 else 1), root
    for n in range(64 * watched.head.words(features)):
        heads.rows[n] = (0, 2**24 - 1)[n % 2]
    for n in range(64):
        heads.answers[n] = (0, 511, 1)[n % 3]
    for n in range(128, len(seen.labels)):  # of the heads' views
        seen.labels[n], seen.events[n] = labels, labels * (n % 3) // 2
    for n in range(0, len(seen.loss), 2):
        seen.loss[n] = 6500000
    heads.taught, seen.surprise, seen.age = taught, surprise, age
    seen.derive()
    live(policy, 24, lambda n: [(0, 255, 128)[n % 3]] + [127 if (n + i) % 2 else -128 for i in range(features)])


@pytest.mark.whole
@settings(max_examples=12)
@given(
    beta=q15, features=st.sampled_from([1, 40]), weight=st.sampled_from([-8388607, 8388607]),
    root=st.sampled_from([262144, 536870911]), full=st.booleans(), cost=st.sampled_from([-46340, 46340]),
)  # fmt: skip
def test_heads_of_many_classes_keep_to_small_ints(watched, beta, features, weight, root, full, cost):
    """From the largest weights, roots, counts and costs, with the largest features."""
    classes = 16
    costs = [[0 if i == j else ONE for j in range(classes)] for i in range(classes)]
    policy = watched.adaptive_class_head.AdaptiveClassHead(features, costs, 2, beta=beta, window=4)
    policy.label_costs = array("i", [cost] * classes**2)
    seen = policy.forecaster
    for heads in seen.heads.of_class[::2]:
        for n in range(len(heads.weights)):
            heads.weights[n], heads.roots[n] = weight, root
    if full:
        for n in range(len(seen.counts)):
            seen.counts[n] = FULL // classes - 4
    seen.derive()

    def sample(n):
        scores = [2040] * classes if n % 2 else [0] * n + [32767] + [0] * (classes - n - 1)
        return scores + [127 if (n + i) % 2 else -128 for i in range(features)]

    live(policy, 8, sample, lambda n: n)


@pytest.mark.whole
@settings(max_examples=60)
@given(
    beta=q15, fp=q15, fn=q15, limit=st.sampled_from([1, 33, 655, 32768]), rates=st.sampled_from([(0, 0), (1000, 2000)]),
    events=st.sampled_from([0, 1, 256, 4096 << 8]), misses=st.integers(0, 1 << 21), squares=st.integers(0, 1 << 24),
    cross=st.integers(0, 1 << 24), weight=st.sampled_from([4096, 818401, 1 << 20]), stake=st.sampled_from([0, 32767, 4194304]),
    low=st.sampled_from([1, 16000, 32767]),
)  # fmt: skip
def test_a_limit_for_misses_keeps_to_small_ints(
    watched, beta, fp, fn, limit, rates, events, misses, squares, cross, weight, stake, low
):
    policy = watched.adaptive.Adaptive(
        beta=beta, delta_fp=fp, delta_fn=fn, window=4, rdl_fp=rates[0], rdl_fn=rates[1], prior=[low] * 16,
        limit=watched.miss_rate.MissRate(limit),
    )  # fmt: skip
    policy.limit.sums[:] = watched.miss_rate.array("i", [events, misses, squares, cross, cross, weight, stake])
    policy.derive()
    live(policy, 40, lambda n: n % 16, lambda n: n % 3 > 0)
    policy.report()


@settings(max_examples=16)
@given(
    limit=st.sampled_from([1, 655, 32768]), confidence=st.sampled_from([16384, 31130, 32767]),
    evidence=st.sampled_from([-(1 << 28), 0, 20000, 1 << 28]), stake=st.sampled_from([0, 4194304]),
    rates=st.sampled_from([None, [[0.9, 0.1, 0], [0, 1, 0], [0, 0, 1]]]), many=st.booleans(),
)  # fmt: skip
def test_a_limit_with_a_confidence_keeps_to_small_ints(watched, limit, confidence, evidence, stake, rates, many):
    guarantee = watched.miss_guarantee.MissGuarantee(limit, confidence)
    if many:
        costs = [[0, ONE, ONE], [ONE, 0, ONE], [ONE, 1, 0]]
        confusion = units.confusion(rates) if rates else None
        policy = watched.adaptive_classes.AdaptiveClasses(costs, limit=guarantee, window=4, confusion=confusion)
    else:
        policy = watched.adaptive.Adaptive(limit=guarantee, window=4)
    guarantee.evidence = evidence
    guarantee.sums[watched.miss_rate.STAKE] = stake
    sample = (lambda n: [n % 5 * 4000, 16384 - n % 5 * 4000, 0]) if many else lambda n: n % 16
    live(policy, 40, sample, lambda n: n % 3 if many else n % 3 > 0)
    policy.report()


@settings(max_examples=25)
@given(beta=q15, fp=q15, fn=q15)
def test_a_policy_with_a_cost_matrix_keeps_to_small_ints(watched, beta, fp, fn):
    costs = [[0, fp, fn], [fn, 0, fp], [32768, beta, 0]]
    confusion = units.confusion([[0.9, 0.1, 0], [0, 0.95, 0.05], [0.05, 0, 0.95]])
    adaptive = watched.adaptive_classes.AdaptiveClasses(costs, 2, beta=beta, confusion=confusion)
    for f in ([16384, 0, 0], [0, 16384, 0], [5461, 5461, 5462], [0, 0, 0], [10922, 10922, 10923]):
        if adaptive.decide(f) < 0:
            adaptive.learn(adaptive.ticket, 2, beta)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    beta=q15, cost=st.integers(0, 32768), classes=st.sampled_from([2, 3, 16]), odd=st.integers(0, 1),
    count=st.integers(0, 32000), loss=st.integers(0, 1 << 23), sums=st.integers(0, 524288),
    age=st.sampled_from([0, 31, 249, 999, 3999]), label_cost=st.sampled_from([0, 46340, -46340]),
)  # fmt: skip
def test_many_classes_from_any_state(watched, beta, cost, classes, odd, count, loss, sums, age, label_cost):
    costs = [[0 if i == j else (32768, cost)[i % 2] for j in range(classes)] for i in range(classes)]
    by_labels = [[(label_cost, -32768)[(i + j) % 2] for j in range(classes)] for i in range(classes)] if label_cost else None
    policy = watched.adaptive_classes.AdaptiveClasses(costs, 1, beta=beta, window=4)
    if by_labels:
        policy.label_costs = array("i", sum(by_labels, []))
    seen = policy.forecaster
    for n in range(len(seen.counts)):
        seen.counts[n] = min(count, 32000 // classes) if n % 3 else 0
    for n in range(len(seen.sums)):
        seen.sums[n] = sums if n % 2 else 524288 - sums
    for n in range(0, len(seen.loss), 2):
        seen.loss[n] = loss
    for k in range(len(seen.fast)):
        seen.fast[k], seen.slow[k] = 8192 * (k % 2), 131072 * (k % 3 > 1)
    for n in range(len(policy.losses)):
        policy.losses[n] = (-268435455, 268435455)[n % 2 ^ odd]
    seen.age, seen.quiet = age, 128
    seen.derive()

    def sample(n):
        return [16384 * (k == n % classes) for k in range(classes)] if n % 3 else [16384 // classes] * classes

    live(policy, 12, sample, lambda n: n % classes)


@given(
    capacity=st.integers(1, 2**29 - 1), level=st.integers(0, 2**29 - 1), fixed=st.integers(0, 2**20),
    per_kb=st.integers(0, 32767), amount=st.integers(0, 1023),
    period=st.integers(1, 2**29 - 1), share=st.integers(0, 2**20), ms=st.integers(-9, 2**29 - 1),
    limit=st.integers(0, 2**29 - 1), before=st.integers(0, 2**29 - 1), turn=st.integers(-1, 2**25),
)  # fmt: skip
def test_a_budget_keeps_to_small_ints(watched, capacity, level, fixed, per_kb, amount, period, share, ms, limit, before, turn):
    try:
        budget = watched.budget.Budget(
            capacity, fixed=fixed, per_kb=per_kb, amount=amount, period=period, per_sample=share, limit=limit, span=period
        )
    except ValueError:
        return
    budget.level = min(level, capacity)
    budget.owed = period - 1
    for size in (0, 100, 2**20, 2**20 + 1):
        budget.earn(ms, turn)
        budget.before, turn = before, (-1, turn + 1)[size > 0]
        budget.remainder = max(0, before - 1)
        assert -capacity <= budget.level <= capacity and 0 <= budget.price() <= 32768
        if budget.affords(size):
            budget.spend(size)


def _never_runs(node):
    """What MicroPython's compiler leaves out: `if 0:`, for type checkers, and what no board gets."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("0", "not IS_BOARD")


def test_the_core_imports_nothing_but_array_and_itself():
    for name in CORE:
        nodes = list(ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())))
        typing = [part for node in nodes if _never_runs(node) for part in node.body]
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node not in typing:
                assert node.level == 1 or node.module == "array"
            assert not isinstance(node, ast.Import)


def test_the_core_of_h2t2_stays_under_630_lines_of_code():
    """With the interface of all policies, which shows every member."""
    lines = 0
    for name in BINARY:
        text = (FOLDER / f"{name}.py").read_text()
        doc = {
            line
            for node in ast.walk(ast.parse(text))
            if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or _never_runs(node)
            for line in range(node.lineno, node.end_lineno + 1)
        }
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        lines += len({token.start[0] for token in tokens if token.type not in skipped} - doc)
    assert lines < 630, lines


@pytest.mark.whole
@pytest.mark.timeout(200)
def test_no_drift_in_a_million_rounds():
    """After 10^6 charges the region probabilities still are those of the exactly accumulated losses."""
    from h2t2.core import introspect
    from h2t2.core.experts import ROOM, Experts

    rng = np.random.default_rng(11)
    n, rounds = 16, 1_000_000
    experts = Experts(4)
    steps = rng.integers(0, 2**27, (64, 2)).tolist()
    picks = rng.integers(0, 64, rounds).tolist()
    bins = rng.integers(0, n, rounds).tolist()
    a, b = [0] * n, [0] * n
    worst = 0.0
    for t, (k, pick) in enumerate(zip(bins, picks)):
        x, y = steps[pick]
        if experts.bound > ROOM:
            experts.coarsen()
        if t & 1:  # up and down, so that the weights stay alive
            experts.charge(k, [-x >> 14, -x & 16383, y >> 14, y & 16383])
            a[k] -= x
            b[k] += y
        else:
            experts.charge(k, [x >> 14, x & 16383, -y >> 14, -y & 16383])
            a[k] += x
            b[k] -= y
        if t % 20_000 == 19_999:
            low = [Fraction(sum(a[:i]), 2**28) for i in range(n)]
            high = [Fraction(sum(b[:j]), 2**28) for j in range(n)]
            least = min(low[i] + high[j] for i in range(n) for j in range(i, n))
            w = np.array([[2.0 ** -float(low[i] + high[j] - least) if i <= j else 0 for j in range(n)] for i in range(n)])
            k = t // 20_000 % n
            experts.regions(k)
            q, p = w[: k + 1, k + 1 :].sum() / w.sum(), w[: k + 1, : k + 1].sum() / w.sum()
            worst = max(worst, abs(experts.offload / 32768 - q), abs(experts.positive / 32768 - p))
    assert worst <= 2e-4
    for i in range(n):  # and the losses are what was charged, exactly
        assert introspect.exponents(experts, i) == (sum(a[:i]), sum(b[:i]))


@pytest.fixture(scope="module")
def draws():
    from h2t2.core.numbers import Rng

    rng = Rng(12345)
    return np.array([rng.draw() for _ in range(400_000)])


def chi2_bound(cells):
    """The 1 - 1e-5 point of chi square with so many less one degrees of freedom (Wilson and Hilferty)."""
    k = cells - 1
    return k * (1 - 2 / (9 * k) + 4.265 * (2 / (9 * k)) ** 0.5) ** 3


def test_draws_are_uniform(draws):
    counts = np.bincount(draws >> 5, minlength=1024)
    mean = len(draws) / 1024
    assert ((counts - mean) ** 2 / mean).sum() < chi2_bound(1024)
    assert draws.min() >= 0 and draws.max() < 32768
    low = np.bincount(draws & 31, minlength=32)
    assert ((low - len(draws) / 32) ** 2 / (len(draws) / 32)).sum() < chi2_bound(32)


def test_serial_pairs_are_independent(draws):
    for lag in (1, 2):  # a policy takes two draws a round
        pairs = (draws[:-lag] >> 10) * 32 + (draws[lag:] >> 10)
        pairs = pairs[:: lag + 1]
        mean = len(pairs) / 1024
        assert ((np.bincount(pairs, minlength=1024) - mean) ** 2 / mean).sum() < chi2_bound(1024)


@pytest.mark.parametrize("epsilon", [0.001, 0.06])
def test_bernoulli_draws(draws, epsilon):
    bound = round(epsilon * 32768)
    hits = draws < bound
    p = bound / 32768
    assert abs(hits.mean() - p) < 4.5 * (p * (1 - p) / len(draws)) ** 0.5
    gaps = np.diff(np.flatnonzero(hits))  # geometric: mean 1 / p, standard deviation about the same
    assert abs(gaps.mean() - 1 / p) < 4.5 / p / len(gaps) ** 0.5


def test_neighbouring_seeds_are_unrelated():
    from h2t2.core.numbers import Rng

    streams = np.array([[r.draw() for _ in range(400)] for r in map(Rng, range(40))]) / 32768 - 0.5
    correlation = np.corrcoef(streams)[np.triu_indices(40, 1)]
    assert np.abs(correlation).max() < 5 / 400**0.5
