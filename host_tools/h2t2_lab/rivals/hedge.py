"""The baseline with one threshold: Hedge over a continuum of thresholds on the confidence, compiled with numba."""

import numpy as np

from h2t2_tools.common.jit import njit, njit_nogil


@njit
def _log_add(x: float, y: float) -> float:
    """Return log(e^x + e^y). The logarithm of nothing is -inf."""
    if x < y:
        x, y = y, x
    return x + np.log1p(np.exp(y - x)) if x - y < 40 else x


@njit
def _tree(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-masses and the losses of a tree over intervals; its leaves are the second half."""
    size = 1
    while size < len(lengths):
        size <<= 1
    mass = np.full(2 * size, -np.inf)
    loss = np.zeros(2 * size)  # of node n: the sum, over ranks in its left half, of loss above minus loss below the rank
    for n in range(len(lengths)):
        mass[size + n] = np.log(lengths[n]) if lengths[n] > 0 else -np.inf
    for n in range(size - 1, 0, -1):
        mass[n] = _log_add(mass[2 * n], mass[2 * n + 1])
    return mass, loss


@njit
def _offload_probability(mass: np.ndarray, loss: np.ndarray, k: int) -> float:
    """Return the share of the mass above confidence k: walk to leaf k, which is the last that does not offload."""
    n = 1
    half = len(mass) >> 2
    shift = 0.0
    below = above = -np.inf
    while half:
        if k & half:
            below = _log_add(below, mass[2 * n] - shift)
            shift += loss[n]
            n = 2 * n + 1
        else:
            above = _log_add(above, mass[2 * n + 1] - shift - loss[n])
            n = 2 * n
        half >>= 1
    below = _log_add(below, mass[n] - shift)
    if above == -np.inf:
        return 0.0
    return float(1.0 / (1.0 + np.exp(min(700.0, below - above))))


@njit
def _lose(mass: np.ndarray, loss: np.ndarray, n: int, step: float) -> None:
    """Charge the thresholds of the leaves after n with `step` more than those up to n."""
    while n > 1:
        is_left = not n & 1
        n >>= 1
        if is_left:
            loss[n] += step
        mass[n] = _log_add(mass[2 * n], mass[2 * n + 1] - loss[n])


@njit_nogil
def single_threshold(
    ranks: np.ndarray,
    lengths: np.ndarray,
    costs: tuple[np.ndarray, np.ndarray],
    rates: tuple[float, float],
    draws: tuple[np.ndarray, np.ndarray],
    actions: np.ndarray,
) -> None:
    """Play HI with one threshold, exactly on the continuum: expert theta in [0, 1] offloads confidences below theta.

    The weights of two thresholds differ only if a confidence of the stream lies between them. They are therefore constant on
    the M + 1 intervals between the M distinct confidences. As in H2T2, an explored round charges the other experts with wrong /
    epsilon, and every round charges the offloading experts with beta.

    A round takes O(log M): a segment tree holds log-masses relative to the first interval of each node. loss[n] is the loss of
    the left half's intervals minus that of the right half's.

    Args:
        ranks: (T,) rank of each confidence, 0..M-1; the thresholds of intervals 0..rank do not offload the sample.
        lengths: (M + 1,) lengths of the intervals.
        costs: (T,) cost of the local class, and (T,) cost of an offload.
        rates: eta and epsilon.
        draws: (T,) uniform numbers for the decision, and (T,) for exploration.
        actions: (T,) becomes 1 for offloaded samples.
    """
    wrong, betas = costs
    eta, epsilon = rates
    psi, zeta = draws
    mass, loss = _tree(lengths)
    size = len(loss) // 2
    for t in range(len(ranks)):
        q = _offload_probability(mass, loss, ranks[t])
        explore = zeta[t] < epsilon
        actions[t] = psi[t] <= q or explore
        _lose(mass, loss, ranks[t] + size, eta * (betas[t] - (wrong[t] / epsilon if explore else 0.0)))
