# Replays seeded runs of the policy core and prints what came out, one JSON line a run: the same file runs on CPython and on
# every MicroPython. Streams come from the core's own generator, so no interpreter needs anything else.
# The host's output is the vector file: python tests/portable/replay.py > tests/vectors/core.jsonl
from h2t2.core import policies
from h2t2.core.numbers import Rng
from h2t2.core.policy import OFFLOAD
from h2t2.node import restoring, snapshot

COSTS = [[0, 9000, 20000, 3000], [32768, 0, 15000, 32768], [7000, 11000, 0, 1], [500, 30000, 22938, 0]]
CONFUSION = [
    [29491, 1638, 1638, 0],
    [3277, 26214, 0, 3277],
    [0, 983, 31785, 0],
    [6554, 0, 983, 25231],
    [36591, -2215, -1895, 288],
    [-3386, 41159, 340, -5346],
    [105, -1273, 33771, 165],
    [-9509, 625, -824, 42475],
]
ALL = {"feedback": "all", "exploration": "anytime"}

# (kind, rounds, restore from a snapshot after so many rounds or 0, options). No label is out then: tickets are a start's own.
RUNS = [
    ("rng", 40, 0, {"seed": 0}),
    ("rng", 40, 0, {"seed": 268435455}),
    ("h2t2", 300, 0, {}),
    ("h2t2", 200, 0, {"bits": 1}),
    ("h2t2", 200, 0, {"bits": 2, "epsilon": 32768}),  # explores always
    ("h2t2", 200, 90, {"bits": 6, "feedback": "all"}),
    ("h2t2", 150, 0, dict(ALL, bits=8)),
    ("h2t2", 400, 200, {"exploration": "anytime", "half_life": 50}),
    ("h2t2", 300, 0, {"eta": 372000000, "epsilon": 1, "delta_fp": 32768}),  # largest eta, smallest epsilon
    ("h2t2", 300, 0, {"eta": 372000000, "epsilon": 1, "feedback": "all", "bits": 8}),
    ("h2t2", 300, 0, {"eta": 1, "epsilon": 33}),  # all experts tie
    ("h2t2", 300, 0, {"beta": 0, "feedback": "all"}),
    ("h2t2", 300, 39, {"beta": 32768, "feedback": "all", "rdl_fp": 1000, "rdl_fn": 3000}),
    ("h2t2", 300, 0, {"delta_fp": 0, "delta_fn": 0, "feedback": "all"}),
    ("adaptive", 600, 0, {"beta": 6554}),
    ("adaptive", 2100, 1003, {"beta": 16384, "bits": 3}),
    ("adaptive", 300, 0, {"rdl_fp": 2000, "rdl_fn": 3000, "bits": 6}),
    ("adaptive", 300, 142, {"beta": 19661, "prior": [32768 - 2048 * k for k in range(16)]}),  # a prior upside down
    ("ordered", 1500, 1003, {"beta": 6554}),
    ("ordered", 300, 0, {"rdl_fp": 2000, "rdl_fn": 3000, "bits": 6}),
    ("miss-limited", 1500, 1003, {"beta": 13107, "miss_rate": 655}),
    ("miss-limited", 300, 0, {"beta": 6554, "miss_rate": 3277, "rdl_fp": 2000, "rdl_fn": 3000, "delta_fn": 12000}),
    ("miss-guaranteed", 1500, 1003, {"beta": 9830, "miss_rate": 6554, "confidence": 31130}),
    ("adaptive-classes", 500, 0, {"beta": 9830}),
    ("adaptive-classes", 1300, 1003, {"beta": 6554, "bits": 2}),
    ("adaptive-classes", 400, 0, {"beta": 6554, "confusion": CONFUSION}),
    (
        "budget",
        300,
        0,
        {
            "capacity": 100000,
            "fixed": 900,
            "per_kb": 3000,
            "amount": 1023,
            "period": 7000,
            "per_sample": 50,
            "limit": 90000,
            "span": 3000000,
        },
    ),
    ("adaptive-head", 900, 503, {"beta": 6554, "features": 16}),
    ("adaptive-head", 300, 0, {"beta": 16384, "features": 1, "bits": 8}),
    ("adaptive-head", 400, 0, {"beta": 9830, "features": 40, "bits": 1, "rdl_fp": 2000, "rdl_fn": 3000}),
    ("adaptive-class-head", 300, 202, {"beta": 3277, "bits": 2, "features": 5}),
    # what every policy has learned after 2,000 rounds; "adaptive" is above
    ("h2t2", 2000, 0, {}),
    ("ordered", 2000, 0, {"beta": 6554}),
    ("miss-limited", 2000, 0, {"miss_rate": 655}),
    ("miss-guaranteed", 2000, 0, {"miss_rate": 6554, "confidence": 31130}),
    ("adaptive-classes", 2000, 0, {"beta": 9830}),
    ("adaptive-head", 2000, 0, {"beta": 6554, "features": 4}),
    ("adaptive-class-head", 2000, 0, {"beta": 6554, "bits": 3, "features": 3}),
    ("adaptive-class-head", 120, 0, {"beta": 6554, "bits": 1, "features": 2, "confusion": CONFUSION}),
    # where answers do not come
    ("adaptive, lost", 900, 503, {"beta": 3277, "rdl_fp": 1000}),
    ("adaptive, lost", 300, 0, {"beta": 6554, "bits": 6}),
    ("adaptive-classes, lost", 400, 202, {"beta": 6554}),
    # limits of many classes
    ("adaptive-classes", 800, 503, {"beta": 6554, "bits": 2, "miss_rate": 6554, "confidence": 29491, "normal": 2}),
    ("adaptive-class-head", 200, 0, {"beta": 6554, "bits": 1, "features": 2, "miss_rate": 1638, "normal": 0}),
]


