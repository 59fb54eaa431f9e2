"""Streams with an order: chains of states that last, and streams that are made to fool a policy that remembers."""

from collections.abc import Callable

import numpy as np

from h2t2_tools.replay.simulation.stream import Stream

SHORTEST, LONGEST = 800, 15000  # samples of a chain
PERSISTENCE = 2, 2000  # mean rounds that a state lasts
SETTLED = 4000  # rounds after which the stream that turns around does so


def chain(number: int, samples: int, seed: int, beta: float) -> Stream:
    """Draw a chain of two to five states.

    Args:
        number: Which chain: its states, how long each lasts, how often it holds an event, and how well scores tell.
        samples: At most so many rounds; 0: as many as the chain has.
        seed: No effect, as a stream in its order is always the same.
        beta: Cost of an offload.
    """
    rng = np.random.default_rng([number, 53])
    length = int(np.exp(rng.uniform(*np.log((SHORTEST, LONGEST)))))
    states = int(rng.integers(2, 6))
    low, high = np.log(PERSISTENCE)
    lasts = np.exp(rng.uniform(low, high, states if rng.random() < 0.5 else 1)) * np.ones(states)
    events = rng.beta(0.25, 0.25, states)
    events[:2] = rng.beta(0.3, 6), 1 - rng.beta(0.5, 4)
    if rng.random() < 0.5:
        lasts[0] *= rng.uniform(2, 10)
    state = np.zeros(length, int)
    leaves = rng.random(length)
    for t in range(1, length):
        moves = leaves[t] < 1 / lasts[state[t - 1]]
        state[t] = (state[t - 1] + moves * rng.integers(1, states)) % states
    label = (rng.random(length) < events[state]).astype(np.int64)
    errs = rng.normal(0, 0.5, states) * (rng.random() < 0.6)  # of a state: the local model errs the same way while it lasts
    noise, keeps = rng.normal(size=length), rng.uniform(0, 0.95) * (rng.random() < 0.5)
    for t in range(1, length):
        noise[t] = keeps * noise[t - 1] + np.sqrt(1 - keeps**2) * noise[t]
    logit = rng.uniform(0.5, 2) * (rng.uniform(0, 1.3) * (2 * label - 1) + errs[state] + noise) + rng.normal(0, 0.5)
    stream = Stream(np.clip(1 / (1 + np.exp(-logit)), 0, 0.9999), label, np.full(length, beta))
    return stream.stretch(0, samples or length)


# name -> P(event) of round t, with u uniform in [0, 1) for each round
FOOLING: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "answers that alternate": lambda t, u: t % 2 == 1,
    "a period of seven rounds": lambda t, u: t % 7 < 3,
    "a period of a hundred rounds": lambda t, u: t % 100 < 50,
    "events where nobody asks": lambda t, u: (t % 64 > 8) & (t % 64 < 24),
    "lasting, then without order": lambda t, u: np.where(t < SETTLED, t % 800 < 400, u < 0.5),
    "lasting, then alternating": lambda t, u: np.where(t < SETTLED, t % 800 < 400, t % 2 == 1),
    "blocks of random length": lambda t, u: np.cumsum(u < 0.02) % 2 == 1,
}


def fooling(name: str, samples: int, seed: int, beta: float) -> Stream:
    """Draw one of FOOLING. Its scores say little: an event's is .1 higher on average."""
    rng = np.random.default_rng([seed, list(FOOLING).index(name), 7])
    label = FOOLING[name](np.arange(samples), rng.random(samples)).astype(np.int64)
    score = np.clip(rng.normal(0.45 + 0.1 * label, 0.2), 0, 0.9999)
    return Stream(score, label, np.full(samples, beta))


def shuffled(draw: Callable[..., Stream]) -> Callable[..., Stream]:
    """Return a maker of the same streams in random order."""

    def make(source: object, samples: int, seed: int, beta: float) -> Stream:
        stream = draw(source, samples, seed, beta)
        order = np.random.default_rng([seed, 8]).permutation(len(stream))
        return Stream(stream.score[order], stream.label[order], stream.beta[order])

    return make
