# What a new model's trial is judged by: what the node's account tells of it, beside what it told of the model before.
AWAY = 125  # thousandths of the samples that fell back, above what the model before it had
DEARER = 10  # thousandths that a sample may cost more
SPREAD = 300  # thousandths of the scores that lie in other places than the package says
FEW = 30  # answers, below which a cost says nothing


def measured(node) -> dict:
    """What a node's account tells of its model: `samples`, `away` (thousandths of them that fell back), `cost` and `variance`
    (thousandths a sample, and millionths; cost -1: too few answers)."""
    account = node.account
    samples = sum(account.scores)
    answers = sum(account.answered)
    away = node.fallbacks + node.unasked + node.unaffordable + node.crowded
    made = {"samples": samples, "away": away * 1000 // max(1, samples), "cost": -1, "variance": 0}
    if answers < FEW:
        return made
    mean = sum(account.local_cost) // answers
    cost = account.paid * 1000 >> 15
    variance = 0
    for n, asked, local in zip(account.scores, account.answered, account.local_cost):
        each = (4 * local + mean) // (4 * asked + 1)  # a place with few answers leans on the mean of all
        cost += (n - asked) * each
        variance += n * n * each * max(0, 1000 - each) // (asked + 1)
    made["cost"] = cost // samples
    made["variance"] = variance // samples // samples
    return made


def worse(now, scores, record) -> str:
    """Why a model is not to be kept after its trial, "" where nothing speaks against it.

    now: measured(); scores: the account's.
    """
    old = record["old"]
    if old and now["away"] > old["away"] + AWAY:
        return "%d of 1000 samples fall back, %d did before" % (now["away"], old["away"])
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
