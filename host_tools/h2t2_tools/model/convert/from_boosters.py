"""XGBoost, LightGBM and CatBoost: from the files that they save as JSON or text, which need no library, and from objects."""

import json
import math
import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ...common.places import temporary_folder
from . import int8_trees
from .forest import Forest, Link, Tree, ordered
from .trained_model import Encoding, NoInt8Form, Source

LIGHTGBM = "LightGBM"  # kind of a forest
MISSING_IS_ZERO = 1  # LightGBM's missing type, bits 2 and 3 of a decision
XGBOOST_LINKS: dict[str, Link] = {"binary:logistic": "logistic", "multi:softprob": "softmax", "multi:softmax": "softmax"}
LIGHTGBM_LINKS: dict[str, Link] = {"binary": "logistic", "multiclass": "softmax"}
MOST_ASKED = 1 << 16  # nodes of a tree that asks what is missing
WRONG_CONTENT = ValueError, KeyError, IndexError, TypeError, ArithmeticError, MemoryError  # what reading another file raises
CATBOOST_LINKS: dict[str, Link] = {"Logloss": "logistic", "CrossEntropy": "logistic", "MultiClass": "softmax"}
OBJECTIVES = (
    "binary:logistic, multi:softprob, multi:softmax (XGBoost), binary, multiclass (LightGBM), Logloss, MultiClass (CatBoost)"
)


def json_file(path: Path, missing: float | None = None) -> Source:
    """Open the JSON of XGBoost (save_model), of LightGBM (dump_model) or of CatBoost (save_model with format='json').

    missing: Of XGBoost: the number that counts as missing; None: none does. UserError for a file of another library.
    """
    try:
        content = json.loads(path.read_text())
        if "learner" in content:
            return _source(_xgboost(content["learner"], path, missing), path)
        if missing is not None:
            raise no_missing(path)
        if "tree_info" in content:
            return _source(_lightgbm_json(content, path), path)
        if "features_info" in content:
            return _source(_catboost(content, path), path)
    except (*WRONG_CONTENT, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path}: not a model that XGBoost, LightGBM or CatBoost saved: {type(error).__name__}: {error}"
        ) from None
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


def binary_file(path: Path, missing: float | None = None) -> Source:
    """Open XGBoost's .ubj by the library itself. missing: as json_file() takes it."""
    return _source(_of_xgboost(_booster(path), path, missing), path)


def no_missing(path: Path) -> UserError:
    """The error of a --missing-value for a file in which no such number can be meant."""
    return UserError(f"--missing-value: {path} is no .json or .ubj of XGBoost; other files say themselves what is missing")


def catboost_file(path: Path) -> Source:
    """Open CatBoost's .cbm by the library itself."""
    return _source(_of_catboost(_cat_model(path), path), path)


def _booster(path: Path) -> Any:
    xgboost = library(path, "xgboost", ", or save it as text, model.save_model('model.json')")
    return xgboost.Booster(model_file=str(path))


def _cat_model(path: Path) -> Any:
    catboost = library(path, "catboost", ", or save it as text, model.save_model('model.json', format='json')")
    return catboost.CatBoost().load_model(str(path))


def of_object(model: Any, path: Path) -> Forest:
    """The trees of a fitted LGBMClassifier, XGBClassifier or CatBoostClassifier."""
    name = type(model).__name__
    if name == "LGBMClassifier":
        return _lightgbm_text(model.booster_.model_to_string(), path)
    return _of_xgboost(model.get_booster(), path, model.missing) if name == "XGBClassifier" else _of_catboost(model, path)


