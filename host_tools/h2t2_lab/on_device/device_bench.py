# Measures single steps on a board. The host defines T(), ticks of the board's clock, and MODELS. FOLDER holds their bundles,
# head.h2u, the first bytes of a signed package, and key.bin, the modulus. The script prints lines "what repetitions ticks", and
# for each operator of a model "model number ticks".
import gc
from array import array
from binascii import crc32
from hashlib import sha256

from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import Rng
from h2t2.core.policy import OFFLOAD
from h2t2.ldl.open import open_ldl
from h2t2.link import wire
from h2t2.node import package, snapshot

HEAD_STEPS = 8  # steps of a policy with a head
STEPS = 40  # of a policy; the clock wraps after 40 million instructions


def since(start):
    return T() - start & 0x3FFFFFFF  # noqa: F821


def empty(n):
    pass


def took(name, run, repetitions):
    """Print the ticks of several calls of run(n), minus those of an empty function."""
    ticks = []
    for each in (empty, run):
        gc.collect()
        start = T()  # noqa: F821
        for n in range(repetitions):
            each(n)
        ticks.append(since(start))
    print(name, repetitions, ticks[1] - ticks[0])


def steps(policy, features=0):
    rng = Rng(5)
    samples = [(rng.draw() >> 11) * policy.steps() >> 4 for _ in range(STEPS)]
    if features:
        samples = [array("h", [k << 4] + [(rng.draw() >> 7) - 128 for _ in range(features)]) for k in samples[:HEAD_STEPS]]

    def step(n):
        if features:
            policy.sample = samples[n]  # a node has one array and fills it again
        if policy.decide(samples[n]) == OFFLOAD:
            policy.learn(policy.ticket, n & 1)

    return step


policy = H2T2()
took("H2T2", steps(policy), STEPS)
took("adaptive", steps(Adaptive()), STEPS)
costs = policy.cost_list()
took("snapshot", lambda n: [None for _ in snapshot.encode(policy, costs)[1]], 3)
took("snapshot_crc", lambda n: crc32(bytes(500)), 3)
data = bytes(64)
took("request", lambda n: wire.encode_request(1, 7, n, (8, 8, 1), data, remaining_ms=500, chance=3, k=2), 10)
kilobyte = bytes(1024)
took("sha256", lambda n: sha256(kilobyte).digest(), 5)
took("crc32", lambda n: crc32(kilobyte), 5)
head, modulus = FOLDER + "head.h2u", FOLDER + "key.bin"  # noqa: F821
with open(head, "rb") as file:
    head = file.read()
with open(modulus, "rb") as file:
    modulus = file.read()
assert package.genuine(head, modulus) and not package.genuine(head[:-1] + b"x", modulus)
took("package", lambda n: package.genuine(head, modulus), 1)
for name in MODELS:  # noqa: F821
    model = open_ldl(FOLDER + name, 0)  # noqa: F821
    for number, (step, p, k) in enumerate(model.steps):
        gc.collect()
        start = T()  # noqa: F821
        step(model.arena, model.blob, p, k)
        print(name, number, since(start))
model = head = modulus = None
try:
    from h2t2.core.ordered import Ordered

    took("ordered", steps(Ordered()), STEPS)
    from h2t2.core.adaptive_head import AdaptiveHead

    took("head", steps(AdaptiveHead(16), 16), HEAD_STEPS)
except MemoryError:  # on the smallest board, beside all of the above
    pass
