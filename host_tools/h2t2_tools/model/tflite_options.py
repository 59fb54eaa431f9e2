"""The options of TFLite's operators (schema version 3) that this package reads and writes."""

from typing import NamedTuple

from ..common import places, toml_file


class Option(NamedTuple):
    """One option: its attribute in LiteRT's generated schema, its field in the file, its struct code, and its default."""

    attribute: str
    field: int
    code: str
    default: int | float | str = 0


TEXT = "text"  # in place of a struct code
# operator -> (its table in the schema, name -> option)
OPTIONS: dict[str, tuple[str, dict[str, Option]]] = {
    operator: (entries.pop("table"), {name: Option(*option) for name, option in entries.items()})
    for operator, entries in toml_file.read_entries(places.PACKAGE / "model/tflite_options.toml").items()
}
