# Algorithm 1 of "Inference Offloading for Cost-Sensitive Binary Classification at the Edge" (AAAI 2026), in floats.
# Comments name the paper's lines. one_page has the same policy in integers, h2t2/core the fast one.
import math
import random

BINS = 16  # a score is one of 16 bins
OFFLOAD = -1  # an action; the others are the classes 0 and 1
EXPERTS = [(lower, upper) for upper in range(BINS) for lower in range(upper + 1)]  # the 136 pairs of thresholds


def action(expert, k):
    """What a pair does in bin k: 0 below its lower threshold, 1 from its upper one on, and between them it asks."""
    lower, upper = expert
    return 0 if k < lower else 1 if k >= upper else OFFLOAD


class Algorithm1:
    """The two-threshold policy. Costs and epsilon are shares of 1; eta is the learning rate; draw() is uniform on [0, 1)."""

    def __init__(self, *, beta, delta_fp, delta_fn, eta, epsilon, draw=random.random):  # line 1
        self.beta, self.delta = beta, {0: delta_fn, 1: delta_fp}  # delta: cost of a wrong 0, of a wrong 1
        self.eta, self.epsilon, self.draw = eta, epsilon, draw
        self.weights = dict.fromkeys(EXPERTS, 1)  # line 2

    def round(self, k, remote):
        """Decide about a score in bin k (line 4): (decision, whether it is the remote model's). remote() asks that model."""
        total = sum(self.weights.values())
        p = sum(self.weights[expert] for expert in EXPERTS if action(expert, k) == 1) / total  # line 5
        q = sum(self.weights[expert] for expert in EXPERTS if action(expert, k) == OFFLOAD) / total  # line 6
        psi = self.draw()  # line 7
        explored = self.draw() < self.epsilon  # line 8
        offloaded = psi < q or explored  # line 9
        label = remote() if offloaded else int(psi < q + p)  # lines 10 to 15
        loss = {OFFLOAD: self.beta}  # line 19, the estimated loss: who asks pays beta;
        if explored:
            loss[1 - label] = self.delta[1 - label] / self.epsilon  # who is wrong pays for all rounds that nobody explored
        for expert in EXPERTS:  # lines 18 to 20
            self.weights[expert] *= math.exp(-self.eta * loss.get(action(expert, k), 0)) / total  # so that none grows too small
        return label, offloaded


def main(rounds=4000):
    """Print the regret: what the policy paid more than the best pair in hindsight, a sample."""
    costs = {"beta": 0.2, "delta_fp": 0.7, "delta_fn": 1}
    random.seed(1)
    policy = Algorithm1(eta=1, epsilon=0.0625, **costs)
    paid, pairs = 0, dict.fromkeys(EXPERTS, 0)
    for n in range(1, rounds + 1):
        label = int(random.random() < 0.4)
        k = min(BINS - 1, int(8 * (random.random() + random.random()) * (0.6 + 0.5 * label)))
        cost = {OFFLOAD: costs["beta"], 0: costs["delta_fn"] * label, 1: costs["delta_fp"] * (1 - label)}
        decision, offloaded = policy.round(k, lambda label=label: label)
        paid += cost[OFFLOAD if offloaded else decision]
        for expert in EXPERTS:
            pairs[expert] += cost[action(expert, k)]
        if n % (rounds // 20) == 0:
            regret = (paid - min(pairs.values())) / n
            print("%6d rounds   regret %.3f   %s" % (n, regret, "#" * int(400 * regret)))


if __name__ == "__main__":
    main()
