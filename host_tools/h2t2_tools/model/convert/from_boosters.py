"""XGBoost and LightGBM from the files that they save as JSON or text. The libraries themselves are not needed."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from . import int8_trees
from .forest import Forest, Link, Tree, ordered
from .source import Source

MISSING_IS_ZERO = 1  # LightGBM's missing type, bits 2 and 3 of a decision
XGBOOST_LINKS: dict[str, Link] = {"binary:logistic": "logistic", "multi:softprob": "softmax", "multi:softmax": "softmax"}
LIGHTGBM_LINKS: dict[str, Link] = {"binary": "logistic", "multiclass": "softmax"}
WRONG_CONTENT = ValueError, KeyError, IndexError, TypeError, ArithmeticError, MemoryError  # what reading another file raises
OBJECTIVES = "binary:logistic, multi:softprob, multi:softmax (XGBoost), binary, multiclass (LightGBM)"


def json_file(path: Path) -> Source:
    """Open XGBoost's model.json (save_model) or LightGBM's dump_model() as JSON."""
    try:
        content = json.loads(path.read_text())
        if "learner" in content:
            return _source(_xgboost(content["learner"], path), path)
        if "tree_info" in content:
            return _source(_lightgbm_json(content, path), path)
    except (*WRONG_CONTENT, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: not a model that XGBoost or LightGBM saved: {type(error).__name__}: {error}") from None
    raise UserError(f"{path}: neither XGBoost's save_model('model.json') nor LightGBM's dump_model()")


def text_file(path: Path) -> Source:
    """Open LightGBM's model.txt (save_model)."""
    try:
        text = path.read_text()
        if text.startswith("tree\n"):
            return _source(_lightgbm_text(text, path), path)
    except WRONG_CONTENT as error:
        raise UserError(f"{path}: not a model that LightGBM saved: {type(error).__name__}: {error}") from None
    raise UserError(f"{path}: not LightGBM's save_model('model.txt')")


def binary_file(path: Path) -> Source:
    """Refuse XGBoost's binary file."""
    raise UserError(f"{path}: XGBoost's binary form: save it as text, model.save_model('model.json')")


def _source(forest: Forest, path: Path) -> Source:
    return int8_trees.source(forest, path, path.stat().st_size)


def _xgboost(learner: dict[str, Any], path: Path) -> Forest:
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    link = XGBOOST_LINKS.get(objective)
    if link is None:
        raise UserError(f"{path}: the objective {objective}: {OBJECTIVES} can be converted")
    weights = booster.get("weight_drop")  # of dart
    booster = booster.get("gbtree", booster)
    if "model" not in booster:
        raise UserError(f"{path}: the booster {booster.get('name')}: only gbtree and dart have trees")
    parameters = learner["learner_model_param"]
    outputs = max(int(parameters["num_class"]), 1)
    trees = [_xgboost_tree(tree, path) for tree in booster["model"]["trees"]]
    for n, weight in enumerate(weights or []):
        trees[n] = replace(trees[n], value=trees[n].value * weight)
    base = np.array([float(text) for text in str(parameters["base_score"]).strip("[]").split(",")])
    if link == "logistic":  # the file has the probability
        base = np.array([math.log(p / (1 - p)) for p in base])
    output = [int(n) for n in booster["model"]["tree_info"]]
    return Forest("XGBoost", int(parameters["num_feature"]), trees, output, np.broadcast_to(base, outputs), link, strict=True)


def _xgboost_tree(tree: dict[str, Any], path: Path) -> Tree:
    """Numbers below the condition go left: the condition becomes the greatest float32 below it."""
    if any(tree.get("split_type", [])) or int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UserError(
            f"{path}: trees with categories or with several outputs each: encode them as numbers, one output a tree"
        )
    below, above, condition = (np.array(tree[name]) for name in ("left_children", "right_children", "split_conditions"))
    feature = np.where(below < 0, -1, np.array(tree["split_indices"]))
    threshold = np.nextafter(condition.astype(np.float32), np.float32(-np.inf)).astype(float)
    return ordered(feature, threshold, below, above, condition[:, None])


