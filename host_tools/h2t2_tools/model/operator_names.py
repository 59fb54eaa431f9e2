"""The names of TFLite's operators, each at its number in the schema (BuiltinOperator, version 3)."""

from ..common import places

TREES = "H2T2_TREES"  # the CUSTOM operator in which h2t2 keeps trees, the only one that boards run
NAMES = places.text("model/operator_names.txt").split()