class Check:
    """A running checksum of small integers."""

    def __init__(self):
        self.crc = 0

    def add(self, values):
        for value in values:
            self.crc = (self.crc * 31 + value) % 16777213


class Saved:
    """A snapshot as the content of a store. It consists of pieces, because a small heap has no room for one block."""

    def __init__(self, policy, costs):
        self.size, chunks = snapshot.encode(policy, costs)
        self.pieces = [bytes(chunk) for chunk in chunks]
        assert sum(len(piece) for piece in self.pieces) == self.size

    def readinto(self, at, buffer):
        """Fill a buffer from byte `at` on, as far as there are bytes."""
        end = 0
        for piece in self.pieces:
            if at < len(piece) and end < len(buffer):
                part = piece[at : at + len(buffer) - end]
                buffer[end : end + len(part)] = part
                end += len(part)
            at = max(0, at - len(piece))


def scores(stream, n):
    """n scores in Q14 that sum to 16384, one of them large."""
    left = 16384
    f = []
    for _ in range(n - 1):
        part = left * stream.draw() >> 15
        f.append(part)
        left -= part
    f.append(left)
    turn = stream.draw() % n
    return f[turn:] + f[:turn]


def answered(stream, x, many):
    """Whether a question about a sample gets an answer, where some get none: 1 or 0."""
    return int(stream.draw() > (16384 if many else x << 10))


def make(kind, rounds, options):
    """The policy of a run. Only its own modules are imported: a small board has no room for all."""
    given = dict(options, seed=rounds)
    if kind == "h2t2":  # Algorithm 1, unless a run says otherwise
        given = dict({"feedback": "explored", "exploration": "epsilon"}, **given)
    elif "class" in kind:
        given["costs"] = COSTS
    elif kind == "ordered":
        given["ordered"] = True
    return policies.make("h2t2" if kind == "h2t2" else "adaptive", given)