def _lightgbm(objective: str, outputs: int, inputs: int, trees: list[Tree], average: bool, path: Path) -> Forest:
    name, *settings = objective.split()
    link = LIGHTGBM_LINKS.get(name)
    if link is None:
        raise UserError(f"{path}: the objective {name}: {OBJECTIVES} can be converted")
    slope = next((float(text.partition(":")[2]) for text in settings if text.startswith("sigmoid:")), 1.0)
    factor = slope * (outputs / len(trees) if average else 1)
    if factor != 1:
        trees = [replace(tree, value=tree.value * factor) for tree in trees]
    output = [n % outputs for n in range(len(trees))]
    return Forest("LightGBM", inputs, trees, output, np.zeros(outputs), link)


def _lightgbm_text(text: str, path: Path) -> Forest:
    head, *blocks = text.split("\nend of trees")[0].split("\nTree=")
    fields = dict(line.partition("=")[::2] for line in head.splitlines())
    trees = [_lightgbm_tree(dict(line.partition("=")[::2] for line in block.splitlines()[1:]), path) for block in blocks]
    average = "average_output" in fields
    outputs = int(fields["num_tree_per_iteration"])
    return _lightgbm(fields["objective"], outputs, int(fields["max_feature_idx"]) + 1, trees, average, path)


def _lightgbm_tree(fields: dict[str, str], path: Path) -> Tree:
    """A tree of its lines. A child below 0 is leaf -child - 1; inner nodes come first here."""
    if fields.get("is_linear", "0") != "0":
        raise UserError(f"{path}: trees with linear leaves: train with linear_tree=False")
    value = np.array(fields["leaf_value"].split(), float)
    if int(fields["num_leaves"]) < 2:
        return ordered(np.array([-1]), np.zeros(1), np.zeros(1, int), np.zeros(1, int), value[:1, None])
    feature = np.array(fields["split_feature"].split(), int)
    for decision in fields["decision_type"].split():
        _check_decision(int(decision) & 1 == 1, int(decision) >> 2 & 3 == MISSING_IS_ZERO, path)
    sides = [np.array(fields[name].split(), int) for name in ("left_child", "right_child")]
    below, above = (np.where(side < 0, len(feature) + ~side, side) for side in sides)
    ends = np.zeros(len(value))
    return ordered(
        np.concatenate([feature, ends - 1]), np.concatenate([np.array(fields["threshold"].split(), float), ends]),
        np.concatenate([below, ends]), np.concatenate([above, ends]), np.concatenate([np.zeros(len(feature)), value])[:, None],
    )  # fmt: skip


def _check_decision(is_category: bool, zero_is_missing: bool, path: Path) -> None:
    if is_category:
        raise UserError(f"{path}: trees with categories: encode them as numbers before")
    if zero_is_missing:
        raise UserError(f"{path}: trees that take 0 for a missing number: train with zero_as_missing=False")


def _lightgbm_json(content: dict[str, Any], path: Path) -> Forest:
    trees = [_nested(info["tree_structure"], path) for info in content["tree_info"]]
    outputs = int(content["num_tree_per_iteration"])
    average = bool(content.get("average_output"))
    return _lightgbm(content["objective"], outputs, int(content["max_feature_idx"]) + 1, trees, average, path)


def _nested(root: dict[str, Any], path: Path) -> Tree:
    """A tree whose nodes hold their children."""
    nodes, sides = [root], []
    for node in nodes:  # which grows
        if "split_feature" not in node:
            sides.append((0, 0))
            continue
        _check_decision(node["decision_type"] != "<=", node.get("missing_type") == "Zero", path)
        sides.append((len(nodes), len(nodes) + 1))
        nodes += [node["left_child"], node["right_child"]]
    below, above = np.array(sides).T
    feature = np.array([node.get("split_feature", -1) for node in nodes])
    threshold = np.array([float(node.get("threshold", 0)) for node in nodes])
    return ordered(feature, threshold, below, above, np.array([[float(node.get("leaf_value", 0))] for node in nodes]))
