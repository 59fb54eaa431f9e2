# The policy in ten lines: decide, offload if it says so, and teach it the label. It runs on CPython and on MicroPython.
from h2t2 import units
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import Rng
from h2t2.core.policy import OFFLOAD

BETA, DELTA_FP, DELTA_FN = 0.2, 0.7, 1.0  # costs of an offload, a false alarm and a missed event
ROUNDS = 5000
chance = Rng(7)


def sample():
    """Return (score bin 0..15, true class) of a classifier whose scores are only roughly right."""
    event = chance.draw() < 13000  # two samples in five
    score = (chance.draw() + chance.draw() + (20000 if event else 6000)) // 3
    return min(score >> 11, 15), int(event)


policy = H2T2(**units.policy(bits=4, beta=BETA, delta_fp=DELTA_FP, delta_fn=DELTA_FN))
cost = never = 0.0
for _ in range(ROUNDS):
    k, event = sample()
    action = policy.decide(k)
    if action == OFFLOAD:
        policy.learn(policy.ticket, event)  # the label may come late, out of order, twice or never
        cost += BETA
    elif action != event:
        cost += DELTA_FN if event else DELTA_FP
    guess = int(k >= 8)
    never += 0.0 if guess == event else DELTA_FN if event else DELTA_FP
print("policy %.3f  always asking %.3f  never asking %.3f" % (cost / ROUNDS, BETA, never / ROUNDS))
