"""The folder in which a board's program runs."""

import json
import shutil

from h2t2_tools.boards.kinds import KINDS, content
from h2t2_tools.common import pairs
from h2t2_tools.fleet.config import NodeConfig, described


def configured(folder, name, **entries):
    """Write the configuration of a board, the pair's local model and its recorded samples."""
    pair = pairs.load(name)
    for file in ("ldl.h2m", "samples.bin"):
        shutil.copy(pair.folder / file, folder)
    if "app" in entries:
        entries["pair"] = str(pair.folder)
    config = NodeConfig(**{**described(pair.info), "device": "here", "broker": "127.0.0.1", "port": 9, **entries})
    (folder / "config.json").write_text(json.dumps(content(KINDS["unix"], config)))
