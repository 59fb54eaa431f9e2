# Measures functions of the runtime while a policy plays. The host defines T(), ticks of the board's clock, NAME and ARGUMENTS
# of the policy, FEATURES of a sample, ROUNDS, and NAMES of functions ("module function" or "module class.method"). The script
# prints lines "name calls ticks".
import gc
import sys
from array import array

from h2t2.core import policies
from h2t2.core.numbers import Rng
from h2t2.core.policy import OFFLOAD

calls = ticks = 0


def timed(function):
    """Return a function that counts the ticks of each call."""

    def call(*arguments):
        global calls, ticks
        start = T()  # noqa: F821
        result = function(*arguments)
        ticks += T() - start & 0x3FFFFFFF  # noqa: F821
        calls += 1
        return result

    return call


def play():
    """Play the rounds, a label for each offload."""
    rng = Rng(5)
    policy = policies.make(NAME, ARGUMENTS)  # noqa: F821
    many = policy.classes > 2
    for n in range(ROUNDS):  # noqa: F821
        draw = rng.draw()
        sample = draw * policy.steps() >> 15
        if many:
            sample = [draw >> 2, 8192 - (draw >> 2), 8192]
        if FEATURES:  # noqa: F821
            values = sample if many else [draw >> 7]
            sample = array("h", values + [(rng.draw() >> 7) - 128 for _ in range(FEATURES)])  # noqa: F821
        if policy.decide(sample) == OFFLOAD:
            policy.learn(policy.ticket, n % policy.classes)
        gc.collect()


def homes(module, path):
    """Return the owners of a function: its class, or all modules that import it."""
    owner, _, name = path.rpartition(".")
    if owner:
        return [getattr(module, owner)], name
    function = getattr(module, name)
    return [each for each in sys.modules.values() if getattr(each, name, None) is function], name


def measure(module, path):
    """Print the calls of a function and their ticks, without those of reading the clock."""
    global calls, ticks
    owners, name = homes(module, path)
    function = getattr(owners[0], name)
    base = 0x3FFFFFFF
    for _ in range(32):  # the least: garbage may be collected between
        start = T()  # noqa: F821
        base = min(base, T() - start & 0x3FFFFFFF)  # noqa: F821
    calls = ticks = 0
    for owner in owners:
        setattr(owner, name, timed(function))
    play()
    for owner in owners:
        setattr(owner, name, function)
    if calls:
        print(module.__name__, path, calls, ticks - base * calls)


policies.make(NAME, ARGUMENTS)  # noqa: F821
for text in NAMES:  # noqa: F821
    module, path = text.split()
    if module in sys.modules:
        measure(sys.modules[module], path)