def library(path: Path, name: str, remedy: str = "") -> Any:
    """The library that reads a file. UserError where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise UserError(f"{path}: {name}'s file needs that library: pip install {name}{remedy}") from None


def _of_xgboost(booster: Any, path: Path, missing: float | None) -> Forest:
    return _xgboost(json.loads(booster.save_raw("json").decode())["learner"], path, missing)


def _of_catboost(model: Any, path: Path) -> Forest:
    with temporary_folder("booster") as folder:
        model.save_model(str(Path(folder, "model.json")), format="json")
        return _catboost(json.loads(Path(folder, "model.json").read_text()), path)


def _catboost(content: dict[str, Any], path: Path) -> Forest:
    """Trees that ask the same on all nodes of a level."""
    objective = content["model_info"]["params"]["loss_function"]["type"]
    link = CATBOOST_LINKS.get(objective)
    if link is None:
        raise UserError(f"{path}: the objective {objective}: {OBJECTIVES} can be converted")
    if "oblivious_trees" not in content or content["features_info"].get("categorical_features"):
        raise NoInt8Form(f"{path}: trees with categories, or grown leaf by leaf: encode categories, leave grow_policy")
    features = content["features_info"]["float_features"]
    scale, base = content["scale_and_bias"]
    outputs = len(base)
    trees: list[Tree] = []
    output: list[int] = []
    for tree in content["oblivious_trees"]:
        values = np.array(tree["leaf_values"], float).reshape(-1, outputs) * scale
        splits = [
            (features[split["float_feature_index"]]["flat_feature_index"], split["border"]) for split in tree["splits"] or []
        ]
        trees += [_oblivious(splits, values[:, n]) for n in range(outputs)]
        output += range(outputs)
    inputs = max(feature["flat_feature_index"] for feature in features) + 1
    return Forest("CatBoost", inputs, trees, output, np.array(base, float), link)


def _oblivious(splits: list[tuple[int, float]], values: np.ndarray) -> Tree:
    """The tree of (feature, border) of each level; bit n of a leaf's number tells whether the number is above border n."""
    levels = len(splits)
    inner = (1 << levels) - 1
    level = np.array([(n + 1).bit_length() - 1 for n in range(inner)], int)
    feature, border = (np.array([split[k] for split in splits], float) for k in (0, 1))
    below = np.concatenate([2 * np.arange(inner) + 1, np.zeros(inner + 1)])
    paths = [sum((n >> levels - 1 - bit & 1) << bit for bit in range(levels)) for n in range(inner + 1)]
    ends = np.zeros(inner + 1)
    return ordered(
        np.concatenate([feature[level], ends - 1]), np.concatenate([border[level], ends]), below, below + 1,
        np.concatenate([np.zeros(inner), values[paths]])[:, None],
    )  # fmt: skip


def json_columns(path: Path) -> list[str] | None:
    """The names of the columns that a booster in a .json was fitted on; None where the library numbered them."""
    try:
        content = json.loads(path.read_text())
        if "features_info" in content:  # CatBoost's
            return own_names([str(feature["feature_id"]) for feature in content["features_info"]["float_features"]])
        return own_names(content.get("learner", content).get("feature_names") or [])
    except (*WRONG_CONTENT, AttributeError, RecursionError):  # json_file() says what is wrong
        return None


def text_columns(path: Path) -> list[str] | None:
    """The same of LightGBM's model.txt, which replaces blanks in names by "_"."""
    line = next((line for line in path.read_text().splitlines() if line.startswith("feature_names=")), "")
    return own_names(line.partition("=")[2].split())


def binary_columns(path: Path) -> list[str] | None:
    """The same of XGBoost's .ubj."""
    return own_names(_booster(path).feature_names or [])


def catboost_columns(path: Path) -> list[str] | None:
    """The same of CatBoost's .cbm."""
    return own_names(_cat_model(path).feature_names_)


def own_names(names: list[str]) -> list[str] | None:
    """Names that a user has given; None of numbers that a library made names of."""
    return None if all(re.fullmatch(r"(Column_|f)?\d+", name) for name in names) else [str(name) for name in names]


def _source(forest: Forest, path: Path) -> Source:
    """The source of a file's forest. XGBoost and CatBoost round a sample to float32 first; LightGBM compares doubles."""
    source = int8_trees.source(forest, path, path.stat().st_size)
    if forest.kind == LIGHTGBM:
        return source
    return replace(source, scores=lambda x: forest.scores(x.astype(np.float32)))


def _xgboost(learner: dict[str, Any], path: Path, missing: float | None) -> Forest:
    """missing: The number that counts as missing, NaN of an object that has none; None of a file, which does not say it."""
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
    numbers, signs = int(parameters["num_feature"]), _Signs(missing if missing is not None else math.nan)
    trees = [_xgboost_tree(tree, path, signs, numbers) for tree in booster["model"]["trees"]]
    for n, weight in enumerate(weights or []):
        trees[n] = replace(trees[n], value=trees[n].value * weight)
    round_trees = outputs * int(booster["model"]["gbtree_model_param"].get("num_parallel_tree", 1))
    best, rounds = best_rounds(learner.get("attributes", {})), len(trees) // round_trees
    notes = [f"the best {best} of {rounds} rounds"] if 0 < best < rounds else []
    notes += ["no number counts as missing, else --missing-value"] if missing is None else []
    notes += [f"{missing:g} counts as missing"] if missing is not None and missing == missing else []
    kind = f"XGBoost ({'; '.join(notes)})" if notes else "XGBoost"
    trees = trees[: best * round_trees or None]
    base = np.array([float(text) for text in str(parameters["base_score"]).strip("[]").split(",")])
    if link == "logistic":  # the file has the probability
        base = np.array([math.log(p / (1 - p)) for p in base])
    output = [int(n) for n in booster["model"]["tree_info"]][: len(trees)]
    return Forest(
        kind, numbers + len(signs.inputs), trees, output, np.broadcast_to(base, outputs), link, strict=True,
        encoding=signs.encoding(numbers),
    )  # fmt: skip


