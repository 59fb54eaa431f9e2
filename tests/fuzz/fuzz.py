"""Coverage-guided fuzzing of one target for as long as you like. Needs atheris (pip install h2t2-edge[fuzz]).

python tests/fuzz/fuzz.py TARGET [-runs=1000000] [-max_total_time=3600] [CORPUS_FOLDER ...]; targets: python tests/fuzz/fuzz.py
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["h2t2", "h2t2_tools"]):
    import targets


def main(arguments):
    if len(arguments) < 2 or arguments[1] not in targets.TARGETS:
        print("targets:", " ".join(targets.TARGETS))
        return 2
    name = arguments[1]
    with tempfile.TemporaryDirectory(prefix="h2t2-fuzz-") as folder:
        for n, seed in enumerate(targets.seeds(name)):
            (Path(folder) / str(n)).write_bytes(seed)
        atheris.Setup([arguments[0], "-timeout=20", "-rss_limit_mb=2048", *arguments[2:], folder], targets.TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
