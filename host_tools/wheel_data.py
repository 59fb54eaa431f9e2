"""Collects the wheel's data from the folders: boards, examples, native modules, and the models that commands offer."""

import hashlib
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
    # the native module, built from the C file as it is, and this file, which `h2t2 firmware` compiles
    source = root / "firmware/native/kernels.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12] if source.exists() else ""
    if source.exists():
        targets[str(source)] = f"h2t2_tools/_native/{source.name}"
    for path in sorted((source.parent / "build").glob(f"*-{digest}.mpy")):
        targets[str(path)] = f"h2t2_tools/_native/{path.name.partition('-')[0]}.mpy"
    return targets


class CustomBuildHook(BuildHookInterface):
    """Adds the data to the wheel; an editable install reads the folders themselves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update(files(Path(self.root)))