def best_rounds(attributes: dict[str, str]) -> int:
    """How many of XGBoost's rounds count after early stopping, as predict_proba() has it; 0: all. attributes: the booster's."""
    return int(attributes.get("best_iteration", -1)) + 1


@dataclass(frozen=True)
class _Signs:
    """Inputs that tell of a number whether it is missing.

    Attributes:
        missing: The number that counts as missing; NaN: none.
        inputs: A number of a sample -> its place among these inputs.
    """

    missing: float
    inputs: dict[int, int] = field(default_factory=dict)

    def encoding(self, numbers: int) -> Encoding | None:
        """How a sample of that many numbers becomes them and these inputs."""
        equal: list[float | None] = [*[None] * numbers, *[self.missing] * len(self.inputs)]
        return Encoding([*range(numbers), *self.inputs], None, equal) if self.inputs else None


def _xgboost_tree(tree: dict[str, Any], path: Path, signs: _Signs, numbers: int) -> Tree:
    """Numbers below the condition go left: the condition becomes the greatest float32 below it."""
    if any(tree.get("split_type", [])) or int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise NoInt8Form(
            f"{path}: trees with categories or with several outputs each: encode them as numbers, one output a tree"
        )
    below, above, condition = (np.array(tree[name]) for name in ("left_children", "right_children", "split_conditions"))
    feature = np.where(below < 0, -1, np.array(tree["split_indices"]))
    threshold = np.nextafter(condition.astype(np.float32), np.float32(-np.inf)).astype(float)
    default = np.where(np.array(tree["default_left"], bool), below, above)
    compared = np.where(np.float32(signs.missing) <= threshold, below, above)
    if signs.missing == signs.missing and ((default != compared) & (feature >= 0)).any():
        feature, threshold, below, above, source = _asking(
            feature, threshold, (below, above, default, compared), signs, numbers, path
        )
        condition = condition[source]
    return ordered(feature, threshold, below, above, condition[:, None])


def _asking(
    feature: np.ndarray, threshold: np.ndarray, children: tuple[np.ndarray, ...], signs: _Signs, numbers: int, path: Path
) -> tuple[np.ndarray, ...]:
    """A tree that first asks whether a number is missing, where a missing one goes another way than it compares.

    Args:
        feature, threshold: Of each node, (n,).
        children: Of each node: below, above, where a missing number goes, where it would go by comparing.
        signs: Gets an input for each number that is asked for.
        numbers: In a sample.
        path: The model's file.

    Returns:
        feature, threshold, below and above of the new nodes, and the old node of each.
    """
    below, above, default, compared = children
    rows: list[list[float]] = []

    def add(node: int, known: dict[int, bool]) -> int:
        number, place = int(feature[node]), len(rows)
        if place >= MOST_ASKED:
            raise NoInt8Form(f"{path}: trees too deep for a number that counts as missing: limit max_depth")
        asks = number >= 0 and default[node] != compared[node]
        if asks and known.get(number):
            return add(int(default[node]), known)
        if asks and number not in known:
            sign = numbers + signs.inputs.setdefault(number, len(signs.inputs))
            rows.append([sign, 0.5, 0, 0, node])
            sides = add(node, {**known, number: False}), add(int(default[node]), {**known, number: True})
        else:
            rows.append([number, threshold[node], 0, 0, node])
            sides = (add(int(below[node]), known), add(int(above[node]), known)) if number >= 0 else (0, 0)
        rows[place][2:4] = sides
        return place

    add(0, {})
    table = np.array(rows)
    return table[:, 0].astype(int), table[:, 1], *table[:, 2:].astype(int).T


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
    return Forest(LIGHTGBM, inputs, trees, output, np.zeros(outputs), link)


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
        raise NoInt8Form(f"{path}: trees with linear leaves: train with linear_tree=False")
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
        raise NoInt8Form(f"{path}: trees with categories: encode them as numbers before")
    if zero_is_missing:
        raise NoInt8Form(f"{path}: trees that take 0 for a missing number: train with zero_as_missing=False")


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
