"""The pictures: running cost, expert weights. Colour-blind safe (Okabe and Ito's palette)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]


def running_cost(path: Path, policy: str, cost: np.ndarray, references: dict[str, np.ndarray], title: str) -> None:
    """Running average of the cost a sample, cost: (T,), beside the same of each reference policy on the same stream."""
    rounds = np.arange(1, len(cost) + 1)
    figure, axes = plt.subplots(figsize=(8, 4.5), constrained_layout=True)
    for (name, values), colour, style in zip(references.items(), COLOURS[1:], ("--", "-.", ":", (0, (5, 1)))):
        axes.plot(rounds, np.cumsum(values) / rounds, linestyle=style, color=colour, label=name)
    axes.plot(rounds, np.cumsum(cost) / rounds, color=COLOURS[0], linewidth=2.2, label=f"{policy} (learns online)")
    tail = [np.cumsum(v)[-1] / len(v) for v in [cost, *references.values()]]
    axes.set(xlabel="samples", ylabel="average cost a sample so far", title=title)
    axes.set_ylim(0, 1.6 * max(tail))
    axes.set_xlim(1, len(cost))
    axes.grid(alpha=0.3)
    axes.legend(ncols=2)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def weights(path: Path, a: np.ndarray, b: np.ndarray, best: tuple[int, int], title: str) -> None:
    """Heat map of the expert probabilities from the exponents a (lower thresholds) and b (upper), octaves, (N,) each."""
    exponent = np.asarray(a)[:, None] + np.asarray(b)[None, :]
    valid = np.triu(np.ones_like(exponent, bool))
    chance = np.where(valid, np.exp2(-(exponent - exponent[valid].min())), 0)
    chance /= chance.sum()
    shown = np.where(valid, np.log10(np.maximum(chance, 1e-12)), np.nan)
    figure, axes = plt.subplots(figsize=(6.2, 5), constrained_layout=True)
    image = axes.imshow(shown, origin="lower", cmap="cividis", vmin=-12, vmax=0)
    axes.plot(best[1], best[0], "o", mfc="none", mec="#D55E00", ms=14, mew=2, label="offline best pair")
    axes.set(xlabel="upper threshold (bin): 1 from here on", ylabel="lower threshold (bin): 0 below", title=title)
    axes.legend(loc="lower right")
    figure.colorbar(image, label="probability of the expert, log10 (cut at -12)")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def intervals(path: Path, bins: np.ndarray, region: list[float], switch: float, title: str) -> None:
    """What the calibrating policy knows: (low, p, high) a bin, (N, 3), beside the region where offloading is cheapest."""
    low, p, high = bins.T
    figure, axes = plt.subplots(figsize=(8, 4.5), constrained_layout=True)
    if region[0] < region[1]:
        axes.axhspan(*region, color=COLOURS[4], alpha=0.25, label="offloading is cheapest here")
    axes.axhline(switch, color=COLOURS[1], linestyle="--", label="class 1 becomes the cheaper one")
    axes.errorbar(np.arange(len(p)), p, (p - low, high - p), fmt="o", color=COLOURS[0], capsize=3, label="learned")
    axes.set(xlabel="score bin", ylabel="share of events", ylim=(-0.02, 1.02), title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)
