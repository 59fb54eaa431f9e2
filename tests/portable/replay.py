# Replays seeded runs of the policy core and prints what came out, one JSON line a run: the same file runs on CPython and on
# every MicroPython. Streams come from the core's own generator, so no interpreter needs anything else.
import json

from h2t2.policy import H2T2, OFFLOAD
from h2t2.rng import Rng

RUNS = [
    {"rounds": 300},
    {"rounds": 200, "bits": 1},
    {"rounds": 200, "bits": 2, "epsilon": 32768},
    {"rounds": 200, "bits": 6, "feedback": "all"},
    {"rounds": 150, "bits": 8, "feedback": "all", "exploration": "anytime"},
    {"rounds": 400, "exploration": "anytime", "half_life": 50},
    {"rounds": 300, "eta": 372000000, "epsilon": 1, "delta_fp": 32768},
    {"rounds": 300, "eta": 372000000, "epsilon": 1, "feedback": "all", "bits": 8},
    {"rounds": 300, "eta": 1, "epsilon": 33},
    {"rounds": 300, "beta": 0, "feedback": "all"},
    {"rounds": 300, "beta": 32768, "feedback": "all", "rdl_fp": 1000, "rdl_fn": 3000},
]


def replay(run):
    """The actions as a string, and a checksum over every region probability, ticket and final loss."""
    arguments = dict(run)
    rounds = arguments.pop("rounds")
    policy = H2T2(seed=rounds, **arguments)
    experts = policy.experts
    stream = Rng(7)
    actions = ""
    crc = 0
    late = 0
    for n in range(rounds):
        draw = stream.draw()
        k = draw * experts.n >> 15
        label = 1 if stream.draw() < draw else 0
        action = policy.decide(k)
        actions += "01-"[action]
        for value in (experts.offload, experts.one, experts.local, policy.ticket):
            crc = (crc * 31 + value) % 16777213
        if action == OFFLOAD:
            if n % 7 == 3:  # this label comes after the next one, with another cost, and twice
                late = policy.ticket
            else:
                policy.learn(policy.ticket, label)
                if late:
                    policy.learn(late, label, 16384)
                    policy.learn(late, label, 16384)
                    late = 0
    for value in experts.losses:
        crc = (crc * 31 + value) % 16777213
    counts = [policy.taught, policy.tickets.refused, policy.tickets.lost]
    return {"actions": actions, "crc": crc, "counts": counts, "rng": [policy.rng.x, policy.rng.y, policy.rng.z]}


if __name__ == "__main__":
    for run in RUNS:
        print(json.dumps(replay(run)))