def replay(kind, rounds, restore, options):
    """The actions as a string, a checksum over all that can be seen of every round and of the final state, the counters."""
    stream = Rng(7)
    check = Check()
    if kind == "rng":
        rng = Rng(options["seed"])
        return {"draws": [rng.draw() for _ in range(rounds)]}
    if kind == "budget":
        from h2t2.core.budget import Budget

        budget = Budget(**options)
        for n in range(rounds):
            budget.earn(stream.draw(), n // 80 - 1)  # its clock is set late
            size = stream.draw() >> 3
            if budget.affords(size):
                budget.spend(size)
            check.add((budget.level, budget.owed, budget.price(), budget.used))
        return {"crc": check.crc}
    kind, _, lost = kind.partition(", ")
    policy = make(kind, rounds, options)
    given = policy.cost_list()
    many = policy.classes > 2
    actions = ""
    late = 0
    for n in range(rounds):
        if restore and n == restore:
            content = Saved(policy, given)
            for piece in content.pieces:
                check.add(piece)
            policy = None  # as after a restart: no heap holds two
            policy = make(kind, rounds, options)
            restoring.restore(policy, content, given)
            content = None
        draw = stream.draw()
        x = scores(stream, 4) if many else draw * policy.steps() >> 15
        label = stream.draw() % 4 if many else 1 if stream.draw() < draw else 0
        if "features" in options:  # from the generator; the first tells of the label
            x = x if many else [draw >> 7]
            x += [(stream.draw() >> 7) - 128 for _ in range(options["features"])]
            x[4 if many else 1] = (30 if many else 90) * label - 45
        action = policy.decide(x)
        actions += "0123-"[action]
        check.add((policy.ticket, policy.local))
        if many:
            check.add((policy.chance, policy.wish))
            check.add(policy.forecaster.belief)
        else:
            check.add((policy.experts.offload, policy.experts.positive))
        if kind in ("adaptive", "ordered", "adaptive-head"):
            check.add((policy.chance,))
            check.add(policy.forecaster.belief[:3])
            check.add((policy.lead & 65535,))
        if kind == "adaptive-class-head":
            check.add(policy.forecaster.forecast)
            check.add((policy.report()["head_share"],))
        if kind == "adaptive-head":
            check.add(policy.forecaster.heads.g[:3])
            report = policy.report()
            check.add((report["head_share"], report["head_saved"]))
        if kind == "miss-guaranteed":
            check.add((policy.limit.evidence & 65535, policy.limit.threshold, policy.limit.gain))
        if many and policy.limit:
            check.add(policy.limit.sums)
            check.add(policy.limit.rounds)
            check.add((policy.unit, policy.guess, policy.negative))
        if kind in ("miss-limited", "miss-guaranteed"):
            effective = policy.effective
            fee, fp, fn = effective[:3]
            check.add((policy.chance, fp, fn, fee))
            check.add(policy.limit.sums)
            check.add(policy.limit.estimated)
        if action == OFFLOAD and lost:
            came = answered(stream, x, many)
            policy.count_question(policy.bin(x), came)
            if came:
                policy.learn(policy.ticket, label)
            else:
                check.add((policy.lose(policy.ticket),))
        elif action == OFFLOAD:
            if n % 7 == 3:  # this label comes after the next one, with another cost, and twice
                late = policy.ticket
            elif n % 7 == 5:
                check.add((policy.lose(policy.ticket),))
            else:
                policy.learn(policy.ticket, label)
                if late:
                    policy.learn(late, label, 16384)
                    policy.learn(late, label, 16384)
                    late = 0
    for chunk in snapshot.encode(policy, given)[1]:  # not joined: small boards have no room for that
        check.add(bytes(chunk))
    counts = [policy.lessons, policy.tickets.refused, policy.tickets.lost]
    return {"actions": actions, "crc": check.crc, "counts": counts}


if __name__ == "__main__":
    import json

    for run in RUNS:
        print(json.dumps(replay(*run)))
