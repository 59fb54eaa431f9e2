# Measures each step of models on a board. The host defines T(), ticks of the board's clock, and MODELS: name and bytes of each
# bundle, and whether its whole inference is measured too. FOLDER holds the bundles, one after the other, as models.bin. The
# arena holds the same random bytes over and over. Lines: "model step ticks runs", for a whole inference "model run ticks runs".
import gc

from h2t2.core.numbers import Rng
from h2t2.ldl.bundle import Int8Model

SHORT = 4000  # a step that takes fewer ticks is repeated
REPEATS = 10
rng = Rng(9)
PATTERN = bytes([rng.draw() >> 7 for _ in range(251)])


def empty(arena, blob=None, p=None, k=None):
    pass


def ticks(run, arguments, repeats):
    gc.collect()
    start = T()  # noqa: F821
    for _ in range(repeats):
        run(*arguments)
    return T() - start & 0x3FFFFFFF  # noqa: F821


def took(name, label, run, arguments):
    spent, repeats = ticks(run, arguments, 1), 1
    if spent < SHORT:
        spent, repeats = ticks(run, arguments, REPEATS) - ticks(empty, arguments, REPEATS), REPEATS
    print(name, label, spent, repeats)


bundles = open(FOLDER + "models.bin", "rb")  # noqa: F821, SIM115
for name, size, with_inference in MODELS:  # noqa: F821
    model = None
    gc.collect()
    model = Int8Model(memoryview(bundles.read(size)), 0)
    sample = (PATTERN * (model.input_size // len(PATTERN) + 1))[: model.input_size]
    for at in range(0, len(model.arena), len(PATTERN)):
        length = min(len(PATTERN), len(model.arena) - at)
        model.arena[at : at + length] = PATTERN[:length]
    for n, (step, p, k) in enumerate(model.steps):
        took(name, n, step, (model.arena, model.blob, p, k))
    if with_inference:
        took(name, "run", model.run, (sample,))
