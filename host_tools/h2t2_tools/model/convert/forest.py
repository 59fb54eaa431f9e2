"""Decision trees of any library: random forests and gradient boosting, in floats."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

import numpy as np

from ...common.errors import UserError
from .scalers import Columns
from .trained_model import Encoding

Link = Literal["logistic", "softmax", "none"]


@dataclass(frozen=True)
class Tree:
    """A tree of n nodes; node 0 is its root, and every child stands behind its parent.

    Attributes:
        feature: The number that a node compares, (n,); -1 for a leaf.
        threshold: A sample goes `below` where its number is at most this, (n,).
        below, above: Children, (n,).
        value: What a leaf adds: to each output, from 0 up, (n, outputs), or to one output, (n, 1).
    """

    feature: np.ndarray
    threshold: np.ndarray
    below: np.ndarray
    above: np.ndarray
    value: np.ndarray

    def spans(self) -> np.ndarray:
        """The most by which an output of the leaves behind a node differs, (n,); 0 of a leaf."""
        low, high = self.value.astype(float), self.value.astype(float)
        for node in range(len(self.feature) - 1, -1, -1):
            if self.feature[node] >= 0:
                children = [int(self.below[node]), int(self.above[node])]
                low[node], high[node] = low[children].min(0), high[children].max(0)
        return np.asarray((high - low).max(1))

    def leaves(self, x: np.ndarray) -> np.ndarray:
        """The leaf that each sample (n, inputs) reaches."""
        node = np.zeros(len(x), np.int64)
        rows = np.arange(len(x))
        while len(inner := np.flatnonzero(self.feature[node] >= 0)):
            at = node[inner]
            passes = x[rows[inner], self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(passes, self.below[at], self.above[at])
        return node


@dataclass(frozen=True)
class Forest:
    """Trees whose leaves are summed, and what becomes of the sums.

    Attributes:
        kind: The model, in words.
        inputs: Numbers in a sample.
        trees: The trees.
        output: The output that each tree adds to, or None where each leaf has a value for every output.
        base: What the sums begin with, (outputs,).
        link: What makes scores of the sums: "logistic", "softmax", or "none", where they are scores.
        strict: Numbers equal to a threshold go `above`: each threshold is the float32 below the library's own.
        encoding: How scores() makes the trees' inputs of a sample, whose numbers come first; None: they are its numbers.
    """

    kind: str
    inputs: int
    trees: list[Tree]
    output: list[int] | None
    base: np.ndarray
    link: Link
    strict: bool = False
    _: KW_ONLY
    encoding: Encoding | None = None

    def sums(self, x: np.ndarray) -> np.ndarray:
        """The sums (n, outputs) of samples (n, inputs)."""
        total = np.tile(np.asarray(self.base, float), (len(x), 1))
        for n, tree in enumerate(self.trees):
            value = tree.value[tree.leaves(x)]
            if self.output is None:
                total += value
            else:
                total[:, self.output[n]] += value[:, 0]
        return total

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The scores (n, outputs) of samples (n, numbers)."""
        total = self.sums(self.encoding.apply(x) if self.encoding else x)
        if self.link == "logistic":
            return np.asarray(1 / (1 + np.exp(-np.clip(total, -60, 60))))
        if self.link == "softmax":
            total = np.exp(total - total.max(1, keepdims=True))
            return np.asarray(total / total.sum(1, keepdims=True))
        return total

    def complement(self) -> Forest:
        """The same trees of one output, which give 1 less its score."""
        trees = [replace(tree, value=-tree.value) for tree in self.trees]
        return replace(self, trees=trees, base=(0.0 if self.link == "logistic" else 1.0) - np.asarray(self.base, float))

    def behind(self, columns: Columns) -> Forest:
        """The same trees for the samples themselves, of which scalers make the columns that the trees compare."""
        if columns.mix is not None:
            raise UserError(f"{self.kind} behind a PCA: trees compare one number each: fit them on the numbers themselves")
        trees = []
        for tree in self.trees:
            at = np.maximum(tree.feature, 0)
            threshold = (tree.threshold - columns.offset[at]) / columns.factor[at]
            feature = np.where(tree.feature < 0, -1, columns.index[at])
            trees.append(Tree(feature, threshold, tree.below, tree.above, tree.value))
        return Forest(self.kind, columns.inputs, trees, self.output, self.base, self.link, self.strict)


def ordered(feature: np.ndarray, threshold: np.ndarray, below: np.ndarray, above: np.ndarray, value: np.ndarray) -> Tree:
    """The tree with its nodes in depth-first order. ValueError where a node has two parents, or a child is not there."""
    below, above = below.astype(np.int64), above.astype(np.int64)
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if not 0 <= node < len(feature) or len(order) > len(feature):
            raise ValueError(f"a tree of {len(feature)} nodes leads to node {node}")
        order.append(node)
        if feature[node] >= 0:
            waiting += [int(above[node]), int(below[node])]
    if len(set(order)) != len(order):
        raise ValueError("a tree's node has two parents")
    place = np.zeros(len(feature), np.int64)
    place[order] = np.arange(len(order))
    inner = feature[order] >= 0
    children = [np.where(inner, place[np.where(inner, side[order], 0)], 0) for side in (below, above)]
    compared, added = feature[order].astype(np.int64), value[order].astype(float)
    return Tree(compared, threshold[order].astype(float), children[0], children[1], added)
