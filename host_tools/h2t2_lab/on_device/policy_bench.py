# Times the tree core, the adaptive policy and the dense matrix (plain lists) on MicroPython.
# It prints lines "kind bits microseconds-a-step checksum".
from time import ticks_diff, ticks_us

from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import Rng
from h2t2.core.policy import OFFLOAD


def stream(bits, rounds):
    rng = Rng(5)
    return [(rng.draw() + rng.draw() >> 1) >> 15 - bits for _ in range(rounds)]


def tree(bits, rounds):
    return step(H2T2(bits=bits, feedback="explored", exploration="epsilon"), stream(bits, rounds), rounds)


def usual(bits, rounds):
    return step(H2T2(bits=bits), stream(bits, rounds), rounds)


def adaptive(bits, rounds):
    return step(Adaptive(bits=bits), stream(bits, rounds), rounds)


def step(policy, bins, rounds):
    crc = 0
    start = ticks_us()
    for k in bins:
        action = policy.decide(k)
        if action == OFFLOAD:
            policy.learn(policy.ticket, 1)
        crc = (crc * 31 + action) % 16777213
    return ticks_diff(ticks_us(), start) / rounds, crc


def dense(bits, rounds):
    """Time Algorithm 1 on the matrix of experts, in floats, with one list a row."""
    n = 1 << bits
    w = [[1.0] * n for _ in range(n)]
    rng = Rng(1)
    bins = stream(bits, rounds)
    charge = 2.718281828**-0.3
    crc = 0
    start = ticks_us()
    for k in bins:
        zero = positive = offload = 0.0
        for i in range(n):
            row = w[i]
            for j in range(i, n):
                if k < i:
                    zero += row[j]
                elif j <= k:
                    positive += row[j]
                else:
                    offload += row[j]
        psi = rng.draw() / 32768 * (zero + positive + offload)
        explore = rng.draw() < 2048
        action = OFFLOAD if psi <= offload or explore else 1 if psi <= offload + positive else 0
        for i in range(k + 1):
            row = w[i]
            for j in range(k + 1, n):
                row[j] *= charge
        if explore:
            for i in range(k + 1, n):
                row = w[i]
                for j in range(i, n):
                    row[j] *= 1.1e-7
        crc = (crc * 31 + action) % 16777213
    return ticks_diff(ticks_us(), start) / rounds, crc


CORE = (4, 2000), (6, 2000), (8, 2000)
LISTS = (4, 2000), (6, 200), (8, 20)
for kind, run, sizes in (("tree", tree, CORE), ("usual", usual, CORE), ("adaptive", adaptive, CORE), ("dense", dense, LISTS)):
    for bits, rounds in sizes:
        print(kind, bits, *run(bits, rounds))
