"""Collects the wheel's data from the folders: boards, examples, native modules, and the models that commands offer."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# the files of a trace, with the recording that docs/case.md reads;
# and of a pair: its models, description, test part, and the recipe that `h2t2 retrain` runs
TRACE = ("trace.npz", "hours.csv.gz")
PAIR = (*TRACE, "pair.json", "test.npz", "ldl.tflite", "rdl.tflite", "train.py", "prior.json")
FOLDERS = {"firmware/boards": "_boards", "firmware/examples": "_examples"}


def files(root: Path) -> dict[str, str]:
    """Path in the source tree -> path in the wheel."""
    targets = {str(root / source): f"h2t2_tools/{target}" for source, target in FOLDERS.items()}
    for folder in sorted((root / "models").iterdir()):
        for name in PAIR if (folder / "pair.json").exists() else TRACE:
            if (folder / name).exists():
                targets[str(folder / name)] = f"h2t2_tools/_models/{folder.name}/{name}"
    sys.path[:0] = [str(root / "firmware"), str(root / "host_tools")]
    from h2t2_tools.boards import native

    targets[str(native.source())] = f"h2t2_tools/{native.INSTALLED}/{native.source().name}"  # `h2t2 firmware` compiles it
    for path in (native.built(arch, name) for arch in native.ARCHITECTURES for name in native.NAMES):
        if path.exists():
            targets[str(path)] = f"h2t2_tools/{native.INSTALLED}/{path.name.rpartition('-')[0]}.mpy"
    return targets


class CustomBuildHook(BuildHookInterface):
    """Adds the data to the wheel; an editable install reads the folders themselves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update(files(Path(self.root)))
